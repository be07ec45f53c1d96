"""HASH: the service's own values, which nothing publishes and its planner gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import QueryContext, compile_query
from pleiad.values.undefined import UNDEFINED

Call = Callable[..., Any]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (UNDEFINED, 0),
        (None, 766155438505752088),
        (True, -5548327042041874212),
        (False, 6230033999164663028),
        (0, -5252782355171432912),
        (-0.0, -5252782355171432912),
        (1, 6281156381425082778),
        (1.0, 6281156381425082778),
        (0.5, 7828679184633091488),
        (2**53, -8212262075480548996),
        (2**53 + 1, -4735541691071685790),
        (-(2**63), 3956772407484510089),
        ("", 2501454490990260405),
        ("a", -6624259903313465731),
        ("ab", 7118052005578407978),
        ([], -171493006512160207),
        ([None], -8360818322968855080),
        ([1, 2, 3], -3474397599233430363),
        ({}, 7910372153859203846),
        ({"a": 1}, -6665101048979940764),
    ],
)
def test_a_value_of_every_type_has_the_hash_of_the_service(value: Any, expected: int, call: Call) -> None:
    assert call("HASH", value) == expected


def test_the_order_of_properties_does_not_change_a_hash(call: Call) -> None:
    assert call("HASH", {"a": 1, "b": [2]}) == call("HASH", {"b": [2.0], "a": 1})


def test_a_seed_and_a_modulo_are_taken(call: Call) -> None:
    assert call("HASH", None, UNDEFINED, 1) == 7320820698839588991
    assert call("HASH", UNDEFINED, UNDEFINED, -1) == -1
    assert call("HASH", "a", 10) == -1
    assert call("HASH", 1, -(2**63)) == 6281156381425082778


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("1, 0", "SC2051"), ("1, 1.5", "SC2051"), ("1, undefined", "SC2051"), ("1, 2, null", "SC2052")],
)
def test_modulo_and_seed_must_be_integers_as_the_query_writes_them(
    arguments: str, code: str, limits: Limits
) -> None:
    with pytest.raises(PleiadError) as caught:
        compile_query(f"SELECT VALUE HASH({arguments}) FROM c", limits)
    assert code in caught.value.message


def test_items_are_hashed_where_a_query_runs(limits: Limits, context: QueryContext) -> None:
    query = compile_query("SELECT VALUE HASH(c.a, undefined, 0) FROM c WHERE HASH(c.a) = HASH('a')", limits)
    assert query.run([{"a": "a"}, {"a": "b"}, {}], {}, context) == [-6624259903313465731]
