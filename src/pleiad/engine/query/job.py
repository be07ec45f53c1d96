"""A query prepared for one container: which ranges it reads, what of it the store does, and what it touched.

A filter that names partition keys confines the query to their hashes; one that names keys and ids needs no search
at all. Everything here is decided before the first row is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pleiad import charge, errors
from pleiad.charge import Tally
from pleiad.engine.container import Container
from pleiad.engine.narrow import NO_KEYS, NamedKeys, named_keys
from pleiad.engine.pages.query import (
    LookupPageState,
    NumberedPageState,
    OrderedPageState,
    QueryPageState,
    QueryState,
    Scope,
    StreamPageState,
    WholePageState,
)
from pleiad.engine.query.functions import NO_FUNCTIONS, Functions
from pleiad.engine.query.page import mark_of
from pleiad.engine.query.prepared import prepared_of
from pleiad.engine.query.request import QueryRequest
from pleiad.engine.query.resume import ResumePoint
from pleiad.engine.scan import selection_of
from pleiad.engine.seal import bad, fingerprint
from pleiad.errors import PleiadError
from pleiad.item.body import load
from pleiad.keys.range import EpkRange, disjoint
from pleiad.keys.value import KeyValue
from pleiad.partition.partition import Partition
from pleiad.query import Execution, Query, compile_query, plan
from pleiad.query.measure import BYTES_OF_A_STEP
from pleiad.query.pace import Pace, in_turns
from pleiad.query.pushdown import PathOrder, Pushdown
from pleiad.query.rank import more_is_nearer
from pleiad.query.route.keys import key_values
from pleiad.query.sieve import Needle, needles
from pleiad.query.values import hash_key
from pleiad.store.predicate import is_addressable
from pleiad.store.rows import ItemKey, Row
from pleiad.store.selection import NAMES_MAX, IndexedPath, Predicate, Selection

_Answer = TypeVar("_Answer")

SLICE_ROWS = 500
"""Rows decoded and filtered before other requests get their turn."""
ROW_STEPS = 16
"""What a row is counted with beside the bytes that are decoded."""


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
    pace: Pace
    functions: Functions = field(default_factory=dict)
    keys: NamedKeys = NO_KEYS
    """The partition keys that the predicates name, where they are several."""
    now: int = field(default_factory=lambda: int(time.time()))
    began_at: float = field(default_factory=time.perf_counter)
    asked_at: float = field(default_factory=time.perf_counter)
    tally: Tally = field(default_factory=Tally)
    visits: dict[Partition, int] = field(default_factory=dict)
    """The partitions this page came to, with the rows they gave."""
    first_rows: Sequence[Row] | None = None
    """What the first read of the first page found, if the query was admitted and that read made already."""
    pays_steps: bool = True
    """Whether no earlier page has paid for evaluating every candidate."""
    loaded_before: Tally = field(default_factory=Tally)
    """What the earlier pages touched."""
    left_ru: float = 0.0
    """What the earlier pages left to pay, or paid ahead where it is below 0."""
    names: tuple[str, ...] = ()
    """The properties that the query looks at, where it looks at nothing else of the rows it walks over.

    Of a query that gives items as they are, those that tell which of them and in which order.
    """
    needles: tuple[Needle, ...] = ()
    """Strings that the texts of properties must have, by which most of many glances may be left out at once."""
    at: Partition | None = None
    """Where the rows are that are gathered now."""
    finds_rows: bool = False
    """Whether the store finds the results in their order: items as they are, of which nothing has to be evaluated."""
    sifts: bool = True
    """Whether glances are asked first if they pass the filter, where they are evaluated one by one."""
    takes_many: bool = True
    """Whether many glances may be evaluated at once, as long as none of them turns out to be dear."""
    items_watched: int = 48
    """After how many of them it is looked if one was."""
    turned: int = 1
    """1 where documents with equal sort keys come by rising number, and -1 where they come by falling number."""
    is_part: bool = False
    """Whether the token was issued for a range of which this one is a part."""
    _mark: int | None = None
    """The mark, once it was asked for: a page opens one token with it and makes the next."""

    @property
    def mark(self) -> int:
        """What tells the tokens of this query from those of others."""
        if self._mark is None:
            self._mark = mark_of(self.container, self.query, self.request)
        return self._mark

    @property
    def rows_mark(self) -> int:
        """What tells the rows of this request, counted from their first, from those of others."""
        return fingerprint(self.mark, self.request.text, self.request.resume) % 2**62

    @property
    def kept_mark(self) -> int:
        """What tells the work that is kept for this request from that of others."""
        return fingerprint(self.rows_mark, self.scope)

    @property
    def scope(self) -> Scope:
        """The range of the request as tokens name it."""
        return Scope.of(self.request.span)

    def bad_token(self) -> PleiadError:
        """The refusal of a token that belongs to another page than the one asked for."""
        return bad(self.request.token)

    def check_scope(self, state: QueryState) -> None:
        """Refuses a token of another range.

        A part of its range is as good: after a split clients go on with the children, and both have the token of the
        parent. Each of them may then give as many results as TOP or LIMIT still allows, of which the client takes so
        many. Not where the token counts results, or some are still to be skipped: that says nothing about a part.
        """
        if state.scope == self.scope:
            return
        if self.scope.is_of_same_hash(state.scope, self.container.key):
            self.is_part = True
            return
        counts = isinstance(state.page, NumberedPageState | WholePageState)
        if counts or self._skips(state.page) or not state.scope.covers(self.request.span):
            raise self.bad_token()
        self.is_part = True

    def _skips(self, page: QueryPageState) -> bool:
        """Whether OFFSET leaves out results that the pages of a token have not come to."""
        if isinstance(page, StreamPageState | LookupPageState):
            return page.remainder.skip > 0
        emitted = page.emitted if isinstance(page, OrderedPageState) else 0
        return (self.execution.offset or 0) > emitted

    def selection(
        self, spans: Sequence[EpkRange], predicates: tuple[Predicate, ...] | None = None
    ) -> Selection:
        """The rows of some ranges that the predicates leave, those that were pushed down or others."""
        asked = self.pushdown.predicates if predicates is None else predicates
        return selection_of(spans, self.keys.narrow(asked, *spans), self.now, self.container.default_ttl)

    @property
    def gives_found_rows(self) -> bool:
        """Whether the rows that the store found are the results: items as they are, filtered already."""
        return self.query.gives_items and self.pushdown.is_whole and self.lookups is None

    @property
    def partitions(self) -> list[Partition]:
        found: dict[int, Partition] = {}
        for span in self.spans:
            for partition in self.container.map.overlapping(span):
                found[partition.id] = partition
        return list(found.values())

    def item_of(self, row: Row) -> dict[str, Any]:
        """The item of a row as a query sees it, system properties included."""
        self.pace.passing_bytes = 0
        self.pace.worked(steps_of_loading(row))
        value: dict[str, Any] = load(row.body)
        if self.names:
            return value
        value.update(self.container.system_properties(row))
        return value

    def filtered_item_of(self, row: Row) -> dict[str, Any]:
        """The item of a row as far as the filter looks at it."""
        if not self.query.filters_plainly or self.container.computed_names:
            return self.item_of(row)
        self.pace.passing_bytes = 0
        value: dict[str, Any] = load(row.body)
        self.pace.worked(steps_of_loading(row))
        return value

    def loaded(self, item_bytes: int) -> None:
        self.tally.items_loaded += 1
        self.tally.bytes_loaded += item_bytes

    def evaluated(self, row: Row, steps: int) -> None:
        """Counts the evaluation of an item, unless an earlier page has paid for it."""
        if self.pays_steps:
            self.tally.steps_beyond += charge.steps_beyond(steps, 1, row.size_bytes)

    async def evaluate_whole(self, work: Callable[[], _Answer]) -> _Answer:
        """Does what is done once for all items, after them or instead of them."""
        before = self.pace.steps
        answer = await self.pace.run(work)
        if self.pays_steps:
            items = self.loaded_before.items_loaded + self.tally.items_loaded
            size_bytes = self.loaded_before.bytes_loaded + self.tally.bytes_loaded
            self.tally.steps_beyond += charge.steps_beyond(self.pace.steps - before, items, size_bytes)
        return answer

    def is_out_of_time(self) -> bool:
        return time.perf_counter() - self.began_at > self.container.limits.operation_seconds


def steps_of_loading(row: Row) -> int:
    """What it is counted with that a row is looked at, be it whole or not."""
    return ROW_STEPS + row.size_bytes // BYTES_OF_A_STEP


def prepare(
    container: Container,
    request: QueryRequest,
    pace: Pace | None = None,
    functions: Functions = NO_FUNCTIONS,
) -> QueryJob:
    """Compiles a query and decides where it goes; refuses what the container's policy cannot serve."""
    pace = pace or Pace(container.limits)
    query = compile_query(request.text, container.limits, request.parameters)
    if request.resume is not None:
        _check_resumed(query, request.resume)
    execution = query.execution(request.parameters, container.query_context(pace, functions))
    known = prepared_of(container, request, query)
    spans = spans_of(container, request, query, known.keys)
    lookups = _lookups(container, request, query, known.keys)
    job = QueryJob(
        container, request, query, execution, spans, lookups, known.pushdown, known.order, pace, functions
    )
    job.turned = _turned(container, request, query)
    job.finds_rows = known.found_rows is not None
    if not container.computed_names and not functions:
        job.names = _names_of(job)
        job.needles = needles(query.plan, request.parameters) if job.names else ()
    job.keys = named_keys(container, known.pushdown.predicates, spans)
    return job


