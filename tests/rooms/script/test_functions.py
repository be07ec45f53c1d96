"""User-defined functions in queries."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import DatabaseProxy, PartitionKey

from tests.rooms.script.conftest import Refused, Scripted


@pytest.fixture
def taxed(pleiad_database: DatabaseProxy) -> Scripted:
    """Twelve items over several physical partitions, and functions."""
    container = pleiad_database.create_container("taxed", PartitionKey("/pk"), offer_throughput=12_000)
    scripted = Scripted(container)
    for number in range(12):
        container.create_item({"id": str(number), "pk": f"pk{number}", "n": number, "team": number % 3})
    for id, body in {
        "tax": "function tax(n) { if (n < 4) return n; return n * 2; }",
        "kind": "function (value) { return value === undefined ? 'nothing' : typeof value; }",
        "nothing": "function () {}",
        "nan": "function () { return 0 / 0; }",
        "echo": "function (value) { return value; }",
        "fail": "function (n) { throw new Error('no ' + n); }",
        "endless": "function () { while (true); }",
    }.items():
        scripted.scripts.create_user_defined_function({"id": id, "body": body})
    return scripted


def ask(scripted: Scripted, query: str, **options: Any) -> list[Any]:
    return list(scripted.container.query_items(query, enable_cross_partition_query=True, **options))


@pytest.mark.parametrize(
    ("query", "results"),
    [
        ("SELECT VALUE udf.tax(21)", [42]),
        ("SELECT VALUE c.n FROM c WHERE udf.tax(c.n) > 18 ORDER BY c.n", [10, 11]),
        ("SELECT VALUE udf.tax(c.n) FROM c WHERE c.n IN (1, 5) ORDER BY c.n DESC", [10, 1]),
        ("SELECT VALUE SUM(udf.tax(c.n)) FROM c", [2 * sum(range(12)) - 6]),
        ("SELECT VALUE COUNT(1) FROM c WHERE udf.tax(c.n) = c.n", [4]),
        ("SELECT DISTINCT VALUE udf.echo(c.team) FROM c", [0, 1, 2]),
        ("SELECT VALUE udf.kind(c.absent) FROM c WHERE c.n = 0", ["nothing"]),
        ("SELECT VALUE udf.kind(null) FROM c WHERE c.n = 0", ["object"]),
        ("SELECT VALUE IS_DEFINED(udf.nothing()) FROM c WHERE c.n = 0", [False]),
        ("SELECT VALUE IS_DEFINED(udf.nan()) FROM c WHERE c.n = 0", [False]),
        ("SELECT VALUE udf.echo({a: [1, 'é', null, 1.5]}) FROM c WHERE c.n = 0", [{"a": [1, "é", None, 1.5]}]),
        ("SELECT VALUE udf.tax(udf.tax(c.n)) FROM c WHERE c.id = '5'", [20]),
        ("SELECT c.team, COUNT(1) AS many FROM c WHERE udf.tax(c.n) < 4 GROUP BY c.team",
         [{"team": 0, "many": 2}, {"team": 1, "many": 1}, {"team": 2, "many": 1}]),
    ],
)  # fmt: skip
def test_functions_are_called_wherever_an_expression_stands(
    taxed: Scripted, query: str, results: list[Any]
) -> None:
    found = ask(taxed, query)
    if "ORDER BY" not in query:
        found.sort(key=str)
    assert found == results


def test_a_function_that_does_not_exist_is_a_400_where_it_is_called(
    taxed: Scripted, refused: Refused
) -> None:
    """The service looks for it when there is an item to call it for."""
    assert ask(taxed, "SELECT VALUE udf.absent(1) FROM c WHERE c.n > 1000") == []
    for query in ("SELECT VALUE udf.absent(c.n) FROM c", "SELECT * FROM c WHERE udf.absent(c.n) = 1"):
        with refused(400, None, "no user-defined function 'absent'"):
            ask(taxed, query)
    with refused(400, None, "Error: no 1"):
        ask(taxed, "SELECT VALUE udf.fail(c.n) FROM c WHERE c.n = 1")
    with refused(400):
        ask(taxed, "SELECT VALUE " + " + ".join(f"udf.tax({n})" for n in range(11)))


def test_pages_with_functions_hold_together_and_their_charges_add_up(taxed: Scripted) -> None:
    query = "SELECT VALUE udf.tax(c.n) FROM c WHERE udf.tax(c.n) >= 0"
    charges = []
    for size in (100, 5):
        pages = taxed.container.query_items(
            query, enable_cross_partition_query=True, max_item_count=size
        ).by_page()
        found: list[Any] = []
        charged = 0.0
        for page in pages:
            found += list(page)
            charged += float(taxed.headers["x-ms-request-charge"])
        assert sorted(found) == sorted(n if n < 4 else 2 * n for n in range(12))
        charges.append(round(charged, 2))
    assert charges[0] == charges[1]


def test_each_function_named_adds_to_the_charge(taxed: Scripted) -> None:
    ask(taxed, "SELECT VALUE c.n FROM c WHERE c.n >= 0", partition_key="pk1")
    plain_ru = float(taxed.headers["x-ms-request-charge"])
    ask(taxed, "SELECT VALUE udf.echo(c.n) FROM c WHERE c.n >= 0", partition_key="pk1")
    assert float(taxed.headers["x-ms-request-charge"]) == pytest.approx(plain_ru + 0.02, abs=0.006)


def test_a_changed_function_counts_from_the_next_query_on(taxed: Scripted) -> None:
    query = "SELECT VALUE udf.echo(1)"
    assert ask(taxed, query) == [1]
    taxed.scripts.replace_user_defined_function(
        "echo", {"id": "echo", "body": "function () { return 'new'; }"}
    )
    assert ask(taxed, query) == ["new"]
    taxed.scripts.delete_user_defined_function("echo")
    with pytest.raises(Exception, match="no user-defined function"):
        ask(taxed, query)


def test_functions_share_no_state_between_queries(taxed: Scripted) -> None:
    taxed.scripts.create_user_defined_function(
        {
            "id": "count",
            "body": "function () { globalThis.calls = (globalThis.calls || 0) + 1; return calls; }",
        }
    )
    for _ in range(3):
        assert ask(taxed, "SELECT VALUE udf.count()") == [1]
