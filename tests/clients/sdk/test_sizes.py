"""How large containers become: figures of today and of 2018, and the physical partitions that follow from them.

Where a test speaks of gigabytes and stores kilobytes, only the unit is smaller: the figures are those of the profile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from azure.cosmos import PartitionKey, ThroughputProperties

from pleiad.limits import GB, KB, PROFILES, Limits

KEY = PartitionKey("/pk")
DEFAULT = PROFILES["default"]
OF_2018 = PROFILES["2018"]
SMALL_2018 = replace(
    OF_2018, logical_partition_bytes=10 * KB, physical_partition_bytes=10 * KB, fixed_container_bytes=10 * KB
)


def kilobytes(count: int) -> list[dict[str, Any]]:
    """Items of about a KB, each of its own key."""
    return [{"id": str(n), "pk": f"key-{n}", "text": "x" * 980} for n in range(count)]


def sizes_kb(container: Any) -> list[int]:
    """The size of each physical partition, as the client reads it."""
    read = container.read(populate_partition_key_range_statistics=True)
    return [each["sizeInKB"] for each in read["statistics"]]


@pytest.mark.requirement("R10", "R14")
def test_r10_an_unlimited_container_has_a_key_and_1000_to_100000_ru(
    laboratory_with: Callable[..., Any], refused: Any
) -> None:
    laboratory = laboratory_with(SMALL_2018)
    database = laboratory.database
    with refused(400, text="between 400 and 100000 inclusive"):
        database.create_container("too much", KEY, offer_throughput=100_100)
    most = database.create_container("most", KEY, offer_throughput=100_000)
    assert laboratory.physical_partition_count(most) == 10
    least = database.create_container("least", KEY, offer_throughput=1_000)
    below = database.create_container("below", KEY, offer_throughput=900)
    laboratory.fill(least, kilobytes(25))
    laboratory.settle()
    assert sum(sizes_kb(least)) > 10
    assert laboratory.physical_partition_count(least) > 1
    with refused(403, text="The fixed container reached its maximum size of 10 KB"):
        for item in kilobytes(25):
            below.create_item(item)
    assert laboratory.physical_partition_count(below) == 1
    below.replace_throughput(10_000)
    with refused(400, text="A fixed container has at most 10000 RU/s"):
        below.replace_throughput(10_100)


@pytest.mark.requirement("R11")
def test_r11_with_the_figures_of_2018_each_partition_holds_ten(laboratory_with: Callable[..., Any]) -> None:
    assert OF_2018.physical_partition_bytes == 10 * GB
    laboratory = laboratory_with(SMALL_2018)
    container = laboratory.database.create_container("balanced", KEY, offer_throughput=1_000)
    laboratory.fill(container, kilobytes(60))
    laboratory.settle()
    sizes = sizes_kb(container)
    assert all(size <= 10 for size in sizes), sizes
    assert min(sizes) > 0, "the key balances the data"
    assert len(list(container.read_all_items())) == 60


@pytest.mark.requirement("R16")
def test_r16_the_items_of_a_fixed_container_go_over_by_its_change_feed(
    laboratory_with: Callable[..., Any],
) -> None:
    laboratory = laboratory_with(SMALL_2018)
    fixed = laboratory.database.create_container("fixed", KEY, offer_throughput=400)
    laboratory.fill(fixed, kilobytes(8))
    unlimited = laboratory.database.create_container("unlimited", KEY, offer_throughput=1_000)
    for item in fixed.query_items_change_feed(start_time="Beginning"):
        unlimited.upsert_item({name: value for name, value in item.items() if not name.startswith("_")})
    assert sorted(item["id"] for item in unlimited.read_all_items()) == sorted(map(str, range(8)))
    laboratory.fill(unlimited, [{**item, "id": f"more-{item['id']}"} for item in kilobytes(20)])
    laboratory.settle()
    assert laboratory.physical_partition_count(unlimited) > 1


@pytest.mark.requirement("R18")
def test_r18_storage_and_throughput_have_no_end_that_is_built_in(laboratory_with: Callable[..., Any]) -> None:
    limits = Limits(physical_partition_bytes=20 * KB, throughput_ru_max=5_000_000)
    laboratory = laboratory_with(limits)
    stored = laboratory.database.create_container("stored", KEY, offer_throughput=400)
    laboratory.fill(stored, kilobytes(300))
    laboratory.settle()
    assert sum(sizes_kb(stored)) > 10 * 20
    assert max(sizes_kb(stored)) <= 20
    most = ThroughputProperties(auto_scale_max_throughput=1_200_000)
    served = laboratory.database.create_container("served", KEY, offer_throughput=most)
    rates = [each.governor.rate_ru for each in laboratory.inside(served).map.partitions]
    assert sum(rates) == 1_200_000


@pytest.mark.requirement("R34", "R49")
def test_r34_a_physical_partition_stores_fifty_at_most(laboratory_with: Callable[..., Any]) -> None:
    assert DEFAULT.physical_partition_bytes == 50 * GB
    laboratory = laboratory_with(Limits(physical_partition_bytes=50 * KB))
    container = laboratory.database.create_container("grows", KEY)
    counts = []
    for start in (0, 45, 90, 135, 180):
        laboratory.fill(container, kilobytes(225)[start : start + 45])
        laboratory.settle()
        assert max(sizes_kb(container)) <= 50
        counts.append(laboratory.physical_partition_count(container))
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert counts[-1] >= 5


@pytest.mark.requirement("R42")
def test_r42_above_30000_ru_or_100_gb_a_container_has_more_than_a_few_partitions(
    laboratory_with: Callable[..., Any],
) -> None:
    laboratory = laboratory_with(Limits(physical_partition_bytes=50 * KB))
    by_throughput = laboratory.database.create_container("fast", KEY, offer_throughput=30_100)
    assert laboratory.physical_partition_count(by_throughput) > 3
    by_storage = laboratory.database.create_container("large", KEY)
    laboratory.fill(by_storage, kilobytes(45))
    laboratory.settle()
    assert laboratory.physical_partition_count(by_storage) == 1
    laboratory.fill(by_storage, kilobytes(120)[45:])
    laboratory.settle()
    assert sum(sizes_kb(by_storage)) > 100
    assert laboratory.physical_partition_count(by_storage) > 2


@pytest.mark.requirement("R8", "R55")
@pytest.mark.parametrize("shared", [False, True])
def test_r8_throughput_and_storage_each_make_partitions_for_a_container_and_for_a_set(
    laboratory_with: Callable[..., Any], shared: bool
) -> None:
    laboratory = laboratory_with(Limits(physical_partition_bytes=50 * KB))
    database = laboratory.client.create_database("set", offer_throughput=400 if shared else None)
    containers = [database.create_container(id, KEY) for id in ("one", "two")]
    payer = database if shared else containers[0]
    payer.replace_throughput(30_000)
    laboratory.settle()
    counts = [laboratory.physical_partition_count(container) for container in containers]
    assert counts == ([3, 3] if shared else [3, 1])
    laboratory.fill(containers[1], kilobytes(120))
    laboratory.settle()
    assert laboratory.physical_partition_count(containers[1]) > counts[1]
    assert laboratory.physical_partition_count(containers[0]) == 3


@pytest.mark.requirement("R56")
def test_r56_the_system_spreads_logical_partitions_over_more_physical_ones_as_needs_grow(
    laboratory: Any,
) -> None:
    container = laboratory.database.create_container("spreads", KEY, offer_throughput=10_000)
    laboratory.fill(container, [{"id": "a", "pk": f"key-{n}"} for n in range(200)])
    places = []
    for throughput in (10_000, 20_000, 40_000):
        container.replace_throughput(throughput)
        laboratory.settle()
        by_range = laboratory.logical_partitions(container)
        places.append({found.epk: range_id for range_id, many in by_range.items() for found in many})
        assert sum(map(len, by_range.values())) == 200, "each logical partition is in one place"
        assert all(many for many in by_range.values())
        assert all(container.read_item("a", f"key-{n}")["id"] == "a" for n in range(0, 200, 20))
    assert [len(set(place.values())) for place in places] == [1, 2, 4]