def _names_of(job: QueryJob) -> tuple[str, ...]:
    """The properties to ask for where a store that gives just these spares more than it takes to find them."""
    names = job.query.read_names
    if job.query.gives_items and (job.query.order_by or not job.gives_found_rows):
        names = job.query.plain.sifted_names
    if names is None:
        return ()
    is_told_apart = is_addressable(tuple(names)) and not any("\0" in name for name in names)
    return tuple(sorted(names)) if len(names) <= NAMES_MAX and is_told_apart else ()


def _turned(container: Container, request: QueryRequest, query: Query) -> int:
    """The direction of the first sort key: of a vector distance, whether the largest is the nearest."""
    if not query.order_by:
        return 1
    first = query.order_by[0]
    falls = first.descending
    if isinstance(first.expression, plan.Call) and first.expression.function.name == "VECTORDISTANCE":
        policy = container.definition.properties.get("vectorEmbeddingPolicy")
        falls = more_is_nearer(first.expression.arguments, request.parameters, policy)
    return -1 if falls else 1


def _check_resumed(query: Query, resume: ResumePoint) -> None:
    is_ordered = query.order_by and not query.is_aggregate and not query.distinct and query.is_per_item
    if not is_ordered or len(resume.values) != len(query.order_by):
        raise errors.BAD_REQUEST(
            reason="A 'resumeFilter' belongs to a query with ORDER BY and has a value for each of its keys."
        )


