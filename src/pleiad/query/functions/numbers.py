"""Numbers as the functions see them: doubles, with whole numbers kept as integers where that is exact.

A Python bool is not a number here. Whole results are integers so that they print without a fraction.
"""

from __future__ import annotations

import math
from typing import Any

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
_EXACT_MAX = 2**53


def is_number(value: Any) -> bool:
    """True for a JSON number."""
    kind = type(value)
    return kind is int or kind is float


def double(value: Any) -> float | None:
    """The number as a double, an infinity when it is too large for one; None for anything else."""
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]
    if kind is not int:
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def whole(value: Any) -> int | None:
    """The signed 64-bit integer a number stands for (3 and 3.0 alike); None for anything else."""
    kind = type(value)
    if kind is float:
        if not value.is_integer():
            return None
        value = int(value)
    elif kind is not int:
        return None
    return value if INT64_MIN <= value <= INT64_MAX else None


def tidy(value: float | int) -> float | int:
    """The number as results carry it: an int where a double is whole and exact, no int beyond 64 bits."""
    if type(value) is float:
        if value.is_integer() and -_EXACT_MAX <= value <= _EXACT_MAX:
            return int(value)
        return value
    if INT64_MIN <= value <= INT64_MAX:
        return value
    converted = double(value)
    return math.inf if converted is None else converted
