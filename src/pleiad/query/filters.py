"""The filters of a query and of the subqueries its rows come through as one, and what rows demand to pass them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pleiad.query import demands, plan
from pleiad.query.fold import Folder
from pleiad.query.kinds import ARRAY, TRUE


def demanded_by(bound: plan.Plan, folder: Folder, where: plan.Expression | None) -> demands.Demands | None:
    """What rows of the query demand of paths: to pass the filter, and to be arrays where they are iterated."""
    reader = demands.Reader(bound.root_slots)
    parts = [] if where is None else [reader.of(where, TRUE)]
    for source in bound.block.sources:
        if source.kind is plan.SourceKind.ELEMENTS and source.expression is not None:
            parts.append(reader.of(folder.fold(source.expression), ARRAY))
    return demands.both(parts)


def whole_filter(bound: plan.Plan, parameters: Mapping[str, Any]) -> tuple[Folder, plan.Expression | None]:
    """The filters of the query and of the subqueries that stand first in FROM as one, over the item's own alias; and
    what folds expressions of the query in the same way.
    """
    filters: list[plan.Expression] = []
    slots: dict[int, plan.Expression] = {}
    block: plan.Block | None = bound.block
    while block is not None:
        slots.update(_meanings(block))
        if block.where is not None:
            filters.append(block.where)
        inner = block.sources[0].block if block.sources else None
        # What groups give is no row of their source.
        if inner is not None and inner.is_grouped:
            filters.clear()
            slots.clear()
        block = inner
    folder = Folder(parameters, slots=slots)
    if not filters:
        return folder, None
    whole = filters[0] if len(filters) == 1 else plan.Chain("AND", tuple(filters))
    return folder, folder.fold(whole)


def _meanings(block: plan.Block) -> dict[int, plan.Expression]:
    """The aliases of a block that stand for one expression."""
    found: dict[int, plan.Expression] = {}
    for source in block.sources:
        if source.kind is plan.SourceKind.VALUE and source.expression is not None:
            found[source.slot] = source.expression
        elif source.kind is plan.SourceKind.ROWS and source.block is not None and not source.block.is_grouped:
            found[source.slot] = source.block.selection
            found.update(_meanings(source.block))
    return found
