"""Running an item query over the physical partitions of a container, one page at a time.

The server executes a query whole: a filter that names partition keys goes to their partitions, everything else fans
out, and order, groups and limits hold over all of them. Pages end by count, by size and by time; a token carries
what the next page needs, so any server on the same data can answer it.

Charges follow the logical model: what the indexing policy lets an index answer costs no loading, whichever way the
rows were found. The charges of all pages add up to the charge of the query, unless its pages are so small that the
least charge of a page is more.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from pleiad.charge import steps_beyond
from pleiad.engine.container import Container
from pleiad.engine.pages.query import (
    NumberedPageState,
    OrderedPageState,
    QueryPageState,
    QueryState,
    WholePageState,
)
from pleiad.engine.query import stream, whole
from pleiad.engine.query.found import asked_at_once, found_query, page_of_rows, take
from pleiad.engine.query.functions import functions_of
from pleiad.engine.query.job import QueryJob, note_use, prepare
from pleiad.engine.query.page import FIRST, Before, QueryPage, page_of
from pleiad.engine.query.prepared import learn
from pleiad.engine.query.request import QueryRequest
from pleiad.engine.steady import over_moves
from pleiad.errors import PleiadError, Reason
from pleiad.partition.governor import admit_all, spend_all
from pleiad.partition.partition import Partition
from pleiad.query import Query, compile_query, compile_turn
from pleiad.query.pace import Pace
from pleiad.query.run import LONG_TEXT_CHARS
from pleiad.store.rows import Row

_BEHIND_FIRST_RESULTS = (OrderedPageState, NumberedPageState, WholePageState)
"""Pages behind the first results of an order or of groups: they find again what the first one has paid for."""


@over_moves
async def run(container: Container, request: QueryRequest) -> QueryPage:
    """The next page of a query."""
    began_at = time.perf_counter()
    rows: Sequence[Row] | None = None
    learn(container, request.text)
    short = found_query(container, request)
    if short is not None and (page := asked_at_once(container, request, short, began_at)) is not None:
        return page
    if short is not None and short.order is None:
        short.partition.admit(request.lane)
        rows = await short.rows()
        if (page := page_of_rows(container, request, short, rows, began_at, short.rows_max)) is not None:
            take(short, request, page)
            return page
    with Pace.of_request(container.limits) as pace:
        await pace.seat(container.row_bytes_seen * request.items_max)
        if len(request.text) <= LONG_TEXT_CHARS:
            job = await pace.run(_prepared, container, request, pace)
        else:
            async with compile_turn(pace, request.text):
                job = await pace.run(_prepared, container, request, pace)
        if isinstance(job, QueryJob):
            job.asked_at = began_at
            if short is not None and short.partition is container.map.find(request.span.min):
                job.first_rows = rows
            return await _run(job)
        async with functions_of(container, job.plan.udfs, pace) as functions:
            job = await pace.run(prepare, container, request, pace, functions)
            job.asked_at = began_at
            return await _run(job)


def _prepared(container: Container, request: QueryRequest, pace: Pace) -> QueryJob | Query:
    """The query ready to run, or compiled only where it needs functions first."""
    query = compile_query(request.text, container.limits, request.parameters)
    return query if query.plan.udfs else prepare(container, request, pace)


async def _run(job: QueryJob) -> QueryPage:
    request = job.request
    query = job.query
    state = _begun_with(job) if request.token else None
    if state is None:
        job.tally.steps_beyond = steps_beyond(job.pace.steps)  # what constants and parameters alone say
        job.tally.index_lookups = len(job.spans) if len(job.spans) > 1 else 0
    is_whole = not query.is_per_item or bool(query.order_by)
    is_whole = is_whole or query.is_aggregate or query.is_ranked
    if is_whole or job.lookups is not None or not job.spans:
        admit_all([partition.admit for partition in _partitions(job)], request.lane)
    results: list[bytes]
    next_state: QueryPageState | None
    try:
        if not job.spans and not query.is_aggregate:
            results, next_state = [], None
        elif is_whole:
            results, next_state = await whole.page(job, state)
        else:
            results, next_state = await stream.page(job, state)
    except PleiadError as error:
        _charge_failure(job, error)
        raise
    page = _page(job, results, next_state)
    note_use(job, bool(results) and bool(job.pushdown.predicates))
    visits = job.visits or dict.fromkeys(page.partitions, 0)
    evenly_ru = min(dict(page.charge.parts).get("partitions", 0.0), page.charge_ru)
    spent = [(partition.governor, rows) for partition, rows in visits.items()]
    spend_all(spent, page.charge_ru, evenly_ru, request.lane)
    return page


def _page(job: QueryJob, results: list[bytes], next_state: QueryPageState | None) -> QueryPage:
    tally, is_first = job.tally, not job.request.token
    if is_first:
        tally.partitions = max(1, tally.partitions)  # a query that reads nothing is still answered somewhere
    if job.functions:
        tally.udf_calls = max(tally.items_loaded, int(is_first)) * len(job.query.plan.udfs)
    return page_of(
        job.container,
        job.request,
        results,
        next_state,
        tally,
        _partitions(job),
        job.query,
        is_falling=job.query.order_by[0].descending if job.query.order_by else None,
        began_at=job.began_at,
        asked_at=job.asked_at,
        before=FIRST if is_first else Before(job.loaded_before, job.left_ru),
        mark=None if is_first else job.mark,
    )


def _begun_with(job: QueryJob) -> QueryPageState:
    """How the page begins by its token, which also says what the pages before it touched and left to pay."""
    token = job.request.token
    state = QueryState.from_state(job.container.seal.decode(token, job.mark), token)
    job.check_scope(state)
    job.loaded_before = state.charged
    job.left_ru = state.left_hundredths / 100
    job.pays_steps = not isinstance(state.page, _BEHIND_FIRST_RESULTS)
    return state.page


def _charge_failure(job: QueryJob, error: PleiadError) -> None:
    """A query that was stopped costs what it took up to there."""
    if error.charge_ru is None and error.reason is not Reason.THROTTLED:
        tally = job.tally
        tally.steps_beyond = steps_beyond(job.pace.steps, tally.items_loaded, tally.bytes_loaded)
        error.charge_ru = job.tally.charge(job.request.multiplier).ru
        note_use(job, found=False)
        visits = job.visits or dict.fromkeys(_partitions(job), 0)
        spent = [(partition.governor, rows) for partition, rows in visits.items()]
        spend_all(spent, error.charge_ru, 0.0, job.request.lane)


def _partitions(job: QueryJob) -> list[Partition]:
    """Where the query goes; one that reads nothing is still answered somewhere."""
    return job.partitions or [job.container.map.find(job.request.span.min)]
