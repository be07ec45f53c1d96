"""Rows that are evaluated and added many at a time come to what they come to one by one."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pleiad.limits import Limits
from pleiad.query import Query, QueryContext
from pleiad.query.aggregate import STATES
from pleiad.query.plan import AggregateKind
from pleiad.values.undefined import UNDEFINED

LIMITS = Limits()
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from((2**53, 2**53 + 1, -(2**53) - 1, 0.1, 0.2, 0.3, -0.0, 1e308, -1e308, math.nan)),
)
VALUES: st.SearchStrategy[list[Any]] = st.one_of(
    st.lists(NUMBERS, min_size=1, max_size=20),
    st.lists(
        NUMBERS | st.sampled_from((UNDEFINED, None, True, False, "a", "é", "\U0001f600", "\ue000", [1], {})),
        min_size=1,
        max_size=8,
    ),
)
ITEMS: list[dict[str, Any]] = [
    {"g": "a", "n": 1, "tags": ["x", "y"]},
    {"g": "b", "n": 0.5, "tags": ["x", "x"]},
    {"g": 1, "n": 2**53 + 1, "tags": []},
    {"g": 1.0, "n": -1, "tags": ["y"]},
    {"g": True, "tags": "x"},
    {"n": "text", "tags": [1, True, None]},
    {"g": None, "n": None},
]


@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from(sorted(STATES, key=str)), pieces=st.lists(VALUES, min_size=1, max_size=3))
def test_values_added_at_once_are_values_added_one_by_one(
    kind: AggregateKind, pieces: list[list[Any]]
) -> None:
    one_by_one, at_once = STATES[kind](), STATES[kind]()
    for values in pieces:
        for value in values:
            one_by_one.add(value)
        at_once.add_all(values, set(map(type, values)))
    assert repr(at_once.result()) == repr(one_by_one.result())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT c.g, SUM(c.n) AS s, AVG(c.n) AS a, MIN(c.n) AS l, MAX(c.n) AS h, COUNT(1) AS k FROM c GROUP BY c.g",
        "SELECT c.g, t, COUNT(c.n) AS k FROM c JOIN t IN c.tags GROUP BY c.g, t",
        "SELECT t, COUNTIF(c.n > 0) AS k FROM c JOIN t IN c.tags WHERE t != 'y' GROUP BY t",
        "SELECT VALUE SUM(c.n) FROM c WHERE IS_NUMBER(c.n)",
        "SELECT VALUE COUNT(1) FROM c WHERE EXISTS(SELECT VALUE 1 FROM t IN c.tags WHERE t = 'x')",
        "SELECT VALUE COUNT(1) FROM c WHERE CONTAINS(c.g, 'a') OR STARTSWITH('b', c.g) OR ENDSWITH(c.n, 'xt')",
    ],
)
def test_rows_with_places_make_the_groups_that_rows_make(text: str) -> None:
    query = Query(text, LIMITS)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error"
        )  # what Python finds odd in generated code would be told to whoever runs it
        execution = query.execution({}, QueryContext(limits=LIMITS))
    assert execution.placed is not None
    one_by_one, at_once, counted = (execution.new_groups() for _ in range(3))
    pairs = list(enumerate(ITEMS))
    for place, item in pairs:
        for number, row in enumerate(execution.filter_rows(item)):
            one_by_one.add(row, (place, number))
    rows = list(execution.placed(pairs))
    assert at_once.add_all_placed(rows[:3])
    assert at_once.add_all_placed(rows[3:])
    for row in rows:
        counted.add_placed(row, 1)
    assert execution.finish(at_once) == execution.finish(one_by_one) == execution.finish(counted)


def test_groups_of_arrays_and_objects_are_made_one_by_one() -> None:
    execution = Query("SELECT c.g FROM c GROUP BY c.g", LIMITS).execution({}, QueryContext(limits=LIMITS))
    assert execution.placed is not None
    groups = execution.new_groups()
    rows = list(execution.placed([(1, {"g": "a"}), (2, {"g": {"a": 1}}), (3, {"g": [1]})]))
    assert not groups.add_all_placed(rows)
    assert len(groups) == 0
