"""Offers over REST: the throughput of databases and containers."""

from __future__ import annotations

from pleiad import charge
from pleiad.catalog.resource import Kind
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.metadata import feed_answer
from pleiad.heads.nosql.render import resource_answer
from pleiad.server.message import Response


async def read(call: Call) -> Response:
    offer = call.engine.find(Kind.OFFER, None, call.segments[1])
    return resource_answer(200, call, charge.metadata_read(), offer.to_json())


async def replace(call: Call) -> Response:
    offer = await call.engine.replace_offer(call.segments[1], call.json_object(), call.conditions.if_match)
    return resource_answer(200, call, charge.metadata_write(), offer.to_json())


async def list_or_query(call: Call) -> Response:
    return feed_answer(call, Kind.OFFER, "", call.engine.catalog.all(Kind.OFFER))
