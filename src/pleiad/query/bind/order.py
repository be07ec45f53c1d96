"""What ORDER BY takes: expressions that are a path into the item, or can be reduced to one, and vector distances."""

from __future__ import annotations

from typing import Final, TypeGuard

from pleiad.query import errors, plan
from pleiad.query.fold import Folder
from pleiad.query.pace import in_turns
from pleiad.query.syntax import ast
from pleiad.query.values import is_number
from pleiad.values.undefined import UNDEFINED

_SCORES: Final = ("VECTORDISTANCE", "_FULLTEXTSCORE", "_VECTORSCORE")


def is_path_like(node: ast.Expression) -> bool:
    """Whether an expression has the form of a path that begins with a name."""
    while isinstance(node, ast.Property | ast.Element):
        node = node.target
    return isinstance(node, ast.Identifier)


def reduced(node: plan.Expression, blocks: dict[int, plan.Block] | None = None) -> plan.Expression:
    """The expression with members of arrays, objects and subqueries replaced by what they are made of."""
    blocks = blocks or {}
    if isinstance(node, plan.Subquery):
        block = node.block
        if (
            not block.sources
            and block.where is None
            and not block.is_grouped
            and node.kind is ast.SubqueryKind.SCALAR
        ):
            return reduced(block.selection, blocks)
        return node
    if isinstance(node, plan.Slot) and node.index in blocks:
        return reduced(_row_of(blocks[node.index]), blocks)
    if isinstance(node, plan.GroupKey):
        keys = [block.group_by for block in blocks.values() if block.scope == node.scope]
        return reduced(keys[0][node.index], blocks) if keys else node
    if not isinstance(node, plan.Member):
        return node
    target = reduced(node.target, blocks)
    key = node.key
    if isinstance(target, plan.MakeObject) and isinstance(key, plan.Constant):
        return reduced(dict(target.properties).get(key.value, plan.Constant(UNDEFINED)), blocks)
    if isinstance(target, plan.MakeArray) and isinstance(key, plan.Constant):
        place = key.value
        if type(place) is int and 0 <= place < len(target.items):
            return reduced(target.items[place], blocks)
        return plan.Constant(UNDEFINED)
    return plan.Member(target, key)


def _row_of(block: plan.Block) -> plan.Expression:
    """What rows of a subquery are; with a filter and no source they are no path."""
    return block.selection if block.sources or block.where is None else plan.Constant(UNDEFINED)


def row_blocks(sources: list[plan.Source] | tuple[plan.Source, ...]) -> dict[int, plan.Block]:
    """The blocks that sources have their rows from, by the slot of the source.

    An element of rows that are paths is taken for the row: it is a path as well.
    """
    found: dict[int, plan.Block] = {}
    for source in sources:
        if source.block is not None:
            found[source.slot] = source.block
            found.update(row_blocks(source.block.sources))
    return found


def row_bases(sources: list[plan.Source] | tuple[plan.Source, ...]) -> dict[int, plan.Expression]:
    """What the values of sources are parts of, by the slot of the source: it has to be a path for them to be one."""
    found: dict[int, plan.Expression] = {}
    for source in sources:
        if source.expression is not None:
            found[source.slot] = source.expression
        elif source.block is not None:
            found.update(row_bases(source.block.sources))
            if source.kind is plan.SourceKind.ROW_ELEMENTS:
                found[source.slot] = _row_of(source.block)
    return found


class Paths:
    """Tells paths into the item among the expressions over some sources."""

    def __init__(self, sources: list[plan.Source] | tuple[plan.Source, ...]) -> None:
        self._bases = row_bases(sources)
        self._blocks = {slot: block for slot, block in row_blocks(sources).items() if slot not in self._bases}

    def block(self, slot: int) -> plan.Block | None:
        """The subquery whose rows a slot has."""
        return self._blocks.get(slot)

    def has(self, node: plan.Expression) -> bool:
        """Whether an expression is a path into the item, an element of it, or reduces to one."""
        while True:
            node = reduced(node, self._blocks)
            while isinstance(node, plan.Member) and isinstance(node.key, plan.Constant | plan.Parameter):
                node = node.target
            if not isinstance(node, plan.Slot) or node.index not in self._bases:
                return isinstance(node, plan.Slot | plan.GroupKey)
            node = self._bases[node.index]


