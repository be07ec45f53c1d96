"""What an operator sees of throughput: used of allowed by partition, refusals, and the warning of a hot partition."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from pleiad.cli.view.containers import containers_view
from pleiad.cli.view.partition import Look, view
from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from pleiad.engine import reading
from pleiad.errors import PleiadError
from tests.rooms.heads.admin.test_metrics import scrape

PLACE = '{database="d",container="seen",partition="0"}'


@pytest.fixture
def hot(run: Callable[..., Any]) -> Any:
    """A node with a container on two physical partitions, of which one has answered many requests with 429."""
    running = run(throttle="enforce")
    client = CosmosClient(running.server.endpoint, running.server.key)
    database = client.create_database("d")
    running.container = database.create_container("spread", PartitionKey("/pk"), offer_throughput=12_000)
    running.container.create_item({"id": "1", "pk": "a"})
    inside = running.ask(running.node.engine.container("d", "spread"))
    partition = inside.map.find(inside.epk_of(("a",)))
    partition.governor.spend(60_000)
    for _ in range(10):
        with pytest.raises(PleiadError, match="Request rate is large"):
            running.ask(reading.read(inside, "1", ("a",)))
    running.hot_id = partition.range_id
    return running


def test_each_partition_tells_what_it_uses_of_what_it_is_allowed(hot: Any) -> None:
    with Connection(hot.server.endpoint, hot.server.key) as connection:
        answer = Admin(connection).partitions("d", "spread", 0, 0)
    loads = {each["id"]: each["ru"] for each in answer["partitions"]}
    busy = loads.pop(hot.hot_id)
    (idle,) = loads.values()
    assert busy["allowed"] == idle["allowed"] == 6_000
    assert busy["throttled"] >= 10
    assert busy["normalizedPercent"] == 100
    assert busy["total"] > 60_000
    assert (idle["throttled"], idle["normalizedPercent"], idle["total"]) == (0, 0, 0)


@pytest.mark.requirement("R39")
def test_a_partition_that_refuses_more_than_5_percent_is_warned_of(hot: Any) -> None:
    with Connection(hot.server.endpoint, hot.server.key) as connection:
        (warning,) = Admin(connection).warnings()
    assert (warning["kind"], warning["partition"]) == ("throttled", hot.hot_id)
    assert warning["values"]["percent"] > 5
    assert "6000 RU/s" in warning["message"]


def test_what_only_observing_let_through_is_counted_and_shown(run: Callable[..., Any]) -> None:
    running = run(throttle="observe")
    client = CosmosClient(running.server.endpoint, running.server.key)
    container = client.create_database("d").create_container("seen", PartitionKey("/pk"))
    container.create_item({"id": "1", "pk": "a"})
    inside = running.ask(running.node.engine.container("d", "seen"))
    (partition,) = inside.map.partitions
    partition.governor.spend(60_000)
    for _ in range(3):
        container.read_item("1", "a")
    with Connection(running.server.endpoint, running.server.key) as connection:
        answer = Admin(connection).partitions("d", "seen", 0, 0)
    load = answer["partitions"][0]["ru"]
    assert (load["overBudget"], load["throttled"]) == (3, 0)
    assert scrape(running.server)[f"pleiad_partition_over_budget_total{PLACE}"] == 3
    assert re.search(r" over ", view({**answer, "warnings": []}, [], Look(100)))
    assert re.search(r" 3$", containers_view([answer], Look(100)))
