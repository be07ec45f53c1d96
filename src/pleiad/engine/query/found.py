"""First pages of queries whose results the store finds alone: items as they are, of one value of a path or in an order.

`SELECT * FROM c WHERE c.path = @value` and `SELECT * FROM c ORDER BY c.path` need no more than what is prepared of
them, one statement of the store, and the texts of the rows. Whatever is not so simple goes the general way, and so do
later pages, and values of which there are more than a page has. Both ways give the same results, charges and tokens.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from pleiad.charge import Tally
from pleiad.engine.container import Container
from pleiad.engine.pages.query import OrderedPageState
from pleiad.engine.query.job import SLICE_ROWS
from pleiad.engine.query.page import QueryPage, page_of
from pleiad.engine.query.prepared import FoundRows, Prepared, ValueFilter, key_of
from pleiad.engine.query.request import TOKEN_BYTES_MAX, QueryRequest
from pleiad.errors import PleiadError
from pleiad.keys.range import EpkRange
from pleiad.limits import MB
from pleiad.partition.partition import Partition
from pleiad.query import Query
from pleiad.query.pushdown import equality
from pleiad.store.rows import Row
from pleiad.store.segments import SegmentDroppedError, Waiting
from pleiad.store.selection import OrderPosition, PathOrder, Predicate, Selection
from pleiad.values.ranks import ARRAY_RANK, BOOLEAN_RANK, NULL_RANK, UNDEFINED_RANK
from pleiad.values.undefined import UNDEFINED

_SORT_VALUE_CHARS_MAX = 256
"""Longer ones may be too long for a token, and all may be for one that its client wants short."""
_AT_ONCE_BYTES_MAX = 2 * MB
"""As many rows as are about so many bytes are read at once."""

Placed = tuple[Row, OrderPosition]


class FoundQuery(NamedTuple):
    """One such query as it is asked: the one partition it goes to, and what it asks there."""

    query: Query
    found_rows: FoundRows
    partition: Partition
    selection: Selection
    order: PathOrder | None
    rows_max: int
    """As many rows as are asked for; fewer are all there are."""

    def rows(self) -> Awaitable[Sequence[Row]]:
        """The first rows of a query without an order."""
        return self.partition.select(self.selection, 0, self.rows_max)


def found_query(container: Container, request: QueryRequest) -> FoundQuery | None:
    """A request as such a query, by what is prepared already; None when it has to go the general way."""
    if request.token or request.resume is not None or not (request.is_confined or request.may_fan_out):
        return None
    text, parameters, span = request.text, request.parameters, request.span
    partition = _one_partition(container, span)
    if partition is None:
        return None
    by_value: ValueFilter | None = container.value_filters.get(text)
    predicates: tuple[Predicate, ...]
    order: PathOrder | None
    if by_value is not None:
        query, found = by_value.query, by_value.found_rows
        value = parameters.get(by_value.parameter, UNDEFINED)
        predicate = equality(by_value.path, value)
        if predicate is None:
            return None
        order = None
        predicates, rows_max = (predicate,), min(SLICE_ROWS, request.items_max)
    else:
        try:
            known: Prepared | None = container.prepared.get(key_of(request))
        except TypeError:  # a parameter is an array or object
            return None
        if known is None or known.found_rows is None:
            return None
        query, found, order = known.query, known.found_rows, known.order
        if request.merges_partitions and not request.is_paged and not request.is_confined:
            return None  # its client merges partitions itself
        predicates, rows_max = known.pushdown.predicates, found.skip + request.items_max + 1
        if found.most is not None:
            rows_max = min(rows_max, found.most + 1)
    selection = Selection(span, predicates, int(time.time()), container.default_ttl)
    return FoundQuery(query, found, partition, selection, order, rows_max)


def _one_partition(container: Container, span: EpkRange) -> Partition | None:
    """The physical partition that a range lies in, if it is one."""
    partitions = container.map.partitions
    partition = partitions[0] if len(partitions) == 1 else container.map.find(span.min)
    return partition if span.max <= partition.span.max else None


def page_at_once(container: Container, request: QueryRequest, began_at: float) -> QueryPage | None:
    """The first page of a query that was asked before, without a wait.

    Where there is none nothing has happened, and the general way says what there is, or what is wrong.
    """
    asked = found_query(container, request)
    return None if asked is None else asked_at_once(container, request, asked, began_at)


def asked_at_once(
    container: Container, request: QueryRequest, asked: FoundQuery, began_at: float
) -> QueryPage | None:
    """The same of a request that is known as such a query."""
    partition, lane = asked.partition, request.lane
    rows_most = min(asked.rows_max, _AT_ONCE_BYTES_MAX // max(1, container.row_bytes_seen))
    page: QueryPage | None = None
    try:
        if not partition.is_open(lane):
            return None
        if asked.order is None:
            rows = partition.select_at_once(asked.selection, rows_most)
            if not isinstance(rows, Waiting):
                page = page_of_rows(container, request, asked, rows, began_at, rows_most)
        elif rows_most == asked.rows_max:
            placed = partition.ordered_at_once(asked.selection, asked.order, rows_most)
            if not isinstance(placed, Waiting):
                page = _page_in_order(container, request, asked, placed, began_at)
    except (PleiadError, SegmentDroppedError):
        return None
    if page is not None:
        partition.admit(lane)
        take(asked, request, page)
    return page


def take(asked: FoundQuery, request: QueryRequest, page: QueryPage) -> None:
    """Notes which paths a page asked for, and takes its charge from those who share the partition's throughput."""
    asked.partition.note_use(asked.found_rows.uses, bool(page.results) and bool(asked.selection.predicates))
    asked.partition.spend(page.charge_ru, request.lane)