def check_sort_path(
    query: ast.Query,
    order_by: tuple[plan.SortKey, ...],
    sources: list[plan.Source],
    group_by: tuple[plan.Expression, ...],
    is_grouped: bool,
) -> None:
    """2206 for a key that is no path; one row, or no row of items, is not sorted at all."""
    if not query.sources:
        return
    paths = Paths(sources)
    is_counted = query.where is None and is_of_one_count(order_by, sources)
    if is_counted or (len(order_by) == 1 and is_between_geometries(order_by[0].expression)):
        return
    if is_grouped and not query.group_by:
        _check_paths_of_one_row(order_by, paths)
        return
    if len(order_by) == 1 and _is_score(score := order_by[0].expression):
        if is_distance(score) and not _is_from_vector(score, paths):
            raise errors.refusal("2206")
        return
    for key in in_turns(order_by):
        if not paths.has(_ungrouped(key.expression, group_by)):
            raise errors.refusal("2206")


def _ungrouped(node: plan.Expression, group_by: tuple[plan.Expression, ...]) -> plan.Expression:
    """A path into a key of the groups as a path into what the key is."""
    if isinstance(node, plan.Member):
        return plan.Member(_ungrouped(node.target, group_by), node.key)
    return group_by[node.index] if isinstance(node, plan.GroupKey) else node


def _check_paths_of_one_row(order_by: tuple[plan.SortKey, ...], paths: Paths) -> None:
    """Of the keys of one row only those are looked at that are paths into the one row of a subquery."""
    for key in in_turns(order_by):
        base = key.expression
        while isinstance(base, plan.Member):
            base = base.target
        inner = paths.block(base.index) if isinstance(base, plan.Slot) else None
        if inner is not None and inner.is_grouped and not inner.group_by:
            raise errors.refusal("2206")


def is_of_one_count(
    order_by: tuple[plan.SortKey, ...], sources: list[plan.Source] | tuple[plan.Source, ...]
) -> bool:
    """Whether the only key is the one row of a subquery that is a COUNT: no path, and sorted by the client."""
    if len(order_by) != 1 or len(sources) != 1:
        return False
    base = order_by[0].expression
    while isinstance(base, plan.Member):
        base = base.target
    inner = sources[0].block
    if inner is None or inner.group_by or not inner.is_value or base != plan.Slot(sources[0].slot):
        return False
    selection = inner.selection
    return isinstance(selection, plan.AggregateResult) and selection.kind is plan.AggregateKind.COUNT


def is_between_geometries(node: plan.Expression) -> bool:
    """Whether an expression is the distance of two geometries, by which rows may be sorted as by a path."""
    return isinstance(node, plan.Call) and node.function.name == "ST_DISTANCE"


def _is_score(node: plan.Expression) -> TypeGuard[plan.Call]:
    return isinstance(node, plan.Call) and node.function.name in _SCORES


def is_distance(node: plan.Expression) -> TypeGuard[plan.Call]:
    """Whether an expression is a VectorDistance."""
    return isinstance(node, plan.Call) and node.function.name == "VECTORDISTANCE"


def _is_from_vector(call: plan.Call, paths: Paths) -> bool:
    """Whether a VectorDistance is that of a path from a vector that is known when the query begins."""
    one, two = call.arguments[1:3]
    if paths.has(one):
        one, two = two, one
    if paths.has(one) or not paths.has(two):
        return False
    if isinstance(one, plan.Parameter):
        return True
    vector = Folder({}).fold(one)
    if not isinstance(vector, plan.Constant) or not isinstance(vector.value, list):
        return False
    return all(map(is_number, vector.value))


def is_correlated(block: plan.Block) -> bool:
    """Whether rows of JOIN or FROM … IN are sorted by what is theirs alone, which no index gives."""
    blocks = row_blocks(block.sources)
    for key in in_turns(block.order_by):
        target = reduced(key.expression, blocks)
        while isinstance(target, plan.Member):
            target = target.target
        for source in block.sources:
            if isinstance(target, plan.Slot) and source.slot == target.index:
                is_iterated = source.kind in (plan.SourceKind.ELEMENTS, plan.SourceKind.ROW_ELEMENTS)
                if is_iterated or (source is not block.sources[0] and not _is_path_source(source, block)):
                    return True
    return False


def _is_path_source(source: plan.Source, block: plan.Block) -> bool:
    """Whether a source is FROM of a path into the item, whose item is the hidden source before it."""
    return source is block.sources[1] and block.is_from_path
