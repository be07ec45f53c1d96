"""Throughput as the official client sees it: retries that succeed, figures read and replaced, refusals in words."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.cosmos import PartitionKey, ThroughputProperties

from pleiad.engine.faults import Effect, Rule
from pleiad.engine.phase import Phase
from pleiad.limits import Limits
from pleiad.partition.governor import Governor, GovernorSnapshot
from tests.waiting import until

KEY = PartitionKey("/pk")


def figures(laboratory: Any, container: Any) -> list[GovernorSnapshot]:
    return [partition.governor.snapshot() for partition in laboratory.inside(container).map.partitions]


@pytest.mark.requirement("R39", "R40")
def test_r40_beyond_the_throughput_requests_are_refused_and_the_client_retries_until_they_succeed(
    laboratory_with: Callable[..., Any],
) -> None:
    began = time.monotonic()
    governors: list[Governor] = []

    def clock() -> float:
        """Stands still until somebody is refused, so that no machine is too slow for that."""
        return time.monotonic() if any(each._refused or each._refused_total for each in governors) else began

    laboratory = laboratory_with(Limits(), throttle="enforce", clock=clock)
    container = laboratory.database.create_container("small", KEY, offer_throughput=400)
    governors += [partition.governor for partition in laboratory.inside(container).map.partitions]
    charges: list[float] = []

    def create(number: int) -> None:
        container.create_item(
            {"id": str(number), "pk": "hot", "text": "x" * 1_000_000},
            response_hook=lambda headers, _: charges.append(float(headers["x-ms-request-charge"])),
        )

    with ThreadPoolExecutor(4) as clients:
        list(clients.map(create, range(5)))
    seconds = time.monotonic() - began
    (figure,) = figures(laboratory, container)
    assert len(list(container.read_all_items())) == 5
    assert sum(charges) > 800
    assert figure.refused > 0
    assert sum(charges) <= 400 * (seconds + 1) + 4 * max(charges), "more was served than is provisioned"


def test_metadata_is_free_of_the_containers_throughput(laboratory_with: Callable[..., Any]) -> None:
    laboratory = laboratory_with(Limits(), throttle="enforce")
    container = laboratory.database.create_container("small", KEY, offer_throughput=400)
    laboratory.inside(container).map.partitions[0].governor.spend(10_000_000)
    assert container.read()["id"] == "small"
    assert container.get_throughput().offer_throughput == 400
    assert list(laboratory.database.list_containers())


def test_priority_and_bucket_are_options_of_the_client(laboratory: Any, refused: Any) -> None:
    container = laboratory.database.create_container("lanes", KEY)
    container.create_item({"id": "a", "pk": "a"}, priority="Low", throughput_bucket=1)
    assert container.read_item("a", "a", priority="High")["id"] == "a"
    assert list(container.query_items("SELECT * FROM c", partition_key="a", priority="Low"))
    with refused(400, text="specified for the header 'x-ms-cosmos-throughput-bucket' is invalid."):
        container.read_item("a", "a", throughput_bucket=6)
    with refused(400, text="x-ms-cosmos-priority-level"):
        container.read_item("a", "a", priority="Middle")


@pytest.mark.requirement("R17")
def test_the_throughput_of_a_container_is_read_and_replaced(laboratory: Any, refused: Any) -> None:
    container = laboratory.database.create_container("manual", KEY, offer_throughput=1_000)
    assert container.get_throughput().offer_throughput == 1_000
    assert container.replace_throughput(2_500).offer_throughput == 2_500
    assert container.get_throughput().offer_throughput == 2_500
    assert [figure.rate_ru for figure in figures(laboratory, container)] == [2_500]
    text = "valid throughput values between 400 and 1000000 inclusive in increments of 100"
    for wrong in (300, 450, 1_000_100):
        with refused(400, text=text):
            container.replace_throughput(wrong)


def test_autoscale_is_read_and_replaced_by_its_maximum(laboratory: Any, refused: Any) -> None:
    given = ThroughputProperties(auto_scale_max_throughput=20_000, auto_scale_increment_percent=5)
    container = laboratory.database.create_container("autoscale", KEY, offer_throughput=given)
    read = container.get_throughput()
    assert (read.auto_scale_max_throughput, read.auto_scale_increment_percent) == (20_000, 5)
    container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=10_000))
    assert container.get_throughput().auto_scale_max_throughput == 10_000
    both = figures(laboratory, container)
    assert [(figure.rate_ru, figure.scaled_ru) for figure in both] == [(5_000, 500)] * 2
    with refused(400, text="between 2000 and 1000000 inclusive in increments of 1000"):
        container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=1_000))


def test_the_throughput_of_a_database_is_read_and_replaced(laboratory: Any) -> None:
    database = laboratory.client.create_database("shared", offer_throughput=800)
    database.create_container("one", KEY)
    assert database.get_throughput().offer_throughput == 800
    assert database.replace_throughput(400).offer_throughput == 400


@pytest.mark.requirement("R54")
def test_the_highest_ever_sets_the_minimum_and_more_than_the_instant_maximum_makes_partitions(
    laboratory: Any, refused: Any
) -> None:
    container = laboratory.database.create_container("grown", KEY, offer_throughput=400)
    container.replace_throughput(50_000)
    laboratory.ask(laboratory.node.engine.keeper.settled())
    assert [figure.rate_ru for figure in figures(laboratory, container)] == [10_000] * 5
    with refused(400, text="Requested throughput 400 is less than required minimum throughput 500"):
        container.replace_throughput(400)
    container.replace_throughput(500)
    assert [figure.rate_ru for figure in figures(laboratory, container)] == [100] * 5
    ranges = list(container.client_connection._ReadPartitionKeyRanges(container.container_link))
    assert [each["throughputFraction"] for each in ranges] == pytest.approx([0.2] * 5)


def statuses(container: Any) -> dict[str, str]:
    ranges = container.client_connection._ReadPartitionKeyRanges(container.container_link)
    return {each["id"]: each["status"] for each in ranges}


def test_ranges_are_splitting_from_the_moment_their_container_needs_more_of_them(laboratory: Any) -> None:
    container = laboratory.database.create_container("announced", KEY, offer_throughput=400)
    container.replace_throughput(20_000)
    assert statuses(container) == {"0": "splitting"}
    laboratory.ask(laboratory.node.engine.keeper.settled())
    assert statuses(container) == {"1": "online", "2": "online"}
    container.replace_throughput(30_000)
    assert statuses(container) == {"1": "splitting", "2": "online"}
    laboratory.ask(laboratory.node.engine.keeper.settled())
    assert "isOfferReplacePending" not in container.get_throughput().properties["content"]
    assert statuses(container) == {"3": "online", "4": "online", "2": "online"}


def test_nothing_is_pending_when_the_only_partition_holds_a_single_key(laboratory: Any) -> None:
    container = laboratory.database.create_container("one-key", KEY, offer_throughput=400)
    container.create_item({"id": "1", "pk": "only"})
    container.replace_throughput(11_000)
    laboratory.ask(laboratory.node.engine.keeper.settled())
    assert "isOfferReplacePending" not in container.get_throughput().properties["content"]
    assert statuses(container) == {"0": "online"}


def test_a_range_is_splitting_while_a_split_is_held(laboratory_with: Callable[..., Any]) -> None:
    laboratory = laboratory_with(Limits())
    engine = laboratory.node.engine
    container = laboratory.database.create_container("asked", KEY)
    engine.faults.add(Rule(id="hold", effect=Effect.HOLD, phase=Phase.DIVIDING, expires_at=math.inf))

    async def begin() -> asyncio.Task[Any]:
        split = asyncio.create_task(engine.split(await engine.container("laboratory", "asked"), "0"))
        assert await until(lambda: engine.faults.live()[0].hits)
        return split

    async def end(split: asyncio.Task[Any]) -> None:
        engine.faults.clear()
        await split

    split = laboratory.ask(begin())
    assert statuses(container) == {"0": "splitting"}
    laboratory.ask(end(split))
    assert statuses(container) == {"1": "online", "2": "online"}


def test_while_partitions_are_made_the_change_is_pending_and_only_what_they_serve_is_accepted(
    laboratory_with: Callable[..., Any], refused: Any
) -> None:
    laboratory = laboratory_with(Limits())
    faults = laboratory.node.engine.faults
    container = laboratory.database.create_container("held", KEY, offer_throughput=400)
    answers: list[Any] = []

    def keep(headers: Any, _: Any = None) -> None:
        answers.append(headers)

    faults.add(Rule(id="hold", effect=Effect.HOLD, phase=Phase.DIVIDING, expires_at=math.inf))
    container.replace_throughput(30_000, response_hook=keep)
    assert answers[-1]["x-ms-offer-replace-pending"] == "true"
    assert answers[-1]["x-ms-cosmos-instant-scale-up-value"] == "10000"
    assert container.get_throughput().properties["content"]["isOfferReplacePending"] is True
    with refused(423, text="being changed already"):
        container.replace_throughput(40_000)
    container.replace_throughput(9_000, response_hook=keep)
    assert answers[-1]["x-ms-offer-replace-pending"] == "false"
    container.replace_throughput(30_000)

    async def go_on() -> None:
        faults.clear()
        await laboratory.node.engine.keeper.settled()

    laboratory.ask(go_on())
    container.replace_throughput(30_000, response_hook=keep)
    assert answers[-1]["x-ms-offer-replace-pending"] == "false"
    assert len(figures(laboratory, container)) >= 3


def test_a_serverless_account_refuses_throughput_in_the_services_words(
    laboratory_with: Callable[..., Any], refused: Any
) -> None:
    laboratory = laboratory_with(Limits(), serverless=True)
    container = laboratory.database.create_container("c", KEY)
    container.create_item({"id": "a", "pk": "a"})
    assert [figure.rate_ru for figure in figures(laboratory, container)] == [5_000]
    text = "Setting offer throughput or autopilot on container is not supported for serverless accounts."
    with refused(400, text=text):
        laboratory.database.create_container("d", KEY, offer_throughput=400)
    text = "Reading or replacing offers is not supported for serverless accounts."
    with refused(400, text=text):
        container.get_throughput()
    with refused(400, text=text):
        container.replace_throughput(500)
