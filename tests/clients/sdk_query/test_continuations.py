"""Pages of a query go on from their tokens: with another client, after a restart, and never for another query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from tests.stores import StartServer

QUERIES = (
    "SELECT VALUE c.id FROM c",
    "SELECT VALUE c.id FROM c WHERE c.n > 3",
    "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
    "SELECT DISTINCT VALUE c.kind FROM c",
    "SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind",
    "SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 2 LIMIT 20",
    "SELECT TOP 17 VALUE c.id FROM c",
    "SELECT c.id, t FROM c JOIN t IN c.tags",
)


def fill(container: Any) -> None:
    for n in range(30):
        container.upsert_item(
            {
                "id": str(n),
                "pk": f"k{n}",
                "n": n % 11,
                "kind": f"g{n % 7}",
                "tags": [1, 2],
                "long": "é" * 4000,
            }
        )


def first_page(container: Any, text: str, **options: Any) -> tuple[list[Any], str | None]:
    options = {"enable_cross_partition_query": True, "max_item_count": 3, **options}
    pager = container.query_items(text, **options).by_page()
    return list(next(pager)), pager.continuation_token


def the_rest(container: Any, text: str, token: str | None, **options: Any) -> list[Any]:
    options = {"enable_cross_partition_query": True, "max_item_count": 4, **options}
    pager = container.query_items(text, **options).by_page(token)
    return [result for page in pager for result in page]


def test_pages_go_on_with_a_new_client_and_after_a_restart(tmp_path: Path, start_server: StartServer) -> None:
    begun: dict[str, tuple[list[Any], str | None]] = {}
    whole: dict[str, list[Any]] = {}
    with start_server(data=tmp_path / "data") as server:
        container = (
            CosmosClient(server.endpoint, server.key)
            .create_database("d")
            .create_container("c", PartitionKey("/pk"), offer_throughput=18_000)
        )
        fill(container)
        for text in QUERIES:
            whole[text] = list(
                container.query_items(text, enable_cross_partition_query=True, max_item_count=1_000)
            )
            begun[text] = first_page(container, text)
        fresh = CosmosClient(server.endpoint, server.key).get_database_client("d").get_container_client("c")
        for text, (results, token) in begun.items():
            assert token, text
            assert results + the_rest(fresh, text, token) == whole[text]
    with start_server(data=tmp_path / "data") as server:
        again = CosmosClient(server.endpoint, server.key).get_database_client("d").get_container_client("c")
        for text, (results, token) in begun.items():
            assert results + the_rest(again, text, token) == whole[text]


@pytest.fixture(scope="module")
def container(make_container: Any) -> Any:
    made = make_container([], partitions=3)
    fill(made)
    return made


def test_a_token_of_another_query_or_no_token_at_all_is_refused(container: Any, refused: Any) -> None:
    token = first_page(container, QUERIES[0])[1]
    for text, given in ((QUERIES[2], token), (QUERIES[0], "nonsense"), (QUERIES[0], str(token)[:-9])):
        with refused(400, "x-ms-continuation"):
            the_rest(container, text, given)


def test_a_client_may_limit_the_size_of_tokens(container: Any) -> None:
    text = "SELECT VALUE c.id FROM c ORDER BY c.long DESC"
    whole = list(container.query_items(text, enable_cross_partition_query=True, max_item_count=1_000))
    results, token = first_page(container, text, continuation_token_limit=1)
    assert token
    assert len(token) <= 1024
    assert results + the_rest(container, text, token, continuation_token_limit=1) == whole


def test_a_token_goes_on_inside_one_partition_key(make_container: Any) -> None:
    container = make_container([{"id": str(n), "pk": "p", "n": n} for n in range(12)], partitions=2)
    pager = container.query_items("SELECT VALUE c.n FROM c", partition_key="p", max_item_count=5).by_page()
    first = list(next(pager))
    rest = container.query_items("SELECT VALUE c.n FROM c", partition_key="p", max_item_count=5).by_page(
        pager.continuation_token
    )
    assert first + [n for page in rest for n in page] == list(range(12))
