"""Throughput that follows the data, the total of an account, and the budget of metadata, as the client sees them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey, ThroughputProperties

from pleiad.limits import GB, Limits

KEY = PartitionKey("/pk")
KB_AS_GB = GB // 1024
"""RU/s for each GB that make a KB count as a GB does with a figure of 1."""


def autoscale(most: int) -> ThroughputProperties:
    return ThroughputProperties(auto_scale_max_throughput=most)


def fill(container: Any, first: int, last: int) -> None:
    """Items of about 1 KB each."""
    for number in range(first, last):
        container.create_item({"id": str(number), "pk": f"key-{number}", "text": "x" * 1_000})


# -- throughput follows the data -----------------------------------------------------------------------


def test_an_autoscale_maximum_rises_by_itself_with_the_data(
    laboratory_with: Callable[..., Any], caplog: pytest.LogCaptureFixture, refused: Any
) -> None:
    caplog.set_level(logging.INFO, "pleiad.throughput")
    laboratory = laboratory_with(Limits(autoscale_ru_per_gb=100 * KB_AS_GB))
    container = laboratory.database.create_container("grows", KEY, offer_throughput=autoscale(1_000))
    etag = container.get_throughput().properties["_etag"]
    fill(container, 0, 5)
    laboratory.settle()
    assert container.get_throughput().auto_scale_max_throughput == 1_000
    assert container.get_throughput().properties["_etag"] == etag, "nothing was changed without need"
    fill(container, 5, 25)
    laboratory.settle()
    assert container.get_throughput().auto_scale_max_throughput == 3_000
    (figure,) = [each.governor.snapshot() for each in laboratory.inside(container).map.partitions]
    assert figure.rate_ru == 3_000
    with refused(400, text="is less than required minimum throughput 3000"):
        container.replace_throughput(autoscale(2_000))
    for number in range(25):
        container.delete_item(str(number), f"key-{number}")
    laboratory.settle()
    assert container.get_throughput().auto_scale_max_throughput == 3_000, "it never falls by itself"
    lines = [record.getMessage() for record in caplog.records if record.name == "pleiad.throughput"]
    assert lines[-1].startswith('kind="raised-by-storage" resource="laboratory/grows" before=')
    assert lines[-1].endswith("after=3000")


def test_manual_and_shared_throughput_rise_to_their_minimum_with_the_data(
    laboratory_with: Callable[..., Any],
) -> None:
    laboratory = laboratory_with(
        Limits(throughput_ru_per_gb=50 * KB_AS_GB, autoscale_ru_per_gb=100 * KB_AS_GB)
    )
    manual = laboratory.database.create_container("manual", KEY, offer_throughput=400)
    fill(manual, 0, 11)
    laboratory.settle()
    assert manual.get_throughput().offer_throughput == 600
    shared = laboratory.client.create_database("shared", offer_throughput=autoscale(1_000))
    one, two = (shared.create_container(id, KEY) for id in ("one", "two"))
    fill(one, 0, 8)
    laboratory.settle()
    assert shared.get_throughput().auto_scale_max_throughput == 1_000
    fill(two, 0, 8)
    laboratory.settle()
    assert shared.get_throughput().auto_scale_max_throughput == 2_000, "the containers count together"


@pytest.mark.requirement("R8", "R55")
def test_r8_the_partitions_follow_a_maximum_that_the_data_raised(laboratory_with: Callable[..., Any]) -> None:
    laboratory = laboratory_with(Limits(autoscale_ru_per_gb=1_000 * KB_AS_GB))
    container = laboratory.database.create_container("grows", KEY, offer_throughput=autoscale(10_000))
    assert laboratory.physical_partition_count(container) == 1
    fill(container, 0, 12)
    laboratory.settle()
    assert container.get_throughput().auto_scale_max_throughput > 10_000
    assert laboratory.physical_partition_count(container) == 2
    assert len(list(container.read_all_items())) == 12


# -- a set of containers -------------------------------------------------------------------------------


@pytest.mark.requirement("R12", "R13")
def test_r12_25_containers_share_a_database_and_the_next_needs_throughput_of_its_own(
    laboratory_with: Callable[..., Any], refused: Any
) -> None:
    laboratory = laboratory_with(Limits())
    shared = laboratory.client.create_database("shared", offer_throughput=400)
    for number in range(25):
        shared.create_container(f"member-{number}", KEY)
    with refused(403, 1019, "holds its limit of 25 containers"):
        shared.create_container("one too many", KEY)
    own = shared.create_container("on its own", KEY, offer_throughput=500)
    assert own.get_throughput().offer_throughput == 500
    assert shared.get_throughput().offer_throughput == 400
    shared.delete_container("member-7")
    shared.create_container("in its place", KEY).create_item({"id": "a", "pk": "a"})
    with refused(400):
        shared.create_container("without a key", None)


def test_the_minimum_of_a_database_follows_the_highest_it_ever_had(
    laboratory_with: Callable[..., Any], refused: Any
) -> None:
    laboratory = laboratory_with(Limits())
    shared = laboratory.client.create_database("shared", offer_throughput=100_000)
    with refused(400, text="is less than required minimum throughput 1000."):
        shared.replace_throughput(900)
    assert shared.replace_throughput(1_000).offer_throughput == 1_000
    scaled = laboratory.client.create_database("scaled", offer_throughput=autoscale(100_000))
    with refused(400, text="is less than required minimum throughput 10000."):
        scaled.replace_throughput(autoscale(9_000))
    scaled.replace_throughput(autoscale(10_000))
    assert scaled.get_throughput().auto_scale_max_throughput == 10_000


# -- the total of an account ---------------------------------------------------------------------------


def test_an_account_with_a_limit_refuses_what_would_pass_it(
    laboratory_with: Callable[..., Any], refused: Any
) -> None:
    laboratory = laboratory_with(Limits(account_throughput_ru=4_000))
    database = laboratory.database
    one = database.create_container("one", KEY, offer_throughput=1_000)
    two = database.create_container("two", KEY, offer_throughput=autoscale(2_000))
    text = (
        "The account may have 4000 RU/s in all: it has 3000 RU/s, and this request would make it 4100 RU/s."
    )
    with refused(403, 1028, text):
        database.create_container("three", KEY, offer_throughput=1_100)
    with refused(403, 1028):
        laboratory.client.create_database("shared", offer_throughput=autoscale(2_000))
    assert "shared" not in [each["id"] for each in laboratory.client.list_databases()]
    with refused(403, 1028):
        one.replace_throughput(2_100)
    with refused(403, 1028):
        two.replace_throughput(autoscale(4_000))
    assert (one.get_throughput().offer_throughput, two.get_throughput().auto_scale_max_throughput) == (
        1_000,
        2_000,
    )
    one.replace_throughput(2_000)
    one.replace_throughput(400)
    shared = laboratory.client.create_database("shared", offer_throughput=400)
    database.delete_container("two")
    shared.replace_throughput(3_600)
    with refused(403, 1028):
        one.replace_throughput(500)


def test_with_a_limit_a_container_states_its_throughput_or_shares(
    laboratory_with: Callable[..., Any], refused: Any
) -> None:
    laboratory = laboratory_with(Limits(account_throughput_ru=1_000))
    with refused(400, text="state the throughput of a new container"):
        laboratory.database.create_container("silent", KEY)
    shared = laboratory.client.create_database("shared", offer_throughput=1_000)
    shared.create_container("member", KEY).create_item({"id": "a", "pk": "a"})


def test_a_serverless_account_has_nothing_to_limit(laboratory_with: Callable[..., Any]) -> None:
    laboratory = laboratory_with(Limits(account_throughput_ru=100), serverless=True)
    container = laboratory.database.create_container("c", KEY)
    assert container.create_item({"id": "a", "pk": "a"})["id"] == "a"


def test_data_that_grows_may_pass_the_limit_of_the_account(laboratory_with: Callable[..., Any]) -> None:
    laboratory = laboratory_with(Limits(account_throughput_ru=400, throughput_ru_per_gb=50 * KB_AS_GB))
    container = laboratory.database.create_container("grows", KEY, offer_throughput=400)
    fill(container, 0, 11)
    laboratory.settle()
    assert container.get_throughput().offer_throughput == 600


# -- the budget of metadata ----------------------------------------------------------------------------


def test_metadata_beyond_its_budget_is_refused_and_items_are_not(
    laboratory_with: Callable[..., Any], refused: Any
) -> None:
    laboratory = laboratory_with(Limits(metadata_ru=100), throttle="enforce")
    container = laboratory.database.create_container("calm", KEY)
    container.create_item({"id": "a", "pk": "a"})
    container.read_item("a", "a")  # now the client knows the container and its ranges
    endpoint, key = laboratory.client.client_connection.url_connection, laboratory.node.settings.key
    impatient: Any = CosmosClient(endpoint, key, retry_throttle_total=1, retry_fixed_interval=1)
    budget = laboratory.node.engine.metadata_budget
    budget.spend(40_000)  # so much that no pause of a busy machine makes it good
    with refused(429, 3201, "high rate of metadata requests"):
        impatient.get_database_client("laboratory").read()
    assert container.read_item("a", "a")["id"] == "a"
    container.upsert_item({"id": "a", "pk": "a"})
    budget.spend(budget.snapshot().level_ru)  # nothing is owed any more
    for number in range(20):  # a pause of the machine may be as long as it would have to wait
        budget.spend(max(0.0, 200 + budget.snapshot().level_ru))  # whatever the requests before it took
        before, began = budget.snapshot(), time.monotonic()
        laboratory.database.create_container(f"patient{number}", KEY)
        waited = time.monotonic() - began
        if budget.snapshot().refused > before.refused:
            break
    assert waited >= -before.level_ru / before.rate_ru
    assert budget.snapshot().refused == before.refused + 1, "the time it was told to wait was enough"


def test_the_default_budget_of_metadata_is_far_from_what_a_test_suite_asks_for(
    laboratory_with: Callable[..., Any],
) -> None:
    laboratory = laboratory_with(Limits(), throttle="enforce")
    for _ in range(200):
        laboratory.database.read()
    assert laboratory.node.engine.metadata_budget.snapshot().refused == 0
