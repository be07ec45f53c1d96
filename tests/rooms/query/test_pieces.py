"""What callers build on: pages and merges, the cache, limits, deadlines, routing, ranks and plans."""

from __future__ import annotations

import heapq
import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import QueryContext, compile_query
from pleiad.query.cache import QueryCache
from pleiad.query.client_plan.plan import gateway_plan
from pleiad.query.pace import Pace
from pleiad.query.route.keys import KEYS_MAX, key_values
from pleiad.server.http.failures import status_of
from pleiad.values.undefined import UNDEFINED

Run = Callable[..., list[Any]]


def items_of(seed: int, count: int) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    return [
        {"id": f"{seed}-{number}", "g": dice.choice("abc"), "n": dice.randrange(50), "s": dice.choice("xyz")}
        for number in range(count)
    ]


PARTITIONS = [items_of(seed, 40) for seed in range(3)]


@pytest.mark.parametrize("order", ["c.n", "c.n DESC", "c.s DESC, c.n", "c.s, c.n DESC"])
def test_sorted_streams_of_partitions_merge_to_the_order_of_the_whole(
    limits: Limits, context: QueryContext, order: str
) -> None:
    query = compile_query(f"SELECT c.id, c.s, c.n FROM c WHERE c.n > 5 ORDER BY {order}", limits)
    execution = query.execution({}, context)
    streams = [execution.sorted_rows(execution.rows(items)) for items in PARTITIONS]
    merged = execution.outputs(heapq.merge(*streams, key=execution.order_key))
    # Ties come by partition; within one, in reverse under a leading DESC.
    whole = PARTITIONS[::-1] if query.order_by[0].descending else PARTITIONS
    assert merged == query.run([item for items in whole for item in items], {}, context)


def test_groups_of_partitions_merge_to_the_groups_of_the_whole(limits: Limits, context: QueryContext) -> None:
    text = (
        "SELECT c.g, COUNT(1) AS a, SUM(c.n) AS b, AVG(c.n) AS d, MIN(c.s) AS e, MAX(c.n) AS f, "
        "MAKESET(c.s) AS h, MAKELIST(c.n) AS i, COUNTIF(c.n > 9) AS j FROM c GROUP BY c.g"
    )
    query = compile_query(text, limits)
    execution = query.execution({}, context)
    total = execution.new_groups()
    for items in PARTITIONS:
        part = execution.new_groups()
        for row in execution.rows(items):
            part.add(row)
        total.merge(part)
    assert execution.finish(total) == query.run([item for items in PARTITIONS for item in items], {}, context)


def test_rows_of_one_item_are_filtered_and_projected_one_by_one(
    limits: Limits, context: QueryContext
) -> None:
    query = compile_query("SELECT VALUE t FROM c JOIN t IN c.t WHERE t > 1", limits)
    execution = query.execution({}, context)
    assert [execution.project(row) for row in execution.filter_rows({"t": [1, 2, 3]})] == [2, 3]
    assert query.is_per_item


def test_a_query_says_what_it_is(limits: Limits) -> None:
    query = compile_query("SELECT DISTINCT c.g FROM c JOIN t IN c.t GROUP BY c.g", limits)
    assert query.aliases == ("c", "t")
    assert query.is_aggregate
    assert query.distinct
    assert len(query.group_by) == 1
    assert not compile_query("SELECT 1", limits).reads_items
    assert not compile_query("SELECT * FROM (SELECT DISTINCT c.g FROM c)", limits).is_per_item
    assert compile_query("SELECT * FROM (SELECT c.g FROM c)", limits).is_per_item


def test_queries_are_cached_by_text_within_bounds(limits: Limits) -> None:
    cache = QueryCache(queries_max=2, bytes_max=1_000_000)
    first = cache.get("SELECT 1", limits)
    assert cache.get("SELECT 1", limits) is first
    cache.get("SELECT 2", limits)
    cache.get("SELECT 3", limits)
    assert cache.get("SELECT 1", limits) is not first
    assert cache.get("SELECT 1", Limits(query_joins=1)) is not cache.get("SELECT 1", limits)


def test_a_long_join_is_cut_by_the_deadline(run: Run, limits: Limits) -> None:
    joins = " ".join(f"JOIN t{number} IN c.t" for number in range(10))
    context = QueryContext(limits=limits, pace=Pace(limits, seconds=0.0))
    with pytest.raises(PleiadError, match="stopped: it worked for more than"):
        run(f"SELECT VALUE COUNT(1) FROM c {joins}", [{"t": [0] * 10}], {}, context)


