"""Queries over REST: item queries and the query plan."""

from __future__ import annotations

from typing import Any

import orjson

from pleiad import charge, errors
from pleiad.engine import feed
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.items import ACCOUNT_CONSISTENCY, container_of, scope
from pleiad.heads.nosql.metadata import query_of
from pleiad.heads.nosql.render import feed_body, item_headers
from pleiad.item.body import load
from pleiad.query import QueryContext, compile_query
from pleiad.server.message import Response


async def query(call: Call) -> Response:
    container = await container_of(call)
    call.check_consistency(ACCOUNT_CONSISTENCY)
    text, parameters = query_of(call)
    compiled = compile_query(text, call.limits)
    span = scope(call, container)
    values: list[dict[str, Any]] = []
    token = ""
    partition = container.map.find(span.min)
    while True:
        page = await feed.page(container, span, token, 1000)
        values.extend(load(container.render(row, container.etag(row))) for row in page.rows)
        if page.token is None:
            break
        token = page.token
    results = compiled.run(values, parameters, QueryContext(limits=call.limits))
    given = call.text(b"x-ms-continuation")
    start = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 0
    rows = results[start : start + call.page_items()]
    cost = charge.query(partitions=len(container.map.overlapping(span)), items_returned=len(rows))
    block = item_headers(call, container, partition, cost.ru) + f"x-ms-item-count: {len(rows)}\r\n"
    if start + len(rows) < len(results):
        block += f"x-ms-continuation: {start + len(rows)}\r\n"
    body = feed_body(container.resource.rid, "Documents", [orjson.dumps(row) for row in rows], len(rows))
    return Response(200, block.encode("latin-1"), body)


async def plan(call: Call) -> Response:
    raise errors.UNSUPPORTED(what="The query plan")
