"""Whether a query can have no row, or nothing to count, whatever the items are.

The plan of such a query is empty, so that a client asks one partition. What is not understood is taken for possible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pleiad.query import demands, plan
from pleiad.query.filters import demanded_by, whole_filter
from pleiad.query.fold import Folder
from pleiad.query.kinds import ARRAY, MISSING, TRUE, kinds


def gives_nothing(bound: plan.Plan, parameters: Mapping[str, Any]) -> bool:
    """Whether the query can have no row whatever the items are: a filter that is never true, a value that is never
    defined, a count of nothing, or a source whose rows are never arrays.
    """
    block = bound.block
    folder = Folder(parameters)
    slots = bound.root_slots
    current: plan.Block | None = block
    while current is not None:
        if current.where is not None and not kinds(folder.fold(current.where), slots) & TRUE:
            return True
        for source in current.sources:
            rows = source.block
            is_iterated = (
                source.kind is plan.SourceKind.ROW_ELEMENTS and rows is not None and not rows.is_grouped
            )
            if is_iterated and rows and not kinds(folder.fold(rows.selection), slots) & ARRAY:
                return True
        first = current.sources[0].block if current.sources else None
        current = first
    folder, where = whole_filter(bound, parameters)
    demanded = demanded_by(bound, folder, where)
    if demanded is None:
        return True
    if block.aggregates and not block.group_by:
        counts: tuple[plan.AggregateKind, ...] = (plan.AggregateKind.COUNT,)
        if block.is_value and isinstance(block.selection, plan.AggregateResult):
            # They are undefined where nothing was counted, and then there is no row.
            counts = (*counts, plan.AggregateKind.MIN, plan.AggregateKind.MAX)
        return all(_counts_nothing(each, folder, slots, demanded, counts) for each in block.aggregates)
    if not block.is_value or block.is_grouped:
        return False
    selection = folder.fold(block.selection)
    wanted = demands.Reader(slots).of(selection, demands.DEFINED)
    return kinds(selection, slots) == MISSING or not demands.meets(demanded, wanted)


def _counts_nothing(
    aggregate: plan.Aggregate,
    folder: Folder,
    slots: Collection[int],
    demanded: demands.Demands,
    counts: tuple[plan.AggregateKind, ...],
) -> bool:
    """Whether an aggregate of some kinds has nothing to count, or the paths of any can have no value in any row."""
    argument = folder.fold(aggregate.argument)
    is_conditional = aggregate.kind is plan.AggregateKind.COUNTIF
    found = kinds(argument, slots)
    if (is_conditional and not found & TRUE) or (aggregate.kind in counts and found == MISSING):
        return True
    wanted = demands.Reader(slots).of(argument, TRUE if is_conditional else demands.DEFINED)
    return wanted is not None and not demands.meets(demanded, wanted)
