"""Stored procedures, triggers and user-defined functions over REST: their definitions, and execution."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson

from pleiad import charge, errors
from pleiad.catalog.resource import Kind, Resource
from pleiad.engine.beside import beside
from pleiad.engine.script import definition, execution
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.items import container_of
from pleiad.heads.nosql.metadata import feed_answer, scripts_kept
from pleiad.heads.nosql.render import described, item_headers, resource_answer
from pleiad.heads.nosql.resource_json import KINDS
from pleiad.item.body import load
from pleiad.server.http.message import Response

SEGMENTS = ("sprocs", "triggers", "udfs")
_ARGUMENTS_MAX = 65_535
_LOG_HEADER_CHARS_MAX = 7_000
"""Usual HTTP clients read header lines of 8 KB."""


async def create(call: Call) -> Response:
    container = _container(call)
    script, is_new = await definition.create(
        call.engine, KINDS[call.segments[4]], container, call.json_object(), call.is_upsert
    )
    return _answer(201 if is_new else 200, call, charge.metadata_write(), script)


async def read(call: Call) -> Response:
    script = _find(call)
    return _answer(200, call, charge.metadata_read(), script)


async def replace(call: Call) -> Response:
    script = await definition.replace(call.engine, _find(call), call.json_object(), call.conditions.if_match)
    return _answer(200, call, charge.metadata_write(), script)


async def delete(call: Call) -> Response:
    await call.engine.delete(_find(call), call.conditions.if_match)
    return resource_answer(204, call, charge.metadata_write(), None)


async def list_or_query(call: Call) -> Response:
    container, kind = _container(call), KINDS[call.segments[4]]
    return await feed_answer(call, kind, container.rid, call.engine.catalog.children(kind, container.rid))


async def execute(call: Call) -> Response:
    """Runs a stored procedure with the arguments in the body."""
    procedure = _find(call)
    container = await container_of(call)
    is_logging = call.flag(b"x-ms-documentdb-script-enable-logging")
    answer = await execution.execute(
        container,
        procedure,
        call.key,
        await beside(len(call.request.body), _arguments, call),
        is_logging,
        call.session(call.consistency()),
        call.lane,
    )
    block = item_headers(call, container, answer.partition, answer.charge.ru)
    if is_logging:
        block += f"x-ms-documentdb-script-log-results: {_log_text(answer.log)}\r\n"
    return Response(200, block.encode("latin-1"), answer.body)


def _answer(status: int, call: Call, cost: charge.Charge, script: Resource) -> Response:
    """The answer about one script: with how many its container may have, and has."""
    quota, usage = scripts_kept(call, script.parent_rid)
    extra = {"x_ms_resource_quota": quota, "x_ms_resource_usage": usage}
    return described(status, call, cost, script, None, **extra)


def _arguments(call: Call) -> bytes:
    """The arguments in a body as JavaScript's `apply` takes them: an array, or an object that passes for one."""
    raw = call.request.body
    if not raw.strip():
        return b"[]"
    try:
        value = load(raw)
    except orjson.JSONDecodeError as error:
        raise errors.BAD_JSON(reason=str(error)) from error
    if isinstance(value, list):
        return orjson.dumps(value)
    if value is not None and not isinstance(value, dict):
        raise errors.BAD_REQUEST(reason="The arguments of a stored procedure are a JSON array.")
    return orjson.dumps(_members(value or {}))


def _members(value: dict[str, Any]) -> dict[str, Any]:
    """An object with a plain `length` and what stands at the indexes below it; what is missing stays undefined."""
    length = value.get("length", 0)
    try:
        count = int(float(length)) if not isinstance(length, list | dict | None) else 0
    except (ValueError, OverflowError):
        count = 0
    if count > _ARGUMENTS_MAX:
        raise errors.BAD_REQUEST(reason=f"A stored procedure takes at most {_ARGUMENTS_MAX} arguments.")
    indexes = (str(index) for index in range(count))
    return {**{index: value[index] for index in indexes if index in value}, "length": max(count, 0)}


def _log_text(log: str) -> str:
    text = quote(log, safe="")
    if len(text) <= _LOG_HEADER_CHARS_MAX:
        return text
    return text[:_LOG_HEADER_CHARS_MAX].rpartition("%")[0]


def _container(call: Call) -> Resource:
    database = call.engine.database(call.segments[1], owner=True)
    return call.engine.find(Kind.CONTAINER, database, call.segments[3], owner=True)


def _find(call: Call) -> Resource:
    return call.engine.find(KINDS[call.segments[4]], _container(call), call.segments[5])
