"""Whether a query can have no row, or nothing to count, whatever the items are.

The plan of such a query is empty, so that a client asks one partition. What is not understood is taken for possible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pleiad.query import plan
from pleiad.query.fold import Folder, is_defined
from pleiad.query.route import demands
from pleiad.query.route.contradiction import is_contradiction
from pleiad.query.route.filters import filters_of
from pleiad.query.route.kinds import kinds
from pleiad.query.route.signatures import DEFINED, MISSING, TRUE


def gives_nothing(bound: plan.Plan, parameters: Mapping[str, Any], is_planar: bool | None = None) -> bool:
    """Whether the query can have no row whatever the items are: a filter that is never true, a value that is never
    defined, a count of nothing, or a source whose rows are never arrays.
    """
    block = bound.block
    filters = filters_of(bound, parameters, is_planar)
    demanded = filters.demanded_outside
    if demanded is None:
        return True
    folder, slots = filters.folder, bound.root_slots
    if block.aggregates and not block.group_by:
        counts: tuple[plan.AggregateKind, ...] = (plan.AggregateKind.COUNT,)
        if block.is_value and isinstance(block.selection, plan.AggregateResult):
            # They are undefined where nothing was counted, and then there is no row.
            counts = (*counts, plan.AggregateKind.MIN, plan.AggregateKind.MAX)
        return all(_counts_nothing(each, folder, slots, demanded, counts) for each in block.aggregates)
    if not block.is_value:
        return False
    selection = folder.fold(block.selection)
    wanted = demands.Reader(slots).of(selection, DEFINED)
    if kinds(selection, slots) == MISSING or not demands.meets(demanded, wanted):
        return True
    return filters.where is not None and is_contradiction((filters.where, is_defined(selection)))


def _counts_nothing(
    aggregate: plan.Aggregate,
    folder: Folder,
    slots: Collection[int],
    demanded: demands.Demands,
    counts: tuple[plan.AggregateKind, ...],
) -> bool:
    """Whether an aggregate of some kinds has nothing to count in any row."""
    is_conditional = aggregate.kind is plan.AggregateKind.COUNTIF
    if not is_conditional and aggregate.kind not in counts:
        return False
    argument = folder.fold(aggregate.argument)
    found = kinds(argument, slots)
    if not found & TRUE if is_conditional else found == MISSING:
        return True
    wanted = demands.Reader(slots).of(argument, TRUE if is_conditional else DEFINED)
    return not demands.meets(demanded, wanted)
