"""Pages of a query that looks at everything before its first result: groups, order, rank and DISTINCT.

An ordered query goes on behind the sort key of its last result, so its pages hold together while others write; the
rest goes on behind the number of results given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson

from pleiad.engine import token as tokens
from pleiad.engine.functions import beside_the_loop
from pleiad.engine.query_job import SLICE_ROWS, QueryJob, looked_up
from pleiad.engine.query_order import ordered_page
from pleiad.engine.scan import Scan
from pleiad.keys.undefined import UNDEFINED
from pleiad.query import plan
from pleiad.store.contract import Row
from pleiad.store.selection import Selection

_State = dict[str, Any]


async def page(job: QueryJob, state: _State) -> tuple[list[bytes], _State | None]:
    """The next results, and the state of the page after them."""
    query = job.query
    if query.order_by and not query.is_aggregate and not query.distinct and query.is_per_item:
        return await ordered_page(job, state)
    first = "c" not in state
    if _is_plain_count(job):
        values = job.execution.slice([await _count(job)])
        job.tally.partitions = len(job.partitions) if first else 0
    else:
        values = await _values(job, first)
    given = tokens.whole_number(state, "c", job.request.token)
    return _cut(job, values, given)


def _cut(job: QueryJob, values: list[Any], given: int) -> tuple[list[bytes], _State | None]:
    """One page of a result that is known whole."""
    results: list[bytes] = []
    room_bytes = job.container.limits.response_bytes
    for value in values[given : given + job.request.items_max]:
        text = orjson.dumps(value)
        if results and len(text) > room_bytes:
            break
        room_bytes -= len(text)
        results.append(text)
    end = given + len(results)
    return results, {"c": end} if end < len(values) else None


async def _values(job: QueryJob, first: bool) -> list[Any]:
    """Every result of the query, in order."""
    execution, query = job.execution, job.query
    if not query.reads_items:
        return await beside_the_loop(job.functions, execution.run, ())
    if not query.is_per_item or job.functions:
        found = [job.item_of(row) async for row in candidates(job, first)]
        return await beside_the_loop(job.functions, execution.run, found)
    rows: list[Any] = []
    groups = execution.new_groups() if query.is_aggregate else None
    take = rows.append if groups is None else groups.add
    async for row in candidates(job, first):
        for number, bound in enumerate(execution.filter_rows(job.item_of(row)), 1):
            take(bound)
            if not number % SLICE_ROWS:
                await asyncio.sleep(0)
    if groups is not None:
        return execution.finish(groups)
    if query.order_by or query.is_ranked:
        rows = execution.sorted_rows(rows)
    return execution.outputs(rows)


async def candidates(job: QueryJob, first: bool) -> AsyncIterator[Row]:
    """The rows that the store's part of the filter leaves; other requests get their turn between slices.

    Only the first page of a query pays for finding and loading them.
    """
    if job.lookups is not None:
        for row in await looked_up(job, first):
            if first:
                job.loaded(row)
            yield row
        return
    if not job.spans:
        return
    scan = Scan(job.container, job.spans, (), job.pushdown.predicates)
    job.visits = scan.rows
    while chunk := await scan.chunk(SLICE_ROWS):
        for row in chunk:
            if first:
                job.loaded(row)
            yield row
        await asyncio.sleep(0)
    if first:
        job.tally.partitions = scan.partitions_visited


def _is_plain_count(job: QueryJob) -> bool:
    """Whether the result is one count that the store's predicates answer alone."""
    block = job.query.block
    return (
        job.pushdown.is_whole
        and job.lookups is None
        and bool(job.spans)
        and block.is_grouped
        and block.is_value
        and not block.group_by
        and not block.order_by
        and block.selection == plan.AggregateResult(0)
        and len(block.aggregates) == 1
        and block.aggregates[0].kind is plan.AggregateKind.COUNT
        and _is_always_defined(block.aggregates[0].argument)
    )


def _is_always_defined(node: plan.Expression) -> bool:
    return isinstance(node, plan.Slot) or (isinstance(node, plan.Constant) and node.value is not UNDEFINED)


async def _count(job: QueryJob) -> int:
    total = 0
    for span in job.spans:
        for partition in job.container.map.overlapping(span):
            part = partition.span.intersect(span)
            assert part is not None
            selection = Selection(part, job.pushdown.predicates, job.now, job.container.default_ttl)
            total += (await partition.count(selection, count_only=True))[0]
            await asyncio.sleep(0)
    return total
