"""Type checks, conditional functions and DOCUMENTID."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pleiad.item.rid import container_rid, document_rid
from pleiad.values.undefined import UNDEFINED

U = UNDEFINED

TYPE_CHECKS: dict[str, list[Any]] = {
    "IS_ARRAY": [[]],
    "IS_BOOL": [True, False],
    "IS_DEFINED": [None, True, 0, 1.5, "", [], {}],
    "IS_FINITE_NUMBER": [0, 1.5],
    "IS_INTEGER": [0],
    "IS_NULL": [None],
    "IS_NUMBER": [0, 1.5],
    "IS_OBJECT": [{}],
    "IS_PRIMITIVE": [None, True, 0, 1.5, ""],
    "IS_STRING": [""],
}
SAMPLES: list[Any] = [U, None, True, 0, 1.5, "", [], {}]


@pytest.mark.parametrize("name", TYPE_CHECKS)
def test_a_type_check_is_true_for_its_types_and_false_for_all_others(
    name: str, call: Callable[..., Any]
) -> None:
    for sample in SAMPLES:
        expected = any(type(sample) is type(value) and sample == value for value in TYPE_CHECKS[name])
        assert call(name, sample) is expected, (name, sample)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3.0, True),
        (3454.123, False),
        (1e30, False),
        (-(2**63), True),
        (2**63 - 1, True),
        (2**64 - 1, False),
        (float(2**63), False),
        (float("nan"), False),
        (float("inf"), False),
        (True, False),
    ],
)
def test_an_integer_is_a_whole_number_of_64_bits(
    value: Any, expected: bool, call: Callable[..., Any]
) -> None:
    assert call("IS_INTEGER", value) is expected


def test_not_a_number_is_a_number_but_not_a_finite_one(call: Callable[..., Any]) -> None:
    assert call("IS_NUMBER", float("nan")) is True
    assert call("IS_FINITE_NUMBER", float("nan")) is False
    assert call("IS_FINITE_NUMBER", float("-inf")) is False
    assert call("IS_FINITE_NUMBER", "1") is False


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("IIF", (True, 1, 2), 1),
        ("IIF", (1, 1, 2), 2),
        ("IIF", (None, 1, 2), 2),
        ("IIF", (U, 1, 2), 2),
        ("IIF", (True, U, 2), U),
        ("CHOOSE", (2, "a", "b"), "b"),
        ("CHOOSE", (2.0, "a", "b"), "b"),
        ("CHOOSE", (0, "a"), U),
        ("CHOOSE", (3, "a", "b"), U),
        ("CHOOSE", (1, "a", U), "a"),
        ("CHOOSE", (1.5, "a", "b"), U),
        ("CHOOSE", ("1", "a"), U),
        ("DOCUMENTID", ({"_rid": document_rid(1, 2, 0, 13)},), 13),
        ("DOCUMENTID", ({"_rid": container_rid(1, 2)},), U),
        ("DOCUMENTID", ({"_rid": "é"},), U),
        ("DOCUMENTID", ({},), U),
        ("DOCUMENTID", (5,), U),
    ],
)
def test_conditional_and_item_functions(
    name: str, arguments: tuple[Any, ...], expected: Any, call: Callable[..., Any]
) -> None:
    assert call(name, *arguments) == expected
