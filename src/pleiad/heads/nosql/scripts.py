"""Stored procedures, triggers and user-defined functions over REST: their definitions, and execution."""

from __future__ import annotations

from urllib.parse import quote

from pleiad import charge, errors
from pleiad.catalog.resource import Kind, Resource
from pleiad.engine.script import definition, execution
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.items import container_of
from pleiad.heads.nosql.metadata import feed_answer, scripts_kept
from pleiad.heads.nosql.render import described, items_answer, resource_answer
from pleiad.heads.nosql.resource_json import KINDS
from pleiad.server.http.message import Response

SEGMENTS = ("sprocs", "triggers", "udfs")
_ECHO = "__.sys.echo"
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
    procedure = _echo(call) if call.segments[5] == _ECHO else _find(call)
    container = await container_of(call)
    is_logging = call.flag(b"x-ms-documentdb-script-enable-logging")
    answer = await execution.execute(
        container,
        procedure,
        call.key,
        _arguments(call),
        is_logging,
        call.session(call.consistency()),
        call.lane,
    )
    call.work, call.answer_bytes = answer, len(answer.body)
    more = (("x-ms-documentdb-script-log-results", _log_text(answer.log)),) if is_logging else ()
    partition, charge_ru = answer.partition, answer.charge.ru
    return items_answer(200, call, container, partition, charge_ru, call.key, answer.body, more=more)


def _echo(call: Call) -> Resource:
    """The procedure that every container of the service has: it answers with its argument."""
    source = "function (value) { getContext().getResponse().setBody(value); }"
    return Resource(Kind.STORED_PROCEDURE, "", _container(call).rid, _ECHO, 0, 0, "", {"body": source})


def _answer(status: int, call: Call, cost: charge.Charge, script: Resource) -> Response:
    """The answer about one script: with how many its container may have, and has."""
    quota, usage = scripts_kept(call, script.parent_rid)
    extra = {"x_ms_resource_quota": quota, "x_ms_resource_usage": usage}
    return described(status, call, cost, script, None, **extra)


def _arguments(call: Call) -> str:
    """The text in a body that the script process reads arguments from, as JavaScript's `apply` takes them."""
    try:
        return call.request.body.decode() if call.request.body.strip() else "[]"
    except UnicodeDecodeError:
        raise errors.BAD_JSON(reason="the text is not valid UTF-8.") from None


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
