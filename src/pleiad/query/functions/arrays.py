"""Array and set functions. Sets compare by deep equality and keep the order in which members were first
seen.
"""

from __future__ import annotations

import math
from typing import Any

from pleiad.query.functions.numbers import whole
from pleiad.query.functions.registry import check_array_elements, register
from pleiad.query.pace import paced
from pleiad.query.values import (
    add3,
    and3,
    div3,
    equal,
    hash_key,
    is_number,
    or3,
    order_key,
    type_rank,
)
from pleiad.values.ranks import NULL_RANK, STRING_RANK
from pleiad.values.undefined import UNDEFINED

_FAMILY = "arrays"
_PAIR_ELEMENTS = 16
"""What an object of two properties takes, in elements."""


@register(_FAMILY, "ARRAY_CONCAT", 2, None)
def array_concat(*arrays: Any) -> Any:
    if not all(type(array) is list for array in arrays):
        return UNDEFINED
    check_array_elements(sum(len(array) for array in arrays))
    return [element for array in arrays for element in paced(array)]


def _matches_partially(needle: Any, value: Any) -> bool:
    """True when every property of the needle is found in the value, at every level; equality for the rest."""
    if type(needle) is not dict:
        return equal(needle, value)
    if type(value) is not dict:
        return False
    for name, wanted in needle.items():
        if name not in value or not _matches_partially(wanted, value[name]):
            return False
    return True


@register(_FAMILY, "ARRAY_CONTAINS", 2, 3)
def array_contains(array: Any, value: Any, partial: Any = False) -> Any:
    """True when an element equals the value, or holds all properties of it when the match may be partial."""
    if type(array) is not list or value is UNDEFINED or type(partial) is not bool:
        return UNDEFINED
    matches = _matches_partially if partial else equal
    return any(matches(value, element) for element in paced(array))


@register(_FAMILY, "ARRAY_CONTAINS_ALL", 2, None)
def array_contains_all(array: Any, *values: Any) -> Any:
    """Three-valued AND: one value that is missing decides, otherwise an undefined one does."""
    if type(array) is not list:
        return UNDEFINED
    return and3(*[array_contains(array, value) for value in values])


@register(_FAMILY, "ARRAY_CONTAINS_ANY", 2, None)
def array_contains_any(array: Any, *values: Any) -> Any:
    """Three-valued OR: one value that is there decides, otherwise an undefined one does."""
    if type(array) is not list:
        return UNDEFINED
    return or3(*[array_contains(array, value) for value in values])


@register(_FAMILY, "ARRAY_LENGTH", 1, 1)
def array_length(array: Any) -> Any:
    return len(array) if type(array) is list else UNDEFINED


@register(_FAMILY, "ARRAY_SLICE", 2, 3)
def array_slice(array: Any, start_value: Any, *count_value: Any) -> Any:
    """Elements from a start, counted from the end when negative, as many as asked for or all that follow."""
    start = whole(start_value)
    count = whole(count_value[0]) if count_value else len(array) if type(array) is list else 0
    if type(array) is not list or start is None or count is None:
        return UNDEFINED
    if start < 0:
        start = max(0, start + len(array))
    return array[start : start + max(0, count)]


def _numbers(array: Any) -> list[int | float]:
    """The numbers of an array; nothing when it has anything else."""
    if type(array) is not list or not all(is_number(element) for element in paced(array)):
        return []
    return list(array)


def _total(numbers: list[int | float]) -> Any:
    total: Any = numbers[0]
    for number in paced(numbers[1:]):
        total = add3(total, number)
    return total


@register(_FAMILY, "ARRAY_SUM", 1, 1)
def array_sum(array: Any) -> Any:
    numbers = _numbers(array)
    return _total(numbers) if numbers else UNDEFINED


@register(_FAMILY, "ARRAY_AVG", 1, 1)
def array_avg(array: Any) -> Any:
    numbers = _numbers(array)
    return div3(_total(numbers), len(numbers)) if numbers else UNDEFINED


@register(_FAMILY, "ARRAY_MEDIAN", 1, 1)
def array_median(array: Any) -> Any:
    numbers = _numbers(array)
    if not numbers:
        return UNDEFINED
    numbers.sort()
    middle = len(numbers) // 2
    if len(numbers) % 2:
        return numbers[middle]
    return div3(add3(numbers[middle - 1], numbers[middle]), 2)


def _all_primitive(array: Any) -> bool:
    if type(array) is not list or not array:
        return False
    return all(NULL_RANK <= type_rank(value) <= STRING_RANK for value in paced(array))


def _size(value: Any) -> tuple[Any, ...]:
    """What is not a number is taken for larger than any."""
    return order_key(math.inf if value != value else value)


@register(_FAMILY, "ARRAY_MAX", 1, 1)
def array_max(array: Any) -> Any:
    return max(paced(array), key=_size) if _all_primitive(array) else UNDEFINED


@register(_FAMILY, "ARRAY_MIN", 1, 1)
def array_min(array: Any) -> Any:
    return min(paced(array), key=_size) if _all_primitive(array) else UNDEFINED


@register(_FAMILY, "OBJECTTOARRAY", 1, 3)
def object_to_array(value: Any, key_name: Any = UNDEFINED, *value_names: Any) -> Any:
    """One object for each property, with the property's name and value under the names given.

    The last name that is given may be undefined, and is then the usual one.
    """
    if key_name is UNDEFINED and not value_names:
        key_name = "k"
    value_name = value_names[0] if value_names else UNDEFINED
    value_name = "v" if value_name is UNDEFINED else value_name
    if type(value) is not dict or type(key_name) is not str or type(value_name) is not str:
        return UNDEFINED
    check_array_elements(_PAIR_ELEMENTS * len(value))
    return [{key_name: name, value_name: element} for name, element in paced(list(value.items()))]


def _members(array: Any) -> dict[Any, Any] | None:
    """The array's distinct elements by hash key, in the order first seen."""
    if type(array) is not list:
        return None
    members: dict[Any, Any] = {}
    for element in paced(array):
        # What is not a number is not equal to itself.
        members.setdefault(hash_key(element) if equal(element, element) else object(), element)
    return members


@register(_FAMILY, "SETINTERSECT", 2, 2, also="SET_INTERSECT")
def set_intersect(left: Any, right: Any) -> Any:
    """Members of both, in the order of the shorter array, of the first when both are equally long."""
    first, second = _members(left), _members(right)
    if first is None or second is None:
        return UNDEFINED
    if len(right) < len(left):
        first, second = second, first
    return [element for key, element in first.items() if key in second]


@register(_FAMILY, "SETUNION", 2, 2, also="SET_UNION")
def set_union(left: Any, right: Any) -> Any:
    first, second = _members(left), _members(right)
    if first is None or second is None:
        return UNDEFINED
    check_array_elements(len(first) + len(second))
    return [*first.values(), *(element for key, element in second.items() if key not in first)]


@register(_FAMILY, "SETDIFFERENCE", 2, 2, also="SET_DIFFERENCE")
def set_difference(left: Any, right: Any) -> Any:
    """Members of the first array that the second has not."""
    first, second = _members(left), _members(right)
    if first is None or second is None:
        return UNDEFINED
    return [element for key, element in first.items() if key not in second]


@register(_FAMILY, "SETEQUAL", 2, 2, also="SET_EQUAL")
def set_equal(left: Any, right: Any) -> Any:
    first, second = _members(left), _members(right)
    if first is None or second is None:
        return UNDEFINED
    return first.keys() == second.keys()
