"""What is known of a query from its plan, before it runs."""

from __future__ import annotations

from typing import NamedTuple

from pleiad.item.body import SYSTEM_PROPERTIES
from pleiad.query import plan


def gives_items(bound: plan.Plan) -> bool:
    """Whether each result is an item as it is stored."""
    block = bound.block
    if len(block.sources) != 1 or block.sources[0].kind is not plan.SourceKind.ITEMS:
        return False
    return block.selection == plan.Slot(block.sources[0].slot)


def leaves(bound: plan.Plan) -> int:
    """How many values a result is put together from."""
    return sum(
        1
        for node in plan.walk(bound.block.selection)
        if isinstance(node, plan.Slot | plan.Constant | plan.Parameter | plan.GroupKey | plan.AggregateResult)
    )


def filters_plainly(bound: plan.Plan) -> bool:
    """Whether the filter looks at nothing but properties that clients gave."""
    plain = whole = 0
    for node in plan.walk(bound.block.where) if bound.block.where is not None else ():
        if isinstance(node, plan.Slot) and node.index in bound.root_slots:
            whole += 1
        elif isinstance(node, plan.Member) and isinstance(node.target, plan.Slot):
            key = node.key.value if isinstance(node.key, plan.Constant) else "_"
            is_plain = isinstance(key, str) and not key.startswith("_")
            plain += is_plain and node.target.index in bound.root_slots
    return plain == whole


def filter_names(bound: plan.Plan) -> frozenset[str] | None:
    """The properties that the filter looks at; None when that cannot be told."""
    block = bound.block
    if block.where is None or len(block.sources) != 1 or block.sources[0].kind is not plan.SourceKind.ITEMS:
        return None
    return _names_below(bound, block.where)


def read_names(bound: plan.Plan) -> frozenset[str] | None:
    """The properties of items that the query looks at; None when it may look at others too, or at system properties."""
    names = _names_below(bound, bound.block)
    return names if names is not None and SYSTEM_PROPERTIES.isdisjoint(names) else None


def sifted_names(bound: plan.Plan) -> frozenset[str] | None:
    """The properties by which items that are given as they are pass the filter and are ordered.

    None where nothing is filtered or ordered, or other properties may be looked at too, or system properties.
    """
    block = bound.block
    looked_at = [
        *([block.where] if block.where is not None else ()),
        *(key.expression for key in block.order_by),
    ]
    is_streamed = block.is_per_item and block.rank is None and not (block.distinct and block.order_by)
    if not gives_items(bound) or not looked_at or not is_streamed:
        return None
    found: frozenset[str] = frozenset()
    for node in looked_at:
        names = _names_below(bound, node)
        if names is None or not SYSTEM_PROPERTIES.isdisjoint(names):
            return None
        found |= names
    return found


class Plainness(NamedTuple):
    """What of a query is only named, and not evaluated."""

    sifted_names: frozenset[str] | None
    """Of a query that gives items as they are, the properties that tell which of them and in which order."""
    gives_each: bool
    """Whether each item that passes the filter gives one result, for which nothing is evaluated."""
    projects: bool
    """Whether nothing is evaluated for what comes of a row."""
    sorts: bool
    """Whether items, each of which is one row, are ordered by values for which nothing is evaluated."""


def plainness(bound: plan.Plan) -> Plainness:
    return Plainness(
        sifted_names(bound), _gives_each(bound), _is_plain(bound.block.selection), sorts_plainly(bound)
    )


def _is_plain(node: plan.Expression) -> bool:
    """Whether an expression only names a value, or puts an object together of values that it names."""
    plain = plan.Member | plan.Slot | plan.Constant | plan.MakeObject
    return all(isinstance(part, plain) for part in plan.walk(node))


def sorts_plainly(bound: plan.Plan) -> bool:
    """Whether items, each of which is one row, are ordered by values that are only named."""
    block = bound.block
    is_one = len(block.sources) == 1 and block.sources[0].kind is plan.SourceKind.ITEMS
    is_only_ordered = bool(block.order_by) and not block.is_grouped and block.rank is None
    return is_one and is_only_ordered and all(_is_plain(key.expression) for key in block.order_by)


def _gives_each(bound: plan.Plan) -> bool:
    """Whether each item that passes the filter gives one result, for which nothing is evaluated."""
    block = bound.block
    is_one = len(block.sources) == 1 and block.sources[0].kind is plan.SourceKind.ITEMS
    if not is_one or block.is_grouped or block.distinct:
        return False
    is_object = isinstance(block.selection, plan.MakeObject)
    return gives_items(bound) or (is_object and _is_plain(block.selection))


def sort_names(bound: plan.Plan) -> list[str] | None:
    """The properties of items that are the sort keys; None where one of these is anything else."""
    names = []
    for key in bound.block.order_by:
        match key.expression:
            case plan.Member(target=plan.Slot(), key=plan.Constant(value=str() as name)):
                names.append(name)
            case _:
                return None
    return names


def shared_arguments(block: plan.Block) -> tuple[list[plan.Expression], list[int]]:
    """The arguments of a block's aggregates, equal paths and constants once, and which of them each aggregate has."""
    found: list[plan.Expression] = []
    places: list[int] = []
    for aggregate in block.aggregates:
        node = aggregate.argument
        is_plain = all(isinstance(part, plan.Member | plan.Slot | plan.Constant) for part in plan.walk(node))
        if not is_plain or node not in found:
            found.append(node)
            places.append(len(found) - 1)
        else:
            places.append(found.index(node))
    return found, places


def plain_columns(bound: plan.Plan) -> list[str | plan.Constant] | None:
    """The keys of a block's groups and the arguments of its aggregates, where all are properties of items or constants.

    Properties by their names. None where rows are more than items, or anything has to be evaluated for them.
    """
    block = bound.block
    if len(block.sources) != 1 or block.sources[0].kind is not plan.SourceKind.ITEMS:
        return None
    found: list[str | plan.Constant] = []
    for node in (*block.group_by, *shared_arguments(block)[0]):
        match node:
            case plan.Member(target=plan.Slot(), key=plan.Constant(value=str() as name)):
                found.append(name)
            case plan.Constant():
                found.append(node)
            case _:
                return None
    return found


def _names_below(bound: plan.Plan, root: plan.Block | plan.Expression) -> frozenset[str] | None:
    names: set[str] = set()
    whole = 0
    for node in plan.walk(root):
        if isinstance(node, plan.Slot) and node.index in bound.root_slots:
            whole += 1
        elif isinstance(node, plan.Member) and isinstance(node.target, plan.Slot):
            if node.target.index not in bound.root_slots:
                continue
            if not isinstance(node.key, plan.Constant) or not isinstance(node.key.value, str):
                return None
            whole -= 1
            names.add(node.key.value)
    return frozenset(names) if whole == 0 else None
