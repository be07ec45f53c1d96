"""No argument, however odd, makes a function fail with anything but a row of the error table."""

from __future__ import annotations

import math
from itertools import product
from types import NoneType
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pleiad.errors import PleiadError
from pleiad.query.context import QueryContext
from pleiad.query.functions import REGISTRY, Function
from pleiad.server.http.failures import status_of
from pleiad.values.undefined import UNDEFINED

VARIADIC_ARGS = 4

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(
        [
            "yyyy", "mm", "ns", "2024-02-29T23:59:59.9999999Z", "9999-12-31", "0001-01-01", "imsx", "(a+)+$",
            "[", "\\", "(?", "{1}", " 1e5", "[[1]]", "{\"a\":1}", "red car", "\U0001f600", 10**400,
            -(10**400),
        ]
    ),
)  # fmt: skip
positions = st.lists(st.sampled_from([0, 1, 1.5, -180, 180, 90, 200, "x"]), max_size=3)
geometries = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Point", "LineString", "Polygon", "MultiPolygon", "Circle", 5]),
        "coordinates": st.recursive(positions, lambda inner: st.lists(inner, max_size=5), max_leaves=8),
    }
)
terms = st.fixed_dictionaries({"term": scalars, "distance": scalars})
values = st.one_of(
    st.just(UNDEFINED),
    scalars,
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
        max_leaves=6,
    ),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    geometries,
    terms,
)


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_json(element) for name, element in value.items())
    return value is None or type(value) in (bool, int, float, str)


def _call(function: Function, arguments: list[Any]) -> Any:
    return function.call(QueryContext(), *arguments) if function.needs_context else function.call(*arguments)


def _check(function: Function, arguments: list[Any]) -> None:
    try:
        result = _call(function, arguments)
    except PleiadError as error:
        result = UNDEFINED if status_of(error) == 400 else error
    if result is UNDEFINED:
        return
    assert _is_json(result), result
    if isinstance(result, float) and not math.isfinite(result):
        assert function.family == "math"


@pytest.mark.parametrize("examples", [15, pytest.param(400, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_function_answers_any_values_with_a_value_or_an_error_of_the_table(
    name: str, examples: int
) -> None:
    function = REGISTRY[name]
    most = function.min_args + VARIADIC_ARGS if function.max_args is None else function.max_args

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(st.lists(values, min_size=function.min_args, max_size=most))
    def holds(arguments: list[Any]) -> None:
        _check(function, arguments)

    holds()


ODD_VALUES: list[Any] = [
    UNDEFINED, None, True, 0, -1, 10**400, math.nan, math.inf, -math.inf, -0.0, "", "a\ud800", "\x00",
    [], [math.nan], [[UNDEFINED]], {}, {"": {}}, {"_rid": "AAAA"},
    {"type": "Point", "coordinates": [math.inf, 0]},
]  # fmt: skip


_KINDS = (NoneType, bool, int, float, str, list, dict)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_function_does_not_fail_on_values_that_json_cannot_write(name: str) -> None:
    function = REGISTRY[name]
    most = function.min_args + 2 if function.max_args is None else function.max_args
    for count in range(function.min_args, most + 1):
        for first, rest in product(ODD_VALUES, ODD_VALUES):
            try:
                result = _call(function, [first, *[rest] * (count - 1)] if count else [])
            except PleiadError as error:
                result = UNDEFINED if status_of(error) == 400 else error
            assert result is UNDEFINED or isinstance(result, _KINDS), result


def test_values_made_from_text_can_be_written_as_json() -> None:
    for text in ("[1e5, 18446744073709551616]", '["\\ud83d\\ude00"]'):
        made = REGISTRY["STRINGTOARRAY"].call(text)
        assert orjson.loads(orjson.dumps(made)) == made
