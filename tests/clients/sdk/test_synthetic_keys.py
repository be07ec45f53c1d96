"""Synthetic partition keys: values that the application computes because no property of its items is a good key."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from typing import Any

import pytest
from azure.cosmos import PartitionKey

KEY = PartitionKey("/partitionKey")
DAY = "2018-08-09"
SUFFIXES = 400
PARTITIONS = 5
THROUGHPUT = 6_000 * PARTITIONS


def container_of(laboratory: Any, id: str) -> Any:
    return laboratory.database.create_container(id, KEY, offer_throughput=THROUGHPUT)


def vins(count: int) -> list[str]:
    return [f"1FT{number:014d}" for number in range(count)]


def computed_suffix(vin: str) -> int:
    """A number from 1 to 400 that follows from the vehicle's number."""
    return int.from_bytes(hashlib.sha256(vin.encode()).digest()[:8], "big") % SUFFIXES + 1


def computed_key(vin: str) -> str:
    return f"{DAY}.{computed_suffix(vin)}"


def shares(laboratory: Any, container: Any) -> list[float]:
    """The part of a container's items on each physical partition."""
    counts = [
        sum(found.items for found in many) for many in laboratory.logical_partitions(container).values()
    ]
    return [count / sum(counts) for count in counts]


@pytest.mark.requirement("R101", "R111")
def test_r101_joined_properties_have_the_values_that_none_of_them_has(laboratory: Any) -> None:
    readings = [
        {"id": str(n), "deviceId": f"device-{n % 20}", "month": n // 20 % 12 + 1, "n": n} for n in range(960)
    ]
    counts, largest = [], []
    for name, key in (
        ("month", lambda item: item["month"]),
        ("deviceId", lambda item: item["deviceId"]),
        ("joined", lambda item: f"{item['deviceId']}-{item['month']}"),
    ):
        container = container_of(laboratory, f"readings by {name}")
        laboratory.fill(container, [{**item, "partitionKey": key(item)} for item in readings])
        counts.append(laboratory.logical_partition_count(container))
        largest.append(max(shares(laboratory, container)))
    assert counts == [12, 20, 240]
    assert largest[2] < min(largest[:2]), "and they spread better"


@pytest.mark.requirement("R103")
def test_r103_padded_parts_keep_joined_keys_apart(laboratory: Any) -> None:
    container = container_of(laboratory, "padded")
    pairs = [(1, 11), (11, 1), (111, 1), (1, 1)]
    assert len({f"{device}{month}" for device, month in pairs}) < len(pairs), (
        "without padding two are the same"
    )
    for device, month in pairs:
        container.create_item({"id": "reading", "partitionKey": f"{device:06d}{month:02d}", "device": device})
    assert laboratory.logical_partition_count(container) == len(pairs)
    for device, month in pairs:
        assert container.read_item("reading", f"{device:06d}{month:02d}")["device"] == device


@pytest.mark.requirement("R104")
def test_r104_the_client_computes_the_value_and_the_server_takes_it_as_it_is(
    laboratory: Any, refused: Any
) -> None:
    container = container_of(laboratory, "by the client")
    item = {"id": "1", "deviceId": "abc-123", "date": 2018}
    container.create_item({**item, "partitionKey": f"{item['deviceId']}-{item['date']}"})
    stored = container.read_item("1", "abc-123-2018")
    assert stored["partitionKey"] == "abc-123-2018"
    container.create_item({**item, "id": "2"})
    with refused(404):
        container.read_item("2", "abc-123-2018")
    changed = {**stored, "date": 2019}
    container.replace_item("1", changed)
    assert container.read_item("1", "abc-123-2018")["date"] == 2019, "nothing is computed again"


@pytest.mark.requirement("R105", "R106", "R110")
def test_r105_random_suffixes_spread_the_writes_of_a_day_over_400_values(laboratory: Any) -> None:
    dice = random.Random(2018)
    by_day, suffixed = container_of(laboratory, "by day"), container_of(laboratory, "by day and suffix")
    laboratory.fill(by_day, [{"id": str(n), "partitionKey": DAY} for n in range(4_000)])
    keys = [f"{DAY}.{dice.randint(1, SUFFIXES)}" for _ in range(4_000)]
    laboratory.fill(suffixed, [{"id": str(n), "partitionKey": key} for n, key in enumerate(keys)])
    assert laboratory.logical_partition_count(by_day) == 1
    assert laboratory.logical_partition_count(suffixed) == len(set(keys)) == SUFFIXES
    hot = laboratory.spent_ru(by_day)
    assert sorted(ru > 0 for ru in hot) == [False] * (PARTITIONS - 1) + [True], (
        "one partition took everything"
    )
    spread = laboratory.spent_ru(suffixed)
    assert max(spread) < 1.5 * sum(spread) / PARTITIONS
    assert max(Counter(keys).values()) / len(keys) < 0.01, "no value takes a large part of the load"


@pytest.mark.requirement("R107")
def test_r107_with_a_random_suffix_an_item_is_found_by_asking_everywhere(
    laboratory: Any, refused: Any
) -> None:
    dice = random.Random(7)
    container = container_of(laboratory, "lost")
    suffixes = {vin: dice.randint(1, SUFFIXES) for vin in vins(200)}
    laboratory.fill(
        container, [{"id": vin, "partitionKey": f"{DAY}.{suffix}"} for vin, suffix in suffixes.items()]
    )
    vin = vins(200)[77]
    wrong = suffixes[vin] % SUFFIXES + 1
    with refused(404):
        container.read_item(vin, f"{DAY}.{wrong}")
    charges: list[float] = []
    found = container.query_items(
        "SELECT * FROM c WHERE c.id = @vin",
        parameters=[{"name": "@vin", "value": vin}],
        enable_cross_partition_query=True,
        response_hook=lambda headers, _: charges.append(float(headers["x-ms-request-charge"])),
    )
    assert [item["partitionKey"] for item in found] == [f"{DAY}.{suffixes[vin]}"]
    assert sum(charges) > 2.5 * PARTITIONS, "every physical partition was asked"


@pytest.mark.requirement("R108", "R109")
def test_r109_a_computed_suffix_spreads_the_writes_and_is_computed_again_for_a_point_read(
    laboratory: Any,
) -> None:
    counts = Counter(map(computed_suffix, vins(20_000)))
    assert set(counts) == set(range(1, SUFFIXES + 1))
    assert 20 < min(counts.values()) <= max(counts.values()) < 90, "evenly: 50 vehicles for each"
    container = container_of(laboratory, "by vehicle")
    laboratory.fill(container, [{"id": vin, "partitionKey": computed_key(vin)} for vin in vins(4_000)])
    spread = laboratory.spent_ru(container)
    assert max(spread) < 1.5 * sum(spread) / PARTITIONS
    for vin in vins(4_000)[::500]:
        read = container.read_item(vin, computed_key(vin))
        assert read["id"] == vin
        assert float(read.get_response_headers()["x-ms-request-charge"]) == 1.0
