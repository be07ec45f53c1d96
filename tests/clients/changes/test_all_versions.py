"""The change feed of all versions and deletes, through the official client and on the wire."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from tests.stores import StartServer
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.clients.changes.conftest import FeedWire

POLICY = {"retentionDuration": 10}


@pytest.fixture
def container(pleiad_database: Any) -> Any:
    """Two physical partitions that keep every change for ten minutes."""
    return pleiad_database.create_container(
        "kept", PartitionKey("/pk"), offer_throughput=12_000, change_feed_policy=POLICY
    )


def read_all(container: Any, **start: Any) -> tuple[list[dict[str, Any]], str]:
    changes = list(container.query_items_change_feed(mode="AllVersionsAndDeletes", **start))
    return changes, container.client_connection.last_response_headers["etag"]


def what_happened(entry: dict[str, Any]) -> tuple[str, Any, Any]:
    """The operation, and the number in the item before, where it is told, and after."""
    before = entry["previous"].get("n") if "previous" in entry else None
    return entry["metadata"]["operationType"], before, entry["current"].get("n")


def test_creates_replaces_patches_and_deletes_come_in_order_and_deletes_with_the_item_before(
    container: Any,
) -> None:
    nothing, place = read_all(container)
    assert nothing == []
    container.create_item({"id": "x", "pk": "a", "n": 1})
    container.upsert_item({"id": "x", "pk": "a", "n": 2})
    container.patch_item("x", "a", [{"op": "incr", "path": "/n", "value": 1}])
    container.replace_item("x", {"id": "x", "pk": "a", "n": 4})
    container.delete_item("x", "a")
    container.create_item({"id": "x", "pk": "a", "n": 5})
    changes, place = read_all(container, continuation=place)
    assert list(map(what_happened, changes)) == [
        ("create", None, 1),
        ("replace", None, 2),
        ("replace", None, 3),
        ("replace", None, 4),
        ("delete", 4, None),
        ("create", None, 5),
    ]
    told = [entry["metadata"] for entry in changes]
    assert [each.get("previousImageLSN") for each in told[1:5]] == [each["lsn"] for each in told[:4]]
    assert read_all(container, continuation=place)[0] == []


def test_the_metadata_say_what_happened_to_which_item(container: Any) -> None:
    _, place = read_all(container)
    created = container.create_item({"id": "x", "pk": "a", "n": 1})
    container.delete_item("x", "a")
    (creation, deletion), _ = read_all(container, continuation=place)
    assert creation["current"] == dict(created)
    assert "previous" not in creation
    assert creation["metadata"] == {
        "operationType": "create",
        "lsn": creation["metadata"]["lsn"],
        "crts": created["_ts"],
    }
    assert deletion["current"] == {}
    assert deletion["previous"] == dict(created)
    metadata = deletion["metadata"]
    assert abs(metadata.pop("crts") - created["_ts"]) <= 5
    assert metadata == {
        "operationType": "delete",
        "lsn": creation["metadata"]["lsn"] + 1,
        "previousImageLSN": creation["metadata"]["lsn"],
        "timeToLiveExpired": False,
        "id": "x",
        "partitionKey": {"pk": "a"},
    }


def test_a_batch_and_a_deleted_logical_partition_are_in_the_feed(container: Any) -> None:
    _, place = read_all(container)
    operations = [("create", ({"id": str(n), "pk": "a", "n": n},)) for n in range(3)]
    container.execute_item_batch([*operations, ("delete", ("1",))], partition_key="a")
    container.delete_all_items_by_partition_key("a")
    changes, _ = read_all(container, continuation=place, max_item_count=1)
    assert [entry["metadata"]["operationType"] for entry in changes] == ["create"] * 3 + ["delete"] * 3
    assert len({entry["metadata"]["lsn"] for entry in changes[:4]}) == 1, "a batch is one write"
    assert [entry["metadata"]["id"] for entry in changes[3:]] == ["1", "0", "2"]


def test_one_partition_key_and_one_feed_range_show_only_their_own(container: Any) -> None:
    _, place_of_a = read_all(container, partition_key="a")
    ranges = list(container.read_feed_ranges())
    places = [read_all(container, feed_range=each)[1] for each in ranges]
    for key in "abcdefgh":
        container.create_item({"id": key, "pk": key})
        container.delete_item(key, key)
    changes, _ = read_all(container, continuation=place_of_a)
    assert [entry["metadata"]["operationType"] for entry in changes] == ["create", "delete"]
    assert changes[0]["current"]["id"] == "a"
    parts = [read_all(container, continuation=place)[0] for place in places]
    assert len(ranges) == 2
    assert all(parts), "both ranges have keys"
    assert sum(map(len, parts)) == 16


def test_expired_items_leave_the_feed_as_deletes(pleiad_database: Any) -> None:
    container = pleiad_database.create_container(
        "expiring", PartitionKey("/pk"), default_ttl=-1, change_feed_policy=POLICY
    )
    _, place = read_all(container)
    container.create_item({"id": "swept", "pk": "a", "ttl": 1})
    container.create_item({"id": "stays", "pk": "a"})
    found: list[dict[str, Any]] = []

    def is_deleted() -> bool:
        nonlocal place, found
        changes, place = read_all(container, continuation=place)
        found += changes
        return bool(found) and found[-1]["metadata"]["operationType"] == "delete"

    assert wait_until(is_deleted)
    assert [entry["metadata"]["operationType"] for entry in found] == ["create", "create", "delete"]
    assert found[-1]["metadata"]["timeToLiveExpired"] is True
    assert found[-1]["metadata"]["id"] == found[-1]["previous"]["id"] == "swept"


def test_a_place_and_the_versions_behind_it_outlive_a_restart(
    tmp_path: Path, start_server: StartServer
) -> None:
    with start_server(data=tmp_path) as server:
        database = CosmosClient(server.endpoint, server.key).create_database("d")
        container = database.create_container("c", PartitionKey("/pk"), change_feed_policy=POLICY)
        _, place = read_all(container)
        container.create_item({"id": "x", "pk": "a", "n": 1})
        container.delete_item("x", "a")
    with start_server(data=tmp_path) as server:
        client = CosmosClient(server.endpoint, server.key)
        container = client.get_database_client("d").get_container_client("c")
        changes, _ = read_all(container, continuation=place)
        assert list(map(what_happened, changes)) == [("create", None, 1), ("delete", 1, None)]


def test_without_a_policy_the_feed_says_that_it_must_be_enabled(pleiad_database: Any) -> None:
    for number, policy in enumerate((None, {"retentionDuration": 0})):
        container = pleiad_database.create_container(
            f"c{number}", PartitionKey("/pk"), change_feed_policy=policy
        )
        with pytest.raises(CosmosHttpResponseError) as caught:
            read_all(container)
        assert caught.value.status_code == 400
        assert "All Versions and Deletes" in str(caught.value)
        assert "must be enabled" in str(caught.value)


def test_the_feed_starts_from_now_or_a_continuation_only(container: Any, wire: FeedWire) -> None:
    link = container.container_link
    beginning = wire.get(link, A_IM="Full-Fidelity Feed")
    assert (beginning.status, "from the beginning" in beginning.message) == (400, True)
    assert "FullFidelity Change Feed must have valid If-None-Match header." in beginning.message
    assert "You must read the change feed from within the retention period." in beginning.message
    a_time = wire.all_versions(link, If_Modified_Since="Thu, 01 Jan 2026 00:00:00 GMT")
    assert (a_time.status, "from a time" in a_time.message) == (400, True)
    assert wire.all_versions(link).status == 304


def test_foreign_forged_and_mixed_up_places_are_refused(
    container: Any, pleiad_database: Any, wire: FeedWire
) -> None:
    other = pleiad_database.create_container("other", PartitionKey("/pk"), change_feed_policy=POLICY)
    link = container.container_link
    good = wire.all_versions(link).place
    latest = wire.get(link, If_None_Match="*").place
    of_one_range = wire.all_versions(link, x_ms_documentdb_partitionkeyrangeid="0").place
    refused = [
        wire.all_versions(link, wire.all_versions(other.container_link).place),
        wire.all_versions(link, good[:40] + ("x" if good[40] != "x" else "y") + good[41:]),
        wire.all_versions(link, good[:-8] + '"'),
        wire.all_versions(link, '"7"'),
        wire.all_versions(link, latest),
        wire.all_versions(link, of_one_range),
        wire.all_versions(link, "\u00e9"),
        wire.get(link, If_None_Match=good),
        wire.all_versions(link, x_ms_cosmos_changefeed_wire_format_version="2017-01-01"),
        wire.get(link, A_IM="Everything"),
    ]
    assert [reply.status for reply in refused] == [400] * len(refused)
    assert wire.all_versions(link, good, x_ms_documentdb_partitionkeyrangeid="1").status == 304
    gone = wire.all_versions(link, good, x_ms_documentdb_partitionkeyrangeid="7")
    assert (gone.status, gone.headers["x-ms-substatus"]) == (410, "1002")


@pytest.mark.parametrize(
    "policy",
    [{"retentionDuration": -1}, {"retentionDuration": "5"}, {"retentionDuration": 43_201}, {}, [], 5],
)
def test_a_policy_that_makes_no_sense_is_refused(pleiad_database: Any, policy: Any) -> None:
    with pytest.raises(CosmosHttpResponseError) as caught:
        pleiad_database.create_container("c", PartitionKey("/pk"), change_feed_policy=policy)
    assert caught.value.status_code == 400
    assert "retentionDuration" in str(caught.value)


def test_a_renamed_item_is_one_change(container: Any) -> None:
    _, place = read_all(container)
    container.create_item({"id": "x", "pk": "a", "n": 1})
    container.replace_item("x", {"id": "y", "pk": "a", "n": 2})
    (_, renamed), _ = read_all(container, continuation=place)
    assert what_happened(renamed) == ("replace", None, 2)
    assert renamed["current"]["id"] == "y"


def test_a_hierarchical_key_is_told_level_by_level_and_a_prefix_is_a_scope(
    pleiad_database: Any, wire: FeedWire
) -> None:
    container = pleiad_database.create_container(
        "levels",
        PartitionKey(["/tenant", "/address/city"], kind="MultiHash"),
        offer_throughput=12_000,
        change_feed_policy=POLICY,
    )
    link = container.container_link
    scope: dict[str, Any] = {"x_ms_documentdb_partitionkey": '["t1"]'}
    place = wire.all_versions(link, **scope).place
    for tenant, city in (("t1", "Oslo"), ("t1", "Lima"), ("t2", "Oslo")):
        container.create_item({"id": "x", "tenant": tenant, "address": {"city": city}})
        container.delete_item("x", [tenant, city])
    entries = wire.all_versions(link, place, **scope).entries
    keys = [entry["metadata"].get("partitionKey") for entry in entries]
    told = [key for key in keys if key is not None]
    assert len(entries) == 4
    assert sorted(told, key=str) == [
        {"tenant": "t1", "address/city": "Lima"},
        {"tenant": "t1", "address/city": "Oslo"},
    ]


def test_the_charge_counts_both_images(container: Any, wire: FeedWire) -> None:
    place = wire.all_versions(container.container_link).place
    container.create_item({"id": "x", "pk": "a", "text": "x" * 30_000})
    created = wire.all_versions(container.container_link, place)
    container.upsert_item({"id": "x", "pk": "a", "text": "y" * 30_000})
    replaced = wire.all_versions(container.container_link, created.place)
    charges = [float(reply.headers["x-ms-request-charge"]) for reply in (created, replaced)]
    assert charges[1] > charges[0] > 2