def spans_of(
    container: Container, request: QueryRequest, query: Query, keys: list[tuple[Any, ...]] | None
) -> list[EpkRange]:
    """The ranges of hashes a query has to read: what its request and its filter leave, in order."""
    levels = container.key.levels
    # By hash keys, since 1 and true are equal in Python and two keys here.
    found = (
        None
        if keys is None
        else {tuple(map(hash_key, key[:levels])): key[:levels] for key in in_turns(keys)}.values()
    )
    single = found is not None and len(found) <= 1 and all(len(key) == levels for key in found)
    if not request.is_confined and not container.key.system_key:
        if not single:
            if not request.may_fan_out:
                raise errors.CROSS_PARTITION_DISABLED()
            _check_merged(request, query)
        elif request.may_fan_out:
            _check_value(request, query)
    if found is None or not query.reads_items or query.ranks_text:
        return [request.span]
    # A filter may name a prefix of a hierarchical key beside keys beneath it.
    return disjoint(
        span for key in in_turns(found) if (span := _span_of(container, request, key)) is not None
    )


def _check_merged(request: QueryRequest, query: Query) -> None:
    """Refuses over several partitions what its client merges itself, by the query plan that goes with the refusal."""
    is_search = query.is_ranked or not all(isinstance(key.expression, plan.Member) for key in query.order_by)
    if is_search and any(item.direction is not None for item in query.syntax.order_by):
        what = (
            "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed."
            if query.is_ranked
            else "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported."
        )
        raise errors.QUERY_ERROR(reason=f"One of the input values is invalid. {what}")
    _check_value(request, query)
    if request.merges_partitions and (is_search or _is_merged(request, query)):
        raise errors.CROSS_PARTITION_NOT_SERVABLE(
            reason="Results of partitions that depend on each other are merged by the client, by its query plan."
        )


