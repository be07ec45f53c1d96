"""Texts with much of one thing: generated code is cut into functions, and the cuts change no answer.

Each construct is repeated and nested so often that it is cut in every way, stands where each part of a query may have
it, and is compared with the interpreter, which cuts nothing.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import QueryContext
from pleiad.query.run import Query
from pleiad.server.http.failures import status_of

COUNTS = (65, 130)
DEPTHS = (13, 30)
ITEMS: list[dict[str, Any]] = [
    {"id": "a", "n": 3, "s": "abc", "t": [1, 2, {"x": 3}]},
    {"id": "b", "n": 129, "s": "xyz", "t": []},
    {"id": "c", "s": None, "t": "no list"},
]
PARAMETERS = {f"@p{number}": number for number in range(max(COUNTS))}


def parameters(count: int) -> str:
    return ", ".join(f"@p{number}" for number in range(count))


REPEATED = {
    "parameters of a list": lambda count: f"c.n IN ({parameters(count)})",
    "parameters and constants of a list": lambda count: f"c.n IN ({parameters(count)}, 'abc', 3.5)",
    "properties of a list": lambda count: f"c.n IN ({', '.join(['c.m'] * count)}, c.n)",
    "OR": lambda count: " OR ".join(f"c.n = @p{number}" for number in range(count)),
    "AND": lambda count: " AND ".join(f"c.n != @p{number}" for number in range(count)),
    "LIKE": lambda count: " OR ".join(["c.s LIKE '%b_'"] * count),
    "LIKE of a parameter": lambda count: " OR ".join(["c.s LIKE @p1"] * count),
    "BETWEEN": lambda count: " OR ".join(f"(c.n BETWEEN @p{n} AND {n})" for n in range(count)),
    "plus": lambda count: " + ".join(["c.n"] * count),
    "CONCAT": lambda count: f"CONCAT('-', {', '.join(['c.s'] * count)})",
    "members of an array": lambda count: f"[{', '.join(['c.n', '@p0'] * count)}]",
    "properties of an object": lambda count: "{" + ", ".join(f"a{n}: c.n" for n in range(count)) + "}",
    "subqueries": lambda count: f"[{', '.join(['(SELECT VALUE COUNT(1) FROM x IN c.t)'] * count)}]",
    "EXISTS": lambda count: " OR ".join(["EXISTS(SELECT VALUE x FROM x IN c.t WHERE x = c.n)"] * count),
    "coalescing": lambda count: " ?? ".join(["c.m"] * count + ["c.n"]),
}  # fmt: skip
NESTED = {
    "NOT": ("NOT (", "c.n = 3", ")"),
    "minus": ("-(", "c.n", ")"),
    "LIKE": ("((", "c.s LIKE '%b_'", ") LIKE '%') = true"),
    "IN of parameters": ("(", "c.n IN (@p1, @p3)", ") IN (@p1, true)"),
    "conditionals": ("(c.n = 3 ? ", "c.s", " : 'no')"),
    "arrays": ("[", "c.n", "][0]"),
    "objects": ("{a: ", "c.n", "}.a"),
    "calls": ("UPPER(", "c.s", ")"),
    "AND and OR": ("(c.n = 3 AND (true OR ", "c.n != 3", "))"),
    "subqueries": ("(SELECT VALUE ", "c.n", ")"),
}
PLACES = {
    "the filter": "SELECT VALUE c.id FROM c WHERE ({0}) = true",
    "the result": "SELECT VALUE [c.id, {0}] FROM c",
    "a JOIN": "SELECT c.id, x FROM c JOIN (SELECT VALUE {0}) x",
    "a group": "SELECT COUNT(1) AS k, MAX({0}) AS m FROM c GROUP BY c.id",
    "a subquery": "SELECT VALUE ARRAY(SELECT VALUE y FROM y IN c.t WHERE ({0}) != y) FROM c",
}


def check(oracle: Any, text: str) -> None:
    found: object
    expected: object
    try:
        found = [
            oracle.canon(value) for value in Query(text, Limits()).run(ITEMS, PARAMETERS, QueryContext())
        ]
    except PleiadError as error:
        found = status_of(error)
    try:
        expected = [oracle.canon(value) for value in oracle.run(text, ITEMS, PARAMETERS)]
    except (oracle.OracleError, PleiadError):
        expected = 400
    assert found == expected


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("construct", REPEATED)
def test_a_construct_may_be_repeated(oracle: Any, construct: str, place: str) -> None:
    for count in COUNTS:
        check(oracle, PLACES[place].format(REPEATED[construct](count)))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("construct", NESTED)
def test_a_construct_may_be_nested(oracle: Any, construct: str, place: str) -> None:
    before, middle, behind = NESTED[construct]
    for depth in DEPTHS:
        check(oracle, PLACES[place].format(before * depth + middle + behind * depth))


def test_a_long_list_of_parameters_is_answered() -> None:
    text = f"SELECT VALUE c.id FROM c WHERE c.n IN ({parameters(130)})"
    assert Query(text, Limits()).run(ITEMS, PARAMETERS, QueryContext()) == ["a", "b"]


def test_a_text_with_countless_errors_is_told_the_first_thousand() -> None:
    with pytest.raises(PleiadError) as refused:
        Query(f"SELECT {', '.join(['c.n'] * 5_000)} FROM c", Limits())
    assert len(json.loads(refused.value.message)["errors"]) == 1_000
