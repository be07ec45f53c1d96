"""Databases over REST."""

from __future__ import annotations

from pleiad import charge
from pleiad.catalog.catalog import ACCOUNT_RID
from pleiad.catalog.resource import Kind
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.metadata import feed_answer, throughput_of
from pleiad.heads.nosql.render import described, resource_answer
from pleiad.server.http.message import Response


async def create(call: Call) -> Response:
    body = call.json_object()
    database = await call.engine.create_database(body, throughput_of(call))
    return described(201, call, charge.metadata_write(), database)


async def read(call: Call) -> Response:
    database = call.engine.database(call.segments[1])
    return described(200, call, charge.metadata_read(), database)


async def delete(call: Call) -> Response:
    database = call.engine.database(call.segments[1])
    await call.engine.delete(database, call.conditions.if_match)
    return resource_answer(204, call, charge.metadata_write(), None)


async def list_or_query(call: Call) -> Response:
    return await feed_answer(
        call, Kind.DATABASE, "", call.engine.catalog.children(Kind.DATABASE, ACCOUNT_RID)
    )
