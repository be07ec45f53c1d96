"""What has to be true of an item for a query to have a row of it: its filters and those of the subqueries its rows come
through, arrays where elements are iterated, values where an alias stands for one.

Aggregates without GROUP BY have one row whatever they count. So what is said of such a row says nothing of the items
below it, and the conditions are in layers: the first speak of the rows of the query, the last of the items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pleiad.query import plan
from pleiad.query.fold import Folder, Meanings, block_meanings, own_groups, row_conditions
from pleiad.query.route import demands
from pleiad.query.route.contradiction import is_contradiction
from pleiad.query.route.kinds import kinds
from pleiad.query.route.signatures import TRUE


@dataclass(frozen=True, slots=True)
class Filters:
    """The folded conditions of a query: those on its items as one, and what is demanded of rows by the others."""

    folder: Folder
    where: plan.Expression | None
    demanded: demands.Demands | None
    """what rows demand of paths; None when no row can be"""
    demanded_outside: demands.Demands | None
    """the same of the rows that the query itself selects from"""


def filters_of(bound: plan.Plan, parameters: Mapping[str, Any], is_planar: bool | None = None) -> Filters:
    """The conditions of a query with these parameters; ``is_planar`` says what its constant geometries lie in."""
    meanings = Meanings()
    own_groups(bound.block, meanings)
    layers: list[list[plan.Expression]] = [[]]
    block: plan.Block | None = bound.block
    while block is not None:
        block_meanings(block, meanings)
        layers[-1] += row_conditions(block, is_whole=False)
        inner = block.sources[0].block if block.sources else None
        if inner is not None and inner.is_grouped and not inner.group_by:
            layers.append([])
        block = inner
    folder = Folder(parameters, meanings=meanings, is_planar=is_planar)
    wholes = [folder.fold(_joined(layer)) if layer else None for layer in layers]
    reader = demands.Reader(bound.root_slots)
    found = [_demanded(reader, whole, bound) for whole in wholes]
    is_never = any(each is None for each in found)
    return Filters(folder, wholes[-1], None if is_never else found[-1], None if is_never else found[0])


def _joined(layer: list[plan.Expression]) -> plan.Expression:
    return layer[0] if len(layer) == 1 else plan.Chain("AND", tuple(layer))


def _demanded(
    reader: demands.Reader, whole: plan.Expression | None, bound: plan.Plan
) -> demands.Demands | None:
    if whole is None:
        return {}
    if not kinds(whole, bound.root_slots) & TRUE or is_contradiction((whole,)):
        return None
    return reader.of(whole, TRUE)
