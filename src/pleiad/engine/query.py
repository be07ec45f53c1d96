"""Running an item query over the physical partitions of a container, one page at a time.

The server executes a query whole: a filter that names partition keys goes to their partitions, everything else fans
out, and order, groups and limits hold over all of them. Pages end by count, by size and by time; a token carries
what the next page needs, so any server on the same data can answer it.

Charges follow the logical model: what the indexing policy lets an index answer costs no loading, whichever way the
rows were found. The charges of all pages add up to the charge of the query.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import add
from typing import Any

from pleiad import charge, errors
from pleiad.charge import Charge
from pleiad.engine import token as tokens
from pleiad.engine.container import Container
from pleiad.errors import PleiadError
from pleiad.item.body import load
from pleiad.keys.range import EpkRange
from pleiad.keys.value import KeyValue
from pleiad.partition.partition import Partition
from pleiad.query import Execution, Query, compile_query, plan
from pleiad.query.order_rules import check_order_by
from pleiad.query.pushdown import PathOrder, Pushdown, path_order, pushdown
from pleiad.query.routing import key_values
from pleiad.store.contract import Row
from pleiad.store.selection import IndexedPath

SLICE_ROWS = 500
"""Rows decoded and filtered before other requests get their turn."""
ITEM_SECONDS_MIN = 1.0
"""What one item may take even where a page has less time."""
TOKEN_BYTES_MAX = 4096
"""A token travels in a header line, and usual HTTP clients read lines of 8 KB."""


LONG_TEXT_CHARS = 4_000
"""Texts longer than this are compiled in a thread: a list of a thousand ids takes longer than others may wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """What a client asks: the text and its parameters, the scope, and the page."""

    text: str
    parameters: Mapping[str, Any]
    span: EpkRange
    key: tuple[KeyValue, ...] | None = None
    is_confined: bool = False
    """The request names a key or a range itself."""
    may_fan_out: bool = True
    items_max: int
    token: str = ""
    token_bytes_max: int = TOKEN_BYTES_MAX
    multiplier: int = 1


@dataclass(slots=True)
class Tally:
    """What a page touched."""

    partitions: int = 0
    items_loaded: int = 0
    bytes_loaded: int = 0
    items_returned: int = 0
    bytes_returned: int = 0
    index_lookups: int = 0

    def to_json(self) -> list[int]:
        return [
            self.partitions,
            self.items_loaded,
            self.bytes_loaded,
            self.items_returned,
            self.bytes_returned,
            self.index_lookups,
        ]

    def charge(self, multiplier: int) -> Charge:
        return charge.query(
            partitions=self.partitions,
            items_loaded=self.items_loaded,
            bytes_loaded=self.bytes_loaded,
            items_returned=self.items_returned,
            bytes_returned=self.bytes_returned,
            index_lookups=self.index_lookups,
            multiplier=multiplier,
        )


@dataclass(frozen=True, slots=True)
class QueryPage:
    """One page of results as JSON texts, and what it cost."""

    results: list[bytes]
    charge: Charge
    charge_ru: float
    token: str | None
    partitions: list[Partition]
    tally: Tally
    milliseconds: float


