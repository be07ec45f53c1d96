"""The public examples that are constant expressions, computed by the functions alone where they are calls only."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from pleiad.limits import Limits
from pleiad.query import compile_query
from pleiad.query.context import QueryContext
from pleiad.query.values import finite
from pleiad.values.undefined import UNDEFINED
from tests.project import REFERENCE

EXAMPLES = REFERENCE / "query_examples.json"
PREFIX = "SELECT VALUE "

# One page claims that a case-sensitive search for "have" finds "Have".
WRONG_MEMBERS = {"docs/contains-all-cs#1": {"case1"}}

_spec = importlib.util.spec_from_file_location("expressions", Path(__file__).with_name("expressions.py"))
assert _spec is not None
assert _spec.loader is not None
expressions = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(expressions)


def _constant_examples() -> list[Any]:
    if not EXAMPLES.is_file():
        return []
    found = []
    for case in json.loads(EXAMPLES.read_text(encoding="utf-8"))["cases"]:
        query = " ".join(case["query"].splitlines()).strip()
        if case["functions"] and case["deterministic"] and query.startswith(PREFIX) and " FROM " not in query:
            found.append(pytest.param(query[len(PREFIX) :], case, id=case["id"]))
    return found


def _close(actual: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return actual.keys() == expected.keys() and all(
            _close(actual[name], expected[name]) for name in expected
        )
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(map(_close, actual, expected))
    if isinstance(expected, float) and not isinstance(actual, bool):
        return bool(actual == pytest.approx(expected, rel=1e-12))
    actual = finite(actual)
    return type(actual) is type(expected) and bool(actual == expected)


@pytest.mark.skipif(not EXAMPLES.is_file(), reason="the reference examples are not beside this checkout")
def test_most_examples_of_functions_are_constant_expressions() -> None:
    assert len(_constant_examples()) >= 60


@pytest.mark.parametrize(("text", "case"), _constant_examples())
def test_a_public_example_gives_its_published_result(text: str, case: dict[str, Any]) -> None:
    expression = expressions.Expression(text, QueryContext())
    try:
        actual = expression.value()
        rows = [] if actual is UNDEFINED else [actual]
    except expressions.NotConstant:
        rows = compile_query(case["query"], Limits()).run([], {}, QueryContext())
    expected = case["expected"]
    for name in WRONG_MEMBERS.get(case["id"], ()):
        for row in (*rows, *expected):
            row.pop(name, None)
    assert _close(rows, expected), (rows, expected)
