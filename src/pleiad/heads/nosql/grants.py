"""What a resource token opens: bound to the resource that its permission's link meant when the token was issued.

A permission names a resource by a link; the token carries the rid of the container, and the document number of the
item. A container or item created anew under the same name is another one, and needs a new token: reading the permission
gives it. A token lasts as long as its permission, names the same resource, and its mode is the one the permission has
now.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from pleiad import errors
from pleiad.catalog.resource import Kind, Resource
from pleiad.engine import items_by_number
from pleiad.engine.access import Caller, Grant, GrantedItem, Role, Target
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.errors import PleiadError
from pleiad.heads.http import key_text
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.items import document_number, names_triggers
from pleiad.keys.value import KeyValue

_NO_NUMBER = 0
"""Documents are counted from 1."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What a link meant when a token was issued."""

    container_rid: str
    item: GrantedItem | None
    link: str
    """A fingerprint of the link and the partition key: a permission that names something else since is another one."""

    def to_json(self) -> list[Any]:
        item = self.item
        if item is None:
            return [self.link, self.container_rid]
        return [
            self.link,
            self.container_rid,
            item.id,
            item.epk.hex() if item.epk is not None else None,
            item.number,
        ]

    @staticmethod
    def from_json(value: Any) -> Binding:
        """The binding in a token that was signed here."""
        link, container_rid, *rest = value
        if not rest:
            return Binding(container_rid, None, link)
        id, epk, number = rest
        return Binding(
            container_rid, GrantedItem(id, bytes.fromhex(epk) if epk is not None else None, number), link
        )


async def bind(engine: Engine, permission: Resource) -> Binding:
    """What the link of a permission means now."""
    properties = permission.properties
    segments = properties["resource"].strip("/").split("/")
    link = _fingerprint(permission)
    container = container_named(engine, segments)
    rid = container.rid if container is not None else ""
    if len(segments) < 6:
        return Binding(rid, None, link)
    if container is None:
        return Binding(rid, GrantedItem(segments[5]), link)
    at_work = await engine.container(segments[1], segments[3])
    try:
        item = await _item(at_work, segments, _key(permission))
    except PleiadError:  # a rid of another container
        item = GrantedItem("", number=_NO_NUMBER)
    return Binding(at_work.resource.rid, item, link)


async def holder(engine: Engine, permission_rid: str, binding: Binding, ends_at: float) -> Caller:
    """The caller that a resource token makes, while its permission is there and names the same thing."""
    permission = engine.catalog.by_rid(Kind.PERMISSION, permission_rid)
    if permission is None:
        missing = errors.RESOURCE_NOT_FOUND(kind=Kind.PERMISSION.word, id=permission_rid)
        if await engine.second_look(missing):
            permission = engine.catalog.by_rid(Kind.PERMISSION, permission_rid)
    if permission is None:
        raise errors.FORBIDDEN(reason="The permission of this resource token does not exist any more.")
    if _fingerprint(permission) != binding.link:
        raise errors.FORBIDDEN(
            reason="The permission of this resource token names another resource now; read it again for a new token."
        )
    may_write = permission.properties["permissionMode"].lower() == "all"
    grant = Grant(binding.container_rid, binding.item, _key(permission), may_write)
    return Caller(Role.RESOURCE, grant, ends_at)


async def target_of(call: Call, engine: Engine, grant: Grant) -> Target:
    """What a request touches, as far as a grant asks; a path may have names or rids."""
    segments = call.resource_segments
    container = container_named(engine, segments)
    if container is None:
        return Target()
    at_work = await engine.container(segments[1], segments[3])
    key = call.key
    is_full = key is not None and len(key) == at_work.key.levels
    item = None
    if grant.item is not None and len(segments) == 6 and segments[4] == "docs":
        item = await _item(at_work, segments, key)
        if item.number == _NO_NUMBER:
            item = GrantedItem(item.id, item.epk)
        # The look at the item took a moment, in which the container may have become another one.
        container = container_named(engine, segments) or container
    return Target(container.rid, key, is_full, item, names_triggers(call))


def container_named(engine: Engine, segments: list[str]) -> Resource | None:
    """The container that a path is about or leads through."""
    if len(segments) < 4 or segments[0] != "dbs" or segments[2] != "colls":
        return None
    database = engine.catalog.find(Kind.DATABASE, "", segments[1])
    return None if database is None else engine.catalog.find(Kind.CONTAINER, database.rid, segments[3])


async def _item(container: Container, segments: list[str], key: tuple[KeyValue, ...] | None) -> GrantedItem:
    """The item of a name and key, or of a rid: its place where the key tells it, and its number where it is there."""
    number = document_number(container, segments)
    if number is not None:
        found = await items_by_number.row_of_number(container, number)
        return (
            GrantedItem(segments[5], None, number)
            if found is None
            else GrantedItem(found.id, found.epk, number)
        )
    id = segments[5]
    try:
        epk = container.epk_of(container.full_key(key))
    except PleiadError:
        return GrantedItem(id)
    row = await container.map.find(epk).read(epk, id)
    return GrantedItem(id, epk, _NO_NUMBER if row is None else row.number)


def _key(permission: Resource) -> tuple[KeyValue, ...] | None:
    """The partition key of a permission; whatever it names, it is never all keys."""
    properties = permission.properties
    if "resourcePartitionKey" not in properties:
        return None
    try:
        return key_text.read(orjson.dumps(properties["resourcePartitionKey"]).decode())
    except PleiadError:
        return ()


def _fingerprint(permission: Resource) -> str:
    properties = permission.properties
    named = orjson.dumps([properties["resource"], properties.get("resourcePartitionKey")])
    return blake2b(named, digest_size=8).hexdigest()
