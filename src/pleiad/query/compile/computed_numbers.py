"""Where numbers may stand that a query computed: they can be infinite or no number, which output knows no form for."""

from __future__ import annotations

from typing import Final

from pleiad.query import plan

MAY_BE_INFINITE: Final = (
    *(plan.Binary, plan.Unary, plan.Call, plan.UdfCall, plan.Conditional, plan.Constant, plan.Let),
    *(plan.Parameter, plan.AggregateResult),
)


def holds_numbers(node: plan.Expression) -> bool:
    """Whether a computed number may stand inside an array or object that the expression makes and reads."""
    if isinstance(node, plan.Slot | plan.Parameter):
        return False
    for each in plan.walk(node):
        if isinstance(each, plan.Constant) and isinstance(each.value, list | dict):
            return True
        if isinstance(each, plan.MakeArray) and any(isinstance(part, MAY_BE_INFINITE) for part in each.items):
            return True
        if isinstance(each, plan.MakeObject) and any(
            isinstance(part, MAY_BE_INFINITE) for _, part in each.properties
        ):
            return True
    return False


def inner_numbers(block: plan.Block) -> bool:
    """Whether a subquery of a block may give computed numbers, which are as they were computed there."""
    return any(
        isinstance(part, MAY_BE_INFINITE)
        for each in plan.walk(block)
        if isinstance(each, plan.Block) and each is not block
        for part in plan.walk(each.selection)
    )


def item_slots(block: plan.Block) -> set[int]:
    """The slots that hold items of the container or parts of them."""
    found: set[int] = set()
    for source in block.sources:
        base = source.expression
        while isinstance(base, plan.Member):
            base = base.target
        is_part = isinstance(base, plan.Slot) and base.index in found
        if is_part or (base is None and source.block is None):
            found.add(source.slot)
    return found
