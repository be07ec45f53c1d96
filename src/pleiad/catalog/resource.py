"""A metadata resource: a database, container, script, offer, user or permission.

All of them share identity, version and links; what differs is `properties`, the JSON a client gave, checked by the
module of its kind. A resource is immutable: a change makes a new one with a new etag.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pleiad.store.catalog import Record


class Kind(Enum):
    """The kinds of metadata resources: the path segment, the name of its feed, and its words for messages."""

    DATABASE = ("dbs", "Databases", "database")
    CONTAINER = ("colls", "DocumentCollections", "container")
    USER = ("users", "Users", "user")
    PERMISSION = ("permissions", "Permissions", "permission")
    OFFER = ("offers", "Offers", "offer")
    STORED_PROCEDURE = ("sprocs", "StoredProcedures", "stored procedure")
    TRIGGER = ("triggers", "Triggers", "trigger")
    USER_DEFINED_FUNCTION = ("udfs", "UserDefinedFunctions", "user-defined function")
    ENCRYPTION_KEY = ("clientencryptionkeys", "ClientEncryptionKeys", "client encryption key")

    def __init__(self, segment: str, feed: str, word: str) -> None:
        self.segment = segment
        self.feed = feed
        self.word = word


_BY_SEGMENT = {kind.segment: kind for kind in Kind}

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

_LINKS: dict[Kind, dict[str, str]] = {
    Kind.DATABASE: {"_colls": "colls/", "_users": "users/"},
    Kind.CONTAINER: {
        "_docs": "docs/",
        "_sprocs": "sprocs/",
        "_triggers": "triggers/",
        "_udfs": "udfs/",
        "_conflicts": "conflicts/",
    },
    Kind.USER: {"_permissions": "permissions/"},
    Kind.PERMISSION: {},
    Kind.OFFER: {},
    Kind.STORED_PROCEDURE: {},
    Kind.TRIGGER: {},
    Kind.USER_DEFINED_FUNCTION: {},
    Kind.ENCRYPTION_KEY: {},
}


@dataclass(frozen=True, slots=True)
class Resource:
    """One metadata resource at one version."""

    kind: Kind
    rid: str
    parent_rid: str
    id: str
    number: int
    self_link: str
    ts: int
    etag: str
    properties: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The resource as clients see it: without the properties whose names begin with a dot, which are our own."""
        return {
            "id": self.id,
            **{name: value for name, value in self.properties.items() if not name.startswith(".")},
            "_rid": self.rid,
            "_self": self.self_link,
            "_etag": self.etag,
            "_ts": self.ts,
            **_LINKS[self.kind],
        }

    def changed(self, properties: dict[str, Any], id: str | None = None) -> Resource:
        """The next version of this resource."""
        return Resource(
            self.kind,
            self.rid,
            self.parent_rid,
            self.id if id is None else id,
            self.number,
            self.self_link,
            int(time.time()),
            new_etag(),
            properties,
        )

    def to_record(self) -> Record:
        body = {
            "number": self.number,
            "self": self.self_link,
            "ts": self.ts,
            "etag": self.etag,
            "properties": self.properties,
        }
        return Record(self.kind.segment, self.rid, self.parent_rid, self.id, body)


def from_record(record: Record) -> Resource:
    """The resource a catalog record holds."""
    body = record.body
    return Resource(
        _BY_SEGMENT[record.kind],
        record.rid,
        record.parent,
        record.name,
        body["number"],
        body["self"],
        body["ts"],
        body["etag"],
        body["properties"],
    )


def is_resource_record(record: Record) -> bool:
    return record.kind in _BY_SEGMENT


def new_etag() -> str:
    """A fresh etag for a metadata resource, with the quotes that belong to its value."""
    digits = secrets.token_hex(16)
    return f'"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"'
