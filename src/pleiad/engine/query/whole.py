"""Pages of a query that looks at everything before its first result: groups, rank, and DISTINCT in an order.

The results stand in an order that the partition map has no part in: groups by their first rows, ranked rows by score
and document number, the rest by document number. So the next page goes on behind the number of results given, and
finds the same ones there when it has to gather them again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import orjson

from pleiad.engine.pages.query import (
    CountPageState,
    Pause,
    PausedPageState,
    QueryPageState,
    WholePageState,
)
from pleiad.engine.query.gather import charge_candidates, gather
from pleiad.engine.query.glances import Alike, evaluated, values_at
from pleiad.engine.query.job import QueryJob
from pleiad.engine.query.order import OrderState, ordered_page
from pleiad.engine.scan import Piece, remaining, take_group
from pleiad.query import plan
from pleiad.query.aggregate import IN_ANY_ORDER, LIST_STATES
from pleiad.query.facts import plain_columns
from pleiad.query.measure import TEXT_BYTES, all_rendered
from pleiad.query.sorting import paced_sort
from pleiad.query.values import finite
from pleiad.store.glances import Glances
from pleiad.store.rows import Row
from pleiad.values.undefined import UNDEFINED

_ROWS_TELLING = 1_000
"""So many rows, among which few are alike, tell that this is so of all."""
_ROW_BYTES = 150
_DECODED = 4
"""What a text beside its characters, and a row beside its item, take in memory, and how many times its JSON an item."""


async def page(job: QueryJob, state: QueryPageState | None) -> tuple[list[bytes], QueryPageState | None]:
    """The next results, and the state of the page after them."""
    query = job.query
    if query.order_by and not query.is_aggregate and not query.distinct and query.is_per_item:
        if not isinstance(state, OrderState | None):
            raise job.bad_token()
        return await ordered_page(job, state)
    if _is_plain_count(job):
        if not isinstance(state, CountPageState | None):
            raise job.bad_token()
        return await _count_page(job, state)
    if isinstance(state, CountPageState) and not job.spans:
        state = None  # a part of the range of its token, and nothing to count in it
    if not isinstance(state, WholePageState | PausedPageState | None):
        raise job.bad_token()
    return await _whole_page(job, state)


async def _whole_page(
    job: QueryJob, state: WholePageState | PausedPageState | None
) -> tuple[list[bytes], WholePageState | PausedPageState | None]:
    is_first = not isinstance(state, WholePageState)
    begun_with = state if isinstance(state, WholePageState) else WholePageState(0)
    texts: list[bytes] | None = job.container.kept.look(begun_with.kept, _mark_of_texts(job))
    if texts is None:
        pause = state.pause if state is not None else None
        values, pause = await _values(job, pause, pays=is_first)
        if pause is not None:
            return [], PausedPageState(pause) if is_first else WholePageState(begun_with.given, pause=pause)
        texts = await job.pace.run(all_rendered, values, job.pace)
    return _cut(job, begun_with, texts)


def _cut(
    job: QueryJob, state: WholePageState, texts: list[bytes]
) -> tuple[list[bytes], WholePageState | None]:
    """One page of a result that is known whole."""
    results: list[bytes] = []
    room_bytes = job.container.limits.response_bytes
    for text in texts[state.given : state.given + job.request.items_max]:
        if results and len(text) > room_bytes:
            break
        room_bytes -= len(text)
        results.append(text)
    end = state.given + len(results)
    if end >= len(texts):
        return results, None
    name, mark = state.kept, _mark_of_texts(job)
    if job.container.kept.look(name, mark) is not texts:
        name = job.container.kept.keep(mark, texts, sum(map(len, texts)) + TEXT_BYTES * len(texts))
    return results, WholePageState(end, name)


def _mark_of_texts(job: QueryJob) -> int:
    """What tells the results that are kept from what is kept of an unfinished walk."""
    return ~job.kept_mark


_Values = tuple[list[Any], Pause | None]


async def _values(job: QueryJob, pause: Pause | None, pays: bool) -> _Values:
    """Every result of the query in order, or where its gathering stands when the time was over before."""
    execution, query = job.execution, job.query
    if not query.reads_items:
        return await job.evaluate_whole(lambda: execution.run(())), None
    if not query.is_per_item or job.functions:
        return await _of_items(job, pause, pays)
    if query.is_ranked:
        return await _ranked(job, pause, pays)
    if query.is_aggregate:
        work, pause = await gather(job, pause, lambda: _GroupGathering(job), pays=pays)
        return (
            ([], pause)
            if pause is not None
            else (await job.evaluate_whole(lambda: execution.finish(work.groups)), None)
        )
    work, pause = await gather(job, pause, lambda: _RowGathering(job), pays=pays)
    if pause is not None:
        return [], pause
    return await job.evaluate_whole(lambda: execution.outputs(execution.sorted_rows(work.in_order()))), None


async def _of_items(job: QueryJob, pause: Pause | None, pays: bool) -> _Values:
    """The results from all items at once: rows are not those of each item alone, or the query calls functions."""
    predicates = () if job.query.ranks_text else None
    work, pause = await gather(job, pause, lambda: _ItemGathering(job), pays=pays, predicates=predicates)
    if pause is not None:
        return [], pause
    return await job.evaluate_whole(lambda: job.execution.run(work.in_order())), None


async def _ranked(job: QueryJob, pause: Pause | None, pays: bool) -> _Values:
    """The results by rank. Statistics of texts need every row, whatever the filter says of it."""
    ranks_text = job.query.ranks_text
    if ranks_text and pays and pause is None:
        job.tally.partitions = len(job.partitions)
        await charge_candidates(job, job.pushdown.predicates if _is_text_indexed(job) else ())
    work, pause = await gather(
        job,
        pause,
        lambda: _RankGathering(job),
        pays=pays and not ranks_text,
        predicates=() if ranks_text else None,
    )
    if pause is not None:
        return [], pause
    return await job.evaluate_whole(lambda: job.execution.outputs(work.ranking.best_first())), None


def _is_text_indexed(job: QueryJob) -> bool:
    """Whether a full-text index has the statistics, so that only the matches are loaded."""
    entries = job.container.definition.properties.get("indexingPolicy", {}).get("fullTextIndexes", ())
    indexed = {entry.get("path") for entry in entries}
    rank = job.query.block.rank
    assert rank is not None
    paths = (each.arguments[0] for each in rank.components if each.is_full_text)
    return all(isinstance(path, plan.Constant) and path.value in indexed for path in paths)


class _GroupGathering:
    """The groups of all rows."""

    def __init__(self, job: QueryJob) -> None:
        self.job = job
        self.names = job.names
        kinds = {each.kind for each in job.query.block.aggregates}
        self._loop = None if kinds & LIST_STATES.keys() else job.execution.placed
        self._columns = plain_columns(job.query.plan) if job.pushdown.is_whole else None
        self._takes_alike = len(job.query.block.sources) == 1 and kinds <= IN_ANY_ORDER
        self.groups = job.execution.new_groups()

    @property
    def size_bytes(self) -> int:
        return self.groups.size_bytes

    def parts(self, row: Row) -> Iterator[Any]:
        return self.job.execution.filter_rows(self.job.item_of(row))

    def add(self, row: Row, number: int, part: Any) -> None:
        self.groups.add(part, (row.number, number))

    def take_many(self, looked: Glances) -> int | None:
        if self._loop is None:
            return None
        alike = Alike.of(looked) if self._takes_alike else None
        if alike is None:
            self._takes_alike = self._takes_alike and len(looked) < _ROWS_TELLING
        else:
            found = evaluated(self.job, self._loop, alike.first)
            if found is None:
                return None
            rows, evaluated_count = found
            taken, times = alike.counted(evaluated_count)
            for row in rows:
                self.groups.add_placed(row, times[row[0]])
            return taken
        if self._columns is not None:
            return self._take_columns(looked, self._columns)
        found = evaluated(self.job, self._loop, looked)
        return found[1] if found is not None and self.groups.add_all_placed(found[0]) else None

    def _take_columns(self, looked: Glances, columns: Sequence[str | plan.Constant]) -> int | None:
        """Takes in rows of which nothing has to be evaluated."""
        job = self.job
        taken = 1 if job.is_out_of_time() else len(looked)
        job.pace.worked(taken)
        values = [
            values_at(looked, job.names.index(column), taken)
            if isinstance(column, str)
            else [column.value] * taken
            for column in columns
        ]
        keys_end = len(job.query.block.group_by)
        keys = [
            list(map(finite, column)) if float in map(type, column) else column
            for column in values[:keys_end]
        ]
        is_taken = self.groups.add_columns(looked.numbers[:taken], keys, values[keys_end:])
        return taken if is_taken else None


class _RankGathering:
    """The rows that match with their scores, and the statistics of all rows."""

    names: tuple[str, ...] = ()

    def __init__(self, job: QueryJob) -> None:
        self.job = job
        self.ranking = job.execution.new_ranking()
        self.size_bytes = 0

    def parts(self, row: Row) -> Iterable[Any]:
        return (self.job.item_of(row),)

    def take_many(self, looked: Glances) -> int | None:
        return None

    def add(self, row: Row, number: int, part: Any) -> None:
        if self.ranking.take((part,), row.number):
            size_bytes = _ROW_BYTES + _DECODED * row.size_bytes
            self.size_bytes += size_bytes
            self.job.pace.hold(size_bytes)


class _RowGathering:
    """The rows that match, with their places."""

    def __init__(self, job: QueryJob) -> None:
        self.job = job
        self.names = job.names
        self.size_bytes = 0
        self._found: list[tuple[tuple[Any, int], Any]] = []

    def parts(self, row: Row) -> Iterable[Any]:
        return self.job.execution.filter_rows(self.job.item_of(row))

    def take_many(self, looked: Glances) -> int | None:
        return None

    def add(self, row: Row, number: int, part: Any) -> None:
        self._keep((row.number, number), part, row)

    def _keep(self, place: tuple[Any, int], part: Any, row: Row) -> None:
        size_bytes = _ROW_BYTES + (0 if place[1] else _DECODED * row.size_bytes)
        self.size_bytes += size_bytes
        self.job.pace.hold(size_bytes)
        self._found.append((place, part))

    def in_order(self) -> list[Any]:
        return [part for _, part in paced_sort(self._found, itemgetter(0), self.job.pace)]


class _ItemGathering(_RowGathering):
    """The items, matching or not, in the order that equal results have."""

    def parts(self, row: Row) -> Iterable[Any]:
        return (self.job.item_of(row),)


# -- one count that the store makes ------------------------------------------------------------------


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
        and isinstance(block.selection, plan.AggregateResult)
        and len(block.aggregates) == 1
        and block.aggregates[0].kind is plan.AggregateKind.COUNT
        and _is_always_defined(block.aggregates[0].argument)
    )


def _is_always_defined(node: plan.Expression) -> bool:
    return isinstance(node, plan.Slot) or (isinstance(node, plan.Constant) and node.value is not UNDEFINED)


async def _count_page(
    job: QueryJob, state: CountPageState | None
) -> tuple[list[bytes], CountPageState | None]:
    """The count, partition by partition; the token carries what is counted so far."""
    if state is None:
        job.tally.partitions = len(job.partitions)
    if job.is_part:
        state = None  # what is counted so far is of the whole range
    begun, total = (state.begun, state.total) if state is not None else ((), 0)
    spans = deque(piece.span for piece in remaining(job.spans, begun))
    while spans:
        partition, group = take_group(job.container, spans)
        total += (await partition.count(job.selection(group), count_only=True))[0]
        if spans and job.is_out_of_time():
            return [], CountPageState((Piece(spans[0]),), total)
        await job.pace.rest()
    return [orjson.dumps(value) for value in job.execution.slice([total])], None
