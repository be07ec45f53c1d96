"""The conflicts feed over REST.

Conflicts arise between write regions. An account with one region has none: its feed is empty and every conflict id
is unknown.
"""

from __future__ import annotations

from pleiad import charge, errors
from pleiad.heads.http.query_body import query_of
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.items import container_of, is_confined, scope
from pleiad.heads.nosql.queries import CROSS_PARTITION
from pleiad.heads.nosql.render import resource_answer
from pleiad.query import compile_query, compile_turn
from pleiad.query.pace import Pace
from pleiad.server.http.message import Response


async def list_or_query(call: Call) -> Response:
    container = await container_of(call)
    if call.method == "POST":
        scope(call, container)  # a range that is no more is told
        if not (call.key is not None or is_confined(call) or call.flag(CROSS_PARTITION)):
            raise errors.CROSS_PARTITION_DISABLED()
        text = (await query_of(call)).text
        with Pace.of_request(call.limits) as pace:
            async with compile_turn(pace, text):
                await pace.run(compile_query, text, call.limits)
    body = {"_rid": container.resource.rid, "Conflicts": [], "_count": 0}
    return resource_answer(200, call, charge.metadata_read(), body, x_ms_item_count="0")


async def not_found(call: Call) -> Response:
    await container_of(call)
    raise errors.RESOURCE_NOT_FOUND(kind="conflict", id=call.segments[5])
