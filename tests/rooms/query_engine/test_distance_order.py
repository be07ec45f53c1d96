"""Pages of a query ordered by vector distance: together they are the whole result, nearest first."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import PartitionKey


@pytest.mark.parametrize("measure", ["cosine", "euclidean", "dotproduct"])
def test_pages_ordered_by_distance_lose_nothing(pleiad_database: Any, measure: str) -> None:
    embedding = {"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": measure}
    container = pleiad_database.create_container(
        measure,
        PartitionKey("/pk"),
        vector_embedding_policy={"vectorEmbeddings": [embedding]},
        offer_throughput=12_000,
    )
    for number in range(30):
        container.create_item({"id": str(number), "pk": str(number % 5), "v": [number, 1]})
    text = "SELECT TOP 30 c.id, VectorDistance(c.v, [3, 4]) AS s FROM c ORDER BY VectorDistance(c.v, [3, 4])"

    def run(page_items: int) -> list[Any]:
        found: list[Any] = []
        for key in range(5):
            found += container.query_items(text, partition_key=str(key), max_item_count=page_items)
        return found

    whole = run(100)
    assert len(whole) == 30
    scores = [result["s"] for result in whole[:6]]
    assert scores == sorted(scores, reverse=measure != "euclidean")
    assert run(2) == whole
    merged = list(container.query_items(text, enable_cross_partition_query=True))
    assert sorted(result["id"] for result in merged) == sorted(result["id"] for result in whole)


def test_pages_ordered_by_the_distance_of_geometries_lose_nothing(pleiad_database: Any) -> None:
    container = pleiad_database.create_container("places", PartitionKey("/pk"), offer_throughput=12_000)
    for number in range(12):
        place = {"type": "Point", "coordinates": [(number * 5) % 12, 0]}
        container.create_item({"id": str(number), "pk": str(number % 5), "at": place})
    text = (
        "SELECT VALUE c.id FROM c ORDER BY ST_DISTANCE(c.at, {type: 'Point', coordinates: [0, 0]})"
        " OFFSET 0 LIMIT 20"
    )
    found = list(container.query_items(text, enable_cross_partition_query=True, max_item_count=3))
    assert found == [str(number * 5 % 12) for number in range(12)]
