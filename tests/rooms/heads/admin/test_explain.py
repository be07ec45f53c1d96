"""Queries explained without being run: why they go where they go, and where a mistake is."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pleiad.query.advice import SENTENCES
from pleiad.testing.start import RunningServer

from .test_api import names, send

_numbers = itertools.count(1)


@pytest.fixture
def wide(client: CosmosClient) -> ContainerProxy:
    """A container of four physical partitions, keyed /pk."""
    database = client.create_database(f"explain-{next(_numbers)}")
    return database.create_container("c", PartitionKey("/pk"), offer_throughput=20_000)


def explain(
    server: RunningServer, container: ContainerProxy, query: str, status: int = 200, **body: Any
) -> Any:
    database, name = names(container)
    path = f"/_pleiad/v1/dbs/{database}/colls/{name}/explain"
    found, answer = send(server, "POST", path, json.dumps({"query": query, **body}).encode())
    assert found == status, answer
    return answer


@pytest.mark.parametrize(
    ("query", "reason", "partitions", "more_ru"),
    [
        ("SELECT * FROM c", "no-filter", 4, 115.0),
        ("SELECT * FROM c WHERE c.n = 1", "key-not-in-filter", 4, 115.0),
        ("SELECT * FROM c WHERE c.pk > 'a'", "key-open", 4, 115.0),
        ("SELECT * FROM c WHERE c.pk = 'a' OR c.n = 1", "key-open", 4, 115.0),
        ("SELECT * FROM c WHERE c.pk = 'a'", "key-in-filter", 1, 0.0),
        ("SELECT * FROM c WHERE c.pk = 'a' AND c.id IN ('1', '2', '3')", "key-in-filter", 1, 0.0),
        ("SELECT VALUE COUNT(1) FROM c", "no-filter", 4, 115.0),
        ("SELECT * FROM c WHERE c.pk = 'a' AND c.pk = 'b'", "nothing-matches", 0, 0.0),
    ],
)
def test_the_reason_and_the_price_of_many_partitions_are_told(
    server: RunningServer, wide: ContainerProxy, query: str, reason: str, partitions: int, more_ru: float
) -> None:
    told = explain(server, wide, query)
    assert (told["reason"], len(told["partitions"])) == (reason, partitions)
    assert told["partitionCount"] == 4
    assert told["isSpread"] == (partitions > 1)
    assert told["atManyPartitions"]["ruMore"] == more_ru
    assert told["ruPerPartition"] == 2.5
    assert told["mistakes"] == []


def test_several_values_may_be_on_several_partitions(server: RunningServer, wide: ContainerProxy) -> None:
    told = explain(server, wide, "SELECT * FROM c WHERE ARRAY_CONTAINS(@keys, c.pk)",
                   parameters=[{"name": "@keys", "value": [f"k{number}" for number in range(20)]}])  # fmt: skip
    assert told["reason"] == "key-in-filter"
    assert "20 values of /pk" in told["why"]
    assert told["atManyPartitions"]["ruMore"] == 2.5 * (20 - len(told["partitions"]))


def test_what_is_told_is_where_the_query_goes(server: RunningServer, wide: ContainerProxy) -> None:
    for query in (
        "SELECT * FROM c",
        "SELECT * FROM c WHERE c.pk = 'x'",
        "SELECT * FROM c WHERE c.pk IN ('x', 'y')",
    ):
        told = explain(server, wide, query)
        seen: set[str] = set()

        def note(headers: Any, _: Any, seen: set[str] = seen) -> None:
            seen.update(headers.get("x-pleiad-partitions-visited", "").split(","))

        list(
            wide.query_items(
                query,
                enable_cross_partition_query=True,
                populate_query_metrics=True,
                response_hook=note,
            )
        )
        assert seen - {""} <= set(told["partitions"])


def test_a_key_beside_the_query_confines_it(server: RunningServer, wide: ContainerProxy) -> None:
    told = explain(server, wide, "SELECT * FROM c", partitionKey=["x"])
    assert (told["reason"], len(told["partitions"])) == ("key-given", 1)


def test_a_prefix_of_a_hierarchical_key_is_told_as_one(server: RunningServer, client: CosmosClient) -> None:
    database = client.create_database(f"explain-{next(_numbers)}")
    container = database.create_container("c", PartitionKey(["/t", "/u"], kind="MultiHash"))
    assert explain(server, container, "SELECT * FROM c WHERE c.t = 'a'")["reason"] == "key-prefix"
    assert explain(server, container, "SELECT * FROM c", partitionKey=["a"])["reason"] == "key-prefix"
    assert explain(server, container, "SELECT * FROM c", partitionKey=["a", "b"])["reason"] == "key-given"
    explain(server, container, "SELECT * FROM c", 400, partitionKey=["a", "b", "c"])


def test_the_place_of_a_mistake_is_told_by_line_and_column(
    server: RunningServer, wide: ContainerProxy
) -> None:
    text = "SELECT c.id,\n       c.name\nFORM c -- é"
    (mistake,) = explain(server, wide, text)["mistakes"]
    assert mistake["code"] == "SC1001"
    assert (mistake["line"], mistake["column"]) == (3, 6)
    assert text[mistake["start"] : mistake["end"]] == "c"
    assert (mistake["endLine"], mistake["endColumn"]) == (3, 7)
    told = explain(server, wide, "SELECT * FROM c WHERE unknown(c.x) AND d.x = 1")
    assert {"mistakes"} == set(told)
    assert len(told["mistakes"]) >= 1
    assert all(each["message"] for each in told["mistakes"])


def test_advice_and_indexes_are_data(server: RunningServer, wide: ContainerProxy) -> None:
    told = explain(server, wide, "SELECT * FROM c WHERE CONTAINS(c.name, 'x') AND c.a = 1 AND c.b > 2")
    assert told["advice"] == [{"id": "QA1002", "sentence": SENTENCES["QA1002"]}]
    assert {"paths": ["/a/?"], "isComposite": False} in told["indexes"]["used"]
    composite = [each for each in told["indexes"]["missing"] if each["isComposite"]]
    assert composite
    assert composite[0]["impact"] == "High"


@pytest.mark.parametrize(
    "body",
    [
        {"query": 1},
        {"query": None},
        {"parameters": {}},
        {"query": "SELECT 1", "partitionKey": "x"},
        {"query": "SELECT 1", "partitionKey": [[1]]},
        {"query": "SELECT 1", "other": 1},
        {"query": "SELECT 1", "parameters": [1]},
    ],
    ids=str,
)
def test_what_is_no_question_is_refused(server: RunningServer, wide: ContainerProxy, body: Any) -> None:
    database, name = names(wide)
    path = f"/_pleiad/v1/dbs/{database}/colls/{name}/explain"
    assert send(server, "POST", path, json.dumps(body).encode())[0] == 400


WORDS = st.sampled_from(
    [
        "SELECT",
        "VALUE",
        "TOP",
        "5",
        "*",
        "FROM",
        "c",
        "WHERE",
        "c.pk",
        "=",
        "'a'",
        "@p",
        "AND",
        "OR",
        "NOT",
        "IN",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".",
        ":",
        "?",
        "ORDER",
        "BY",
        "GROUP",
        "DISTINCT",
        "JOIN",
        "t",
        "c.tags",
        "EXISTS",
        "1",
        "-1",
        "1e999",
        '"x"',
        "'unended",
        "udf.f",
        "COUNT",
        "STARTSWITH",
        "LIKE",
        "%",
        "\\",
        "\n",
        "--",
        "é",
        "🙂",
        "\x00",
    ]
)


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(words=st.lists(WORDS, max_size=14))
def test_any_text_is_explained_or_its_mistakes_are(
    server: RunningServer, container: ContainerProxy, words: list[str]
) -> None:
    text = " ".join(words)
    told = explain(server, container, text, parameters=[{"name": "@p", "value": 3}])
    assert bool(told["mistakes"]) == ("why" not in told)
    for mistake in told["mistakes"]:
        if "start" in mistake:
            assert 0 <= mistake["start"] <= mistake["end"] <= len(text)
            assert 1 <= mistake["line"] <= mistake["endLine"] <= text.count("\n") + 1
