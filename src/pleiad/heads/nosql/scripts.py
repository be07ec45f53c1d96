"""Stored procedures, triggers and user-defined functions over REST: their definitions, and execution."""

from __future__ import annotations

from urllib.parse import quote

import orjson

from pleiad import charge
from pleiad.catalog.resource import Kind, Resource
from pleiad.catalog.script import script_kind
from pleiad.engine import scripts
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.items import container_of
from pleiad.heads.nosql.metadata import feed_answer
from pleiad.heads.nosql.render import item_headers, resource_answer
from pleiad.item.body import load
from pleiad.server.message import Response

SEGMENTS = ("sprocs", "triggers", "udfs")
_LOG_HEADER_CHARS_MAX = 7_000
"""Usual HTTP clients read header lines of 8 KB."""


async def create(call: Call) -> Response:
    container = _container(call)
    script, is_new = await scripts.create(
        call.engine, script_kind(call.segments[4]), container, call.json_object(), call.is_upsert
    )
    return resource_answer(201 if is_new else 200, call, charge.metadata_write(), script.to_json())


async def read(call: Call) -> Response:
    return resource_answer(200, call, charge.metadata_read(), _find(call).to_json())


async def replace(call: Call) -> Response:
    script = await scripts.replace(call.engine, _find(call), call.json_object(), call.conditions.if_match)
    return resource_answer(200, call, charge.metadata_write(), script.to_json())


async def delete(call: Call) -> Response:
    await call.engine.delete(_find(call), call.conditions.if_match)
    return resource_answer(204, call, charge.metadata_write(), None)


async def list_or_query(call: Call) -> Response:
    container, kind = _container(call), script_kind(call.segments[4])
    return await feed_answer(call, kind, container.rid, call.engine.catalog.children(kind, container.rid))


async def execute(call: Call) -> Response:
    """Runs a stored procedure with the arguments in the body: a JSON array, or nothing."""
    procedure = _find(call)
    container = await container_of(call)
    is_logging = call.flag(b"x-ms-documentdb-script-enable-logging")
    answer = await scripts.execute(
        container,
        procedure,
        call.key,
        _arguments(call),
        is_logging,
        call.session_token(call.consistency()),
        call.lane,
    )
    block = item_headers(call, container, answer.partition, answer.charge.ru)
    if is_logging:
        block += f"x-ms-documentdb-script-log-results: {_log_text(answer.log)}\r\n"
    return Response(200, block.encode("latin-1"), answer.body)


def _arguments(call: Call) -> bytes:
    raw = call.request.body
    if not raw.strip():
        return b"[]"
    value = load(raw)
    # A client that sends one value and no array means one argument.
    return orjson.dumps(value if isinstance(value, list) else [value])


def _log_text(log: str) -> str:
    text = quote(log, safe="")
    if len(text) <= _LOG_HEADER_CHARS_MAX:
        return text
    return text[:_LOG_HEADER_CHARS_MAX].rpartition("%")[0]


def _container(call: Call) -> Resource:
    database = call.engine.database(call.segments[1], owner=True)
    return call.engine.find(Kind.CONTAINER, database, call.segments[3], owner=True)


def _find(call: Call) -> Resource:
    return call.engine.find(script_kind(call.segments[4]), _container(call), call.segments[5])
