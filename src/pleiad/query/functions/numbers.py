"""Arguments read as numbers: a double, or a whole number of 64 bits. A boolean is neither."""

from __future__ import annotations

from typing import Any

from pleiad.query.values import as_double

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1


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
        if not value.is_integer():
            return None
        value = int(value)
    elif kind is not int:
        return None
    return value if INT64_MIN <= value <= INT64_MAX else None
