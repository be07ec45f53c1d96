"""Integer and bitwise functions on signed 64-bit integers.

An argument with a fraction or outside 64 bits makes the result undefined. Sums, differences and products wrap around
as words of 64 bits do; shift counts are taken modulo 64. The least integer cannot be divided by -1.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pleiad.query.functions.numbers import INT64_MIN, whole, wrapped
from pleiad.query.functions.registry import register
from pleiad.values.undefined import UNDEFINED

_FAMILY = "integers"


def _multiply(left: int, right: int) -> int | None:
    """The product, but none of the least integer and -1, as there is no quotient of them."""
    return None if {left, right} == {-1, INT64_MIN} else left * right


def _divide(a: int, b: int) -> int | None:
    """Quotient truncated towards zero."""
    if b == 0 or (a == INT64_MIN and b == -1):
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int | None:
    """Remainder with the sign of the dividend."""
    if b == 0 or (a == INT64_MIN and b == -1):
        return None
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def _left_shift(a: int, places: int) -> int:
    return a << (places & 63)


def _right_shift(a: int, places: int) -> int:
    return a >> (places & 63)


_PAIR_FUNCTIONS: dict[str, Callable[[int, int], int | None]] = {
    "INTADD": operator.add,
    "INTSUB": operator.sub,
    "INTMUL": _multiply,
    "INTDIV": _divide,
    "INTMOD": _remainder,
    "INTBITAND": operator.and_,
    "INTBITOR": operator.or_,
    "INTBITXOR": operator.xor,
    "INTBITLEFTSHIFT": _left_shift,
    "INTBITRIGHTSHIFT": _right_shift,
}


def _of_pair(compute: Callable[[int, int], int | None]) -> Callable[[Any, Any], Any]:
    def call(left: Any, right: Any) -> Any:
        a, b = whole(left), whole(right)
        if a is None or b is None:
            return UNDEFINED
        result = compute(a, b)
        return UNDEFINED if result is None else wrapped(result)

    return call


for _name, _compute in _PAIR_FUNCTIONS.items():
    register(_FAMILY, _name, 2, 2)(_of_pair(_compute))


@register(_FAMILY, "INTBITNOT", 1, 1)
def bit_not(value: Any) -> Any:
    number = whole(value)
    return UNDEFINED if number is None else ~number
