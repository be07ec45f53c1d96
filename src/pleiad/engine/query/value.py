"""The short way of the commonest query: the items that have one value at one path.

`SELECT * FROM c WHERE c.path = @value` needs no more than the path, the value and one statement of the store. What
is known from the text alone is kept by text; whatever is not so simple goes the general way, and so does a result
that does not end on its first page. Both ways give the same results, charges and tokens.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Sequence
from typing import Final, NamedTuple

from pleiad.engine.container import Container
from pleiad.engine.query.job import ROUTE_TEXT_CHARS_MAX, ROUTES_MAX, SLICE_ROWS, QueryRequest
from pleiad.partition.partition import Partition
from pleiad.query import Query, compile_query, plan
from pleiad.query.pushdown import equality, pushdown
from pleiad.store.rows import Row
from pleiad.store.selection import IndexedPath, Selection


class ValueFilter(NamedTuple):
    """The filter of a text that says no more than that a path has the value of a parameter."""

    path: tuple[str, ...]
    parameter: str
    uses: tuple[IndexedPath]


class ValueQuery(NamedTuple):
    """One such query with its value: the one partition it goes to, and what it asks there."""

    partition: Partition
    selection: Selection
    rows_max: int
    uses: tuple[IndexedPath]

    def rows(self) -> Awaitable[Sequence[Row]]:
        """The first rows of the result; fewer than `rows_max` are all of it."""
        return self.partition.select(self.selection, 0, self.rows_max)


_UNKNOWN: Final = ValueFilter((), "", (IndexedPath(()),))


def value_query(container: Container, request: QueryRequest) -> ValueQuery | None:
    """The short form of a request; None when it has to go the general way."""
    text = request.text
    known = container.value_filters.get(text, _UNKNOWN)
    if known is _UNKNOWN:
        known = _learn(container, text)
    is_first = not request.token and request.resume is None
    if known is None or not is_first or not (request.is_confined or request.may_fan_out):
        return None
    parameters, span = request.parameters, request.span
    partition = container.map.find(span.min)
    if known.parameter not in parameters or span.max > partition.span.max:
        return None
    predicate = equality(known.path, parameters[known.parameter])
    if predicate is None:
        return None
    selection = Selection(span, (predicate,), int(time.time()), container.default_ttl)
    return ValueQuery(partition, selection, min(SLICE_ROWS, request.items_max), known.uses)


def _learn(container: Container, text: str) -> ValueFilter | None:
    if len(text) > ROUTE_TEXT_CHARS_MAX:
        return None
    if len(container.value_filters) >= ROUTES_MAX:
        container.value_filters.clear()
    found = _value_filter(container, compile_query(text, container.limits))
    container.value_filters[text] = found
    return found


def _value_filter(container: Container, query: Query) -> ValueFilter | None:
    block = query.block
    is_collected = query.is_aggregate or query.order_by or query.is_ranked or query.distinct
    is_cut = block.top is not None or block.offset is not None or block.limit is not None
    if not query.gives_items or is_collected or is_cut:
        return None
    match block.where:
        case plan.Binary(operator="=", right=plan.Parameter(name=name)):
            pass
        case plan.Binary(operator="=", left=plan.Parameter(name=name)):
            pass
        case _:
            return None
    names = query.filter_names
    if names is None or "id" in names or not container.key_names.isdisjoint(names):
        return None  # the general way looks such items up
    # What the store does of it is the same for every value that `equality` takes.
    pushed = pushdown(query.plan, {name: 0}, container.is_indexed, container.computed_names)
    if not pushed.is_whole or len(pushed.predicates) != 1 or pushed.predicates[0].one_of != (0,):
        return None
    path = pushed.predicates[0].path
    return ValueFilter(path, name, (IndexedPath(path),))
