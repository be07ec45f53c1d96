"""Arrays and objects that a query makes: folded to one constant where all their parts are constants."""

from __future__ import annotations

import math

from pleiad.query import plan
from pleiad.values.undefined import UNDEFINED


def _is_plain(part: plan.Expression) -> bool:
    """Whether the part is a constant that stands in an array or object as it is."""
    if not isinstance(part, plan.Constant) or part.value is UNDEFINED:
        return False
    return not isinstance(part.value, float) or math.isfinite(part.value)


def array_of(items: tuple[plan.Expression, ...]) -> plan.Expression:
    """The array of these parts; one constant where all of them are."""
    if all(map(_is_plain, items)):
        return plan.Constant([item.value for item in items if isinstance(item, plan.Constant)])
    return plan.MakeArray(items)


def object_of(properties: tuple[tuple[str, plan.Expression], ...]) -> plan.Expression:
    """The object with these parts; one constant where all of them are."""
    if all(_is_plain(value) for _, value in properties):
        return plan.Constant(
            {name: value.value for name, value in properties if isinstance(value, plan.Constant)}
        )
    return plan.MakeObject(properties)
