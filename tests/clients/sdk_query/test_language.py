"""The query language through the official client, over several physical partitions."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def shop(make_container: Any) -> Any:
    made = [
        {
            "id": f"p{n}",
            "pk": f"k{n % 8}",
            "price": n * 1.5,
            "kind": ["book", "toy", "tool"][n % 3],
            "tags": [f"t{n % 4}", "all"],
            "parts": [{"name": f"x{i}", "size": i} for i in range(n % 3)],
        }
        for n in range(30)
    ]
    return make_container(made, partitions=3)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("SELECT VALUE COUNT(1) FROM c", {}, [30]),
        ("SELECT VALUE SUM(c.price) FROM c", {}, [652.5]),
        ("SELECT VALUE AVG(c.price) FROM c WHERE c.kind = @kind", {"@kind": "toy"}, [21.75]),
        ("SELECT VALUE MIN(c.price) FROM c", {}, [0]),
        ("SELECT VALUE MAX(c.id) FROM c", {}, ["p9"]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.nothing = 1", {}, [0]),
        ("SELECT VALUE c.id FROM c ORDER BY c.price DESC OFFSET 2 LIMIT 3", {}, ["p27", "p26", "p25"]),
        ("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.price", {}, ["p0", "p1"]),
        ("SELECT TOP @top VALUE c.id FROM c ORDER BY c.price DESC", {"@top": 3}, ["p29", "p28", "p27"]),
        (
            "SELECT VALUE c.id FROM c ORDER BY c.price OFFSET @offset LIMIT @limit",
            {"@offset": 1, "@limit": 2},
            ["p1", "p2"],
        ),
        (
            "SELECT VALUE c.price + @more FROM c WHERE c.id IN (@a, @b) ORDER BY c.price",
            {"@more": 1, "@a": "p2", "@b": "p4"},
            [4, 7],
        ),
        ("SELECT VALUE p.name FROM c JOIN p IN c.parts WHERE c.id = 'p5'", {}, ["x0", "x1"]),
        (
            "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@ids, c.id) ORDER BY c.id",
            {"@ids": ["p1", "p3"]},
            ["p1", "p3"],
        ),
        ("SELECT VALUE @value", {"@value": {"deep": [1, None, True]}}, [{"deep": [1, None, True]}]),
        (
            "SELECT VALUE c.id FROM c WHERE c['price'] BETWEEN @low AND @high ORDER BY c.id",
            {"@low": 3, "@high": 5},
            ["p2", "p3"],
        ),
        (
            "SELECT VALUE EXISTS(SELECT VALUE p FROM p IN c.parts WHERE p.size = 1) FROM c WHERE c.id = 'p2'",
            {},
            [True],
        ),
    ],
)
def test_a_query_gives_this(
    shop: Any, ask: Any, text: str, values: dict[str, Any], expected: list[Any]
) -> None:
    assert ask(shop, text, values).results == expected


def test_distinct_values(shop: Any, ask: Any) -> None:
    assert sorted(ask(shop, "SELECT DISTINCT VALUE c.kind FROM c").results) == ["book", "tool", "toy"]
    ordered = ask(shop, "SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind DESC").results
    assert ordered == ["toy", "tool", "book"]


def test_groups_over_all_partitions(shop: Any, ask: Any) -> None:
    text = "SELECT c.kind, COUNT(1) AS n, SUM(c.price) AS total, MAX(c.price) AS most FROM c GROUP BY c.kind"
    found = {row["kind"]: row for row in ask(shop, text, max_item_count=1).results}
    assert found["book"] == {"kind": "book", "n": 10, "total": 202.5, "most": 40.5}
    assert found["tool"] == {"kind": "tool", "n": 10, "total": 232.5, "most": 43.5}
    assert len(found) == 3


def test_a_join_gives_a_row_for_each_element(shop: Any, ask: Any) -> None:
    rows = ask(
        shop, "SELECT c.id, t AS tag, p.size FROM c JOIN t IN c.tags JOIN p IN c.parts", max_item_count=7
    )
    assert len(rows.results) == sum(2 * (n % 3) for n in range(30))


def test_an_order_holds_over_all_partitions_and_pages(shop: Any, ask: Any) -> None:
    asked = ask(shop, "SELECT VALUE c.price FROM c ORDER BY c.price", max_item_count=4)
    assert asked.results == sorted(n * 1.5 for n in range(30))
    assert len(asked.headers) == 8


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELECT * FROM", "SC1002"),
        ("SELECT FROM c WHERE", "SC"),
        ("SELECT NOSUCHFUNCTION(c.a) FROM c", "SC2005"),
        ("SELECT * FROM c WHERE c.a = 'open", "SC"),
        ("SELECT TOP -1 * FROM c", "SC"),
        ("SELECT x.id FROM c", "SC2001"),
    ],
)
def test_a_bad_query_is_refused_with_the_services_error(
    shop: Any, refused: Any, text: str, complaint: str
) -> None:
    with refused(400, complaint):
        list(shop.query_items(text, enable_cross_partition_query=True))


def test_an_error_names_its_place_in_the_text(shop: Any, refused: Any) -> None:
    with refused(400, '"errors":[{"severity":"Error","location":{"start":'):
        list(shop.query_items("SELECT * FROM c WHERE ==", enable_cross_partition_query=True))


def test_a_cross_partition_aggregate_without_value_is_refused(shop: Any, refused: Any) -> None:
    with refused(400):
        list(shop.query_items("SELECT COUNT(1) FROM c", enable_cross_partition_query=True))


def test_the_plan_of_a_query_is_told_to_clients_that_merge_themselves(shop: Any) -> None:
    connection = shop.client_connection

    def plan(text: str) -> dict[str, Any]:
        found: dict[str, Any] = connection._GetQueryPlanThroughGateway(text, shop.container_link)
        return dict(found["queryInfo"])

    counted = plan("Select top 10 value count(c.id) from c")
    assert (counted["top"], counted["aggregates"], counted["hasSelectValue"]) == (10, ["Count"], True)
    window = plan("Select * from c order by c._ts offset 5 limit 10")
    assert (window["orderBy"], window["offset"], window["limit"]) == (["Ascending"], 5, 10)
    assert plan("Select distinct value c.id from c order by c.id")["distinctType"] == "Ordered"


def test_computed_properties_are_selected_filtered_and_ordered(make_container: Any, ask: Any) -> None:
    container = make_container(
        [{"id": f"{n}", "pk": f"k{n}", "name": name} for n, name in enumerate(("Ann", "BOB", "cid", "Dan"))],
        partitions=2,
        computed_properties=[
            {"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"},
            {"name": "age", "query": "SELECT VALUE c._ts FROM c"},
        ],
        indexing_policy={"includedPaths": [{"path": "/*"}, {"path": "/lower/?"}]},
    )
    assert ask(container, "SELECT VALUE c.id FROM c WHERE c.lower = 'bob'").results == ["1"]
    assert len(ask(container, "SELECT * FROM c WHERE c.age > 0").results) == 4
    ordered = ask(container, "SELECT VALUE c.lower FROM c ORDER BY c.lower DESC", max_item_count=1)
    assert ordered.results == ["dan", "cid", "bob", "ann"]
    assert "lower" not in ask(container, "SELECT * FROM c WHERE c.lower = 'bob'").results[0]
