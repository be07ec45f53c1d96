"""Array and set functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from pleiad.errors import PleiadError
from pleiad.query.functions.registry import ARRAY_ELEMENTS_MAX
from pleiad.server.http.failures import status_of
from pleiad.values.undefined import UNDEFINED

U = UNDEFINED


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("ARRAY_CONCAT", ([1], [2, 3], []), [1, 2, 3]),
        ("ARRAY_CONCAT", ([1], "x"), U),
        ("ARRAY_CONTAINS", ([1, "1"], "1"), True),
        ("ARRAY_CONTAINS", ([1], True), False),
        ("ARRAY_CONTAINS", ([1], 1.0), True),
        ("ARRAY_CONTAINS", ([{"a": 1, "b": 2}], {"a": 1}), False),
        ("ARRAY_CONTAINS", ([{"a": 1, "b": 2}], {"a": 1}, True), True),
        ("ARRAY_CONTAINS", ([{"a": {"x": 1, "y": 2}}], {"a": {"x": 1}}, True), True),
        ("ARRAY_CONTAINS", ([{"a": [1, 2]}], {"a": [1]}, True), False),
        ("ARRAY_CONTAINS", ([5], {"a": 1}, True), False),
        ("ARRAY_CONTAINS", ([], None), False),
        ("ARRAY_CONTAINS", (5, 5), U),
        ("ARRAY_CONTAINS", ([1], U), U),
        ("ARRAY_CONTAINS", ([1], 1, U), U),
        ("ARRAY_CONTAINS", ([1], 1, "yes"), U),
        ("ARRAY_CONTAINS_ALL", ([1, 2, 3], 1, 3), True),
        ("ARRAY_CONTAINS_ALL", ([1, 2], 1, U), U),
        ("ARRAY_CONTAINS_ALL", ([1, 2], 9, U), False),
        ("ARRAY_CONTAINS_ALL", ([], 1), False),
        ("ARRAY_CONTAINS_ALL", (None, 1), U),
        ("ARRAY_CONTAINS_ANY", ([1, 2], 9, 2), True),
        ("ARRAY_CONTAINS_ANY", ([1, 2], 9, U), U),
        ("ARRAY_CONTAINS_ANY", ([1, 2], 2, U), True),
        ("ARRAY_CONTAINS_ANY", ([1, 2], 9), False),
        ("ARRAY_LENGTH", ([[], []],), 2),
        ("ARRAY_LENGTH", ("abc",), U),
        ("ARRAY_SLICE", ([1, 2, 3, 4], 1, 2), [2, 3]),
        ("ARRAY_SLICE", ([1, 2, 3], -2), [2, 3]),
        ("ARRAY_SLICE", ([1, 2, 3], -9, 1), [1]),
        ("ARRAY_SLICE", ([1, 2], 5), []),
        ("ARRAY_SLICE", ([1, 2], 0, -1), []),
        ("ARRAY_SLICE", ([1, 2], 0.5), U),
        ("ARRAY_SLICE", ([1, 2], 0, U), U),
        ("ARRAY_SLICE", ("ab", 0), U),
        ("ARRAY_SUM", ([2, 3, 5],), 10),
        ("ARRAY_SUM", ([],), U),
        ("ARRAY_SUM", ([1, "1"],), U),
        ("ARRAY_SUM", ([1, True],), U),
        ("ARRAY_SUM", ([1e308, 1e308],), float("inf")),
        ("ARRAY_AVG", ([1, 2],), 1.5),
        ("ARRAY_AVG", ([],), U),
        ("ARRAY_MEDIAN", ([5, 1, 9],), 5),
        ("ARRAY_MEDIAN", ([4, 1, 3, 2],), 2.5),
        ("ARRAY_MEDIAN", ([],), U),
        ("ARRAY_MAX", ([3, "a", True],), "a"),
        ("ARRAY_MIN", ([3, True],), True),
        ("ARRAY_MIN", ([None, 0],), None),
        ("ARRAY_MAX", (["\uffff", "\U00010000"],), "\uffff"),
        ("ARRAY_MAX", ([1, [2]],), U),
        ("ARRAY_MIN", ([],), U),
        ("OBJECTTOARRAY", ({"x": 1},), [{"k": "x", "v": 1}]),
        ("OBJECTTOARRAY", ({"x": 1}, "n", "val"), [{"n": "x", "val": 1}]),
        ("OBJECTTOARRAY", ({"x": 1}, 5), U),
        ("OBJECTTOARRAY", ({"x": 1}, U), [{"k": "x", "v": 1}]),
        ("OBJECTTOARRAY", ({"x": 1}, "n", U), [{"n": "x", "v": 1}]),
        ("OBJECTTOARRAY", ({"x": 1}, U, "val"), U),
        ("OBJECTTOARRAY", ([1],), U),
        ("SETINTERSECT", ([1, 2, 2], [2, 3]), [2]),
        ("SETINTERSECT", ([1, 2, "A", "B"], ["A", 1]), ["A", 1]),
        ("SETINTERSECT", ([1], []), []),
        ("SETINTERSECT", ([1, True, "1"], [True]), [True]),
        ("SETUNION", ([1, 1], [2, 1]), [1, 2]),
        ("SETUNION", ([{"a": 1, "b": 2}], [{"b": 2, "a": 1.0}]), [{"a": 1, "b": 2}]),
        ("SETDIFFERENCE", ([1, 1, 2], [2]), [1]),
        ("SETEQUAL", ([1, 2], [2, 1, 1]), True),
        ("SETEQUAL", ([1], ["1"]), False),
        ("SETEQUAL", ([[math.nan]], [[math.nan]]), False),
        ("SETINTERSECT", ([{"a": math.nan}], [{"a": math.nan}]), []),
        ("SETEQUAL", ([1], [True]), False),
        ("SETEQUAL", ([1], U), U),
    ],
)
def test_array_function(
    name: str, arguments: tuple[Any, ...], expected: Any, call: Callable[..., Any]
) -> None:
    result = call(name, *arguments)
    assert result == expected
    assert type(result) is type(expected)


def test_an_array_past_the_bound_fails_the_query(call: Callable[..., Any]) -> None:
    half = [0] * (ARRAY_ELEMENTS_MAX // 2 + 1)
    with pytest.raises(PleiadError) as raised:
        call("ARRAY_CONCAT", half, half)
    assert status_of(raised.value) == 400