HOSTILE = {
    "parentheses": "SELECT " + "(" * 50_000 + "1",
    "brackets": "SELECT " + "[" * 50_000,
    "braces": "SELECT " + "{a:" * 50_000,
    "not": "SELECT " + "NOT " * 50_000 + "1",
    "minus": "SELECT " + "- " * 50_000 + "1",
    "subqueries": "SELECT " + "(SELECT " * 20_000,
    "calls": "SELECT " + "ABS(" * 50_000,
    "ternaries": "SELECT " + "1?" * 50_000 + "1",
    "sum": "SELECT VALUE 1" + "+1" * 50_000,
    "path": "SELECT c" + ".a" * 50_000 + " FROM c",
    "index": "SELECT c" + "[0]" * 50_000 + " FROM c",
    "comments": "SELECT " + "/*" * 100_000,
    "quotes": "SELECT " + "'" * 99_999,
    "coalesce": "SELECT 1" + "??1" * 50_000,
    "digits": "SELECT TOP " + "9" * 100_000 + " *",
    "joins": "SELECT 1 FROM c " + "JOIN x IN c.x " * 10_000,
    "items": "SELECT 1 IN (" + "1," * 50_000 + "1)",
    "length": "SELECT '" + "x" * 600_000 + "'",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_refused_quickly(limits: Limits, name: str) -> None:
    started = time.process_time()
    with pytest.raises(PleiadError) as raised:
        compile_query(HOSTILE[name], limits)
    assert status_of(raised.value) == 400
    assert time.process_time() - started < 20  # what grows with the square of the text takes minutes


def test_long_and_deep_texts_within_the_limits_run(run: Run) -> None:
    item = {"a": 5}
    many = " OR ".join(f"c.a = {number}" for number in range(2_000))
    assert run(f"SELECT VALUE 1 FROM c WHERE {many}", [item]) == [1]
    assert run("SELECT VALUE " + "(" * 100 + "1 + (2" + ")" * 101) == [3]
    assert run("SELECT VALUE 1" + " + 1" * 150) == [151]
    assert run("SELECT VALUE " + "(SELECT VALUE " * 30 + "c.a" + ")" * 30 + " FROM c", [item]) == [5]
    assert run("SELECT VALUE " + "NOT " * 100 + "true") == [True]
    assert run("SELECT VALUE " + "[" * 100 + "c.a" + "]" * 100 + "[0]" * 30 + " FROM c", [item])
    joins = " ".join(f"JOIN x{number} IN (SELECT VALUE [{number}])" for number in range(10))
    assert run(f"SELECT VALUE x9 FROM c {joins}", [item]) == [9]
    nested = "SELECT VALUE c.a = 5 AND (" + "c.a = 5 AND (" * 60 + "true" + ")" * 61 + " FROM c"
    assert run(nested, [item]) == [True]


def test_a_parameter_nested_too_deeply_is_refused(run: Run) -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    with pytest.raises(PleiadError, match="nested"):
        run("SELECT VALUE c.a = @deep FROM c", [{"a": 1}], {"@deep": deep})


# -- routing -------------------------------------------------------------------------------------

ROUTES: list[tuple[str, list[tuple[Any, ...]] | None]] = [
    ("c.k = 1", [(1,)]),
    ("1 = c.k", [(1,)]),
    ("c.k = @p", [("p",)]),
    ("c.k = 'a' AND c.x > 1", [("a",)]),
    ("c.k = 'a' OR c.x > 1", None),
    ("c.k = 'a' OR c.k = 'b'", [("a",), ("b",)]),
    ("c.k IN ('a', 'b', @p)", [("a",), ("b",), ("p",)]),
    ("c.k = 1 AND c.k = 2", []),
    ("c.k IN (1, 2) AND c.k IN (2.0, 3)", [(2,)]),
    ("c.k", [(True,)]),
    ("NOT c.k", [(False,)]),
    ("NOT (c.k != 3)", [(3,)]),
    ("NOT (c.k != 3 OR c.x = 1)", [(3,)]),
    ("IS_NULL(c.k)", [(None,)]),
    ("IS_BOOL(c.k)", [(False,), (True,)]),
    ("ABS(c.k) = 1", [(1,), (-1,)]),
    ("c.k LIKE 'a!%' ESCAPE '!'", [("a%",)]),
    ("c.k LIKE 'a%'", None),
    ("c.k > 1", None),
    ("c.k != 1", None),
    ("c['k'] = 1", [(1,)]),
    ("c.o.k = 1", None),
    ("c.k = {}", [(UNDEFINED,)]),
    ("false", []),
    ("true", None),
    ("c.k = undefined", []),
    ("ARRAY_CONTAINS([1, 2], c.k)", [(1,), (2,)]),
]


@pytest.mark.parametrize(("where", "expected"), ROUTES, ids=[where for where, _ in ROUTES])
def test_a_filter_names_its_partition_keys(
    limits: Limits, where: str, expected: list[tuple[Any, ...]] | None
) -> None:
    query = compile_query(f"SELECT * FROM c WHERE {where}", limits)
    assert key_values(query.plan, {"@p": "p"}, [("k",)]) == expected


HIERARCHY: list[tuple[str, list[tuple[Any, ...]] | None]] = [
    ("c.a = 1", [(1,)]),
    ("c.a = 1 AND c.b = 2", [(1, 2)]),
    ("c.a = 1 AND c.b = 2 AND c.d.e = 3", [(1, 2, 3)]),
    ("c.b = 2", None),
    ("c.a = 1 AND c.d.e = 3", [(1,)]),
    ("c.a IN (1, 2) AND c.b = 3", [(1, 3), (2, 3)]),
    ("(c.a = 1 AND c.b = 2) OR (c.a = 3 AND c.b = 4)", [(1, 2), (3, 4)]),
]


@pytest.mark.parametrize(("where", "expected"), HIERARCHY, ids=[where for where, _ in HIERARCHY])
def test_a_filter_names_prefixes_of_hierarchical_keys(
    limits: Limits, where: str, expected: list[tuple[Any, ...]] | None
) -> None:
    query = compile_query(f"SELECT * FROM c WHERE {where}", limits)
    assert key_values(query.plan, {}, [("a",), ("b",), ("d", "e")]) == expected


def test_a_list_longer_than_keys_are_told_names_none_of_them(limits: Limits) -> None:
    query = compile_query("SELECT * FROM c WHERE ARRAY_CONTAINS(@p, c.a)", limits)
    assert key_values(query.plan, {"@p": [1] * KEYS_MAX}, [("a",)]) == [(1,)]
    assert key_values(query.plan, {"@p": [1] * (KEYS_MAX + 1)}, [("a",)]) is None


def test_routing_never_loses_a_match(limits: Limits, context: QueryContext, generator: Any) -> None:
    for seed in range(1_500):
        made = generator.Generator(seed)
        items = made.items()
        where = made.expression(["c"])
        try:
            query = compile_query(f"SELECT * FROM c WHERE {where}", limits)
        except PleiadError:
            continue
        keys = key_values(query.plan, made.parameters, [("a",)])
        if keys is None:
            continue
        try:
            matched = query.run(items, made.parameters, context)
        except PleiadError:
            continue
        allowed = [json.dumps(key[0]) for key in keys]
        for item in matched:
            value = item["a"]
            shown = {json.dumps(value)}
            if type(value) in (int, float):
                shown |= {json.dumps(float(value)), json.dumps(int(value))}
            assert shown & set(allowed) or any(key[0] == value for key in keys), (where, item, keys)


# -- plan endpoint -------------------------------------------------------------------------------


def plan_of(text: str, limits: Limits, **options: Any) -> dict[str, Any]:
    return gateway_plan(compile_query(text, limits), {}, [("k",)], lambda keys: [{"keys": keys}], **options)


def test_a_plan_has_every_field_clients_read(limits: Limits) -> None:
    document = plan_of("SELECT * FROM c WHERE c.k = 1", limits)
    assert document["queryRanges"] == [{"keys": [(1,)]}]
    info = document["queryInfo"]
    lists = ("orderBy", "orderByExpressions", "groupByExpressions", "groupByAliases", "aggregates")
    assert all(info[name] == [] for name in lists)
    assert info["rewrittenQuery"] == ""
    assert info["distinctType"] == "None"


def test_a_plan_names_the_features_a_client_lacks(limits: Limits) -> None:
    with pytest.raises(PleiadError, match="GroupBy"):
        plan_of("SELECT c.a FROM c GROUP BY c.a", limits, features=["Aggregate"])
    plan_of("SELECT c.a FROM c ORDER BY c.a", limits, features=["OrderBy"])


def test_distinct_over_the_sort_key_is_ordered(limits: Limits) -> None:
    info = plan_of("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a", limits)["queryInfo"]
    assert info["distinctType"] == "Ordered"
    info = plan_of("SELECT DISTINCT VALUE c.b FROM c ORDER BY c.a", limits)["queryInfo"]
    assert info["distinctType"] == "Unordered"


def test_a_count_of_distinct_values_is_left_to_the_client(limits: Limits) -> None:
    info = plan_of("SELECT COUNT(1) AS n FROM (SELECT DISTINCT VALUE c.a FROM c)", limits)["queryInfo"]
    assert info["dCountInfo"] == {"dCountAlias": "n"}
    assert info["rewrittenQuery"] == "SELECT DISTINCT VALUE c.a\nFROM c"


def test_the_lines_of_a_subquery_in_let_stand_one_level_deeper(limits: Limits) -> None:
    info = plan_of("SELECT VALUE SUM(1) FROM c WHERE (LET v = c.b IN v = (SELECT VALUE 1))", limits)[
        "queryInfo"
    ]
    lines = ["WHERE (LET v = c.b IN ((v = (", "        SELECT VALUE 1", "    ))))"]
    assert info["rewrittenQuery"].splitlines()[2:] == lines


REWRITTEN = [
    "SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a",
    "SELECT VALUE AVG(c.n) FROM c",
    "SELECT VALUE MIN(c.n) FROM c WHERE c.n > 1",
    "SELECT c.n FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.s FROM c WHERE c.n > 1 ORDER BY c.n",
    "SELECT * FROM c OFFSET 1 LIMIT 2",
]


@pytest.mark.parametrize("text", REWRITTEN)
def test_a_rewritten_query_runs(run: Run, limits: Limits, text: str) -> None:
    rewritten = plan_of(text, limits)["queryInfo"]["rewrittenQuery"]
    rewritten = rewritten.replace("{documentdb-formattableorderbyquery-filter}", "true")
    assert run(rewritten, PARTITIONS[0])


# -- ranks ---------------------------------------------------------------------------------------

TEXTS = [
    {"id": "1", "_rid": "r1", "t": "a mountain bike", "v": [1, 0]},
    {"id": "2", "_rid": "r2", "t": "bike, bike and mountain", "v": [0, 1]},
    {"id": "3", "_rid": "r3", "t": "a kitchen table", "v": [0.9, 0.1]},
    {"id": "4", "_rid": "r4"},
]


def test_order_by_rank_puts_the_best_score_first(run: Run) -> None:
    text = "SELECT TOP 2 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.t, 'bike')"
    assert run(text, TEXTS) == ["2", "1"]
    with pytest.raises(PleiadError, match="SC2241"):
        run(text.replace("'bike'", "['bike']"), TEXTS)


def test_order_by_vector_distance_puts_the_nearest_first_and_the_unmeasurable_last(
    run: Run, limits: Limits
) -> None:
    text = "SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, @v)"
    assert run(text, TEXTS, {"@v": [1, 0]}) == ["1", "3", "2", "4"]
    policy = {"vectorEmbeddings": [{"path": "/v", "distanceFunction": "euclidean"}]}
    context = QueryContext(limits=limits, vector_policy=policy)
    assert run(text, TEXTS, {"@v": [0, 1]}, context) == ["2", "3", "1", "4"]


def test_rank_fusion_weighs_text_and_vector(run: Run) -> None:
    scores = "FullTextScore(c.t, 'bike'), VectorDistance(c.v, [1, 0])"
    text = f"SELECT VALUE c.id FROM c ORDER BY RANK RRF({scores}, {{}})"
    assert run(text.format("[1, 0.1]"), TEXTS)[0] == "2"
    assert run(text.format("[0.1, 1]"), TEXTS)[0] == "1"
    assert run(text.format("@w"), TEXTS, {"@w": [0.1, 1]})[0] == "1"
    with pytest.raises(PleiadError, match="SC2229"):
        run(text.format("[1]"), TEXTS)


def test_the_queries_of_a_hybrid_plan_run(run: Run, limits: Limits) -> None:
    text = (
        "SELECT TOP 2 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'bike'), VectorDistance(c.v, [1, 0]))"
    )
    info = plan_of(text, limits)["hybridSearchQueryInfo"]
    (statistics,) = run(info["globalStatisticsQuery"], TEXTS)
    assert statistics["documentCount"] == 4
    (words,) = statistics["fullTextStatistics"]
    assert words["hitCounts"] == [2]
    prefix = "{documentdb-formattablehybridsearchquery-"
    for component in info["componentQueryInfos"]:
        query = component["rewrittenQuery"]
        query = query.replace("{documentdb-formattableorderbyquery-filter}", "true")
        query = query.replace(f"{prefix}totaldocumentcount}}", "4")
        query = query.replace(f"{prefix}totalwordcount-0}}", str(words["totalWordCount"]))
        query = query.replace(f"{prefix}hitcountsarray-0}}", json.dumps(words["hitCounts"]))
        rows = run(query, TEXTS)
        assert len(rows) == 4
        assert {len(row["payload"]["componentScores"]) for row in rows} == {2}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT c.a FROM c GROUP BY c.a ORDER BY c.a DESC", [{"a": 2}, {"a": 1}]),
        ("SELECT VALUE o.k FROM c.o ORDER BY o.k", [0, 1, 2]),
        ("SELECT DISTINCT TOP 1 VALUE c.a FROM c ORDER BY c.a", [1, 1, 2]),
    ],
)
def test_a_rewritten_query_can_be_run(run: Run, limits: Limits, text: str, rows: list[Any]) -> None:
    items = [{"a": 2, "o": {"k": 1}}, {"a": 1, "o": {"k": 2}}, {"a": 1, "o": {"k": 0}}]
    info = plan_of(text, limits)["queryInfo"]
    rewritten = info["rewrittenQuery"].replace("{documentdb-formattableorderbyquery-filter}", "true")
    found = [row["payload"] for row in run(rewritten, items)]
    assert [
        row["payload"] if isinstance(row, dict) and "groupByItems" in row else row for row in found
    ] == rows


