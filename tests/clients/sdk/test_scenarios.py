"""The scenarios of the partitioning documents: which key fits which application, and what a wrong one costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from pleiad.limits import Limits

PARTITIONS = 5
THROUGHPUT = 6_000 * PARTITIONS
DAYS = [f"2018-08-{day:02d}" for day in range(1, 11)]


class Asked:
    """A query of the client to its end: the results, the charge, and the physical partitions that were asked."""

    def __init__(self, container: Any, text: str, **options: Any) -> None:
        pages: list[Any] = []
        if "partition_key" not in options:
            options["enable_cross_partition_query"] = True
        options["populate_query_metrics"] = True
        found = container.query_items(text, response_hook=lambda headers, _: pages.append(headers), **options)
        self.results = list(found)
        self.charge_ru = sum(float(page["x-ms-request-charge"]) for page in pages)
        self.ranges = {id for page in pages for id in page["x-pleiad-partitions-visited"].split(",")}


def made(laboratory: Any, id: str, path: str, items: list[dict[str, Any]], ru: int = THROUGHPUT) -> Any:
    container = laboratory.database.create_container(id, PartitionKey(path), offer_throughput=ru)
    laboratory.fill(container, items)
    return container


def is_spread(laboratory: Any, container: Any) -> bool:
    """Whether the writes so far went to all physical partitions about evenly."""
    spent = laboratory.spent_ru(container)
    return bool(max(spent) < 1.6 * sum(spent) / len(spent))


def charge_of(answer: Any) -> float:
    return float(answer.get_response_headers()["x-ms-request-charge"])


# -- the id, or what acts as one, as key -----------------------------------------------------------------


@pytest.mark.requirement("R97")
def test_r97_with_the_id_as_key_only_a_filter_on_the_id_stays_in_one_partition(laboratory: Any) -> None:
    items = [{"id": f"item-{n}", "city": f"city-{n % 10}"} for n in range(100)]
    container = made(laboratory, "large by id", "/id", items)
    by_id = Asked(container, "SELECT * FROM c WHERE c.id = 'item-7'")
    assert ([item["city"] for item in by_id.results], len(by_id.ranges)) == (["city-7"], 1)
    for text in ("SELECT * FROM c WHERE c.city = 'city-7'", "SELECT * FROM c WHERE c.id > 'item-98'"):
        other = Asked(container, text)
        assert len(other.ranges) == PARTITIONS
        assert other.charge_ru > 3 * by_id.charge_ru


@pytest.mark.requirement("R99")
def test_r99_a_property_that_acts_as_an_id_partitions_as_well_as_the_id(laboratory: Any) -> None:
    items = [{"id": f"item-{n}", "email": f"user{n}@example.org"} for n in range(1_000)]
    container = made(laboratory, "by email", "/email", items)
    by_range = laboratory.logical_partitions(container)
    assert {found.items for many in by_range.values() for found in many} == {1}
    assert is_spread(laboratory, container)
    assert charge_of(container.read_item("item-7", "user7@example.org")) == 1.0


@pytest.mark.requirement("R152")
def test_r152_one_key_gives_transactions_without_scale_and_a_key_each_scale_without_transactions(
    laboratory: Any, refused: Any
) -> None:
    items = [{"id": str(n), "pk": "all", "n": n} for n in range(100)]
    together = made(laboratory, "one for all", "/pk", items)
    apart = made(laboratory, "one for each", "/id", items)
    changes: list[Any] = [("patch", (str(n), [{"op": "incr", "path": "/n", "value": 1}])) for n in range(50)]
    together.execute_item_batch(changes, partition_key="all")
    assert together.read_item("49", "all")["n"] == 50
    with pytest.raises((CosmosBatchOperationError, CosmosHttpResponseError)):
        apart.execute_item_batch(changes[:2], partition_key="0")
    assert apart.read_item("0", "0")["n"] == 0, "nothing of it was done"
    assert sorted(ru > 0 for ru in laboratory.spent_ru(together)) == [False] * 4 + [True]
    assert is_spread(laboratory, apart)


# -- good keys and bad ones ------------------------------------------------------------------------------


@pytest.mark.requirement("R74", "R75", "R153")
def test_r75_a_key_with_few_uneven_values_is_told_apart_by_what_the_server_measures(laboratory: Any) -> None:
    statuses = ["open"] * 70 + ["closed"] * 25 + ["lost"] * 5
    items = [
        {"id": str(n), "userId": f"user-{n}", "status": statuses[n % 100], "text": "x" * 300}
        for n in range(500)
    ]
    views = []
    node = laboratory.node
    with Connection(node.endpoint, node.settings.key) as connection:
        for id, path in (("by user", "/userId"), ("by status", "/status")):
            made(laboratory, id, path, items)
            views.append(Admin(connection).partitions("laboratory", id, largest=100, hottest=0))
    shares_bytes, shares_ru, largest = [], [], []
    for view in views:
        whole = sum(each["bytes"] for each in view["partitions"])
        shares_bytes.append(max(each["bytes"] for each in view["partitions"]) / whole)
        used = [each["ru"]["total"] for each in view["partitions"]]
        shares_ru.append(max(used) / sum(used))
        largest.append((len(view["largest"]), view["largest"][0]["bytes"] / whole))
    (good_count, good_top), (bad_count, bad_top) = largest
    assert (good_count, bad_count) == (100, 3), "many values against few"
    assert good_top < 0.01
    assert bad_top > 0.6
    assert views[1]["largest"][0]["key"] == ["open"]
    assert max(shares_bytes[0], shares_ru[0]) < 1.6 / PARTITIONS
    assert min(shares_bytes[1], shares_ru[1]) > 3 / PARTITIONS


@pytest.mark.requirement("R92")
def test_r92_of_two_keys_as_many_and_as_even_the_one_in_the_filter_is_cheaper(laboratory: Any) -> None:
    items = [
        {"id": str(n), "customerId": f"customer-{n % 100}", "batchId": f"batch-{n // 5}", "n": n}
        for n in range(500)
    ]
    by_customer = made(laboratory, "by customer", "/customerId", items)
    by_batch = made(laboratory, "by batch", "/batchId", items)
    for container in (by_customer, by_batch):
        assert laboratory.logical_partition_count(container) == 100
        assert is_spread(laboratory, container)
    text = "SELECT VALUE c.id FROM c WHERE c.customerId = 'customer-7'"
    aligned, not_aligned = Asked(by_customer, text), Asked(by_batch, text)
    assert sorted(aligned.results) == sorted(not_aligned.results)
    assert (len(aligned.ranges), len(not_aligned.ranges)) == (1, PARTITIONS)
    assert not_aligned.charge_ru > 3 * aligned.charge_ru


@pytest.mark.requirement("R165")
def test_r165_a_physical_partition_is_a_collection_of_logical_partitions(laboratory: Any) -> None:
    container = made(laboratory, "collections", "/pk", [{"id": str(n), "pk": n % 40} for n in range(200)])
    ranges = list(container.read_feed_ranges())
    seen: list[set[Any]] = []
    for feed_range in ranges:
        seen.append({item["pk"] for item in container.query_items("SELECT * FROM c", feed_range=feed_range)})
    assert len(seen) == PARTITIONS
    assert all(len(keys) > 1 for keys in seen)
    assert sorted(key for keys in seen for key in keys) == list(range(40)), (
        "each is in one of them, and whole"
    )


@pytest.mark.requirement("R166")
def test_r166_the_components_of_a_partition_key_are_its_path_and_its_value(
    laboratory: Any, refused: Any
) -> None:
    container = made(laboratory, "components", "/userId", [{"id": "1", "userId": "Andrew"}])
    assert container.read()["partitionKey"]["paths"] == ["/userId"]
    (item,) = container.query_items("SELECT * FROM c", partition_key="Andrew")
    assert item["userId"] == "Andrew"
    with refused(404):
        container.read_item("1", "Microsoft")


@pytest.mark.requirement("R115")
def test_r115_each_entity_has_the_key_of_its_strategy(laboratory: Any) -> None:
    entities = [
        *({"id": f"workspace-{n}", "docType": "workspace", "pk": f"workspace-{n}"} for n in range(3)),
        *({"id": f"user-{n}", "docType": "user", "pk": "global"} for n in range(4)),
        *({"id": f"group-{n}", "docType": "group", "pk": "global"} for n in range(2)),
        *({"id": f"project-{n}", "docType": "project", "pk": f"workspace-{n % 3}"} for n in range(6)),
        *({"id": f"flow-{n}", "docType": "flow", "pk": f"workspace-{n % 3}"} for n in range(3)),
        *({"id": f"asset-{n}", "docType": "asset", "pk": f"user-{n % 2}"} for n in range(4)),
    ]
    container = made(laboratory, "entities by strategy", "/pk", entities)
    found = {
        key: sorted(Asked(container, "SELECT VALUE c.id FROM c", partition_key=key).results)
        for key in ("workspace-1", "global", "user-1")
    }
    assert found["workspace-1"] == ["flow-1", "project-1", "project-4", "workspace-1"]
    assert found["global"] == ["group-0", "group-1", "user-0", "user-1", "user-2", "user-3"]
    assert found["user-1"] == ["asset-1", "asset-3"]
    assert laboratory.logical_partition_count(container) == 6


# -- applications ----------------------------------------------------------------------------------------


@pytest.mark.requirement("R154", "R155", "R158")
@pytest.mark.parametrize(
    ("path", "name"), [("/userId", "user"), ("/deviceId", "device"), ("/id", "user"), ("/id", "device")]
)
def test_r154_profiles_and_device_states_are_keyed_by_their_id(laboratory: Any, path: str, name: str) -> None:
    key = f"{name}Id"
    items = [{"id": f"{name}-{n}", key: f"{name}-{n}", "state": 0} for n in range(300)]
    container = made(laboratory, f"{name}s by {path[1:]}", path, items)
    assert laboratory.logical_partition_count(container) == 300
    assert is_spread(laboratory, container)
    container.patch_item(f"{name}-7", f"{name}-7", [{"op": "incr", "path": "/state", "value": 1}])
    read = container.read_item(f"{name}-7", f"{name}-7")
    assert (read["state"], charge_of(read)) == (1, 1.0)


def log_lines() -> list[dict[str, Any]]:
    """Twenty hosts that each wrote two lines an hour on ten days."""
    return [
        {"id": f"{day}-{hour:02d}-{host}-{n}", "host": f"host-{host}", "day": day, "at": f"{day}T{hour:02d}"}
        for day in DAYS
        for hour in (0, 12)
        for host in range(20)
        for n in range(2)
    ]


@pytest.mark.requirement("R156", "R158", "R160")
def test_r160_many_writes_of_a_time_series_spread_by_host_and_pile_up_by_day(laboratory: Any) -> None:
    today = [line for line in log_lines() if line["day"] == DAYS[0]]
    by_host = made(laboratory, "log by host", "/host", today)
    by_day = made(laboratory, "log by day", "/day", today)
    by_id = made(laboratory, "log by id", "/id", today)
    assert sorted(ru > 0 for ru in laboratory.spent_ru(by_day)) == [False] * 4 + [True]
    assert sum(ru > 0 for ru in laboratory.spent_ru(by_host)) == PARTITIONS
    text = "SELECT VALUE c.at FROM c WHERE c.host = 'host-7' ORDER BY c.at"
    inside, across = Asked(by_host, text), Asked(by_id, text)
    assert inside.results == across.results == sorted(inside.results)
    assert (len(inside.results), len(inside.ranges), len(across.ranges)) == (4, 1, PARTITIONS)


@pytest.mark.requirement("R159")
def test_r159_few_writes_and_range_queries_are_served_by_a_rolled_up_time(laboratory: Any) -> None:
    by_day = made(laboratory, "series by day", "/day", log_lines())
    by_host = made(laboratory, "series by host", "/host", log_lines())
    text = f"SELECT VALUE c.id FROM c WHERE c.day = '{DAYS[3]}' AND c.at >= '{DAYS[3]}T06'"
    of_day, of_hosts = Asked(by_day, text), Asked(by_host, text)
    assert sorted(of_day.results) == sorted(of_hosts.results)
    assert (len(of_day.results), len(of_day.ranges), len(of_hosts.ranges)) == (40, 1, PARTITIONS)
    assert of_day.charge_ru < of_hosts.charge_ru
    assert laboratory.logical_partition_count(by_day) == len(DAYS)


@pytest.mark.requirement("R161")
def test_r161_a_container_for_each_month_keeps_its_own_throughput(laboratory: Any) -> None:
    months: dict[str, Any] = {}
    for month in ("2018-06", "2018-07", "2018-08"):
        for past in months.values():
            past.replace_throughput(400)
        lines = [{"id": str(n), "host": f"host-{n % 20}", "at": f"{month}-{n:02d}"} for n in range(60)]
        months[month] = made(laboratory, f"log of {month}", "/host", lines, ru=10_000)
    throughputs = [container.get_throughput().offer_throughput for container in months.values()]
    assert throughputs == [400, 400, 10_000]
    for month, container in months.items():
        found = Asked(container, "SELECT VALUE c.at FROM c", partition_key="host-7")
        assert sorted(found.results) == [f"{month}-{n:02d}" for n in (7, 27, 47)]
    laboratory.database.delete_container(months["2018-06"])


# -- tenants ---------------------------------------------------------------------------------------------


def exhaust(laboratory: Any, container: Any, key: str) -> None:
    """Lets one key use up what its physical partition has, and a debt of a minute."""
    inside = laboratory.inside(container)
    governor = inside.map.find(inside.epk_of((key,))).governor
    governor.spend(61 * governor.rate_ru)


def is_served(laboratory: Any, container: Any, key: str) -> bool:
    inside = laboratory.inside(container)
    return bool(inside.map.find(inside.epk_of((key,))).governor.is_open())


@pytest.mark.requirement("R157", "R162")
def test_r162_tenants_by_key_share_throughput_have_transactions_and_no_isolation(
    laboratory_with: Callable[..., Any],
) -> None:
    laboratory = laboratory_with(Limits(), throttle="enforce")
    items = [{"id": str(n), "tenantId": f"tenant-{n % 10}", "n": n} for n in range(60)]
    pooled = made(laboratory, "pooled", "/tenantId", items, ru=10_000)
    assert laboratory.logical_partition_count(pooled) == 10
    own = Asked(pooled, "SELECT VALUE c.tenantId FROM c", partition_key="tenant-3")
    assert own.results == ["tenant-3"] * 6
    batch: list[Any] = [("delete", ("3",)), ("create", ({"id": "new", "tenantId": "tenant-3"},))]
    pooled.execute_item_batch(batch, partition_key="tenant-3")
    assert len(Asked(pooled, "SELECT * FROM c", partition_key="tenant-3").results) == 6
    assert is_served(laboratory, pooled, "tenant-4")
    exhaust(laboratory, pooled, "tenant-3")
    assert not is_served(laboratory, pooled, "tenant-4"), "a busy neighbour is felt"


@pytest.mark.requirement("R163")
def test_r163_a_container_for_each_tenant_reserves_its_throughput(
    laboratory_with: Callable[..., Any],
) -> None:
    laboratory = laboratory_with(Limits(), throttle="enforce")
    tenants = [
        made(laboratory, f"tenant-{n}", "/userId", [{"id": "1", "userId": "u"}], ru=400 + 100 * n)
        for n in range(3)
    ]
    assert [each.get_throughput().offer_throughput for each in tenants] == [400, 500, 600]
    exhaust(laboratory, tenants[0], "u")
    assert [is_served(laboratory, each, "u") for each in tenants] == [False, True, True]
    assert tenants[1].read_item("1", "u")["id"] == "1"


@pytest.mark.requirement("R164")
def test_r164_small_tenants_live_together_and_a_large_one_apart(laboratory_with: Callable[..., Any]) -> None:
    laboratory = laboratory_with(Limits(), throttle="enforce")
    small = [{"id": str(n), "tenantId": f"small-{n % 20}"} for n in range(40)]
    together = made(laboratory, "small", "/tenantId", small, ru=1_000)
    large = made(
        laboratory, "large", "/userId", [{"id": str(n), "userId": f"u{n}"} for n in range(50)], ru=18_000
    )
    assert laboratory.physical_partition_count(together) == 1
    assert laboratory.physical_partition_count(large) == 3, "it outgrows what one tenant's key could have"
    exhaust(laboratory, large, "u1")
    assert is_served(laboratory, together, "small-3")
    assert together.read_item("3", "small-3")["tenantId"] == "small-3"
