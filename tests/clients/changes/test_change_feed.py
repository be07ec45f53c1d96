"""The change feed of latest versions, through the official client and on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from tests.stores import StartServer


@pytest.fixture
def container(pleiad_database: Any) -> Any:
    """Five physical partitions, so that a feed has several parts."""
    return pleiad_database.create_container("c", PartitionKey("/pk"), offer_throughput=30_000)


def write(container: Any, numbers: Iterator[int] | range) -> None:
    for number in numbers:
        container.upsert_item({"id": str(number), "pk": f"p{number % 7}", "n": number})


def ids(changes: Any) -> list[str]:
    return [change["id"] for change in changes]


def test_from_the_beginning_every_item_comes_once_at_its_last_version(container: Any) -> None:
    write(container, range(30))
    container.upsert_item({"id": "3", "pk": "p3", "n": 300})
    container.delete_item("4", "p4")
    changes = list(container.query_items_change_feed(start_time="Beginning"))
    assert sorted(ids(changes), key=int) == [str(number) for number in range(30) if number != 4]
    assert next(change["n"] for change in changes if change["id"] == "3") == 300


def test_changes_of_one_logical_partition_come_in_the_order_they_were_made(container: Any) -> None:
    for number in (1, 2, 3, 4):
        container.create_item({"id": str(number), "pk": "p"})
    container.upsert_item({"id": "2", "pk": "p", "again": True})
    changes = list(container.query_items_change_feed(start_time="Beginning", partition_key="p"))
    assert ids(changes) == ["1", "3", "4", "2"]
    assert [change["_lsn"] for change in changes] == sorted(change["_lsn"] for change in changes)


def test_a_continuation_gives_only_what_came_after_it(container: Any) -> None:
    write(container, range(20))
    assert len(list(container.query_items_change_feed(start_time="Beginning"))) == 20
    place = container.client_connection.last_response_headers["etag"]
    assert list(container.query_items_change_feed(continuation=place)) == []
    write(container, range(5, 8))
    assert sorted(ids(container.query_items_change_feed(continuation=place))) == ["5", "6", "7"]


def test_from_now_the_past_is_not_shown(container: Any) -> None:
    write(container, range(5))
    assert list(container.query_items_change_feed(start_time="Now")) == []
    place = container.client_connection.last_response_headers["etag"]
    write(container, range(5, 7))
    assert sorted(ids(container.query_items_change_feed(continuation=place))) == ["5", "6"]


def test_from_a_time_only_what_was_written_since_is_shown(container: Any) -> None:
    write(container, range(5))
    an_hour_ago, in_an_hour = (datetime.now(UTC) + timedelta(hours=hours) for hours in (-1, 1))
    assert len(list(container.query_items_change_feed(start_time=an_hour_ago))) == 5
    assert list(container.query_items_change_feed(start_time=in_an_hour)) == []


def test_the_feed_ranges_together_show_everything_once(container: Any) -> None:
    write(container, range(40))
    seen: list[str] = []
    ranges = list(container.read_feed_ranges())
    for feed_range in ranges:
        seen += ids(container.query_items_change_feed(start_time="Beginning", feed_range=feed_range))
    assert len(ranges) == 5
    assert sorted(seen, key=int) == [str(number) for number in range(40)]


def test_pages_are_as_small_as_asked_for(container: Any) -> None:
    write(container, range(25))
    pages = container.query_items_change_feed(start_time="Beginning", max_item_count=3).by_page()
    sizes = [len(list(page)) for page in pages]
    assert sum(sizes) == 25
    assert max(sizes) == 3


def test_the_items_of_one_batch_are_never_on_two_pages(container: Any) -> None:
    operations = [("create", ({"id": str(number), "pk": "p"},)) for number in range(10)]
    container.execute_item_batch(operations, partition_key="p")
    pages = container.query_items_change_feed(
        start_time="Beginning", partition_key="p", max_item_count=3
    ).by_page()
    assert [len(list(page)) for page in pages if page] == [10]


def test_a_place_in_the_feed_outlives_a_restart(tmp_path: Path, start_server: StartServer) -> None:
    with start_server(data=tmp_path) as server:
        database = CosmosClient(server.endpoint, server.key).create_database("d")
        container = database.create_container("c", PartitionKey("/pk"), offer_throughput=12_000)
        write(container, range(10))
        assert len(list(container.query_items_change_feed(start_time="Beginning"))) == 10
        place = container.client_connection.last_response_headers["etag"]
        write(container, range(10, 12))
    with start_server(data=tmp_path) as server:
        container = (
            CosmosClient(server.endpoint, server.key).get_database_client("d").get_container_client("c")
        )
        assert sorted(ids(container.query_items_change_feed(continuation=place))) == ["10", "11"]