def test_a_cut_of_distinct_rows_is_left_to_the_client(limits: Limits) -> None:
    info = plan_of("SELECT DISTINCT c.a FROM c ORDER BY c.b OFFSET 1 LIMIT 2", limits)["queryInfo"]
    assert (info["offset"], info["limit"], info["distinctType"]) == (1, 2, "Unordered")
    assert "OFFSET" not in info["rewrittenQuery"]
    assert plan_of("SELECT DISTINCT TOP 5 c.a FROM c", limits)["queryInfo"]["rewrittenQuery"] == (
        "SELECT DISTINCT c.a\nFROM c"
    )


def test_the_least_and_the_greatest_of_nulls_are_null(run: Run) -> None:
    items = [{"v": None, "k": 1}, {"k": 1}, {"v": None, "k": 2}]
    assert run("SELECT VALUE MIN(c.v) FROM c", items) == [None]
    assert run("SELECT MAX(c.v) AS m FROM c GROUP BY c.k", items) == [{"m": None}, {"m": None}]


def test_a_query_without_items_that_asks_for_an_order_has_a_plan(limits: Limits, run: Run) -> None:
    assert run("SELECT VALUE 1 ORDER BY 1") == [1]
    assert plan_of("SELECT VALUE 1 ORDER BY 1", limits)["queryRanges"] == [{"keys": []}]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ("", ["1", "3", "2"]),
        (", [1, 0]", ["1", "3", "2"]),
        (", [0, 1]", ["3", "2", "1"]),
        (", [1, -1]", ["1", "2", "3"]),
    ],
)
def test_a_combined_score_is_the_weighted_sum_of_its_scores(
    run: Run, weights: str, expected: list[str]
) -> None:
    items = [
        {"id": "1", "t": "red red red blue", "s": "x"},
        {"id": "2", "t": "blue", "s": "red"},
        {"id": "3", "t": "green", "s": "red red red"},
    ]
    scores = "FullTextScore(c.t, 'red'), FullTextScore(c.s, 'red')"
    text = f"SELECT TOP 9 VALUE c.id FROM c ORDER BY RANK COMBINEDSCORE({scores}{weights})"
    assert run(text, items) == expected


def test_embeddings_are_refused_where_a_query_runs_and_the_text_says_why(run: Run) -> None:
    with pytest.raises(PleiadError) as raised:
        run("SELECT VALUE GENERATEEMBEDDINGS('a') FROM c", [{"id": "1"}])
    assert status_of(raised.value) == 400
    assert "GENERATEEMBEDDINGS" in raised.value.message
