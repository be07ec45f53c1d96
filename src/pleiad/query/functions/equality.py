"""Deep equality, a hashable key that agrees with it, and the order of primitive values.

Types never mix: true is not 1 and "1" is not 1, while 1 is 1.0. The order of properties does not matter.
Values are as deep as items may be, so one call per level is safe.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

_BOOL, _NUMBER, _STRING, _ARRAY, _OBJECT = 1, 2, 3, 4, 5
_RANKS: dict[type, int] = {
    type(None): 0,
    bool: _BOOL,
    int: _NUMBER,
    float: _NUMBER,
    str: _STRING,
    list: _ARRAY,
    dict: _OBJECT,
}
_UNDEFINED_RANK = -1


def type_rank(value: Any) -> int:
    """Place of the value's type in the order undefined < null < bool < number < string < array < object."""
    return _RANKS.get(type(value), _UNDEFINED_RANK)


def equal(a: Any, b: Any) -> bool:
    """True when both are the same JSON value; undefined equals nothing."""
    rank = type_rank(a)
    if rank != type_rank(b) or rank == _UNDEFINED_RANK:
        return False
    if rank < _ARRAY:
        return bool(a == b)
    if len(a) != len(b):
        return False
    if rank == _ARRAY:
        for left, right in zip(a, b, strict=True):
            if not equal(left, right):
                return False
        return True
    for name, left in a.items():
        if name not in b or not equal(left, b[name]):
            return False
    return True


def matches_partially(needle: Any, value: Any) -> bool:
    """True when every property of the needle is found in the value, at every level; equality for the rest."""
    if type(needle) is not dict:
        return equal(needle, value)
    if type(value) is not dict:
        return False
    for name, wanted in needle.items():
        if name not in value or not matches_partially(wanted, value[name]):
            return False
    return True


def hash_key(value: Any) -> Hashable:
    """A key that two values share exactly when they are equal."""
    kind = type(value)
    if kind is bool:
        return (_BOOL, value)
    if kind is list:
        return (_ARRAY, tuple([hash_key(element) for element in value]))
    if kind is dict:
        return (_OBJECT, frozenset([(name, hash_key(element)) for name, element in value.items()]))
    return value  # type: ignore[no-any-return]


def primitive_order(value: Any) -> tuple[int, Any]:
    """Sort key of null, a boolean, a number or a string; strings sort by UTF-16 code units."""
    rank = type_rank(value)
    if rank == _STRING:
        return rank, value.encode("utf-16-be", "surrogatepass")
    return rank, 0 if value is None else value
