"""A metadata resource: a database, container, script, offer, user or permission.

All of them share identity and version; what differs is `properties`, the JSON a client gave, checked by the
module of its kind. A resource is immutable: a change makes a new one with a new etag.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pleiad import errors
from pleiad.store.catalog import Record


class Kind(Enum):
    """The kinds of metadata resources: the name that their records have in a store, and the one for messages."""

    DATABASE = ("dbs", "database")
    CONTAINER = ("colls", "container")
    USER = ("users", "user")
    PERMISSION = ("permissions", "permission")
    OFFER = ("offers", "offer")
    STORED_PROCEDURE = ("sprocs", "stored procedure")
    TRIGGER = ("triggers", "trigger")
    USER_DEFINED_FUNCTION = ("udfs", "user-defined function")
    ENCRYPTION_KEY = ("clientencryptionkeys", "client encryption key")

    def __init__(self, record: str, word: str) -> None:
        self.record = record
        self.word = word


_BY_RECORD = {kind.record: kind for kind in Kind}

PARENTS: dict[Kind, Kind] = {
    Kind.CONTAINER: Kind.DATABASE,
    Kind.USER: Kind.DATABASE,
    Kind.PERMISSION: Kind.USER,
    Kind.STORED_PROCEDURE: Kind.CONTAINER,
    Kind.TRIGGER: Kind.CONTAINER,
    Kind.USER_DEFINED_FUNCTION: Kind.CONTAINER,
    Kind.ENCRYPTION_KEY: Kind.DATABASE,
}
"""The kind that a resource stands under; databases and offers stand under the account."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One metadata resource at one version."""

    kind: Kind
    rid: str
    parent_rid: str
    id: str
    number: int
    ts: int
    etag: str
    properties: dict[str, Any] = field(default_factory=dict)

    def check_etag(self, if_match: str | None) -> None:
        """Raises when somebody means another version of this resource."""
        if if_match is not None and if_match not in ("*", self.etag):
            raise errors.PRECONDITION_FAILED()

    def changed(self, properties: dict[str, Any], id: str | None = None) -> Resource:
        """The next version of this resource."""
        return Resource(
            self.kind,
            self.rid,
            self.parent_rid,
            self.id if id is None else id,
            self.number,
            int(time.time()),
            new_etag(),
            properties,
        )

    def to_record(self) -> Record:
        body = {
            "number": self.number,
            "ts": self.ts,
            "etag": self.etag,
            "properties": self.properties,
        }
        return Record(self.kind.record, self.rid, self.parent_rid, self.id, body)


def from_record(record: Record) -> Resource:
    """The resource a catalog record holds."""
    body = record.body
    return Resource(
        _BY_RECORD[record.kind],
        record.rid,
        record.parent,
        record.name,
        body["number"],
        body["ts"],
        body["etag"],
        body["properties"],
    )


def is_resource_record(record: Record) -> bool:
    return record.kind in _BY_RECORD


def new_etag() -> str:
    """A fresh etag for a metadata resource, with the quotes that belong to its value."""
    digits = secrets.token_hex(16)
    return f'"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"'
