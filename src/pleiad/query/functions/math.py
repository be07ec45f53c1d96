"""Mathematical functions: numbers in, numbers out, undefined for anything that is not a number.

Results follow IEEE 754: outside its domain a function gives NaN or an infinity instead of failing, so that
IS_FINITE_NUMBER(SQRT(-1)) can be asked.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from pleiad.query.functions.numbers import INT64_MIN, double, whole, wrapped
from pleiad.query.functions.registry import register
from pleiad.query.values import div3, is_number, mul3
from pleiad.values.undefined import UNDEFINED

_FAMILY = "math"
_ROUND_DIGITS_MAX = 17
_ABOVE_INT64 = 2.0**63
_OWN_LOGARITHMS: dict[float, Callable[[float], float]] = {2.0: math.log2, 10.0: math.log10}
"""Bases whose logarithm is no quotient of two others."""


def _cotangent(x: float) -> float:
    return float(div3(1.0, math.tan(x)))


def _exponential(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _logarithm(x: float) -> float:
    return -math.inf if x == 0.0 else math.log(x)


def _logarithm_10(x: float) -> float:
    return -math.inf if x == 0.0 else math.log10(x)


def _degrees(x: float) -> float:
    # Product first, then quotient: Python's own rounds otherwise in the last bit.
    return x * 180.0 / math.pi


def _radians(x: float) -> float:
    return x * math.pi / 180.0


_DOUBLE_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "ACOS": math.acos,
    "ASIN": math.asin,
    "ATAN": math.atan,
    "COS": math.cos,
    "COT": _cotangent,
    "DEGREES": _degrees,
    "EXP": _exponential,
    "LOG10": _logarithm_10,
    "RADIANS": _radians,
    "SIN": math.sin,
    "SQRT": math.sqrt,
    "TAN": math.tan,
}


def _of_double(compute: Callable[[float], float]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        x = double(value)
        if x is None:
            return UNDEFINED
        try:
            return compute(x)
        except ValueError:
            return math.nan

    return call


for _name, _compute in _DOUBLE_FUNCTIONS.items():
    register(_FAMILY, _name, 1, 1)(_of_double(_compute))


@register(_FAMILY, "SIGN", 1, 1)
def sign(value: Any) -> Any:
    """An integer; what is not a number has none."""
    return (value > 0) - (value < 0) if is_number(value) and value == value else UNDEFINED


@register(_FAMILY, "ABS", 1, 1)
def absolute(value: Any) -> Any:
    if type(value) is int:
        # The least integer has no opposite.
        return value if value == INT64_MIN else abs(value)
    return abs(value) if type(value) is float else UNDEFINED


def _to_whole(value: Any, rounding: Callable[[float], float]) -> Any:
    if not is_number(value):
        return UNDEFINED
    if type(value) is int or not math.isfinite(value):
        return value
    # A rounded double keeps the sign of zero, and going through int keeps its value.
    return math.copysign(float(rounding(value)), value)


@register(_FAMILY, "CEILING", 1, 1)
def ceiling(value: Any) -> Any:
    return _to_whole(value, math.ceil)


@register(_FAMILY, "FLOOR", 1, 1)
def floor(value: Any) -> Any:
    return _to_whole(value, math.floor)


@register(_FAMILY, "TRUNC", 1, 1)
def trunc(value: Any) -> Any:
    return _to_whole(value, math.trunc)


def _half_away_from_zero(x: float) -> float:
    if not math.isfinite(x):
        return x
    towards_zero = math.trunc(x)
    if abs(x - towards_zero) < 0.5:
        return float(towards_zero)
    return float(towards_zero + (1 if x > 0 else -1))


def _as_integer(rounded: float, origin: float) -> int | float:
    """A rounded number as an integer of 64 bits, when the number it comes from is not above them all.

    What does not fit becomes the least integer, as processors convert doubles and as the service answers.
    """
    if rounded != math.floor(rounded) if math.isfinite(rounded) else math.isnan(rounded):
        return rounded
    if origin >= _ABOVE_INT64:
        return rounded
    return int(rounded) if -_ABOVE_INT64 <= rounded < _ABOVE_INT64 else INT64_MIN


@register(_FAMILY, "ROUND", 1, 2)
def round_half_away(value: Any, *digits_value: Any) -> Any:
    """To a whole number, or to so many digits behind the point, before it when they are negative."""
    digits = whole(digits_value[0]) if digits_value else 0
    x = double(value)
    if x is None or digits is None:
        return UNDEFINED
    if type(value) is int and digits >= 0:
        return value
    if digits > 0:
        scale = power(10, min(digits, _ROUND_DIGITS_MAX))
        return _as_integer(_half_away_from_zero(x * scale) / scale, x)
    scale = power(10, -digits)
    return _as_integer(_half_away_from_zero(x / scale) * scale, x)


@register(_FAMILY, "ATN2", 2, 2)
def arc_tangent_of_two(y_value: Any, x_value: Any) -> Any:
    y, x = double(y_value), double(x_value)
    return UNDEFINED if y is None or x is None else math.atan2(y, x)


@register(_FAMILY, "LOG", 1, 2)
def logarithm(value: Any, *base_value: Any) -> Any:
    """Natural logarithm, or the logarithm to the base given."""
    x = double(value)
    base = double(base_value[0]) if base_value else math.e
    if x is None or base is None:
        return UNDEFINED
    try:
        if base_value and base in _OWN_LOGARITHMS and x > 0:
            return _OWN_LOGARITHMS[base](x)
        natural = _logarithm(x)
        return div3(natural, _logarithm(base)) if base_value else natural
    except ValueError:
        return math.nan


@register(_FAMILY, "NUMBERBIN", 1, 2)
def number_bin(value: Any, size_value: Any = 1) -> Any:
    """The multiple of the size at or below the number (above it for a negative size)."""
    integer, whole_size = whole(value), whole(size_value)
    if integer is not None and whole_size:
        return wrapped(integer // whole_size * whole_size)
    x, size = double(value), double(size_value)
    if x is None or size is None or size == 0.0 or not (math.isfinite(x) and math.isfinite(size)):
        return UNDEFINED
    if size == 1.0:
        return value if type(value) is int else _as_integer(float(math.floor(x)), x)
    bins = div3(x, size)
    # A zero has no sign here.
    return (float(math.floor(bins)) if math.isfinite(bins) else bins) * size + 0.0


@register(_FAMILY, "SQUARE", 1, 1)
def square(value: Any) -> Any:
    return mul3(value, value)


@register(_FAMILY, "PI", 0, 0)
def pi() -> float:
    return math.pi


@register(_FAMILY, "POWER", 2, 2)
def power(base_value: Any, exponent_value: Any) -> Any:
    base, exponent = double(base_value), double(exponent_value)
    if base is None or exponent is None:
        return UNDEFINED
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent.is_integer() and int(exponent) % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        return math.inf if base == 0.0 else math.nan


@register(_FAMILY, "RAND", 0, 0, deterministic=False)
def rand() -> float:
    return random.random()
