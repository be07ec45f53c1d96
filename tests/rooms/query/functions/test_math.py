"""Mathematical and integer functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from pleiad.values.undefined import UNDEFINED

U = UNDEFINED
INT64_MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("ABS", (-2.5,), 2.5),
        ("ACOS", (0.5,), 1.0471975511965979),
        ("ASIN", (1,), 1.5707963267948966),
        ("ATAN", (1,), 0.7853981633974483),
        ("ATN2", (1, -1), 2.356194490192345),
        ("COT", (2,), -0.45765755436028577),
        ("EXP", (2,), 7.38905609893065),
        ("CEILING", (-1.2,), -1),
        ("FLOOR", (-1.2,), -2),
        ("TRUNC", (-1.8,), -1),
        ("ROUND", (0.5,), 1),
        ("ROUND", (-0.5,), -1),
        ("ROUND", (2.49,), 2),
        ("ROUND", (0.49999999999999994,), 0),
        ("ROUND", (1e300,), 1e300),
        ("DEGREES", (math.pi,), 180),
        ("RADIANS", (180,), math.pi),
        ("SIGN", (-3,), -1),
        ("SQRT", (9,), 3),
        ("SQUARE", (-3,), 9),
        ("POWER", (2, -1), 0.5),
        ("LOG", (1,), 0),
        ("LOG", (8, 2), 3),
        ("LOG10", (1000,), 3),
        ("LOG10", (50,), 1.6989700043360187),
        ("NUMBERBIN", (41.3, -25), 50),
        ("NUMBERBIN", (12.34, 0.5), 12),
        ("NUMBERBIN", (-1, 10), -10),
        ("NUMBERBIN", (12.9,), 12),
        ("PI", (), math.pi),
    ],
)
def test_a_number_gives_the_documented_number(
    name: str, arguments: tuple[Any, ...], expected: float, call: Callable[..., Any]
) -> None:
    assert call(name, *arguments) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("name", ["CEILING", "FLOOR", "TRUNC", "ROUND", "SQUARE", "ABS"])
def test_a_whole_result_is_an_integer_and_prints_without_fraction(
    name: str, call: Callable[..., Any]
) -> None:
    assert type(call(name, 4.0)) is int


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("SQRT", (-1,), math.nan),
        ("ACOS", (2,), math.nan),
        ("LOG", (-1,), math.nan),
        ("LOG", (0,), -math.inf),
        ("LOG", (5, 1), math.inf),
        ("EXP", (1000,), math.inf),
        ("POWER", (10, 1000), math.inf),
        ("POWER", (-10, 1001), -math.inf),
        ("POWER", (0, -1), math.inf),
        ("POWER", (-8, 0.5), math.nan),
        ("COT", (0,), math.inf),
        ("SQUARE", (1e200,), math.inf),
        ("SIN", (math.inf,), math.nan),
    ],
)
def test_outside_its_domain_a_function_follows_ieee_754(
    name: str, arguments: tuple[Any, ...], expected: float, call: Callable[..., Any]
) -> None:
    assert call(name, *arguments) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("value", [U, None, True, "1", [1], {"a": 1}])
def test_what_is_no_number_has_no_mathematical_value(value: Any, call: Callable[..., Any]) -> None:
    for name in ("ABS", "COS", "FLOOR", "LOG", "ROUND", "SIGN", "NUMBERBIN", "INTBITNOT"):
        assert call(name, value) is U, name
    for name in ("ATN2", "POWER", "LOG", "NUMBERBIN", "INTADD", "INTDIV"):
        assert call(name, 2, value) is U, name
        assert call(name, value, 2) is U, name


def test_a_bin_of_size_zero_is_undefined(call: Callable[..., Any]) -> None:
    assert call("NUMBERBIN", 5, 0) is U


def test_random_numbers_lie_between_zero_and_one(call: Callable[..., Any]) -> None:
    assert all(0 <= call("RAND") < 1 for _ in range(100))


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("INTADD", (20, 10), 30),
        ("INTADD", (1, 0.5), U),
        ("INTADD", (2.0, 1), 3),
        ("INTADD", (INT64_MAX, 1), -(2**63)),
        ("INTADD", (INT64_MAX, -1), INT64_MAX - 1),
        ("INTSUB", (1, 3), -2),
        ("INTMUL", (5, -2), -10),
        ("INTMUL", (-1, -(2**63)), U),
        ("INTMUL", (2**40, 2**40), 0),
        ("INTDIV", (7, 2), 3),
        ("INTDIV", (-7, 2), -3),
        ("INTDIV", (1, 0), U),
        ("INTDIV", (-(2**63), -1), U),
        ("INTMOD", (-7, 3), -1),
        ("INTMOD", (12, -5), 2),
        ("INTMOD", (12, 0), U),
        ("INTMOD", (-(2**63), -1), U),
        ("INTBITAND", (12, 10), 8),
        ("INTBITOR", (12, 10), 14),
        ("INTBITXOR", (12, 10), 6),
        ("INTBITNOT", (0,), -1),
        ("INTBITLEFTSHIFT", (1, 40), 1099511627776),
        ("INTBITLEFTSHIFT", (1, 63), -(2**63)),
        ("INTBITLEFTSHIFT", (1, 64), 1),
        ("INTBITLEFTSHIFT", (1, -1), -(2**63)),
        ("INTBITLEFTSHIFT", (16, 0.4), U),
        ("INTBITRIGHTSHIFT", (-8, 1), -4),
        ("INTBITAND", (2**64, 1), U),
    ],
)
def test_integer_functions_work_on_signed_64_bits(
    name: str, arguments: tuple[Any, ...], expected: Any, call: Callable[..., Any]
) -> None:
    assert call(name, *arguments) == expected
