"""Warnings: logical partitions that come near their limit, in the log and over the admin API."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from pleiad.limits import PROFILES

KB = 1024


@pytest.fixture
def small(run: Callable[..., Any]) -> Any:
    """A node whose logical partitions hold 20 KB, with a container keyed /airport."""
    running = run(limits=PROFILES["tiny"])
    client = CosmosClient(running.server.endpoint, running.server.key)
    running.container = client.create_database("d").create_container("flights", PartitionKey("/airport"))
    return running


def warnings(running: Any) -> list[dict[str, Any]]:
    with Connection(running.server.endpoint, running.server.key) as connection:
        return Admin(connection).warnings()


def grow(running: Any, airport: str, size_bytes: int) -> None:
    """One item that makes the logical partition exactly that large."""
    item = {"id": "1", "airport": airport, "text": ""}
    item["text"] = "x" * (size_bytes - len(json.dumps(item, separators=(",", ":"))))
    running.container.upsert_item(item)


@pytest.mark.requirement("R26")
def test_a_warning_comes_at_70_percent_gets_worse_at_80_and_goes_when_there_is_room(
    small: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pleiad.warning")
    limit = PROFILES["tiny"].logical_partition_bytes
    grow(small, "AMS", limit // 10)
    grow(small, "LAX", limit * 69 // 100)
    assert warnings(small) == []
    grow(small, "LAX", -(-limit * 70 // 100))
    (warning,) = warnings(small)
    assert (warning["kind"], warning["database"], warning["container"], warning["partition"]) == (
        "logical-partition-size", "d", "flights", "0",
    )  # fmt: skip
    assert warning["key"] == '["LAX"]'
    assert warning["values"]["percent"] == 70.0
    assert "20 KB" in warning["message"]
    grow(small, "LAX", limit * 75 // 100)
    assert warnings(small)[0]["values"]["percent"] == 75.0
    grow(small, "LAX", limit * 80 // 100)
    assert warnings(small)[0]["since"] == warning["since"]
    lines = [record.getMessage() for record in caplog.records if record.name == "pleiad.warning"]
    assert [fields(line)["percent"] for line in lines] == [70.0, 80.0], "one line a level"
    assert fields(lines[0]) == {
        "kind": "logical-partition-size",
        "container": "d/flights",
        "partition": "0",
        "key": '["LAX"]',
        "bytes": -(-limit * 70 // 100),
        "limit": limit,
        "percent": 70.0,
    }
    grow(small, "LAX", limit // 2)
    assert warnings(small) == []


def fields(line: str) -> dict[str, Any]:
    """A log line as names and JSON values."""
    found, rest = {}, line
    while rest:
        name, _, rest = rest.partition("=")
        found[name], end = json.JSONDecoder().raw_decode(rest)
        rest = rest[end:].lstrip()
    return found


def test_the_warning_of_a_deleted_container_goes_with_it(small: Any) -> None:
    grow(small, "LAX", 19 * KB)
    assert len(warnings(small)) == 1
    client = CosmosClient(small.server.endpoint, small.server.key)
    client.get_database_client("d").delete_container("flights")
    assert warnings(small) == []


def test_large_logical_partitions_are_not_summed_again_for_a_small_change(
    small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pleiad.partition.partition import Partition

    sums = []
    original = Partition.largest_logical_partitions

    async def counted(self: Partition, count: int, bytes_min: int = 0) -> Any:
        sums.append(bytes_min)
        return await original(self, count, bytes_min)

    monkeypatch.setattr(Partition, "largest_logical_partitions", counted)
    grow(small, "LAX", 15 * KB)
    warnings(small)
    grow(small, "LAX", 15 * KB + 100)
    warnings(small)
    assert len(sums) == 1
    grow(small, "LAX", 15 * KB + 300)
    warnings(small)
    assert len(sums) == 2


def test_a_partition_below_70_percent_of_one_logical_partition_is_never_summed(
    small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pleiad.partition.partition import Partition

    monkeypatch.delattr(Partition, "largest_logical_partitions")
    for number in range(13):
        grow(small, f"a{number}", KB)
    assert warnings(small) == []


def test_a_partition_that_cannot_be_split_is_a_warning(
    run: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    limits = dataclasses.replace(
        PROFILES["tiny"], logical_partition_bytes=100 * KB, physical_partition_bytes=10 * KB
    )
    running = run(limits=limits)
    client = CosmosClient(running.server.endpoint, running.server.key)
    running.container = client.create_database("d").create_container("flights", PartitionKey("/airport"))
    grow(running, "LAX", 11 * KB)
    running.ask(running.node.engine.keeper.settled())
    (warning,) = warnings(running)
    assert (warning["kind"], warning["partition"]) == ("split-refused", "0")
    assert warning["values"] == {"bytes": 11 * KB}
    assert any('kind="split-refused" container="d/flights"' in each.getMessage() for each in caplog.records)
    grow(running, "AMS", KB)
    running.node.engine.refusals.clear()
    running.ask(running.node.engine.keeper.settled())
    (moved,) = warnings(running)
    assert moved["partition"] in ("1", "2"), "the partition that was split has no warning any more"
