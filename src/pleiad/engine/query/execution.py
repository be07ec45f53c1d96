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
from typing import NamedTuple

from pleiad import charge
from pleiad.charge import Charge, steps_beyond
from pleiad.engine.container import Container
from pleiad.engine.pages.query import (
    NumberedPageState,
    OrderedPageState,
    QueryPageState,
    QueryState,
    WholePageState,
)
from pleiad.engine.query import stream, whole
from pleiad.engine.query.functions import functions_of
from pleiad.engine.query.job import QueryJob, QueryRequest, note_use, prepare
from pleiad.engine.query.value import ValueQuery, value_query
from pleiad.engine.seal import as_json
from pleiad.engine.steady import over_moves
from pleiad.engine.tally import Tally
from pleiad.errors import PleiadError, Reason
from pleiad.partition.governor import admit_all, spend_all
from pleiad.partition.partition import Partition
from pleiad.query import Query, compile_query, compile_turn
from pleiad.query.pace import Pace
from pleiad.query.run import LONG_TEXT_CHARS
from pleiad.store.rows import Row

BETWEEN_PAGES = "between pages"
"""The part of a charge that pages pay for each other, so that each pays something and all together what is due."""


_BEHIND_FIRST_RESULTS = (OrderedPageState, NumberedPageState, WholePageState)
"""Pages behind the first results of an order or of groups: they find again what the first one has paid for."""


class QueryPage(NamedTuple):
    """One page of results as JSON texts, and what it cost."""

    results: list[bytes]
    charge: Charge
    charge_ru: float
    token: str | None
    partitions: list[Partition]
    tally: Tally
    is_falling: bool | None
    """For an ordered query whether its first key is descending."""
    milliseconds: float
    """The time it took to run."""
    prepared_ms: float = 0.0
    """The time before, in which it was compiled and routed."""

    @property
    def own_ru(self) -> float:
        """What the work of the page is worth, without what pages pay for each other."""
        return self.charge_ru - dict(self.charge.parts).get(BETWEEN_PAGES, 0.0)


@over_moves
async def run(container: Container, request: QueryRequest) -> QueryPage:
    """The next page of a query."""
    began_at = time.perf_counter()
    rows: Sequence[Row] | None = None
    if (short := value_query(container, request)) is not None:
        short.partition.admit(request.lane)
        rows = await short.rows()
        if (page := _whole_page(container, request, short, rows, began_at)) is not None:
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


def _whole_page(
    container: Container, request: QueryRequest, short: ValueQuery, rows: Sequence[Row], began_at: float
) -> QueryPage | None:
    """The page that has all results of a query that went the short way; None when they do not fit it."""
    results = container.render_all(rows) if len(rows) < short.rows_max else []
    bytes_returned = sum(map(len, results))
    if len(rows) == short.rows_max or bytes_returned > container.limits.response_bytes:
        return None
    short.partition.note_use(short.uses, bool(rows))
    count = len(results)
    tally = Tally(1, count, sum([row.size_bytes for row in rows]), count, bytes_returned)
    cost = tally.charge(request.multiplier)
    short.partition.governor.spend(cost.ru, request.lane)
    milliseconds = (time.perf_counter() - began_at) * 1000
    return QueryPage(results, cost, cost.ru, None, [short.partition], tally, None, milliseconds)


def _paid(job: QueryJob, due_ru: float, results: int, has_next: bool) -> tuple[float, float]:
    """What a page pays of what is due, and what it leaves to the pages behind it, below 0 when it pays ahead for them.

    A page pays at least what the service's cheapest request does. Each but the last leaves as much to the next, so
    that one without results has something to pay and the sum stays what it is. A page that ended before it was full
    did so by the time it took or by load; these must not make a query dearer, so it has no least charge.
    """
    least_ru = charge.query_page_least(job.request.multiplier)
    is_cut = has_next and results < job.request.items_max
    page_ru = round(max(0.0 if is_cut else least_ru, due_ru - (least_ru if has_next else 0.0)), 2)
    return page_ru, round(due_ru - page_ru, 2)


def _page(job: QueryJob, results: list[bytes], next_state: QueryPageState | None) -> QueryPage:
    tally, charged = job.tally, job.loaded_before
    if not job.request.token:
        tally.partitions = max(1, tally.partitions)  # a query that reads nothing is still answered somewhere
    tally.items_returned = len(results)
    tally.bytes_returned = sum(map(len, results))
    if job.functions:
        first_call = 0 if job.request.token else 1
        tally.udf_calls = max(tally.items_loaded, first_call) * len(job.query.plan.udfs)
    total = charged + tally
    # A page costs what it adds to the pages before it, so that their sum is the charge of the query exactly.
    multiplier = job.request.multiplier
    cost = total.charge(multiplier)
    before = charged.charge(multiplier)
    own_ru = round(cost.ru - before.ru, 2)
    page_ru, left_ru = _paid(job, own_ru + job.left_ru, len(results), next_state is not None)
    if job.request.token:
        cost += Charge(tuple((name, -ru) for name, ru in before.parts))
    if page_ru != own_ru:
        cost += Charge(((BETWEEN_PAGES, page_ru - own_ru),))
    token = None
    if next_state is not None:
        state = QueryState(next_state, job.scope, total, round(left_ru * 100))
        token = job.container.seal.encode(job.mark, state.to_state())
        if not job.request.is_confined:
            token = as_json(token, *job.request.span.to_hex())
    milliseconds = (time.perf_counter() - job.began_at) * 1000
    prepared_ms = (job.began_at - job.asked_at) * 1000
    is_falling = job.query.order_by[0].descending if job.query.order_by else None
    return QueryPage(
        results, cost, page_ru, token, _partitions(job), tally, is_falling, milliseconds, prepared_ms
    )
