"""Logical and physical partitions: what the partitioning documents say, shown on a running database."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from pleiad.keys.hash import epk
from pleiad.limits import KB, PROFILES, Limits
from tests.stores import StartServer


def home_of(answer: Any) -> str:
    """The physical partition that an answer came from."""
    return str(answer.get_response_headers()["x-ms-documentdb-partitionkeyrangeid"])


@pytest.mark.requirement("R1", "R2", "R3")
def test_a_thousand_user_ids_make_a_thousand_logical_partitions(laboratory: Any) -> None:
    users = laboratory.database.create_container("users", PartitionKey("/UserID"))
    laboratory.fill(users, [{"id": str(n), "UserID": f"user-{n % 1000}"} for n in range(2000)])
    found = laboratory.logical_partitions(users)["0"]
    assert len(found) == 1000
    assert {partition.items for partition in found} == {2}
    for user in ("user-0", "user-999"):
        own = list(users.query_items("SELECT * FROM c", partition_key=user))
        assert {item["UserID"] for item in own} == {user}


@pytest.mark.requirement("R21", "R22")
def test_logical_partitions_appear_with_their_first_item_and_vanish_with_their_last(laboratory: Any) -> None:
    container = laboratory.database.create_container("come and go", PartitionKey("/pk"))
    assert laboratory.logical_partition_count(container) == 0
    container.create_item({"id": "1", "pk": "a"})
    container.create_item({"id": "2", "pk": "a"})
    container.create_item({"id": "1", "pk": "b"})
    assert laboratory.logical_partition_count(container) == 2
    container.delete_item("1", "b")
    assert laboratory.logical_partition_count(container) == 1
    container.delete_item("1", "a")
    assert laboratory.logical_partition_count(container) == 1
    container.delete_item("2", "a")
    assert laboratory.logical_partition_count(container) == 0


@pytest.mark.requirement("R23")
def test_a_container_has_any_number_of_logical_partitions(laboratory: Any) -> None:
    container = laboratory.database.create_container("many", PartitionKey("/id"))
    laboratory.fill(container, [{"id": str(n)} for n in range(10_000)])
    assert laboratory.logical_partition_count(container) == 10_000
    assert laboratory.physical_partition_count(container) == 1


@pytest.mark.requirement("R4", "R5", "R6")
def test_an_id_is_unique_in_its_logical_partition_and_with_the_key_in_the_container(
    laboratory: Any, refused: Any
) -> None:
    container = laboratory.database.create_container("ids", PartitionKey("/pk"))
    for key in ("a", "b", "c"):
        container.create_item({"id": "same", "pk": key, "said": key})
    with refused(409):
        container.create_item({"id": "same", "pk": "a"})
    for key in ("a", "b", "c"):
        assert container.read_item("same", key)["said"] == key


@pytest.mark.requirement("R19")
def test_each_food_group_is_one_logical_partition(laboratory: Any) -> None:
    foods = laboratory.database.create_container("foods", PartitionKey("/foodGroup"))
    groups = ["Beef Products", "Baked Products", "Sausages and Luncheon Meats"]
    laboratory.fill(foods, [{"id": str(n), "foodGroup": groups[n % 3]} for n in range(30)])
    assert laboratory.logical_partition_count(foods) == 3
    beef = list(foods.query_items("SELECT * FROM c", partition_key="Beef Products"))
    assert len(beef) == 10


@pytest.mark.requirement("R28")
def test_lax_ams_and_mel_are_three_logical_partitions_of_one_container(laboratory: Any) -> None:
    flights = laboratory.database.create_container("flights", PartitionKey("/airport"))
    for airport in ("LAX", "AMS", "MEL"):
        for number in range(3):
            flights.create_item({"id": str(number), "airport": airport})
    assert [partition.items for partition in laboratory.logical_partitions(flights)["0"]] == [3, 3, 3]


@pytest.mark.requirement("R27", "R58")
def test_a_logical_partition_is_on_one_physical_partition(laboratory: Any) -> None:
    container = laboratory.database.create_container("one home", PartitionKey("/pk"), offer_throughput=30_000)
    laboratory.fill(container, [{"id": str(n), "pk": f"key-{n % 50}"} for n in range(500)])
    by_range = laboratory.logical_partitions(container)
    homes = Counter(partition.epk for found in by_range.values() for partition in found)
    assert len(homes) == 50
    assert set(homes.values()) == {1}
    assert {partition.items for found in by_range.values() for partition in found} == {10}
    for number in range(5):
        assert (
            len({home_of(container.read_item(str(n), f"key-{number}")) for n in range(number, 500, 50)}) == 1
        )


@pytest.mark.requirement("R29")
def test_a_container_spreads_over_physical_partitions_that_each_hold_several_logical_ones(
    laboratory: Any,
) -> None:
    container = laboratory.database.create_container("spread", PartitionKey("/pk"), offer_throughput=30_000)
    laboratory.fill(container, [{"id": str(n), "pk": f"key-{n}"} for n in range(100)])
    counts = [len(found) for found in laboratory.logical_partitions(container).values()]
    assert len(counts) == 5
    assert min(counts) > 1


@pytest.mark.requirement("R30")
def test_a_small_container_has_many_logical_partitions_on_one_physical_partition(laboratory: Any) -> None:
    container = laboratory.database.create_container("small", PartitionKey("/pk"), offer_throughput=400)
    laboratory.fill(container, [{"id": str(n), "pk": f"key-{n}"} for n in range(100)])
    assert laboratory.physical_partition_count(container) == 1
    assert laboratory.logical_partition_count(container) == 100


@pytest.mark.requirement("R43")
@pytest.mark.parametrize(("throughput", "count"), [(400, 1), (10_000, 1), (12_000, 2)])
def test_a_small_container_has_one_or_two_physical_partitions(
    throughput: int, count: int, laboratory: Any
) -> None:
    container = laboratory.database.create_container(
        f"small-{throughput}", PartitionKey("/pk"), offer_throughput=throughput
    )
    assert laboratory.physical_partition_count(container) == count


@pytest.mark.parametrize(("throughput", "count"), [(18_000, 3), (30_000, 5), (30_100, 6), (60_000, 10)])
def test_throughput_decides_the_number_of_physical_partitions(
    throughput: int, count: int, laboratory: Any
) -> None:
    container = laboratory.database.create_container(
        f"sized-{throughput}", PartitionKey("/pk"), offer_throughput=throughput
    )
    assert laboratory.physical_partition_count(container) == count
    assert len(list(container.read_feed_ranges())) == count


@pytest.mark.requirement("R35")
def test_a_container_has_any_number_of_physical_partitions(laboratory: Any) -> None:
    container = laboratory.database.create_container("huge", PartitionKey("/pk"), offer_throughput=1_000_000)
    assert laboratory.physical_partition_count(container) == 167
    container.create_item({"id": "1", "pk": "a"})
    assert container.read_item("1", "a")["id"] == "1"
    laboratory.database.delete_container("huge")


@pytest.mark.requirement("R45")
def test_a_set_of_containers_gets_the_physical_partitions_its_throughput_needs(laboratory: Any) -> None:
    shared = laboratory.client.create_database("set", offer_throughput=30_000)
    for name in ("first", "second"):
        member = shared.create_container(name, PartitionKey("/pk"))
        assert laboratory.physical_partition_count(member) == 3
    laboratory.client.delete_database("set")


@pytest.mark.requirement("R46", "R130")
def test_twenty_thousand_request_units_are_two_physical_partitions_of_ten_thousand(
    laboratory_with: Callable[[Limits], Any],
) -> None:
    laboratory = laboratory_with(PROFILES["2018"])
    for throughput, count in ((10_000, 1), (10_100, 2), (20_000, 2), (20_100, 3), (100_000, 10)):
        container = laboratory.database.create_container(
            f"coll-{throughput}", PartitionKey("/deviceId"), offer_throughput=throughput
        )
        assert laboratory.physical_partition_count(container) == count


@pytest.mark.requirement("R47", "R48")
def test_the_hash_space_and_with_it_the_keys_are_divided_evenly(laboratory: Any) -> None:
    container = laboratory.database.create_container("even", PartitionKey("/pk"), offer_throughput=30_000)
    ranges = laboratory.inside(container).map.partitions
    whole = 2**126
    edges = [0, *(int.from_bytes(partition.span.max, "big") for partition in ranges[:-1]), whole]
    widths = [high - low for low, high in itertools.pairwise(edges)]
    assert max(widths) - min(widths) <= 5
    laboratory.fill(container, [{"id": str(n), "pk": f"key-{n}"} for n in range(2000)])
    shares = [len(found) / 2000 for found in laboratory.logical_partitions(container).values()]
    assert all(0.16 < share < 0.24 for share in shares), shares


@pytest.mark.requirement("R57")
@pytest.mark.parametrize("version", [1, 2])
def test_the_hash_of_the_key_decides_the_physical_partition(version: int, laboratory: Any) -> None:
    container = laboratory.database.create_container(
        f"hashed-{version}", PartitionKey("/pk", version=version), offer_throughput=30_000
    )
    inside = laboratory.inside(container)
    for number in range(40):
        created = container.create_item({"id": "1", "pk": f"key-{number}"})
        hashed = epk((f"key-{number}",), inside.key)
        (home,) = [partition for partition in inside.map.partitions if partition.span.contains(hashed)]
        assert home_of(created) == home.range_id
        stored = [found.epk for found in laboratory.logical_partitions(container)[home.range_id]]
        assert hashed in stored


@pytest.mark.requirement("R59")
def test_requests_find_the_right_partition_without_naming_it(laboratory: Any) -> None:
    container = laboratory.database.create_container("routed", PartitionKey("/pk"), offer_throughput=30_000)
    homes = {str(n): home_of(container.create_item({"id": str(n), "pk": f"key-{n}"})) for n in range(60)}
    assert set(homes.values()) == {"0", "1", "2", "3", "4"}
    for number, home in homes.items():
        read = container.read_item(number, f"key-{number}")
        assert (read["id"], home_of(read)) == (number, home)
    everything = container.query_items("SELECT * FROM c", enable_cross_partition_query=True)
    assert {item["id"] for item in everything} == set(homes)


@pytest.mark.requirement("R44")
def test_on_one_physical_partition_every_request_goes_to_the_same_place(laboratory: Any) -> None:
    container = laboratory.database.create_container("single", PartitionKey("/pk"))
    visited: set[str] = set()
    hook = lambda headers, _: visited.add(headers["x-ms-documentdb-partitionkeyrangeid"])  # noqa: E731
    for number in range(20):
        container.create_item({"id": str(number), "pk": f"key-{number}"}, response_hook=hook)
    list(container.query_items("SELECT * FROM c", partition_key="key-1", response_hook=hook))
    list(container.query_items("SELECT * FROM c", enable_cross_partition_query=True, response_hook=hook))
    assert visited == {"0"}


@pytest.mark.requirement("R24", "R169", "R170")
def test_a_full_logical_partition_refuses_items_and_says_its_size(
    laboratory_with: Callable[[Limits], Any], refused: Any
) -> None:
    assert Limits().logical_partition_text == "20 GB"
    laboratory = laboratory_with(Limits(logical_partition_bytes=20 * KB))
    container = laboratory.database.create_container("full", PartitionKey("/foodGroup"))
    item = {"foodGroup": "Beef Products", "text": "x" * 4000}
    for number in range(5):
        container.create_item({"id": str(number), **item})
    with refused(403, 1014, "Partition key reached maximum size of 20 KB"):
        container.create_item({"id": "5", **item})
    assert len(list(container.read_all_items())) == 5
    container.create_item({"id": "5", **item, "foodGroup": "Baked Products"})
    container.delete_item("0", "Beef Products")
    container.create_item({"id": "5", **item})


@pytest.mark.requirement("R25", "R169")
def test_with_the_figures_of_2018_a_logical_partition_holds_ten_gigabytes(
    laboratory_with: Callable[[Limits], Any], refused: Any
) -> None:
    limits = PROFILES["2018"]
    assert (limits.logical_partition_text, limits.physical_partition_bytes) == ("10 GB", 10 * 1024**3)
    laboratory = laboratory_with(Limits(logical_partition_bytes=10 * KB))
    flights = laboratory.database.create_container("flights", PartitionKey("/airport"))
    with refused(403, 1014, "Partition key reached maximum size of 10 KB"):
        for number in range(10):
            flights.create_item({"id": str(number), "airport": "LAX", "text": "x" * 2000})
    for airport in ("AMS", "MEL"):
        flights.create_item({"id": "1", "airport": airport, "text": "x" * 2000})


def test_the_map_and_the_place_of_every_item_survive_a_restart(
    tmp_path: Any, start_server: StartServer
) -> None:

    def places(container: Any) -> tuple[list[Any], dict[str, str]]:
        homes = {str(n): home_of(container.read_item(str(n), f"key-{n}")) for n in range(30)}
        return list(container.read_feed_ranges()), homes

    with start_server(data=tmp_path) as server:
        database = CosmosClient(server.endpoint, server.key).create_database("d")
        container = database.create_container("c", PartitionKey("/pk"), offer_throughput=30_000)
        for number in range(30):
            container.create_item({"id": str(number), "pk": f"key-{number}"})
        before = places(container)
    with start_server(data=tmp_path) as server:
        client = CosmosClient(server.endpoint, server.key)
        assert places(client.get_database_client("d").get_container_client("c")) == before