def _check_value(request: QueryRequest, query: Query) -> None:
    """Refuses an aggregate in an object to a client that merges, also where the filter names one key."""
    is_in_object = query.is_aggregate and not query.block.is_value and not query.group_by
    if request.merges_partitions and is_in_object:
        raise errors.CROSS_PARTITION_NOT_SERVABLE(
            reason="Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates."
        )


def _is_merged(request: QueryRequest, query: Query) -> bool:
    """Whether a client that can merge the results of partitions is left to do it, as on the service.

    Not where it wants to go on by tokens of the server, since not every client has tokens of its own for an order; nor
    where groups are made, which not every client can.
    """
    if query.group_by:
        return False
    if request.merges_values and query.is_aggregate:
        return True
    is_ordered = bool(query.order_by) or (request.merges_values and query.distinct)
    return is_ordered and not request.is_paged


def _span_of(container: Container, request: QueryRequest, key: tuple[KeyValue, ...]) -> EpkRange | None:
    """Where the items of a key in the filter are; None when they are out of scope or cannot exist."""
    try:
        return request.span.intersect(container.span_of(key))
    except PleiadError:
        return None


def _lookups(
    container: Container, request: QueryRequest, query: Query, keys: list[tuple[Any, ...]] | None
) -> list[tuple[bytes, str]] | None:
    """The (epk, id) pairs a filter names, when it names all of them: then nothing needs to be searched."""
    levels = container.key.levels
    if not query.reads_items or query.block.where is None or query.ranks_text:
        return None
    if request.key is not None and len(request.key) == levels:
        ids = key_values(query.plan, request.parameters, (("id",),))
        pairs = None if ids is None else [(request.key, key[0]) for key in ids]
    elif keys is None or any(len(key) <= levels for key in keys):
        return None
    else:
        pairs = [(key[:levels], key[levels]) for key in keys]
    if pairs is None:
        return None
    found = {(container.epk_of(key), id) for key, id in pairs if isinstance(id, str)}
    return sorted(pair for pair in found if request.span.contains(pair[0]))


def note_use(job: QueryJob, found: bool) -> None:
    """Tells the partitions which paths the query asks for, unless it knows its items already."""
    if job.lookups is not None:
        return
    paths = [IndexedPath(predicate.path, predicate.element) for predicate in job.pushdown.predicates]
    if job.order is not None:
        paths.append(IndexedPath(job.order.path, False))
    if paths:
        for partition in job.partitions:
            partition.note_use(paths, found)


async def looked_up(job: QueryJob, first: bool) -> list[Row]:
    """The live rows of the pairs a filter names, in scan order; the first page pays for looking.

    Those of one partition are of one moment, as long as they are not too many for one slice.
    """
    assert job.lookups is not None
    container = job.container
    now = time.time()
    rows: list[Row] = []
    if first:
        job.tally.partitions = len(job.partitions)
        job.tally.index_lookups = len(job.lookups)
    keys_of: dict[Partition, list[ItemKey]] = {}
    for epk, id in job.lookups:
        keys_of.setdefault(container.map.find(epk), []).append(ItemKey(epk, id))
    for partition, keys in keys_of.items():
        for start in range(0, len(keys), SLICE_ROWS):
            await job.pace.rest()
            found = await _read(partition, keys[start : start + SLICE_ROWS])
            live = [row for row in found if row is not None and not container.is_expired(row, now)]
            job.pace.hold(sum([row.size_bytes for row in live]))
            rows += live
    return sorted(rows, key=lambda row: row.number)


async def _read(partition: Partition, keys: Sequence[ItemKey]) -> Sequence[Row | None]:
    """Rows of one moment; one alone may be read together with those of others."""
    return await partition.read_many(keys) if len(keys) > 1 else [await partition.read(*keys[0])]
