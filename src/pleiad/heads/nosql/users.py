"""Users, their permissions, and client encryption keys over REST.

A permission is answered with a fresh resource token; its life in seconds may be asked for in a header.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from pleiad import charge, errors
from pleiad.catalog.resource import Kind, Resource
from pleiad.heads.http import key_text
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.grants import bind, container_named
from pleiad.heads.nosql.metadata import feed_answer
from pleiad.heads.nosql.render import described, resource_answer
from pleiad.heads.nosql.resource_json import KINDS, to_json
from pleiad.keys.definition import KeyDefinition
from pleiad.keys.hash import V1_STRING_BYTES_MAX
from pleiad.server.http.failures import BAD_HEADER
from pleiad.server.http.message import Response

_MODES = ("read", "all")
_RESOURCE = re.compile(r"/?dbs/[^/]+/colls/[^/]+(/docs/[^/]+)?/?")
_CREATED = ".created"
_KEY_VALUES_MAX = 100
"""More than any key has: what is longer is not looked at, which would take long."""
_EXPIRY = b"x-ms-documentdb-expiry-seconds"


class UserOperations:
    """The operations of the three kinds; permissions need the authenticator that signs their tokens."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def create(self, call: Call) -> Response:
        kind, parent = self._place(call)
        body = call.json_object()
        id, properties = body.get("id"), _properties(kind, body, int(time.time()))
        if not isinstance(id, str):
            raise errors.MISSING_ID()
        if kind is Kind.PERMISSION:
            _expiry(call)
            _check_key_levels(call, properties)
        child, is_new = await call.engine.create_child(kind, parent, id, properties, call.is_upsert)
        render = await self._renderer(call, [child])
        return described(201 if is_new else 200, call, charge.metadata_write(), child, render(child))

    async def read(self, call: Call) -> Response:
        found = self._find(call)
        render = await self._renderer(call, [found])
        return described(200, call, charge.metadata_read(), found, render(found))

    async def replace(self, call: Call) -> Response:
        old = self._find(call)
        body = call.json_object()
        id = body.get("id", old.id)
        properties = _properties(old.kind, body, _created(old))
        if old.kind is Kind.PERMISSION:
            _expiry(call)
            _check_key_levels(call, properties)
        new = await call.engine.replace_child(old, id, properties, call.conditions.if_match)
        render = await self._renderer(call, [new])
        return described(200, call, charge.metadata_write(), new, render(new))

    async def delete(self, call: Call) -> Response:
        await call.engine.delete(self._find(call), call.conditions.if_match)
        return resource_answer(204, call, charge.metadata_write(), None)

    async def list_or_query(self, call: Call) -> Response:
        kind, parent = self._place(call)
        children = call.engine.catalog.children(kind, parent.rid)
        return await feed_answer(call, kind, parent.rid, children, await self._renderer(call, children))

    def _place(self, call: Call) -> tuple[Kind, Resource]:
        """The kind a path is about and the resource it stands under."""
        segments = call.segments
        database = call.engine.database(segments[1], owner=True)
        if len(segments) <= 4:
            return KINDS[segments[2]], database
        return Kind.PERMISSION, call.engine.find(Kind.USER, database, segments[3], owner=True)

    def _find(self, call: Call) -> Resource:
        kind, parent = self._place(call)
        return call.engine.find(kind, parent, call.segments[-1])

    async def _renderer(
        self, call: Call, resources: Sequence[Resource]
    ) -> Callable[[Resource], dict[str, Any]]:
        """How these are shown: permissions with a token for what their links mean now."""
        seconds = _expiry(call)
        permissions = [each for each in resources if each.kind is Kind.PERMISSION]
        bound = {each.rid: await bind(call.engine, each) for each in permissions}

        def render(resource: Resource) -> dict[str, Any]:
            value = to_json(call.engine.catalog, resource)
            if resource.kind is Kind.PERMISSION:
                binding = bound[resource.rid].to_json()
                value["_token"] = self._authenticator.issue(resource, binding, seconds)
            if resource.kind is Kind.ENCRYPTION_KEY:
                value["_cts"] = _created(resource)
            return value

        return render


def _created(resource: Resource) -> int:
    """When a client encryption key was made, in seconds; one of before this was kept shows its last change."""
    return int(resource.properties.get(_CREATED, resource.ts))


def _properties(kind: Kind, body: dict[str, Any], created: int) -> dict[str, Any]:
    """What is kept of a body, checked by its kind."""
    if kind is Kind.USER:
        return {}
    if kind is Kind.ENCRYPTION_KEY:
        kept = {name: value for name, value in body.items() if name != "id" and name[:1] not in ("_", ".")}
        return {**kept, _CREATED: created}
    mode, resource = body.get("permissionMode"), body.get("resource")
    if not isinstance(mode, str) or mode.lower() not in _MODES:
        raise errors.BAD_REQUEST(reason="'permissionMode' must be Read or All.")
    if not isinstance(resource, str) or not _RESOURCE.fullmatch(resource):
        raise errors.BAD_REQUEST(
            reason="'resource' must be the link of a container or an item, such as dbs/d/colls/c/docs/1."
        )
    properties: dict[str, Any] = {"permissionMode": mode, "resource": resource}
    if "resourcePartitionKey" in body:
        properties["resourcePartitionKey"] = _checked_key(body["resourcePartitionKey"])
    return properties


def _checked_key(given: Any) -> list[Any]:
    """The partition key of a permission. What is none is refused: taken for no key, it would open every key."""
    if not isinstance(given, list) or not 0 < len(given) <= _KEY_VALUES_MAX:
        raise errors.BAD_REQUEST(
            reason="'resourcePartitionKey' must be a list with the values of one partition key; leave it out for all."
        )
    key_text.read(orjson.dumps(given).decode())
    return given


def _check_key_levels(call: Call, properties: dict[str, Any]) -> None:
    """Refuses what would open more than one key: a prefix of a hierarchical key, or a value that shares its hash."""
    key = properties.get("resourcePartitionKey")
    container = container_named(call.engine, properties["resource"].strip("/").split("/"))
    if key is None or container is None:
        return
    levels = len(container.properties["partitionKey"]["paths"])
    if len(key) != levels:
        raise errors.BAD_REQUEST(
            reason=f"'resourcePartitionKey' must have the {levels} levels of the container's partition key, "
            f"and has {len(key)}."
        )
    definition = KeyDefinition.from_json(container.properties["partitionKey"], call.limits)
    if definition.version == 1 and any(
        isinstance(value, str) and len(value.encode("utf-8", "surrogatepass")) >= V1_STRING_BYTES_MAX
        for value in key
    ):
        raise errors.BAD_REQUEST(
            reason=f"'resourcePartitionKey' has a value of {V1_STRING_BYTES_MAX} bytes or more: under a partition key "
            "of version 1 it shares its logical partition with other values."
        )


def _expiry(call: Call) -> int:
    limits = call.limits
    value = call.text(_EXPIRY)
    if not value:
        return limits.resource_token_seconds_default
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise BAD_HEADER(
            name=_EXPIRY.decode(), value=value[:100], hint=" It must be a whole number of seconds."
        )
    seconds = int(value)
    if not limits.resource_token_seconds_min <= seconds <= limits.resource_token_seconds_max:
        raise BAD_HEADER(
            name=_EXPIRY.decode(),
            value=value,
            hint=f" It must be between {limits.resource_token_seconds_min} and {limits.resource_token_seconds_max}.",
        )
    return seconds
