"""Resource ids (``_rid``): numbers in base64, with ``-`` in place of ``/``.

    database    4 bytes   database
    container   8 bytes   database, container with the high bit of byte 4 set
    user        8 bytes   database, user with that bit clear
    document   16 bytes   container, then 7 bytes of number, the lowest first, and a last byte of 1
    child      16 bytes   container, then 7 bytes of number and a last byte whose high nibble is the kind
    permission 16 bytes   user, then 7 bytes of number and a zero byte
    offer       3 bytes

All numbers but those of documents have their highest byte first. The number of a document is its partition's number
(20 bits) and a sequence (36 bits), so no two partitions ever make the same one. Clients that merge partitions order
documents with equal sort keys by the last eight bytes, read with the lowest first; so read, rids increase with the
document number, which is the order in which a partition gives such documents.

Before, documents had the highest byte first too, and a last byte of 0. Nothing stored holds a rid: they are made from
the number when an item is rendered. A link of that form, kept by a client, still leads to its document.
"""

from __future__ import annotations

from binascii import Error as BinasciiError
from binascii import a2b_base64, b2a_base64
from typing import Final

from pleiad import errors
from pleiad.errors import PleiadError

KIND_DOCUMENT: Final = 0
KIND_CONFLICT: Final = 4
KIND_PARTITION_KEY_RANGE: Final = 5
KIND_UDF: Final = 6
KIND_TRIGGER: Final = 7
KIND_STORED_PROCEDURE: Final = 8

PARTITION_BITS: Final = 20
SEQUENCE_BITS: Final = 36

_CONTAINER_BIT = 0x80000000
LOWEST_BYTE_FIRST: Final = 1 << 56
"""Marks a document's number that is written with its lowest byte first; of a kind it says nothing."""


def encode(raw: bytes) -> str:
    """The text of a resource id."""
    return b2a_base64(raw, newline=False).decode().replace("/", "-")


def _invalid(rid: str) -> PleiadError:
    return errors.BAD_REQUEST(reason=f"The resource id '{rid}' is not valid.")


def decode(rid: str) -> bytes:
    """The bytes of a resource id; BAD_REQUEST when the text is none."""
    try:
        raw = a2b_base64(rid.replace("-", "/").encode("ascii"), strict_mode=True)
    except (BinasciiError, UnicodeEncodeError) as error:
        raise _invalid(rid) from error
    if encode(raw) != rid:
        raise _invalid(rid)
    return raw


def _child_bytes(number: int, kind_nibble: int = 0) -> bytes:
    return (number << 8 | kind_nibble << 4).to_bytes(8, "big")


def database_rid(number: int) -> str:
    return encode(number.to_bytes(4, "big"))


def _container_bytes(database_number: int, container_number: int) -> bytes:
    if container_number >= _CONTAINER_BIT:
        raise OverflowError("a container number has 31 bits")
    return (database_number << 32 | _CONTAINER_BIT | container_number).to_bytes(8, "big")


def _user_bytes(database_number: int, user_number: int) -> bytes:
    if user_number >= _CONTAINER_BIT:
        raise OverflowError("a user number has 31 bits")
    return (database_number << 32 | user_number).to_bytes(8, "big")


def container_rid(database_number: int, container_number: int) -> str:
    return encode(_container_bytes(database_number, container_number))


def user_rid(database_number: int, user_number: int) -> str:
    return encode(_user_bytes(database_number, user_number))


def permission_rid(database_number: int, user_number: int, number: int) -> str:
    return encode(_user_bytes(database_number, user_number) + _child_bytes(number))


def child_rid(database_number: int, container_number: int, kind_nibble: int, number: int) -> str:
    """The rid of a partition key range, stored procedure, trigger, function or conflict (see KIND_*)."""
    return encode(_container_bytes(database_number, container_number) + _child_bytes(number, kind_nibble))


def offer_rid(number: int) -> str:
    return encode(number.to_bytes(3, "big"))


def document_number(partition_number: int, sequence: int) -> int:
    """The number of a document within its container."""
    if partition_number >> PARTITION_BITS or sequence >> SEQUENCE_BITS:
        raise OverflowError("a partition number has 20 bits and a sequence 36")
    return partition_number << SEQUENCE_BITS | sequence


def document_rid_prefix(database_number: int, container_number: int) -> bytes:
    """What all document rids of a container share; computed once, for ``document_rid_of``."""
    return _container_bytes(database_number, container_number)


def document_rid_of(prefix: bytes, number: int) -> str:
    """The rid of a document from its container's prefix and its ``document_number``."""
    raw = prefix + (number | LOWEST_BYTE_FIRST).to_bytes(8, "little")
    return b2a_base64(raw, newline=False).decode().replace("/", "-")


def document_rid(database_number: int, container_number: int, partition_number: int, sequence: int) -> str:
    prefix = document_rid_prefix(database_number, container_number)
    return document_rid_of(prefix, document_number(partition_number, sequence))


def document_parts(rid: str) -> tuple[int, int, int]:
    """Database, container and document number of a document's rid; BAD_REQUEST for any other."""
    raw = decode(rid)
    if len(raw) != 16 or not raw[4] & 0x80 or raw[15] > 1:
        raise _invalid(rid)
    container_number = int.from_bytes(raw[4:8], "big") ^ _CONTAINER_BIT
    number = int.from_bytes(raw[8:15], "little" if raw[15] else "big")
    return int.from_bytes(raw[:4], "big"), container_number, number


PATH_SIZES_BYTES: Final = (4, 8, 16)
"""How long the rids of a path are, from the database down."""


def is_rid(text: str, size_bytes: int) -> bool:
    """Whether a text has the form of a rid of so many bytes."""
    try:
        return len(decode(text)) == size_bytes
    except PleiadError:
        return False


def looks_like_database_rid(text: str) -> bool:
    """Whether a path segment has the form of a database rid: 8 characters that decode to 4 bytes."""
    return len(text) == 8 and text.endswith("==") and is_rid(text, 4)
