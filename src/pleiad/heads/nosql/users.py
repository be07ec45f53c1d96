"""Users, their permissions, and client encryption keys over REST.

A permission is answered with a fresh resource token; its life in seconds may be asked for in a header.
"""

from __future__ import annotations

import re
from typing import Any

from pleiad import charge, errors
from pleiad.catalog.resource import Kind, Resource
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.metadata import feed_answer
from pleiad.heads.nosql.render import resource_answer
from pleiad.server.message import Response

_BY_SEGMENT = {kind.segment: kind for kind in (Kind.USER, Kind.PERMISSION, Kind.ENCRYPTION_KEY)}
_MODES = ("read", "all")
_RESOURCE = re.compile(r"/?dbs/[^/]+/colls/[^/]+(/docs/[^/]+)?/?")
_EXPIRY = b"x-ms-documentdb-expiry-seconds"


class UserOperations:
    """The operations of the three kinds; permissions need the authenticator that signs their tokens."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def create(self, call: Call) -> Response:
        kind, parent = self._place(call)
        body = call.json_object()
        id, properties = body.get("id"), _properties(kind, body)
        if not isinstance(id, str):
            raise errors.MISSING_ID()
        child, is_new = await call.engine.create_child(kind, parent, id, properties, call.is_upsert)
        answer = self._render(call)(child)
        return resource_answer(201 if is_new else 200, call, charge.metadata_write(), answer)

    async def read(self, call: Call) -> Response:
        return resource_answer(200, call, charge.metadata_read(), self._render(call)(self._find(call)))

    async def replace(self, call: Call) -> Response:
        old = self._find(call)
        body = call.json_object()
        id = body.get("id", old.id)
        properties = _properties(old.kind, body)
        new = await call.engine.replace_child(old, id, properties, call.conditions.if_match)
        return resource_answer(200, call, charge.metadata_write(), self._render(call)(new))

    async def delete(self, call: Call) -> Response:
        await call.engine.delete(self._find(call), call.conditions.if_match)
        return resource_answer(204, call, charge.metadata_write(), None)

    async def list_or_query(self, call: Call) -> Response:
        kind, parent = self._place(call)
        children = call.engine.catalog.children(kind, parent.rid)
        return await feed_answer(call, kind, parent.rid, children, self._render(call))

    def _place(self, call: Call) -> tuple[Kind, Resource]:
        """The kind a path is about and the resource it stands under."""
        segments = call.segments
        database = call.engine.database(segments[1], owner=True)
        if len(segments) <= 4:
            return _BY_SEGMENT[segments[2]], database
        return Kind.PERMISSION, call.engine.find(Kind.USER, database, segments[3], owner=True)

    def _find(self, call: Call) -> Resource:
        kind, parent = self._place(call)
        return call.engine.find(kind, parent, call.segments[-1])

    def _render(self, call: Call) -> Any:
        seconds = _expiry(call)

        def render(resource: Resource) -> dict[str, Any]:
            value = resource.to_json()
            if resource.kind is Kind.PERMISSION:
                value["_token"] = self._authenticator.issue(resource, seconds)
            return value

        return render


def _properties(kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a body, checked by its kind."""
    if kind is Kind.USER:
        return {}
    if kind is Kind.ENCRYPTION_KEY:
        return {name: value for name, value in body.items() if name != "id" and not name.startswith("_")}
    mode, resource = body.get("permissionMode"), body.get("resource")
    if not isinstance(mode, str) or mode.lower() not in _MODES:
        raise errors.BAD_REQUEST(reason="'permissionMode' must be Read or All.")
    if not isinstance(resource, str) or not _RESOURCE.fullmatch(resource):
        raise errors.BAD_REQUEST(
            reason="'resource' must be the link of a container or an item, such as dbs/d/colls/c/docs/1."
        )
    properties: dict[str, Any] = {"permissionMode": mode, "resource": resource}
    if body.get("resourcePartitionKey") is not None:
        key = body["resourcePartitionKey"]
        if not isinstance(key, list):
            raise errors.BAD_REQUEST(reason="'resourcePartitionKey' must be a list of key values.")
        properties["resourcePartitionKey"] = key
    return properties


def _expiry(call: Call) -> int:
    limits = call.limits
    value = call.text(_EXPIRY)
    if not value:
        return limits.resource_token_seconds_default
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise errors.BAD_HEADER(
            name=_EXPIRY.decode(), value=value[:100], hint=" It must be a whole number of seconds."
        )
    seconds = int(value)
    if not limits.resource_token_seconds_min <= seconds <= limits.resource_token_seconds_max:
        raise errors.BAD_HEADER(
            name=_EXPIRY.decode(),
            value=value,
            hint=f" It must be between {limits.resource_token_seconds_min} and {limits.resource_token_seconds_max}.",
        )
    return seconds
