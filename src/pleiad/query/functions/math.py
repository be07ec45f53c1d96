"""Mathematical functions: doubles in, doubles out, undefined for anything that is not a number.

Results follow IEEE 754: outside its domain a function gives NaN or an infinity instead of failing, so that
IS_FINITE_NUMBER(SQRT(-1)) can be asked.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from pleiad.keys.undefined import UNDEFINED
from pleiad.query.functions.numbers import double
from pleiad.query.functions.registry import register
from pleiad.query.values import div3, is_number, normal

_FAMILY = "math"


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


def _sign(x: float) -> float:
    return x if math.isnan(x) else float((x > 0) - (x < 0))


def _square(x: float) -> float:
    return x * x


_DOUBLE_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "ACOS": math.acos,
    "ASIN": math.asin,
    "ATAN": math.atan,
    "COS": math.cos,
    "COT": _cotangent,
    "DEGREES": math.degrees,
    "EXP": _exponential,
    "LOG10": _logarithm_10,
    "RADIANS": math.radians,
    "SIGN": _sign,
    "SIN": math.sin,
    "SQRT": math.sqrt,
    "SQUARE": _square,
    "TAN": math.tan,
}


def _of_double(compute: Callable[[float], float]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        x = double(value)
        if x is None:
            return UNDEFINED
        try:
            return normal(compute(x))
        except ValueError:
            return math.nan

    return call


for _name, _compute in _DOUBLE_FUNCTIONS.items():
    register(_FAMILY, _name, 1, 1)(_of_double(_compute))


@register(_FAMILY, "ABS", 1, 1)
def absolute(value: Any) -> Any:
    return normal(abs(value)) if is_number(value) else UNDEFINED


def _to_whole(value: Any, rounding: Callable[[float], int]) -> Any:
    if not is_number(value):
        return UNDEFINED
    if type(value) is int or not math.isfinite(value):
        return normal(value)
    # A double from 2**53 on has no fraction, and going through int keeps its value.
    return normal(float(rounding(value)))


@register(_FAMILY, "CEILING", 1, 1)
def ceiling(value: Any) -> Any:
    return _to_whole(value, math.ceil)


@register(_FAMILY, "FLOOR", 1, 1)
def floor(value: Any) -> Any:
    return _to_whole(value, math.floor)


@register(_FAMILY, "TRUNC", 1, 1)
def trunc(value: Any) -> Any:
    return _to_whole(value, math.trunc)


def _half_away_from_zero(x: float) -> int:
    towards_zero = math.trunc(x)
    if abs(x - towards_zero) < 0.5:
        return towards_zero
    return towards_zero + (1 if x > 0 else -1)


@register(_FAMILY, "ROUND", 1, 1)
def round_half_away(value: Any) -> Any:
    return _to_whole(value, _half_away_from_zero)


@register(_FAMILY, "ATN2", 2, 2)
def arc_tangent_of_two(y_value: Any, x_value: Any) -> Any:
    y, x = double(y_value), double(x_value)
    return UNDEFINED if y is None or x is None else normal(math.atan2(y, x))


@register(_FAMILY, "LOG", 1, 2)
def logarithm(value: Any, *base_value: Any) -> Any:
    """Natural logarithm, or the logarithm to the base given."""
    x = double(value)
    base = double(base_value[0]) if base_value else math.e
    if x is None or base is None:
        return UNDEFINED
    try:
        natural = _logarithm(x)
        return div3(natural, _logarithm(base)) if base_value else normal(natural)
    except ValueError:
        return math.nan


@register(_FAMILY, "NUMBERBIN", 1, 2)
def number_bin(value: Any, size_value: Any = 1) -> Any:
    """The multiple of the size at or below the number (above it for a negative size)."""
    x, size = double(value), double(size_value)
    if x is None or size is None or size == 0.0 or not (math.isfinite(x) and math.isfinite(size)):
        return UNDEFINED
    bins = x / size
    if not math.isfinite(bins):
        return UNDEFINED
    return normal(float(math.floor(bins)) * size)


@register(_FAMILY, "PI", 0, 0)
def pi() -> float:
    return math.pi


@register(_FAMILY, "POWER", 2, 2)
def power(base_value: Any, exponent_value: Any) -> Any:
    base, exponent = double(base_value), double(exponent_value)
    if base is None or exponent is None:
        return UNDEFINED
    try:
        return normal(math.pow(base, exponent))
    except OverflowError:
        odd = exponent.is_integer() and int(exponent) % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        return math.inf if base == 0.0 else math.nan


@register(_FAMILY, "RAND", 0, 0, deterministic=False)
def rand() -> float:
    return random.random()
