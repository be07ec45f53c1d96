"""The indexing policy of the documents end to end, and the reports a client may ask for with a query."""

from __future__ import annotations

from typing import Any

import pytest
from azure.cosmos import PartitionKey

SAMPLE_POLICY = {
    "indexingMode": "consistent",
    "includedPaths": [
        {"path": "/docType/?"},
        {"path": "/workspaceId/?"},
        {"path": "/authorId/?"},
        {"path": "/slug/?"},
        {"path": "/email/?"},
        {"path": "/tags/[]"},
    ],
    "excludedPaths": [{"path": "/content/*"}, {"path": "/nodes/*"}],
    "compositeIndexes": [
        [{"path": "/docType", "order": "ascending"}, {"path": "/createdAt", "order": "descending"}],
        [
            {"path": "/workspaceId", "order": "ascending"},
            {"path": "/docType", "order": "ascending"},
            {"path": "/name", "order": "ascending"},
        ],
    ],
}


@pytest.fixture(scope="module")
def pages(make_container: Any) -> Any:
    """Documents under the sample policy."""
    made = [
        {
            "id": f"d{n}",
            "workspaceId": f"w{n % 3}",
            "docType": ["article", "note"][n % 2],
            "authorId": f"a{n % 4}",
            "slug": f"slug-{n}",
            "tags": [f"tag{n % 5}"],
            "createdAt": f"2024-02-{n + 1:02d}",
            "name": f"name {20 - n:02d}",
            "content": {"text": "long " * 20},
        }
        for n in range(20)
    ]
    return make_container(made, "/workspaceId", 2, indexing_policy=SAMPLE_POLICY)


@pytest.mark.requirement("R124", "R125")
def test_the_sample_policy_is_accepted_and_completed(pages: Any, ask: Any) -> None:
    policy = pages.read()["indexingPolicy"]
    included = {entry["path"] for entry in policy["includedPaths"]}
    excluded = {entry["path"] for entry in policy["excludedPaths"]}
    assert {"/docType/?", "/workspaceId/?", "/authorId/?", "/slug/?", "/email/?"} <= included
    assert any(path.startswith("/tags/[]") for path in included)
    assert {"/content/*", "/nodes/*"} <= excluded
    assert "/*" in included | excluded
    assert ask(pages, "SELECT VALUE c.id FROM c WHERE c.slug = 'slug-7'").results == ["d7"]
    tagged = ask(pages, "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 'tag3')")
    assert set(tagged.results) == {"d3", "d8", "d13", "d18"}


@pytest.mark.requirement("R126", "R128")
def test_the_first_composite_index_serves_a_filter_and_an_order(pages: Any, ask: Any) -> None:
    text = "SELECT * FROM c WHERE c.docType = @type ORDER BY c.docType ASC, c.createdAt DESC"
    found = ask(pages, text, {"@type": "note"}, max_item_count=3).results
    assert [item["id"] for item in found] == [f"d{n}" for n in range(19, 0, -2)]
    reverse = ask(pages, "SELECT VALUE c.id FROM c ORDER BY c.docType DESC, c.createdAt ASC").results
    assert reverse == [f"d{n}" for n in (*range(1, 20, 2), *range(0, 20, 2))]


@pytest.mark.requirement("R127", "R128")
def test_the_second_composite_index_serves_its_three_paths(pages: Any, ask: Any) -> None:
    text = "SELECT * FROM c ORDER BY c.workspaceId, c.docType, c.name"
    found = ask(pages, text, max_item_count=4).results
    assert found == sorted(found, key=lambda item: (item["workspaceId"], item["docType"], item["name"]))
    assert len(found) == 20


@pytest.mark.requirement("R126", "R127")
def test_an_order_of_several_paths_without_a_composite_index_is_refused(pages: Any, refused: Any) -> None:
    complaint = "The order by query does not have a corresponding composite index"
    for order in (
        "c.docType, c.createdAt",
        "c.docType, c.name",
        "c.workspaceId, c.docType",
        "c.slug, c.email",
    ):
        with refused(400, complaint):
            list(pages.query_items(f"SELECT * FROM c ORDER BY {order}", enable_cross_partition_query=True))


@pytest.mark.requirement("R124")
def test_an_order_by_a_path_that_is_not_indexed_is_refused(pages: Any, refused: Any) -> None:
    for path in ("c.content.text", "c.nodes.first"):
        with refused(400, "Order-by item requires a range index"):
            list(pages.query_items(f"SELECT * FROM c ORDER BY {path}", enable_cross_partition_query=True))


def test_the_metrics_of_a_query_count_what_it_loaded_and_gave(pages: Any, ask: Any) -> None:
    asked = ask(
        pages, "SELECT * FROM c WHERE c.docType = 'note'", partition_key="w1", populate_query_metrics=True
    )
    header = asked.headers[0]["x-ms-documentdb-query-metrics"]
    metrics = dict(pair.split("=") for pair in header.split(";"))
    assert int(metrics["outputDocumentCount"]) == len(asked.results) == 4
    assert int(metrics["retrievedDocumentCount"]) == 4
    assert float(metrics["totalExecutionTimeInMs"]) >= 0
    counted = ask(pages, "SELECT VALUE COUNT(1) FROM c", partition_key="w1", populate_query_metrics=True)
    header = counted.headers[0]["x-ms-documentdb-query-metrics"]
    assert "retrievedDocumentCount=0;" in header
    assert "retrievedDocumentSize=0;" in header


def test_the_index_metrics_name_the_indexes_used_and_missing(pages: Any, ask: Any) -> None:
    asked = ask(
        pages,
        "SELECT * FROM c WHERE c.slug = 'slug-1' AND c.name = 'name 02'",
        populate_index_metrics=True,
    )
    told = asked.headers[0]["x-ms-cosmos-index-utilization"]
    assert [index["IndexSpec"] for index in told["UtilizedSingleIndexes"]] == ["/slug/?"]
    assert [index["IndexSpec"] for index in told["PotentialSingleIndexes"]] == ["/name/?"]
    assert ask(pages, "SELECT * FROM c").headers[0].get("x-ms-cosmos-index-utilization") is None


def test_query_advice_names_costly_habits(pages: Any, ask: Any) -> None:
    asked = ask(pages, "SELECT * FROM c WHERE CONTAINS(c.name, 'name 1')", populate_query_advice=True)
    assert asked.headers[0]["x-ms-cosmos-query-advice"].startswith("QA1002: ")


def test_replacing_the_policy_changes_what_is_served(
    make_container: Any, query_database: Any, refused: Any
) -> None:
    container = make_container([{"id": str(n), "pk": "p", "a": n % 2, "b": n} for n in range(6)])
    text = "SELECT VALUE c.b FROM c ORDER BY c.a, c.b DESC"
    with refused(400, "composite index"):
        list(container.query_items(text, partition_key="p"))
    policy = container.read()["indexingPolicy"]
    policy["compositeIndexes"] = [
        [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]
    ]
    query_database.replace_container(container, PartitionKey("/pk"), indexing_policy=policy)
    assert list(container.query_items(text, partition_key="p")) == [4, 2, 0, 5, 3, 1]
