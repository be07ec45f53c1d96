"""Who asks, and what that caller may do: told from the same decision that every request is let in by."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pleiad.catalog.resource import Kind
from pleiad.engine import access
from pleiad.engine.access import Caller, Grant, Target
from pleiad.engine.engine import Engine
from pleiad.engine.operation import Area, Operation, Reach
from pleiad.errors import PleiadError
from pleiad.heads.admin.answer import json_answer, key_to_json
from pleiad.heads.http.call import HttpCall
from pleiad.server.http.message import Response


def read(call: HttpCall) -> Response:
    """The rights of whoever signed the request or holds its token."""
    caller = call.caller
    allowed = [operation for operation in Operation if _may(caller, operation)]
    ends_at = caller.ends_at
    answer = {
        "caller": caller.role.value,
        "operations": [operation.word for operation in allowed],
        "mayWrite": any(operation.writes for operation in allowed),
        "mayAdminister": any(operation.area is Area.ADMIN for operation in allowed),
        "scope": None if caller.grant is None else _scope(call.engine, caller.grant),
        "endsAt": None if ends_at is None else datetime.fromtimestamp(ends_at, UTC).isoformat(),
    }
    return json_answer(call, answer)


def _may(caller: Caller, operation: Operation) -> bool:
    """Whether the caller may run an operation somewhere: with a resource token, on what that is for."""
    if operation.area is Area.OPEN:
        return False
    grant = caller.grant
    target = Target()
    if grant is not None:
        item = grant.item if operation.reach is Reach.ITEM else None  # only a path to an item names one
        target = Target(grant.container_rid, grant.key, True, item)
    try:
        access.check(caller, operation, target)
    except PleiadError:
        return False
    return True


def _scope(engine: Engine, grant: Grant) -> dict[str, Any]:
    container = engine.catalog.by_rid(Kind.CONTAINER, grant.container_rid)
    database = None if container is None else engine.catalog.by_rid(Kind.DATABASE, container.parent_rid)
    scope: dict[str, Any] = {
        "database": None if database is None else database.id,
        "container": None if container is None else container.id,
        "containerRid": grant.container_rid,
    }
    if grant.key is not None:
        scope["key"] = key_to_json(grant.key)
    if grant.item is not None:
        scope["item"] = grant.item.id
    return scope
