"""The system properties of an item: the etag, and the template that joins them to the stored body.

An etag is a function of container, LSN and time of write, so it needs no storage of its own and no random
source. Its quotes are part of its value, in the body and in headers alike.

Limits: container number below 2**32, LSN below 2**48, time below 2**48 seconds.
"""

from __future__ import annotations


def etag_template(container_number: int) -> str:
    """The etag of an item of one container: %-places for the low and high part of the LSN, and the time."""
    return f'"%08x-%04x-{_owner(container_number)}-%012x"'


def etag_of(container_number: int, lsn: int, ts: int) -> str:
    """The etag of the version that was written at ``lsn``; different for every (container, lsn, ts)."""
    return etag_template(container_number) % (lsn & 0xFFFFFFFF, lsn >> 32, ts)


def link_of_container(database_rid: str, container_rid: str) -> str:
    """The path of a container by rids, which items and scripts carry."""
    return f"dbs/{database_rid}/colls/{container_rid}/"


def item_template(docs_link: str, container_number: int) -> bytes:
    """The text of an item of one container: %-places for the body without its brace, a comma if it has members,
    the rid twice, the low and high part of the LSN, and the time twice.
    """
    return (
        f'%b%b"_rid":"%b","_self":"{docs_link}%b/","_etag":"\\"%08x-%04x-{_owner(container_number)}-%012x\\"",'
        '"_attachments":"attachments/","_ts":%d}'
    ).encode()


def shown_template(docs_link: str) -> bytes:
    """The same for an etag that is known: in the place of its parts one for it, without its quotes."""
    return (
        f'%b%b"_rid":"%b","_self":"{docs_link}%b/","_etag":"\\"%b\\"",'
        '"_attachments":"attachments/","_ts":%d}'
    ).encode()


def _owner(container_number: int) -> str:
    return f"{container_number >> 16:04x}-{container_number & 0xFFFF:04x}"


def lsn_of_etag(container_number: int, etag: str) -> int | None:
    """The LSN an item's etag stands for, or None when no item of this container ever had it."""
    digits = etag.strip('"').split("-")
    if len(digits) != 5:
        return None
    try:
        low, high, upper, lower, _ = (int(part, 16) for part in digits)
    except ValueError:
        return None
    return high << 32 | low if upper << 16 | lower == container_number else None
