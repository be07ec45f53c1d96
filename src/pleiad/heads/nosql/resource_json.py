"""Metadata resources as clients of this protocol see them: names of kinds, links by rids, paths by names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from pleiad.catalog.catalog import Catalog
from pleiad.catalog.resource import Kind, Resource

SEGMENTS: Mapping[Kind, str] = {
    Kind.DATABASE: "dbs",
    Kind.CONTAINER: "colls",
    Kind.USER: "users",
    Kind.PERMISSION: "permissions",
    Kind.OFFER: "offers",
    Kind.STORED_PROCEDURE: "sprocs",
    Kind.TRIGGER: "triggers",
    Kind.USER_DEFINED_FUNCTION: "udfs",
    Kind.ENCRYPTION_KEY: "clientencryptionkeys",
}
"""What stands in a path before the name of a resource."""
KINDS: Mapping[str, Kind] = {segment: kind for kind, segment in SEGMENTS.items()}
FEEDS: Mapping[Kind, str] = {
    Kind.DATABASE: "Databases",
    Kind.CONTAINER: "DocumentCollections",
    Kind.USER: "Users",
    Kind.PERMISSION: "Permissions",
    Kind.OFFER: "Offers",
    Kind.STORED_PROCEDURE: "StoredProcedures",
    Kind.TRIGGER: "Triggers",
    Kind.USER_DEFINED_FUNCTION: "UserDefinedFunctions",
    Kind.ENCRYPTION_KEY: "ClientEncryptionKeys",
}
"""What a list of resources is called."""

_LINKS: Mapping[Kind, Mapping[str, str]] = {
    Kind.DATABASE: {"_colls": "colls/", "_users": "users/"},
    Kind.CONTAINER: {
        "_docs": "docs/",
        "_sprocs": "sprocs/",
        "_triggers": "triggers/",
        "_udfs": "udfs/",
        "_conflicts": "conflicts/",
    },
    Kind.USER: {"_permissions": "permissions/"},
}


def to_json(catalog: Catalog, resource: Resource) -> dict[str, Any]:
    """A resource without the properties whose names begin with a dot, which are our own."""
    return {
        "id": resource.id,
        **{name: value for name, value in resource.properties.items() if not name.startswith(".")},
        "_rid": resource.rid,
        "_self": self_link(catalog, resource),
        "_etag": resource.etag,
        "_ts": resource.ts,
        **_LINKS.get(resource.kind, {}),
    }


def self_link(catalog: Catalog, resource: Resource) -> str:
    """The path of a resource by rids, such as dbs/AAAAAA==/colls/AAAAAIAAAAA=/."""
    owner = catalog.parent_of(resource)
    above = "" if owner is None else self_link(catalog, owner)
    return f"{above}{SEGMENTS[resource.kind]}/{resource.rid}/"


def path_of(catalog: Catalog, resource: Resource) -> str:
    """The path of a resource by names, such as dbs/d/colls/c, as a header carries it."""
    owner = catalog.parent_of(resource)
    above = "" if owner is None else f"{path_of(catalog, owner)}/"
    return f"{above}{SEGMENTS[resource.kind]}/{ascii_path(resource.id)}"


@lru_cache(maxsize=1024)
def ascii_path(path: str) -> str:
    """A path by names with characters beyond printable ASCII percent-encoded."""
    return path if path.isascii() and path.isprintable() else quote(path, safe="/ !#$&'()*+,:;=?@[]~")
