"""Request bytes as a Cosmos DB client sends them, signed with the master key.

A signature covers verb, resource type, resource link and date, so there is one per distinct item read and
date, and one per container and date for creates. Clients put the current second in the date; a list of
requests that passes over the items several times gets another second for each pass, so that no token repeats
within the list and a server that remembers tokens is not flattered by it.
"""

from __future__ import annotations

import base64
import hmac
import time
from email.utils import formatdate
from urllib.parse import quote

VERSION = "2020-07-15"


def date_text(seconds_ago: int = 0) -> str:
    """A moment of the recent past as ``x-ms-date`` spells it."""
    return formatdate(int(time.time()) - seconds_ago, usegmt=True)


def authorization(key: str, verb: str, resource_type: str, link: str, date: str) -> str:
    """The ``authorization`` header: an HMAC over five newline-terminated fields, percent-encoded."""
    text = f"{verb.lower()}\n{resource_type.lower()}\n{link}\n{date.lower()}\n\n"
    digest = hmac.digest(base64.b64decode(key), text.encode(), "sha256")
    return quote(f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}", safe="-_.!~*'()")


def headers(key: str, verb: str, resource_type: str, link: str, date: str) -> dict[str, str]:
    """The headers that every signed request carries."""
    return {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Cache-Control": "no-cache",
        "User-Agent": "pleiad-bench",
        "x-ms-version": VERSION,
        "x-ms-cosmos-sdk-supportedcapabilities": "1",
        "x-ms-date": date,
        "authorization": authorization(key, verb, resource_type, link, date),
    }


def encode(verb: str, path: str, host: str, fields: dict[str, str], body: bytes = b"") -> bytes:
    """One HTTP/1.1 request as bytes; the connection stays open."""
    lines = [f"{verb} {path} HTTP/1.1", f"Host: {host}", "Connection: keep-alive"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    if verb not in ("GET", "DELETE"):
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def read_item(host: str, key: str, container_link: str, item_id: str, pk: str, date: str) -> bytes:
    """A point read: one item by its id and partition key value."""
    link = f"{container_link}/docs/{item_id}"
    fields = headers(key, "GET", "docs", link, date)
    fields["x-ms-documentdb-partitionkey"] = f'["{pk}"]'
    return encode("GET", f"/{link}", host, fields)


class ItemCreates:
    """Creates in one container with one date: they share a signature, so it is computed once."""

    def __init__(self, host: str, key: str, container_link: str, date: str) -> None:
        self._host = host
        self._path = f"/{container_link}/docs"
        self._fields = headers(key, "POST", "docs", container_link, date)

    def create(self, pk: str, body: bytes) -> bytes:
        """The create of one item."""
        fields = {**self._fields, "x-ms-documentdb-partitionkey": f'["{pk}"]'}
        return encode("POST", self._path, self._host, fields, body)
