"""Feeds and queries of a script: over one logical partition, as the script's transaction sees it.

The rows are those of the transaction's moment, with what the transaction changed in their places and what it created
behind them. No physical index is asked, since an index knows the last commit and not that moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from pleiad import charge, errors
from pleiad.charge import Charge
from pleiad.engine.items import Key
from pleiad.engine.pages.script import (
    ScriptResultsPageState,
    ScriptRowsPageState,
    bad_script_continuation,
)
from pleiad.engine.query.functions import NO_FUNCTIONS, functions_beside
from pleiad.engine.script.clock import Clock
from pleiad.engine.transaction import Transaction
from pleiad.item.body import load
from pleiad.keys.range import prefix_range
from pleiad.limits import MB
from pleiad.query import Execution, Query, compile_query, compile_turn
from pleiad.query.measure import all_rendered
from pleiad.query.order_rules import check_order_by
from pleiad.query.pace import Pace
from pleiad.query.pushdown import pushdown
from pleiad.script.process import ScriptProcess
from pleiad.store.rows import Row
from pleiad.store.segments import Snapshot

_CHUNK_ROWS = 200
_CHUNK_BYTES = 2 * MB


class ScriptPage(NamedTuple):
    """One page of a feed or query as JSON texts."""

    results: list[bytes]
    charge: Charge
    continuation: str | None


class ScriptQueries:
    """The feeds and queries of one transaction."""

    def __init__(
        self,
        transaction: Transaction,
        key: Key,
        snapshot: Callable[[], Snapshot],
        process: ScriptProcess,
        clock: Clock,
    ) -> None:
        self._transaction = transaction
        self._container = transaction.container
        self._span = prefix_range(key, self._container.key)
        self._snapshot = snapshot
        self._process = process
        self._clock = clock

    async def page(self, operation: dict[str, Any]) -> ScriptPage:
        """The page that an operation of a script asks for."""
        most = self._page_items(operation.get("pageSize"))
        continuation = operation.get("continuation") or ""
        if not isinstance(continuation, str):
            raise bad_script_continuation()
        if operation.get("do") == "feed":
            return await self._feed(most, ScriptRowsPageState.from_text(continuation))
        text, parameters = _asked(operation.get("query"))
        with Pace(self._container.limits, max(self._clock.seconds_left, 0.0)) as pace:
            execution = await self._execution(pace, text, parameters)
            query = execution.query
            if query.is_per_item and query.reads_items and not _is_whole(query, execution):
                return await self._streamed(execution, most, ScriptRowsPageState.from_text(continuation))
            return await self._whole(execution, most, ScriptResultsPageState.from_text(continuation))

    def _page_items(self, given: object) -> int:
        limits = self._container.limits
        if given is None:
            return limits.page_items
        if isinstance(given, bool) or not isinstance(given, int | float) or not (given == -1 or given >= 1):
            raise errors.BAD_REQUEST(reason="'pageSize' must be -1 or at least 1.")
        return limits.page_items_max if given == -1 else int(min(given, limits.page_items_max))

    async def _execution(self, pace: Pace, text: str, parameters: dict[str, Any]) -> Execution:
        container = self._container
        async with compile_turn(pace, text):
            query = await pace.run(compile_query, text, container.limits)
            if query.order_by:
                check_order_by(
                    query.plan, container.definition.indexing, parameters, container.computed_names
                )
            names, functions = query.plan.udfs, NO_FUNCTIONS
            if names:
                functions = await functions_beside(container, self._process, names, pace)
            return await pace.run(query.execution, parameters, container.query_context(pace, functions))

    # -- rows --------------------------------------------------------------------------------------

    async def _rows(self, after: int = 0) -> AsyncIterator[Row]:
        """The live rows above a document number in the order of their numbers."""
        changed, container = self._transaction.changed, self._container
        now, last = self._transaction.now, after
        while True:
            chunk = await self._snapshot().scan(self._span, last, _CHUNK_ROWS, _CHUNK_BYTES)
            for row in chunk:
                seen = changed.get(row.id, row)
                if seen is not None and seen.number == row.number and not container.is_expired(seen, now):
                    yield seen
            if len(chunk) < _CHUNK_ROWS and sum([row.size_bytes for row in chunk]) < _CHUNK_BYTES:
                break
            last = chunk[-1].number
            self._clock.check()
            await asyncio.sleep(0)
        numbers = self._transaction.new_numbers
        fresh = [row for row in changed.values() if row is not None and row.number in numbers]
        for row in sorted(fresh, key=lambda row: row.number):
            if row.number > after:
                yield row

    def _item_of(self, row: Row) -> dict[str, Any]:
        value: dict[str, Any] = load(row.body)
        value.update(self._container.system_properties(row))
        return value

    # -- pages -------------------------------------------------------------------------------------

    async def _feed(self, most: int, state: ScriptRowsPageState) -> ScriptPage:
        rows: list[Row] = []
        room_bytes = self._container.limits.response_bytes
        more = False
        async for row in self._rows(state.after):
            if len(rows) == most or room_bytes <= 0:
                more = True
                break
            rows.append(row)
            room_bytes -= row.size_bytes
        cost = charge.feed_page([row.size_bytes for row in rows], 1)
        following = ScriptRowsPageState(rows[-1].number).to_text() if more else None
        return ScriptPage(self._container.render_all(rows), cost, following)

    async def _streamed(self, execution: Execution, most: int, state: ScriptRowsPageState) -> ScriptPage:
        """A page of a query that gives its results item by item; all results of an item are on one page."""
        container, query, parameters = self._container, execution.query, execution.parameters
        results: list[bytes] = []
        loaded: list[int] = []
        looked_at: list[int] = []
        room_bytes = container.limits.response_bytes
        is_indexed = pushdown(query.plan, parameters, container.is_indexed, container.computed_names).is_whole
        last: Row | None = None
        more = False
        async for row in self._rows(state.after):
            if len(results) >= most or room_bytes <= 0:
                more = True
                break
            texts = await execution.context.pace.run(self._results_of, execution, row)
            last = row
            looked_at.append(row.size_bytes)
            if texts or not is_indexed:
                loaded.append(row.size_bytes)
            results += texts
            room_bytes -= sum(map(len, texts))
        cost = _query_charge(execution, loaded, looked_at, results, is_first=not state.after)
        following = ScriptRowsPageState(last.number).to_text() if more and last is not None else None
        return ScriptPage(results, cost, following)

    def _results_of(self, execution: Execution, row: Row) -> list[bytes]:
        item = self._item_of(row)
        if not execution.query.gives_items:
            return all_rendered(execution.values((item,)), execution.context.pace)
        return self._container.render_all((row,)) if execution.matches(item) else []

    async def _whole(self, execution: Execution, most: int, state: ScriptResultsPageState) -> ScriptPage:
        """A page of a query that looks at everything first: order, groups, DISTINCT, TOP and OFFSET."""
        query, pace, given = execution.query, execution.context.pace, state.given
        if query.is_aggregate and query.is_per_item and query.reads_items:
            values, loaded = await self._grouped(execution)
        else:
            rows = await self._gathered(pace)
            loaded = [row.size_bytes for row in rows]
            values = await pace.run(execution.run, map(self._item_of, rows))
        texts = await pace.run(all_rendered, values, pace)
        results: list[bytes] = []
        room_bytes = self._container.limits.response_bytes
        for text in texts[given : given + most]:
            if room_bytes <= 0:
                break
            results.append(text)
            room_bytes -= len(text)
        end = given + len(results)
        cost = _query_charge(execution, [] if given else loaded, loaded, results, is_first=not given)
        following = ScriptResultsPageState(end).to_text() if end < len(texts) else None
        return ScriptPage(results, cost, following)

    async def _grouped(self, execution: Execution) -> tuple[list[Any], list[int]]:
        """The groups of a query, which need no row a second time; and the sizes of the rows."""
        groups = execution.new_groups()
        loaded: list[int] = []

        def add(row: Row) -> None:
            for found in execution.filter_rows(self._item_of(row)):
                groups.add(found)

        async for row in self._rows():
            await execution.context.pace.run(add, row)
            loaded.append(row.size_bytes)
        return await execution.context.pace.run(execution.finish, groups), loaded

    async def _gathered(self, pace: Pace) -> list[Row]:
        """All rows, within the memory of a query."""
        rows: list[Row] = []
        async for row in self._rows():
            pace.hold(row.size_bytes)
            rows.append(row)
        return rows


def _is_whole(query: Query, execution: Execution) -> bool:
    counts = (execution.top, execution.limit, execution.offset)
    return bool(query.is_aggregate or query.order_by or query.is_ranked or query.distinct) or any(
        count is not None for count in counts
    )


def _query_charge(
    execution: Execution, loaded: list[int], looked_at: list[int], results: list[bytes], is_first: bool
) -> Charge:
    """The charge of a page, of which the sizes of items are given: those it pays for, and all it evaluated."""
    return charge.query(
        partitions=int(is_first),
        items_loaded=len(loaded),
        bytes_loaded=sum(loaded),
        items_returned=len(results),
        bytes_returned=sum(map(len, results)),
        udf_calls=max(len(loaded), int(is_first)) * len(execution.query.plan.udfs),
        steps_beyond=charge.steps_beyond(execution.context.pace.steps, len(looked_at), sum(looked_at)),
    )


def _asked(given: object) -> tuple[str, dict[str, Any]]:
    """The text and the parameters of a query as a script writes them."""
    text = given.get("query") if isinstance(given, dict) else None
    parameters = given.get("parameters") or [] if isinstance(given, dict) else None
    if not isinstance(text, str) or not isinstance(parameters, list):
        raise errors.BAD_REQUEST(reason="A query needs a text 'query' and a list 'parameters' at most.")
    values: dict[str, Any] = {}
    for each in parameters:
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            raise errors.BAD_REQUEST(reason="Each parameter needs a 'name' such as @id.")
        if "value" in each:
            values[each["name"]] = each["value"]
    return text, values
