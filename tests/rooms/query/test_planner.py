"""Pleiad beside the service's query planner: its recorded answers, and where the planner is at hand fresh random texts.

What differs must be named, with its reason, on the page of compatibility.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from differential import fresh, recorded
from differential.__main__ import is_known, known_causes
from differential.compare import Difference, Tally, report
from differential.ours import Case, answer_of
from differential.planner import Planner, is_here
from differential.shrink import shrunk
from pleiad.query import QueryContext
from pleiad.query.run import Query
from tests.project import SHARED

RECORDS = SHARED / "reference"
FRESH_EXPRESSIONS, FRESH_QUERIES, FRESH_WILD = 750, 400, 800
"""Few: `make oracle` asks for hundreds of thousands."""
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
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 10))])
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


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not is_here(SHARED), reason="the planner does not lie beside the checkout")
def test_wild_texts_have_mostly_the_same_answers() -> None:
    tally = Tally()
    with Planner(SHARED) as planner:
        fresh.check_wild(planner, 1, FRESH_WILD, tally)
    short = {name: tally.rate(name) for name, least in fresh.WILD_RATES.items() if tally.rate(name) < least}
    assert short == {}, "\n".join(report(tally, 1))


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
        ("(LET v = c.pk IN v = 1)", [1]),
        ("(SELECT VALUE 1 WHERE c.pk = 2) = 1", [2]),
        ("ARRAY(SELECT VALUE c.pk) = [1]", [1]),
        ("EXISTS(SELECT VALUE x FROM c.pk x WHERE x = 1)", [1]),
        ("EXISTS(SELECT VALUE c.pk FROM x IN c.a WHERE c.pk = 1 GROUP BY c.pk)", [1]),
        ("EXISTS(SELECT VALUE x FROM x IN c.pk) AND c.pk = 1", []),
        ("EXISTS(SELECT VALUE COUNT(1) FROM x IN c.a WHERE c.pk = 1)", "all"),
        ("REGEXMATCH(c.a, 0)", []),
        ("CONTAINS(c.a, 'b', 'c')", []),
        ("CONTAINS_ALL_CI(c.a, 1, c.b)", []),
        ("CONTAINS_ANY_CI(c.a, 1, c.b)", "all"),
        ("c.a = 0/0", []),
        ("c.a > 1/0", []),
        ("c.pk = 1/0", "all"),
        ("c.a LIKE 'a' AND c.a = 'b'", []),
        ("(c.x OR c.y) AND c.x = 1 AND c.y = 1", []),
        ("c.id > c.id.a", "all"),
        ("c.pk + 1 = 2", "all"),
        ("c.pk LIKE 'a%'", "all"),
    ],
)
def test_a_filter_is_routed_to_the_keys_it_allows(where: str, keys: Any) -> None:
    assert routes(where) == keys


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (
            "SELECT * FROM (SELECT c.pk, COUNT(1) AS n FROM c GROUP BY c.pk) y WHERE y.pk = 1 AND y.n > 2",
            ["[1.0]"],
        ),
        ("SELECT * FROM (SELECT COUNT(1) AS n FROM c WHERE c.pk = 1) y WHERE y.n = 0", ["[1.0]"]),
        ("SELECT * FROM (SELECT COUNT(1) AS n FROM c) y WHERE y.n = 'a'", []),
        ("SELECT * FROM (SELECT COUNT(1) AS n FROM c) y WHERE y.z = 1", []),
        ("SELECT VALUE c FROM c JOIN (SELECT VALUE t FROM t IN c.t WHERE c.pk = 1) x", ["[1.0]"]),
        ("SELECT VALUE c FROM c JOIN (SELECT COUNT(1) FROM t IN c.t WHERE c.pk = 1) x", "all"),
        ("SELECT VALUE c FROM c JOIN (SELECT VALUE ABS('a')) x", []),
        ("SELECT VALUE MIN(c.a.b) FROM c WHERE c.a", []),
        ("SELECT VALUE SUM(c.a.b) FROM c WHERE c.a", "all"),
        ("SELECT MIN(c.a.b) FROM c WHERE c.a", "all"),
    ],
)
def test_a_subquery_is_looked_through(text: str, keys: Any) -> None:
    assert answer_of(Case(text)).ranges == keys


def codes(text: str, **given: Any) -> list[Any]:
    """The codes of what is wrong with a query."""
    parameters = tuple({"name": f"@{name}", "value": value} for name, value in given.items())
    return [each["code"] for each in answer_of(Case(text, parameters)).errors]


@pytest.mark.parametrize(
    ("text", "given", "told"),
    [
        ("SELECT zz FROM c OFFSET @n LIMIT 1", {"n": "a"}, ["SC2001", "SC2062"]),
        ("SELECT TOP @n * FROM c JOIN t IN c.tags", {"n": {}}, ["SC2042", "SC2060"]),
        ("SELECT COUNT(1) AS n FROM c GROUP BY c[@p]", {"p": {}}, ["SC2990", "SC2110"]),
        ("SELECT COUNT(1) AS n FROM c GROUP BY c[@p]", {"p": "a"}, []),
        ("SELECT zz, COUNT(1) FROM c OFFSET 0 LIMIT 4294967296", {}, ["SC2001", "SC2061"]),
        ("SELECT TOP 1.5 zz, COUNT(1) FROM c", {}, ["SC2001"]),
        ("SELECT VALUE 1 FROM c ORDER BY (LET v = c.a IN v)", {}, ["SC2091"]),
        ("SELECT 1 FROM c GROUP BY COUNT()", {}, ["SC2050", "SC2110"]),
        ("SELECT 1 FROM c WHERE COUNT(1, 2)", {}, ["SC2050"]),
        ("SELECT VALUE (SELECT c.a, MAX(x) m FROM x IN c.b) FROM c", {}, ["SC2102"]),
        ("SELECT VALUE (SELECT x.a, MAX(x) m FROM x IN c.b) FROM c", {}, ["SC2102"]),
        ("SELECT VALUE EXISTS(SELECT c.a, MAX(x) m FROM x IN c.b GROUP BY x) FROM c", {}, ["SC2102"]),
        ("SELECT VALUE (SELECT c.a, MAX(1) m FROM c) FROM c", {}, []),
        ("SELECT MIN(1), y.a FROM (SELECT SUM(1) AS a FROM c) AS y", {}, []),
        ("SELECT MIN(1), y.a FROM (SELECT c.a FROM c) AS y", {}, ["SC2102"]),
        ("SELECT * FROM (SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a) y ORDER BY y.n", {}, [2206]),
        ("SELECT * FROM (SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a) y ORDER BY y.a", {}, []),
        ("SELECT VALUE y FROM (SELECT VALUE COUNT(1) FROM c) y ORDER BY y", {}, []),
        ("SELECT VALUE y FROM (SELECT VALUE MAX(c.a) FROM c) y ORDER BY y", {}, [2206]),
        ("SELECT COUNT(1) FROM (SELECT COUNT(1) AS n FROM c) y ORDER BY y.n", {}, [2206]),
        ("SELECT COUNT(1) FROM (SELECT c.a FROM c) y ORDER BY y", {}, []),
        ("SELECT * FROM c ORDER BY ST_DISTANCE(c.l, {type: 'Point', coordinates: [0, 0]})", {}, []),
        ("SELECT * FROM c ORDER BY ST_DISTANCE(c.l, c.m), c.a", {}, [2206]),
        ("SELECT * FROM c ORDER BY COUNT(1)", {}, ["SC2040"]),
        ("SELECT (SELECT *) FROM c JOIN t IN c.t", {}, ["SC2042"]),
        ("SELECT c.a FROM c GROUP BY LEFT(c.a)", {}, ["SC2050", "SC2110"]),
        ("SELECT c.a FROM c GROUP BY [c.a, 1][1]", {}, ["SC2110"]),
        ("SELECT (SELECT VALUE 1 FROM x IN c.t) n, 1 n FROM c GROUP BY c.t", {}, ["SC2022"]),
        ("SELECT 5 AS '', c.a AS '' FROM c", {}, ["SC2022"]),
        ("SELECT 5 AS '', c.a FROM c", {}, []),
        ("SELECT VALUE VECTORDISTANCE(c.a, c.b, 'A', 1) FROM c", {}, ["SC2212"]),
        ("SELECT x.n FROM x IN (SELECT VALUE [c.a] FROM c) ORDER BY x.n", {}, [2206]),
        ("SELECT x.n FROM x IN (SELECT c.n FROM c) ORDER BY x.n", {}, [2206]),
        ("SELECT VALUE 1 FROM c JOIN (SELECT *) x ORDER BY x.a", {}, []),
        ("SELECT VALUE 1 FROM c JOIN (SELECT VALUE c.t WHERE c.p) x ORDER BY x.a", {}, [2206]),
        ("SELECT VALUE 1 FROM c JOIN (SELECT VALUE 5) x JOIN y IN x.c ORDER BY y.a", {}, [2206]),
        ("SELECT VALUE 1 FROM c JOIN (SELECT VALUE c.d) x JOIN y IN x.c ORDER BY y.a", {}, []),
        ("SELECT y.k FROM (SELECT 1 AS k FROM c) AS y GROUP BY y.k ORDER BY y.k", {}, [2206]),
        ("SELECT y.k FROM (SELECT c.a AS k FROM c) AS y GROUP BY y.k ORDER BY y.k", {}, []),
        ("SELECT y AS n FROM (SELECT r FROM r GROUP BY r) y GROUP BY y ORDER BY y.b", {}, [2206]),
        ("SELECT VALUE EXISTS(SELECT * FROM x IN (SELECT VALUE c.e)) FROM c", {}, []),
        ("SELECT VALUE EXISTS(SELECT *) FROM x IN (SELECT VALUE c.a FROM c)", {}, ["SC2042"]),
        ("SELECT VALUE 1 FROM c JOIN x IN c.a JOIN (SELECT VALUE y FROM y IN x.b) x", {}, []),
        ("SELECT VALUE 1 FROM c JOIN x IN c.a JOIN (SELECT VALUE 1) x", {}, ["SC2021"]),
        ("SELECT c['$1'], 1 FROM c", {}, []),
        ("SELECT 1, c['$1'] FROM c", {}, ["SC2022"]),
        ("SELECT ARRAY(SELECT VALUE 1 FROM (SELECT c.g AS z) i GROUP BY i.y) FROM c", {}, ["SC2110"]),
        ("SELECT ARRAY(SELECT VALUE 1 FROM (SELECT c.g AS z) i GROUP BY i.z) FROM c", {}, []),
        ("SELECT i.y FROM c JOIN (SELECT c.g AS z) i GROUP BY i.y", {}, []),
        ("SELECT i FROM (SELECT VALUE 1) i GROUP BY i", {}, []),
        ("SELECT ARRAY(SELECT VALUE 1 FROM t IN c.b JOIN (SELECT VALUE 1) i GROUP BY i) FROM c", {}, []),
        ("SELECT (LET v = c.a IN ARRAY(SELECT VALUE 1 FROM t IN c.b GROUP BY v)) FROM c", {}, ["SC2110"]),
        ("SELECT TOP 1.5 SUM() FROM c", {}, ["SC2050", "SC2060"]),
        ("SELECT TOP 1.5 COUNT(y) FROM (SELECT VALUE COUNT(1) FROM c) y OFFSET 0 LIMIT 0", {}, ["SC2205"]),
        (
            "SELECT DISTINCT zz FROM c WHERE ww GROUP BY c.x ORDER BY RANK FullTextScore(yy.t, 'a') DESC",
            {},
            ["SC2001", "SC2227", "SC2222", "SC2001", "SC2220", "SC2001"],
        ),
        (
            "SELECT * FROM c JOIN a IN c.a JOIN b IN c.b ORDER BY RANK FullTextScore(c.t, 1, 2)",
            {},
            ["SC2224", "SC2224", "SC2223", "SC2223", "SC2241", "SC2042"],
        ),
        (
            "SELECT VALUE ARRAY(SELECT VALUE 1 FROM x IN c.a ORDER BY RANK FullTextScore(x.t, 'a')) FROM c",
            {},
            ["SC2223", "SC2228"],
        ),
    ],
)
def test_all_that_is_wrong_is_told_in_the_order_of_the_service(
    text: str, given: dict[str, Any], told: list[Any]
) -> None:
    assert codes(text, **given) == told


def test_the_last_argument_of_a_fusion_is_looked_at_first() -> None:
    text = "SELECT * FROM c ORDER BY RANK RRF(ABS(a1.t), FullTextScore(a2.t, 'a'), VectorDistance(a3.v, [1]))"
    told = [each["message"].split("'")[1:2] or each["code"] for each in answer_of(Case(text)).errors]
    assert told == [["a3"], ["a1"], "SC2221", ["a2"]]


def test_a_negative_infinity_is_printed_as_it_is_written() -> None:
    plan = answer_of(Case("SELECT TOP 1 VALUE c.a FROM c WHERE c.a > -Infinity ORDER BY c.a")).plan
    assert plan is not None
    assert "(c.a > -Infinity)" in plan["rewrittenQuery"]


def test_the_item_behind_the_elements_of_rows_has_the_name_that_the_subquery_gives_it() -> None:
    plan = answer_of(Case("SELECT VALUE 1 FROM x IN (SELECT VALUE z.a FROM c AS z) ORDER BY x.b")).plan
    assert plan is not None
    assert plan["rewrittenQuery"].startswith("SELECT z._rid, ")


def test_a_star_without_a_source_is_the_input_around_it(context: QueryContext) -> None:
    item = {"id": "1", "pk": 1}
    for text in ("SELECT VALUE (SELECT *) FROM c", "SELECT VALUE x FROM c JOIN (SELECT *) x"):
        assert Query(text, context.limits).run([item], {}, context) == [item]
    assert routes("(SELECT *).pk = 1") == [1]


def test_a_subquery_gives_numbers_that_are_not_finite(context: QueryContext) -> None:
    def value(expression: str) -> Any:
        return Query(f"SELECT VALUE {expression}", context.limits).run((), {}, context)

    assert value("EXISTS(SELECT VALUE 0/0)") == [True]
    assert value("IS_NUMBER((SELECT VALUE 0/0))") == [True]
    assert value("TOSTRING(ARRAY(SELECT VALUE {a: 1/0}))") == ['[{"a":Infinity}]']
    assert value("(SELECT VALUE COUNT(1) FROM (SELECT VALUE 0/0) x)") == [1]
    # In what a client gets there are none.
    assert value("ARRAY(SELECT VALUE x FROM (SELECT VALUE [0/0, 1]) x)") == [[[1]]]
    assert value("{a: (SELECT VALUE 1/0), b: 1}") == [{"b": 1}]
    rows = Query("SELECT c.id, x FROM c JOIN (SELECT VALUE {n: 1/0, m: c.n * 2}) x", context.limits)
    assert rows.run([{"id": "1", "n": 1.5}], {}, context) == [{"id": "1", "x": {"m": 3}}]


def test_what_is_no_part_of_a_group_is_told_as_it_is_written() -> None:
    (error,) = answer_of(Case("SELECT {a: c.y}.pk FROM c GROUP BY c.x")).errors
    assert "'{a: c.y}.pk'" in error["message"]
    assert error["location"] == {"start": 7, "end": 18}


def test_one_row_may_be_named_beside_its_aggregates(context: QueryContext) -> None:
    items: list[dict[str, Any]] = [{"id": "1", "a": 1, "b": [1, 2]}, {"id": "2", "b": []}]
    text = "SELECT VALUE (SELECT c.a, COUNT(1) AS n FROM c) FROM c"
    assert Query(text, context.limits).run(items, {}, context) == [{"a": 1, "n": 1}, {"n": 1}]
    text = "SELECT MIN(1) AS low, y.a FROM (SELECT COUNT(1) AS a FROM c) AS y"
    assert Query(text, context.limits).run(items, {}, context) == [{"low": 1, "a": 2}]
