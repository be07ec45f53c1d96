"""Pages of an ordered query.

Rows are ordered by the ORDER BY values and then by document number, which falls when the first key is descending. A
page is the smallest rows behind the last one given, or behind the place the client names where that is later: read in
the order of a physical index where all partitions have one, else found by looking at every candidate and keeping the
best. A page that runs out of time says how far it came: in the order of the index, or in the walk over the
candidates. Where the last sort key is too long for a token, the next page goes on behind the number of rows given,
and does not end by time when it reads by an index; a client that goes on with another filter, or from another place,
begins with its first row there.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from pleiad import charge
from pleiad.engine.pages.query import (
    NumberedPageState,
    OrderedPageState,
    Pause,
    PausedPageState,
)
from pleiad.engine.query.best import BestGathering, Found, place_of, results_of, turned_keys
from pleiad.engine.query.found import Placed, is_ordered_alike, sort_value
from pleiad.engine.query.gather import charge_candidates, gather
from pleiad.engine.query.job import SLICE_ROWS, QueryJob, steps_of_loading
from pleiad.engine.query.resume import BEFORE_ALL, BEHIND_ALL
from pleiad.partition.partition import Partition
from pleiad.query import plan
from pleiad.query.values import type_rank
from pleiad.store.rows import Row
from pleiad.store.selection import OrderPosition, PathOrder, Selection
from pleiad.values.ranks import ARRAY_RANK, BOOLEAN_RANK
from pleiad.values.undefined import UNDEFINED

OrderState = OrderedPageState | NumberedPageState | PausedPageState
"""How a page begins: behind a row, behind a number of rows, or before the first."""
_OTHER_TOKEN_BYTES = 540
_ROWS_AT_ONCE = 16
"""Rows of an index that are worked on together: fewer than a page, since the others may not be needed."""
_STREAMS_MAX = 100
"""Of more ranges, all rows are found sooner than the first row of each."""
_RESULTS_OF_A_ROW_MAX = 1_000
"""Where an item gives more, they are found by looking at every candidate: that keeps only the best of them."""


class _End(NamedTuple):
    """Where a stream stopped before its end."""

    at: Found

    @property
    def place(self) -> tuple[Any, ...]:
        return self.at.place


class _Evaluated(NamedTuple):
    """Before the results of an item that took more evaluation than is part of loading it, or where they would be."""

    at: Found
    steps_beyond: int

    @property
    def place(self) -> tuple[Any, ...]:
        return self.at.place


_InOrder = Found | _Evaluated | _End


class _IndexEndsError(Exception):
    """The rows go on with values that the index does not order, with too many results, or the index is gone."""


async def ordered_page(job: QueryJob, state: OrderState | None) -> tuple[list[bytes], OrderState | None]:
    """The next results in order, and the state of the page after them."""
    execution = job.execution
    if isinstance(state, NumberedPageState) and state.rows_mark != job.rows_mark:
        state = None
    behind = _later(_behind(job, state) if isinstance(state, OrderedPageState) else None, _resumed(job))
    emitted = 0 if state is None or isinstance(state, PausedPageState) else state.emitted
    offset = execution.offset or 0
    most = offset + execution.limit if execution.limit is not None else execution.top
    skip = max(offset - emitted, 0)
    wanted = skip + job.request.items_max
    if most is not None:
        wanted = min(wanted, most - emitted)
    if wanted <= 0 or not job.spans:
        return [], None
    if not job.request.token:
        await _charge_matches(job)
    known = emitted if isinstance(state, NumberedPageState) else 0
    read = await _smallest(job, behind, known, wanted, skip, state)
    if read.pause is not None:
        return [], _paused(state, read.pause)
    # The pages behind one that looked at every candidate have them paid for.
    is_paid = read.is_all or (isinstance(state, OrderedPageState | NumberedPageState) and state.is_paid)
    page, rest = read.found[: read.wanted], read.found[read.wanted :]
    results, used = _cut(job, page, skip)
    if _is_streamed(job):
        for each in page[:used]:
            job.loaded(each.item_bytes)
    last: Found | None = page[used - 1] if used else None
    is_complete = used == len(page) and emitted + used == most
    # Whoever merges pages knows by the last of them that a range has no more: a full one has no token either.
    if used == len(page) and not rest and not is_complete:
        last = read.end
    if not is_paid:
        job.tally.steps_beyond += sum(
            each.steps_beyond for each in read.evaluated if last is None or each.place <= last.place
        )
    if last is None or is_complete:
        return results, None
    return results, _state_behind(job, last, emitted + used, is_paid)


def _cut(job: QueryJob, page: list[Found], skip: int) -> tuple[list[bytes], int]:
    """The texts of a page that fit an answer, and how many of the rows that used."""
    results: list[bytes] = []
    room_bytes = job.container.limits.response_bytes
    for number, each in enumerate(page):
        if number < skip:
            continue
        if results and len(each.text) > room_bytes:
            return results, number
        room_bytes -= len(each.text)
        results.append(each.text)
    return results, len(page)


class _Read(NamedTuple):
    """The first results behind a place, one more than wanted where there is one, or where they end if there are more.

    When the time was over before: where the order was read up to, or where the walk over the candidates stands.
    """

    found: list[Found]
    wanted: int
    end: Found | None = None
    pause: Pause | None = None
    evaluated: Sequence[_Evaluated] = ()
    is_all: bool = False
    """Whether every candidate was looked at, and not those up to the last result."""


async def _smallest(
    job: QueryJob, behind: Found | None, known: int, wanted: int, skip: int, state: OrderState | None
) -> _Read:
    """The first results behind a place, without those that are known; the texts of those to skip may be left out."""
    count = known + wanted + 1
    pause = state.pause if state is not None else None
    if job.order is not None and job.lookups is None and pause is None:
        try:
            streams = await _index_streams(job, job.order, behind, count, pauses=not known)
            if streams is not None:
                return await _merge(job, streams, known, wanted)
        except _IndexEndsError:
            pass
    pays = job.lookups is not None and state is None
    work, pause = await gather(job, pause, lambda: BestGathering(job, behind, count), pays=pays)
    if pause is not None:
        return _Read([], 0, None, pause)
    # An earlier page, which began the walk, may have been asked for fewer.
    wanted = min(wanted, work.count - known - 1)
    found, end = await work.page(known, wanted, skip)
    return _Read(found, wanted, end, is_all=True)


def _paused(state: OrderState | None, pause: Pause) -> OrderState:
    """The same page again, with a gathering that is further on."""
    return PausedPageState(pause) if state is None else replace(state, pause=pause)


def _results_of_each(job: QueryJob, placed: Sequence[Placed]) -> list[tuple[list[Found], int]]:
    """The results of items in their order, each with the steps beyond those that are part of loading it."""
    if job.finds_rows:
        return [([_as_placed(job, *each)], 0) for each in placed]
    found = []
    for row, _ in placed:
        before = job.pace.steps
        results: list[Found] = []
        for each in results_of(job, row):
            if len(results) == _RESULTS_OF_A_ROW_MAX:
                raise _IndexEndsError
            job.pace.hold(each.size_bytes)
            results.append(each)
        steps_beyond = charge.steps_beyond(job.pace.steps - before, 1, row.size_bytes)
        # Those with equal keys come in the order of their places.
        found.append((results[:: job.turned], steps_beyond))
    return found


def _as_placed(job: QueryJob, row: Row, position: OrderPosition) -> Found:
    """The result that an item is as it is, at its place in the index."""
    found = _end_at(job, position, 0)._replace(text=job.container.render(row), item_bytes=row.size_bytes)
    job.pace.worked(steps_of_loading(row))
    job.pace.hold(found.size_bytes)
    return found


# -- reading in the order of an index ----------------------------------------------------------------


async def _index_streams(
    job: QueryJob, order: PathOrder, behind: Found | None, count: int, pauses: bool
) -> list[AsyncGenerator[_InOrder, None]] | None:
    """One ordered stream per range and partition, or None when some partition has no index for the order."""
    if len(job.spans) > _STREAMS_MAX:
        return None
    after = _position(job, behind)
    streams = []
    for span in job.spans:
        for partition in job.container.map.overlapping(span):
            part = partition.span.intersect(span)
            assert part is not None
            selection = job.selection((part,))
            first = await partition.ordered(selection, order, after, min(count, SLICE_ROWS))
            if first is None:
                return None
            streams.append(_index_stream(job, partition, selection, order, behind, first, count, pauses))
            await job.pace.rest()
    return streams


async def _index_stream(
    job: QueryJob,
    partition: Partition,
    selection: Selection,
    order: PathOrder,
    behind: Found | None,
    first: Sequence[Placed],
    count: int,
    pauses: bool,
) -> AsyncGenerator[_InOrder, None]:
    """The results of a partition in order, of which the first rows are read; an end where it was out of time."""
    place = behind.place if behind is not None else None
    results: list[tuple[list[Found], int]] = []
    rows_max = min(count, SLICE_ROWS)
    chunk: Sequence[Placed] | None = first
    while chunk:
        for number, (_, position) in enumerate(chunk):
            if not is_ordered_alike(position):
                raise _IndexEndsError
            if number % _ROWS_AT_ONCE == 0:
                job.pace.release(sum(each.size_bytes for given, _ in results for each in given))
                some = chunk[number : number + _ROWS_AT_ONCE]
                results = await job.pace.run(_results_of_each, job, some)
            found, steps_beyond = results[number % _ROWS_AT_ONCE]
            if steps_beyond:
                evaluated = _Evaluated(_end_at(job, position, BEFORE_ALL), steps_beyond)
                if place is None or evaluated.place > place:
                    yield evaluated
            for each in found:
                if place is None or each.place > place:
                    yield each
            if pauses and job.is_out_of_time():
                end = _end_at(job, position)
                if place is None or end.place > place:
                    yield _End(end)
                    return
        if len(chunk) < rows_max:
            return  # to look for more would be another moment
        await job.pace.rest()
        chunk = await partition.ordered(selection, order, chunk[-1][1], rows_max)
        if chunk is None:
            raise _IndexEndsError


def _position(job: QueryJob, behind: Found | None) -> OrderPosition | None:
    """Where in the index the rows behind a place begin; the row of the place itself is read again for its rest."""
    if behind is None:
        return None
    value = behind.values[0]
    rank = type_rank(value)
    if rank >= ARRAY_RANK:
        raise _IndexEndsError
    turned = job.turned
    stored = 0 if rank < BOOLEAN_RANK else value if isinstance(value, str) else float(value)
    # One step before the row: its own number is behind the position again.
    position = OrderPosition(rank, stored, turned * behind.tie[0] - turned)
    if not is_ordered_alike(position):
        raise _IndexEndsError
    return position


def _end_at(job: QueryJob, position: OrderPosition, edge: int = BEHIND_ALL) -> Found:
    """The place behind all results of the row at a position of the index, or before them."""
    value = sort_value(position)
    tie = (job.turned * position.number, edge)
    return Found(place_of(job, (value,)), tie, (value,), b"", 0)


async def _merge(
    job: QueryJob, streams: list[AsyncGenerator[_InOrder, None]], known: int, wanted: int
) -> _Read:
    """The first results of several ordered streams, up to where one of them ended early."""
    try:
        return await _merged(job, streams, known, wanted)
    finally:
        for stream in streams:
            await stream.aclose()  # left to itself each would be closed by a task of its own


async def _merged(
    job: QueryJob, streams: list[AsyncGenerator[_InOrder, None]], known: int, wanted: int
) -> _Read:
    heap: list[tuple[tuple[Any, ...], int, _InOrder]] = []
    for index, stream in enumerate(streams):
        head = await anext(stream, None)
        if head is not None:
            heap.append((head.place, index, head))
    heapq.heapify(heap)
    found: list[Found] = []
    evaluated: list[_Evaluated] = []
    end: Found | None = None
    while heap:
        _, index, each = heap[0]
        if isinstance(each, _End):
            end = each.at
            break
        if isinstance(each, _Evaluated):
            if len(found) >= known:
                evaluated.append(each)
        else:
            found.append(each)
            job.pace.hold(each.size_bytes)
            if len(found) > known + wanted:
                break
        following = await anext(streams[index], None)
        if following is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (following.place, index, following))
    return _Read(found[known:], wanted, end, evaluated=evaluated)


# -- charges and state -----------------------------------------------------------------------------------


def _is_streamed(job: QueryJob) -> bool:
    """Whether an index in the order of the query would give its rows one by one, loading only those given."""
    order = job.order
    if (
        order is None
        or job.lookups is not None
        or not (job.pushdown.is_whole or job.query.block.where is None)
    ):
        return False
    return all(predicate.path == order.path for predicate in job.pushdown.predicates)


async def _charge_matches(job: QueryJob) -> None:
    """Without such an index every match is loaded before the first result; the first page pays for all."""
    if job.lookups is not None:
        return  # paid for when they are looked up
    job.tally.partitions = len(job.partitions)
    if not _is_streamed(job):
        await charge_candidates(job, job.pushdown.predicates)


def _state_behind(job: QueryJob, last: Found, emitted: int, is_paid: bool) -> OrderState:
    """Behind the last result, or behind the number of those given where its sort values are too long for a token."""
    values = tuple(UNDEFINED if value == math.inf else value for value in last.values)
    state = OrderedPageState(values, last.tie, emitted, is_paid)
    # Base64 adds a third; the tally, the range, the place of a walk, the fingerprint and the JSON around need room too.
    if len(orjson.dumps(state.to_state())) * 4 // 3 + _OTHER_TOKEN_BYTES > job.request.token_bytes_max:
        return NumberedPageState(emitted, job.rows_mark, is_paid)
    return state


def _resumed(job: QueryJob) -> Found | None:
    """The place a client goes on from, if it names one."""
    resume = job.request.resume
    if resume is None:
        return None
    key = turned_keys(job, resume.order_keys)
    return Found(key, resume.tie(job.turned), resume.values, b"", 0)


def _later(one: Found | None, other: Found | None) -> Found | None:
    if one is None or other is None:
        return one or other
    return one if one.place > other.place else other


def _behind(job: QueryJob, state: OrderedPageState) -> Found:
    """The place a token names."""
    order_by = job.query.order_by
    if len(state.values) != len(order_by):
        raise job.bad_token()
    values = tuple(
        math.inf if value is UNDEFINED and _is_distance(sort) else value
        for sort, value in zip(order_by, state.values, strict=True)
    )
    return Found(place_of(job, values), state.tie, values, b"", 0)


def _is_distance(key: plan.SortKey) -> bool:
    """Whether a key sorts by nearness, where what has no distance is infinitely far."""
    return isinstance(key.expression, plan.Call) and key.expression.function.name in (
        "VECTORDISTANCE",
        "_VECTORSCORE",
    )
