"""Functions that choose one of their arguments."""

from __future__ import annotations

from typing import Any

from pleiad.query.functions.numbers import whole
from pleiad.query.functions.registry import register
from pleiad.values.undefined import UNDEFINED

_FAMILY = "conditional"


@register(_FAMILY, "IIF", 3, 3)
def iif(condition: Any, then: Any, otherwise: Any) -> Any:
    """The second argument only when the condition is exactly true."""
    return then if condition is True else otherwise


@register(_FAMILY, "CHOOSE", 2, None)
def choose(index: Any, *values: Any) -> Any:
    """The value at a position counted from 1."""
    position = whole(index)
    if position is None or not 1 <= position <= len(values):
        return UNDEFINED
    return values[position - 1]
