"""A change feed with a query: only changes that pass it are told, and the place moves on over all of them."""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest
from azure.cosmos import PartitionKey

if TYPE_CHECKING:
    from tests.clients.changes.conftest import FeedWire

EVEN = {"query": "SELECT * FROM c WHERE c.n % @two = 0", "parameters": [{"name": "@two", "value": 2}]}


@pytest.fixture
def container(pleiad_database: Any) -> Any:
    """Two physical partitions that keep every change for ten minutes."""
    return pleiad_database.create_container(
        "kept", PartitionKey("/pk"), offer_throughput=12_000, change_feed_policy={"retentionDuration": 10}
    )


def test_a_query_filters_the_latest_versions(container: Any, wire: FeedWire) -> None:
    for number in range(12):
        container.create_item({"id": str(number), "pk": f"p{number}", "n": number})
    link, told, place = container.container_link, [], ""
    while True:
        page = wire.get(link, EVEN, x_ms_max_item_count="2", **({"If_None_Match": place} if place else {}))
        place = page.place
        if page.status == 304:
            break
        assert len(page.entries) <= 2
        told += [entry["n"] for entry in page.entries]
    assert sorted(told) == [0, 2, 4, 6, 8, 10]
    container.create_item({"id": "odd", "pk": "p", "n": 13})
    nothing = wire.get(link, EVEN, If_None_Match=place)
    assert (nothing.status, nothing.body) == (304, b"")
    assert nothing.place != place
    container.create_item({"id": "even", "pk": "p", "n": 14})
    assert [entry["id"] for entry in wire.get(link, EVEN, If_None_Match=nothing.place).entries] == ["even"]


def test_a_query_filters_all_versions_by_the_item_as_it_is_or_was(container: Any, wire: FeedWire) -> None:
    link = container.container_link
    start = wire.all_versions(link).place
    container.create_item({"id": "a", "pk": "p", "n": 2})
    container.upsert_item({"id": "a", "pk": "p", "n": 3})
    container.upsert_item({"id": "a", "pk": "p", "n": 5})
    container.create_item({"id": "b", "pk": "p", "n": 7})
    container.upsert_item({"id": "b", "pk": "p", "n": 8})
    container.delete_item("b", "p")

    def told(**more: Any) -> list[tuple[str, str]]:
        page = wire.all_versions(link, start, {**EVEN, **more})
        return [(each["metadata"]["operationType"], each["current"].get("id", "")) for each in page.entries]

    assert told() == told(enableQueryOnPreviousImage=False) == [("create", "a"), ("replace", "b")]
    assert told(enableQueryOnPreviousImage=True) == [
        ("create", "a"),
        ("replace", "a"),
        ("replace", "b"),
        ("delete", ""),
    ]
    end = wire.all_versions(link, start).place
    assert wire.all_versions(link, end, EVEN).status == 304


@pytest.mark.parametrize(
    "text",
    [
        "SELECT c.id FROM c",
        "SELECT * FROM c ORDER BY c.n",
        "SELECT TOP 1 * FROM c",
        "SELECT COUNT(1) FROM c",
        "SELECT * FROM c WHERE udf.f(c)",
        "SELECT * FROM",
    ],
)
def test_a_query_that_is_no_filter_is_refused(container: Any, wire: FeedWire, text: str) -> None:
    assert wire.get(container.container_link, {"query": text}).status == 400


def test_a_time_leaves_out_what_was_written_at_it(container: Any, wire: FeedWire) -> None:
    item = container.create_item({"id": "a", "pk": "p"})
    link = container.container_link
    at, before = (formatdate(item["_ts"] - seconds, usegmt=True) for seconds in (0, 1))
    assert wire.get(link, If_Modified_Since=at).status == 304
    assert [entry["id"] for entry in wire.get(link, If_Modified_Since=before).entries] == ["a"]
