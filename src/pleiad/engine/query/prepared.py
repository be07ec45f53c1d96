"""What is known of a query on a container before it is run: what its text says, where it goes, what the store does.

All of it follows from the text, the parameters and the definition of the container. So it is found out once, and kept
with that version of the definition (`Container.adopt` begins a new one); partitions and indexes, which change more
often, have no part in it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pleiad.engine.container import Container
from pleiad.engine.query.request import QueryRequest
from pleiad.query import Query, compile_query, plan
from pleiad.query.order_rules import check_order_by
from pleiad.query.pushdown import PathOrder, Pushdown, path_order, pushdown
from pleiad.query.route.keys import key_values
from pleiad.store.selection import IndexedPath

_TEXT_CHARS_MAX = 2_000
"""What is longer, with the texts among its parameters, is found out each time."""
_COMPARISONS = frozenset({"=", "<", "<=", ">", ">="})


class FoundRows(NamedTuple):
    """That the store finds the results: they are items as they are, in the order of their numbers or of an index.

    Nothing is left to evaluate, so nothing but the items is charged for.
    """

    uses: tuple[IndexedPath, ...]
    """The paths it asks for."""
    skip: int
    """Rows that OFFSET leaves out."""
    most: int | None
    """Rows that TOP or LIMIT allow, those left out with them."""
    is_falling: bool | None
    """Whether its order is descending, if it has one."""


class Prepared(NamedTuple):
    """What a query with its parameters asks of a container, whatever the request confines it to."""

    query: Query
    pushdown: Pushdown
    keys: list[tuple[Any, ...]] | None
    """The partition keys the filter allows, each with the id behind it where the filter names that too."""
    order: PathOrder | None
    found_rows: FoundRows | None


class ValueFilter(NamedTuple):
    """The filter of a text that says no more than that a path has the value of a parameter, whichever that is."""

    query: Query
    path: tuple[str, ...]
    parameter: str
    found_rows: FoundRows


def key_of(request: QueryRequest) -> Any:
    """What a prepared query is kept by."""
    parameters = request.parameters
    if not parameters:
        return request.text
    return request.text, tuple(parameters.items()), tuple(map(type, parameters.values()))


def prepared_of(container: Container, request: QueryRequest, query: Query) -> Prepared:
    """A query prepared; remembered, since applications repeat themselves."""
    remembered = key_of(request)
    try:
        found: Prepared | None = container.prepared.get(remembered)
    except TypeError:  # a parameter is an array or object
        return _prepared(container, request, query)
    if found is None:
        found = _prepared(container, request, query)
        chars = len(request.text) + sum(map(_chars, request.parameters.items()))
        if chars <= _TEXT_CHARS_MAX:
            container.prepared.keep(remembered, found, query, chars)
    return found


def _chars(parameter: tuple[str, Any]) -> int:
    name, value = parameter
    return len(name) + (len(value) if isinstance(value, str) else 0)


def learn(container: Container, text: str) -> None:
    """Finds out whether the filter of a text is one value of one path, unless that is known."""
    if text in container.value_filters or len(text) > _TEXT_CHARS_MAX:
        return
    found = _value_filter(container, compile_query(text, container.limits))
    container.value_filters.keep(text, found, None if found is None else found.query, len(text))


def _prepared(container: Container, request: QueryRequest, query: Query) -> Prepared:
    computed = container.computed_names
    order = None
    if query.order_by:
        check_order_by(query.plan, container.definition.indexing, request.parameters, computed)
        order = path_order(query.plan, request.parameters, computed)
    pushed = pushdown(query.plan, request.parameters, container.is_indexed, computed)
    keys = _keys(container, request, query)
    return Prepared(query, pushed, keys, order, _found_rows(container, query, pushed, keys, order))


def _keys(container: Container, request: QueryRequest, query: Query) -> list[tuple[Any, ...]] | None:
    if query.block.where is None and query.is_per_item:
        return None if query.reads_items else []
    if query.filter_names is not None and container.key_names.isdisjoint(query.filter_names):
        return None
    return key_values(query.plan, request.parameters, (*container.key.path_steps, ("id",)))


def _found_rows(
    container: Container,
    query: Query,
    pushed: Pushdown,
    keys: list[tuple[Any, ...]] | None,
    order: PathOrder | None,
) -> FoundRows | None:
    """That the store finds the results in the order of an index, where that is so."""
    block = query.block
    if order is None or keys is not None or not _gives_rows(container, query, pushed):
        return None
    if any(each.path != order.path or each.element for each in pushed.predicates):
        return None  # another index would find them all first, which is charged for
    if not (block.where is None or _compares_plainly(block.where)):
        return None
    top, offset, limit = block.top, block.offset or 0, block.limit
    if not (isinstance(top, int | None) and isinstance(offset, int) and isinstance(limit, int | None)):
        return None
    uses = (*(IndexedPath(each.path) for each in pushed.predicates), IndexedPath(order.path))
    return FoundRows(uses, offset, top if limit is None else offset + limit, order.descending)


def _gives_rows(container: Container, query: Query, pushed: Pushdown) -> bool:
    """Whether the rows that the store finds by its predicates are the results, and none is named by its id or key."""
    names = query.filter_names
    is_collected = query.is_aggregate or query.is_ranked or query.distinct
    if is_collected or not query.gives_items or not query.is_per_item or not pushed.is_whole:
        return False
    if query.block.where is None:
        return True
    return names is not None and "id" not in names and container.key_names.isdisjoint(names)


def _compares_plainly(node: plan.Expression) -> bool:
    """Whether a filter only compares properties with values: that takes no steps beyond those of loading."""
    match node:
        case plan.Binary(operator=operator, left=left, right=right):
            return operator in _COMPARISONS and _compares_plainly(left) and _compares_plainly(right)
        case plan.Chain(operator="AND", operands=operands):
            return all(map(_compares_plainly, operands))
        case plan.Member(target=target, key=plan.Constant()):
            return _compares_plainly(target)
        case plan.Slot() | plan.Parameter() | plan.Constant():
            return True
        case _:
            return False


def _value_filter(container: Container, query: Query) -> ValueFilter | None:
    block = query.block
    is_cut = block.top is not None or block.offset is not None or block.limit is not None
    if query.order_by or is_cut:
        return None
    match block.where:
        case plan.Binary(operator="=", right=plan.Parameter(name=name)):
            pass
        case plan.Binary(operator="=", left=plan.Parameter(name=name)):
            pass
        case _:
            return None
    # What the store does of it is the same for every value that `equality` takes.
    pushed = pushdown(query.plan, {name: 0}, container.is_indexed, container.computed_names)
    if not _gives_rows(container, query, pushed):
        return None  # the general way looks such items up
    if len(pushed.predicates) != 1 or pushed.predicates[0].one_of != (0,):
        return None
    path = pushed.predicates[0].path
    return ValueFilter(query, path, name, FoundRows((IndexedPath(path),), 0, None, None))
