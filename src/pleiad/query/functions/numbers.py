"""Numbers of the language in Python: an ``int`` is an integer of 64 bits, a ``float`` a double; a boolean is neither.

A double without a fraction below 2^53 also counts as an integer; from there on two integers can be one double.
"""

from __future__ import annotations

import math
from typing import Any

from pleiad.query.values import EXACT_INT, INT64_MAX, INT64_MIN, as_double

__all__ = ["INT64_MAX", "INT64_MIN", "double", "number_text", "whole", "wrapped"]


def double(value: Any) -> float | None:
    """The number as a double, an infinity when it is too large for one; None for anything else."""
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]
    return as_double(value) if kind is int else None


def whole(value: Any) -> int | None:
    """The signed 64-bit integer a number stands for (3 and 3.0 alike); None for anything else."""
    kind = type(value)
    if kind is float:
        return int(value) if -EXACT_INT < value < EXACT_INT and value.is_integer() else None
    if kind is not int:
        return None
    return value if INT64_MIN <= value <= INT64_MAX else None


def wrapped(number: int, bits: int = 64) -> int:
    """The integer that a word holds of a number."""
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def number_text(value: int | float) -> str:
    """The text of a number: integers in full, doubles without a fraction with 17 digits, others with 15, or with 17
    where 15 do not give the value back.
    """
    if type(value) is int:
        if INT64_MIN <= value <= INT64_MAX:
            return str(value)
        value = as_double(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == int(value):
        return f"{value:.17g}"
    text = f"{value:.15g}"
    return text if float(text) == value else f"{value:.17g}"