class Deadline:
    """Cuts off an item that gives so many rows, or an evaluation that takes so long, that nothing else gets done."""

    __slots__ = ("_ends_at", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = max(seconds, ITEM_SECONDS_MIN)
        self.restart()

    def restart(self) -> None:
        self._ends_at = time.perf_counter() + self._seconds

    def check(self) -> None:
        if time.perf_counter() > self._ends_at:
            raise errors.REQUEST_TIMEOUT(
                reason=f"The query was stopped: it worked on one item for more than {self._seconds:g} seconds."
            )


@dataclass(slots=True)
class QueryJob:
    """A query prepared for one container: where it goes and what of it the store can do."""

    container: Container
    request: QueryRequest
    query: Query
    execution: Execution
    spans: list[EpkRange]
    lookups: list[tuple[bytes, str]] | None
    pushdown: Pushdown
    order: PathOrder | None
    mark: int
    deadline: Deadline
    now: int = field(default_factory=lambda: int(time.time()))
    began_at: float = field(default_factory=time.perf_counter)
    gives_items: bool = False
    """The results are the items themselves, so their stored texts are given as they are."""
    filters_plainly: bool = False
    """The filter asks for no system property and for no item as a whole."""
    tally: Tally = field(default_factory=Tally)

    @property
    def partitions(self) -> list[Partition]:
        found: dict[int, Partition] = {}
        for span in self.spans:
            for partition in self.container.map.overlapping(span):
                found[partition.id] = partition
        return list(found.values())

    def item_of(self, row: Row) -> dict[str, Any]:
        """The item of a row as a query sees it, system properties included."""
        self.deadline.restart()
        value: dict[str, Any] = load(row.body)
        value.update(self.container.system_properties(row))
        return value

    def filtered_item_of(self, row: Row) -> dict[str, Any]:
        """The item of a row as far as the filter looks at it."""
        if not self.filters_plainly:
            return self.item_of(row)
        self.deadline.restart()
        value: dict[str, Any] = load(row.body)
        return value

    def loaded(self, row: Row) -> None:
        self.tally.items_loaded += 1
        self.tally.bytes_loaded += row.size_bytes

    def is_out_of_time(self) -> bool:
        return time.perf_counter() - self.began_at > self.container.limits.operation_seconds


async def run(container: Container, request: QueryRequest) -> QueryPage:
    """The next page of a query."""
    from pleiad.engine import query_stream, query_whole

    if len(request.text) > LONG_TEXT_CHARS:
        await asyncio.to_thread(_compile, container, request)
    job = prepare(container, request)
    state = tokens.decode(request.token, job.mark) if request.token else {}
    charged = _charged(state, request.token)
    query = job.query
    results: list[bytes]
    next_state: dict[str, Any] | None
    if not job.spans and not query.is_aggregate:
        results, next_state = [], None
    elif query.is_aggregate or query.order_by or query.is_ranked or query.distinct or not query.is_per_item:
        results, next_state = await query_whole.page(job, state)
    else:
        results, next_state = await query_stream.page(job, state)
    return _page(job, results, next_state, charged)


def _charged(state: dict[str, Any], token: str) -> Tally:
    """What the earlier pages touched and were charged for."""
    if "u" not in state:
        return Tally()
    counts = state["u"]
    if not isinstance(counts, list) or len(counts) != len(Tally().to_json()):
        raise tokens.bad(token)
    if not all(type(count) is int and 0 <= count < 2**62 for count in counts):
        raise tokens.bad(token)
    return Tally(*counts)


def _compile(container: Container, request: QueryRequest) -> None:
    compile_query(request.text, container.limits).execution(request.parameters, container.query_context())


def _page(
    job: QueryJob, results: list[bytes], next_state: dict[str, Any] | None, charged: Tally
) -> QueryPage:
    tally = job.tally
    if not job.request.token:
        tally.partitions = max(1, tally.partitions)  # a query that reads nothing is still answered somewhere
    tally.items_returned = len(results)
    tally.bytes_returned = sum(map(len, results))
    total = Tally(*map(add, charged.to_json(), tally.to_json()))
    # A page costs what it adds to the pages before it, so that their sum is the charge of the query exactly.
    multiplier = job.request.multiplier
    cost = total.charge(multiplier)
    if job.request.token:
        before = charged.charge(multiplier)
        page_ru = round(cost.ru - before.ru, 2)
        cost += Charge(tuple((name, -ru) for name, ru in before.parts))
    else:
        page_ru = cost.ru
    token = None if next_state is None else tokens.encode(job.mark, {**next_state, "u": total.to_json()})
    milliseconds = (time.perf_counter() - job.began_at) * 1000
    partitions = job.partitions or [job.container.map.find(job.request.span.min)]
    return QueryPage(results, cost, page_ru, token, partitions, tally, milliseconds)


def prepare(container: Container, request: QueryRequest) -> QueryJob:
    """Compiles a query and decides where it goes; refuses what the container's policy cannot serve."""
    query = compile_query(request.text, container.limits)
    deadline = Deadline(container.limits.operation_seconds)
    context = replace(container.query_context(), tick=deadline.check)
    execution = query.execution(request.parameters, context)
    computed = container.computed_names
    check_order_by(query.plan, container.definition.indexing, request.parameters, computed)
    pushed = pushdown(query.plan, request.parameters, container.is_indexed, computed)
    order = path_order(query.plan, request.parameters, computed) if query.order_by else None
    spans = _spans(container, request, query)
    mark = tokens.fingerprint(
        container.resource.rid,
        request.text,
        sorted(request.parameters.items(), key=str),
        request.span.to_hex(),
    )
    job = QueryJob(container, request, query, execution, spans, None, pushed, order, mark, deadline)
    job.lookups = _lookups(container, request, query)
    job.gives_items = _gives_items(query)
    job.filters_plainly = not computed and _filters_plainly(query)
    _note_use(job)
    return job


def _spans(container: Container, request: QueryRequest, query: Query) -> list[EpkRange]:
    """The ranges of hashes a query has to read: what its request and its filter leave, in order."""
    keys = key_values(query.plan, request.parameters, container.key.path_steps)
    single = keys is not None and len(keys) <= 1 and all(len(key) == container.key.levels for key in keys)
    if not request.is_confined and not single:
        if not request.may_fan_out:
            raise errors.CROSS_PARTITION_DISABLED()
        block = query.block
        if query.is_aggregate and not block.is_value and not query.group_by:
            raise errors.CROSS_PARTITION_NOT_SERVABLE(
                reason="Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates."
            )
    if not query.reads_items:
        return [request.span]
    if keys is None:
        return [request.span]
    found = {span for key in keys if (span := _span_of(container, request, key)) is not None}
    return sorted(found)


def _span_of(container: Container, request: QueryRequest, key: tuple[KeyValue, ...]) -> EpkRange | None:
    """Where the items of a key in the filter are; None when they are out of scope or cannot exist."""
    try:
        return request.span.intersect(container.span_of(key))
    except PleiadError:
        return None


def _lookups(container: Container, request: QueryRequest, query: Query) -> list[tuple[bytes, str]] | None:
    """The (epk, id) pairs a filter names, when it names all of them: then nothing needs to be searched."""
    if not query.reads_items:
        return None
    levels = container.key.levels
    if request.key is not None and len(request.key) == levels:
        ids = key_values(query.plan, request.parameters, (("id",),))
        pairs = None if ids is None else [(request.key, key[0]) for key in ids]
    else:
        keys = key_values(query.plan, request.parameters, (*container.key.path_steps, ("id",)))
        if keys is None or any(len(key) <= levels for key in keys):
            return None
        pairs = [(key[:levels], key[levels]) for key in keys]
    if pairs is None:
        return None
    found = {(container.epk_of(key), id) for key, id in pairs if isinstance(id, str)}
    return sorted(pair for pair in found if request.span.contains(pair[0]))


def _note_use(job: QueryJob) -> None:
    """Tells the partitions which paths the query asks for, unless it knows its items already."""
    if job.lookups is not None:
        return
    paths = [IndexedPath(predicate.path, predicate.element) for predicate in job.pushdown.predicates]
    if job.order is not None:
        paths.append(IndexedPath(job.order.path, False))
    if paths:
        for partition in job.partitions:
            partition.note_use(paths)


async def looked_up(job: QueryJob, first: bool) -> list[Row]:
    """The live rows of the pairs a filter names, in scan order; the first page pays for looking."""
    assert job.lookups is not None
    container = job.container
    now = time.time()
    rows = []
    if first:
        job.tally.partitions = len(job.partitions)
        job.tally.index_lookups = len(job.lookups)
    for number, (epk, id) in enumerate(job.lookups):
        row = await container.map.find(epk).read(epk, id)
        if row is not None and not container.is_expired(row, now):
            rows.append(row)
        if number % SLICE_ROWS == SLICE_ROWS - 1:
            await asyncio.sleep(0)
    return sorted(rows, key=lambda row: row.number)


def _gives_items(query: Query) -> bool:
    """Whether each result is an item as it is: SELECT * or SELECT VALUE of the root, without JOIN."""
    block = query.block
    if len(block.sources) != 1 or block.sources[0].kind is not plan.SourceKind.ITEMS:
        return False
    return block.selection == plan.Slot(block.sources[0].slot)


def _filters_plainly(query: Query) -> bool:
    """Whether the filter reads only properties that clients wrote."""
    where = query.block.where
    if where is None:
        return True
    roots = query.plan.root_slots
    plain = whole = 0
    for node in plan.walk(where):
        if isinstance(node, plan.Slot) and node.index in roots:
            whole += 1
        elif (
            isinstance(node, plan.Member)
            and isinstance(node.target, plan.Slot)
            and node.target.index in roots
        ):
            key = node.key.value if isinstance(node.key, plan.Constant) else "_"
            plain += isinstance(key, str) and not key.startswith("_")
    return plain == whole
