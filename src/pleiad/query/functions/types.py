"""Type checks: one argument, always a boolean, false for undefined."""

from __future__ import annotations

import math
from typing import Any

from pleiad.query.functions.numbers import double, whole
from pleiad.query.functions.registry import register
from pleiad.query.values import is_number
from pleiad.values.undefined import UNDEFINED

_FAMILY = "types"


@register(_FAMILY, "IS_ARRAY", 1, 1)
def is_array(value: Any) -> bool:
    return type(value) is list


@register(_FAMILY, "IS_BOOL", 1, 1)
@register(_FAMILY, "IS_BOOLEAN", 1, 1)
def is_bool(value: Any) -> bool:
    return type(value) is bool


@register(_FAMILY, "IS_DEFINED", 1, 1)
def is_defined(value: Any) -> bool:
    return value is not UNDEFINED


@register(_FAMILY, "IS_FINITE_NUMBER", 1, 1)
def is_finite_number(value: Any) -> bool:
    number = double(value)
    return number is not None and math.isfinite(number)


@register(_FAMILY, "IS_INTEGER", 1, 1)
def is_integer(value: Any) -> bool:
    return whole(value) is not None


@register(_FAMILY, "IS_NULL", 1, 1)
def is_null(value: Any) -> bool:
    return value is None


@register(_FAMILY, "IS_NUMBER", 1, 1)
def is_number_value(value: Any) -> bool:
    return is_number(value)


@register(_FAMILY, "IS_OBJECT", 1, 1)
def is_object(value: Any) -> bool:
    return type(value) is dict


@register(_FAMILY, "IS_PRIMITIVE", 1, 1)
def is_primitive(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)


@register(_FAMILY, "IS_STRING", 1, 1)
def is_string(value: Any) -> bool:
    return type(value) is str
