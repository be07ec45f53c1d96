"""Pleiad beside the service's query planner: its recorded answers, and where the planner is at hand fresh random texts.

What differs must be named, with its reason, on the page of compatibility.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from differential import fresh, recorded
from differential.__main__ import is_known, known_causes
from differential.compare import Difference, Tally, report
from differential.ours import Case, answer_of
from differential.planner import Planner, is_here
from differential.shrink import shrunk

SHARED = Path(__file__).resolve().parents[3] / "shared"
RECORDS = SHARED / "reference"
FRESH_EXPRESSIONS, FRESH_QUERIES = 1_500, 800
REACHED = {
    "constants": 0.999,
    "acceptance": 0.999,
    "code": 0.99,
    "text": 0.98,
    "place": 0.97,
    "plan": 0.99,
    "ranges": 0.99,
}


def unnamed(tally: Tally) -> list[str]:
    known = known_causes()
    return [
        f"{each.measure}: {each.cause}: {each.text}"
        for each in tally.differences
        if not is_known(each, known)
    ]


@pytest.mark.skipif(
    not (RECORDS / recorded.QUERIES).is_file(), reason="no recorded answers beside the checkout"
)
def test_the_recorded_answers_of_the_planner_are_pleiads_too() -> None:
    tally = Tally()
    recorded.check_constants(RECORDS / recorded.CONSTANTS, tally)
    recorded.check_queries(RECORDS / recorded.QUERIES, tally)
    assert unnamed(tally) == []
    short = {
        measure: tally.rate(measure) for measure, least in REACHED.items() if tally.rate(measure) < least
    }
    assert short == {}, "\n".join(report(tally, 1))


@pytest.mark.skipif(not is_here(SHARED), reason="the planner does not lie beside the checkout")
@pytest.mark.parametrize("seed", [1, 2])
def test_fresh_texts_have_the_same_answers(seed: int) -> None:
    tally = Tally()
    with Planner(SHARED) as planner:
        fresh.check_expressions(planner, seed, FRESH_EXPRESSIONS, tally)
        fresh.check_queries(planner, seed, FRESH_QUERIES, tally)
    assert unnamed(tally) == []
    assert tally.rate("values") >= 0.999
    assert tally.rate("acceptance") >= 0.995
    assert tally.rate("plan") >= 0.98
    assert tally.rate("ranges") >= 0.98


def test_a_cause_that_the_page_does_not_name_is_unknown() -> None:
    known = ["acceptance: 1 here 2", "errors: 3 here 4"]
    found = [
        (measure, cause)
        for measure in ("acceptance", "code", "place", "plan", "values")
        for cause in ("1 here 2", "3 here 4", "")
        if is_known(Difference(measure, cause, "", None, None), known)
    ]
    assert found == [
        ("acceptance", "1 here 2"),
        ("code", "1 here 2"),
        ("code", "3 here 4"),
        ("place", "1 here 2"),
        ("place", "3 here 4"),
        ("plan", "1 here 2"),
        ("values", "1 here 2"),
    ]
    assert not any("*" in each for each in known_causes())


def test_a_text_is_shrunk_to_what_makes_the_difference() -> None:
    assert shrunk("ABS(1 + 2) || (3 - FOO(4))", lambda text: "FOO" in text) == "FOO"


def routes(where: str, **given: Any) -> Any:
    """The keys of a filter, as the planner shows them."""
    parameters = tuple({"name": f"@{name}", "value": value} for name, value in given.items())
    found = answer_of(Case(f"SELECT * FROM c WHERE {where}", parameters)).ranges
    return found if found == "all" else [json.loads(key)[0] for key in found]


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("1 IN (c.pk)", [1]),
        ("(c.pk BETWEEN 'a' AND 'a')", ["a"]),
        ("c.pk >= 3 AND c.pk <= 3", [3]),
        ("c.pk >= null", [None]),
        ("c.pk < true", [False]),
        ("-c.pk = 1", [-1]),
        ("LOWER(c.pk) = 'ab'", ["AB", "Ab", "aB", "ab"]),
        ("REVERSE(c.pk) = 'ab'", ["ba"]),
        ("LENGTH(c.pk) = 0", [""]),
        ("[c.pk] = [1]", [1]),
        ("{a: c.pk}.a = 1", [1]),
        ("EXISTS(SELECT VALUE x FROM x IN c.a WHERE c.pk = 1)", [1]),
        ("(c.pk = 1 ? true : false)", [1]),
        ("c.pk > 5 AND c.pk = 1", []),
        ("c.x = 1 AND c.x = 2", []),
        ("c.pk = 1 + 1", [2]),
        ("c.pk = @gone", []),
        ("c.pk + 1 = 2", "all"),
        ("c.pk LIKE 'a%'", "all"),
    ],
)
def test_a_filter_is_routed_to_the_keys_it_allows(where: str, keys: Any) -> None:
    assert routes(where) == keys