def page_of_rows(
    container: Container,
    request: QueryRequest,
    asked: FoundQuery,
    rows: Sequence[Row],
    began_at: float,
    rows_max: int,
) -> QueryPage | None:
    """The page that has all rows of a query without an order; None when they do not fit it."""
    if len(rows) >= rows_max:
        return None
    results = container.render_all(rows)
    if sum(map(len, results)) > container.limits.response_bytes:
        return None
    return _page(container, request, asked, results, rows, None, began_at)


def _page_in_order(
    container: Container, request: QueryRequest, asked: FoundQuery, placed: Sequence[Placed], began_at: float
) -> QueryPage | None:
    """The page that has the first rows in an order; None where they do not fit it, or the language orders otherwise."""
    found = asked.found_rows
    if not all(is_ordered_alike(position) for _, position in placed):
        return None
    rows = [row for row, _ in placed[: found.skip + request.items_max]]
    if found.most is not None:
        rows = rows[: found.most]
    results = container.render_all(rows[found.skip :])
    if sum(map(len, results)) > container.limits.response_bytes:
        return None
    state: OrderedPageState | None = None
    if len(rows) < len(placed) and len(rows) != found.most:
        position = placed[len(rows) - 1][1]
        value = position.value
        if isinstance(value, str) and not _is_short(value, request):
            return None
        number = -position.number if found.is_falling else position.number
        state = OrderedPageState((sort_value(position),), (number, 0), len(rows))
    return _page(container, request, asked, results, rows, state, began_at)


def _is_short(value: str, request: QueryRequest) -> bool:
    """Whether a token surely has room for a sort value."""
    return len(value) <= _SORT_VALUE_CHARS_MAX and request.token_bytes_max == TOKEN_BYTES_MAX


def _page(
    container: Container,
    request: QueryRequest,
    asked: FoundQuery,
    results: list[bytes],
    rows: Sequence[Row],
    state: OrderedPageState | None,
    began_at: float,
) -> QueryPage:
    tally = Tally(1, len(rows), sum([row.size_bytes for row in rows]))
    if rows:
        container.row_bytes_seen = max(tally.bytes_loaded // len(rows), container.row_bytes_seen * 3 // 4)
    return page_of(
        container,
        request,
        results,
        state,
        tally,
        [asked.partition],
        asked.query,
        is_falling=asked.found_rows.is_falling,
        began_at=began_at,
        asked_at=began_at,
    )


def is_ordered_alike(position: OrderPosition) -> bool:
    """Whether an index and the language agree on the place of a value.

    They do not for arrays and objects, nor for strings with characters that UTF-8 and UTF-16 order differently.
    """
    value = position.value
    if isinstance(value, str):
        return value.isascii() or max(value) < "\ue000"
    return position.rank < ARRAY_RANK


def sort_value(position: OrderPosition) -> object:
    """The value that rows at a place of an index have; of a number the double that it is ordered by."""
    rank, value = position.rank, position.value
    if rank <= UNDEFINED_RANK:
        return UNDEFINED
    if rank == NULL_RANK:
        return None
    if rank == BOOLEAN_RANK:
        return bool(value)
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
