"""Changes of throughput that are bound to times and counts, and that outlive a restart."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson
import pytest

from pleiad import errors
from pleiad.catalog.resource import Resource
from pleiad.catalog.throughput import Throughput
from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.errors import PleiadError
from pleiad.heads.nosql.resource_json import to_json
from pleiad.limits import GB, Limits
from pleiad.server.http.failures import status_of

Opened = Callable[..., AbstractAsyncContextManager[Engine]]
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}


async def made(engine: Engine, given: Throughput, id: str = "c") -> Container:
    database = await engine.create_database({"id": f"db-{id}"}, None)
    await engine.create_container(database, {"id": id, "partitionKey": KEY}, given)
    return await engine.container(f"db-{id}", id)


def offer_of(engine: Engine, container: Container) -> Resource:
    offer = engine.catalog.offer_of(container.resource.rid)
    assert offer is not None
    return offer


async def set_bucket(engine: Engine, container: Container, percent: int) -> Resource:
    offer = offer_of(engine, container)
    buckets = [{"id": 1, "maxThroughputPercentage": percent}]
    content = {**offer.properties["content"], "throughputBuckets": buckets}
    return await engine.replace_offer(offer.rid, {"content": content}, None)


@pytest.mark.every_store
async def test_the_pause_between_changes_of_buckets_outlives_a_restart_and_is_shown_to_nobody(
    engine: Opened,
) -> None:
    async with engine() as opened:
        container = await made(opened, Throughput(400))
        opened.provisioning.now = lambda: 5_000.0
        changed = await set_bucket(opened, container, 30)
        assert "5000" not in orjson.dumps(to_json(opened.catalog, changed)["content"]).decode()
        assert not [name for name in to_json(opened.catalog, changed) if "hanged" in name]
    async with engine() as opened:
        container = await opened.container("db-c", "c")
        opened.provisioning.now = lambda: 5_000.0 + 400
        with pytest.raises(PleiadError) as caught:
            await set_bucket(opened, container, 40)
        assert caught.value.row is errors.TOO_MANY_BUCKET_CHANGES
        assert caught.value.retry_after_ms == 200_001
        opened.provisioning.now = lambda: 5_000.0 + 600
        changed = await set_bucket(opened, container, 40)
        assert changed.properties["content"]["throughputBuckets"][0]["maxThroughputPercentage"] == 40


async def test_buckets_that_are_taken_away_leave_nothing_behind(engine: Opened) -> None:
    async with engine(Limits(throughput_bucket_change_seconds=0)) as opened:
        container = await made(opened, Throughput(400))
        offer = await set_bucket(opened, container, 30)
        content = {**offer.properties["content"], "throughputBuckets": []}
        offer = await opened.replace_offer(offer.rid, {"content": content}, None)
        assert "throughputBuckets" not in to_json(opened.catalog, offer)["content"]


async def test_a_clock_that_was_set_back_does_not_lock_the_buckets(engine: Opened) -> None:
    async with engine() as opened:
        container = await made(opened, Throughput(400))
        opened.provisioning.now = lambda: 900_000.0
        await set_bucket(opened, container, 30)
        opened.provisioning.now = lambda: 5_000.0
        await set_bucket(opened, container, 40)


async def test_throughput_is_redistributed_five_times_in_a_minute_over_a_restart(engine: Opened) -> None:
    now = 1_000.0
    async with engine() as opened:
        container = await made(opened, Throughput(12_000))
        opened.provisioning.now = lambda: now
        with pytest.raises(PleiadError, match="sum up"):
            await opened.offers.redistribute(container, {0: 1_000, 1: 1_000})
        for first in (9_000, 8_000, 7_000):
            now += 10
            await opened.offers.redistribute(container, {0: first, 1: 12_000 - first})
    async with engine() as opened:
        container = await opened.container("db-c", "c")
        opened.provisioning.now = lambda: now
        await opened.offers.redistribute(container, None)
        await opened.offers.redistribute(container, {0: 5_000, 1: 7_000})
        with pytest.raises(PleiadError) as caught:
            await opened.offers.redistribute(container, {0: 6_000, 1: 6_000})
        assert caught.value.row is errors.TOO_MANY_REDISTRIBUTIONS
        assert caught.value.retry_after_ms == 40_001
        assert [each.governor.rate_ru for each in container.map.partitions] == [5_000, 7_000]
        now += 40.001
        await opened.offers.redistribute(container, None)
        assert [each.governor.rate_ru for each in container.map.partitions] == [6_000, 6_000]
        assert not [
            name for name in to_json(opened.catalog, offer_of(opened, container)) if "istributed" in name
        ]


async def test_one_redistribution_takes_from_and_gives_to_a_bounded_number_of_partitions(
    engine: Opened,
) -> None:
    async with engine(Limits(redistribution_partitions=2)) as opened:
        container = await made(opened, Throughput(30_000))
        even = [each.governor.rate_ru for each in container.map.partitions]
        assert even == [6_000] * 5
        for given in ([5_000, 5_000, 5_000, 7_500, 7_500], [7_000, 7_000, 7_000, 4_500, 4_500]):
            with pytest.raises(PleiadError, match="from 2 physical partitions at most") as caught:
                await opened.offers.redistribute(container, dict(enumerate(given)))
            assert status_of(caught.value) == 400
        assert [each.governor.rate_ru for each in container.map.partitions] == even
        wanted = [5_000, 5_000, 6_000, 7_000, 7_000]
        await opened.offers.redistribute(container, dict(enumerate(wanted)))
        assert [each.governor.rate_ru for each in container.map.partitions] == wanted


# -- the data raises the throughput --------------------------------------------------------------------


def growing(**more: Any) -> Limits:
    """Limits under which each KB counts as ten GB."""
    return Limits(autoscale_ru_per_gb=100 * GB // 1024, **more)


async def fill(container: Container, count: int) -> None:
    for number in range(count):
        body = {"id": str(number), "pk": f"key-{number}", "text": "x" * 1_000}
        await items.create(container, orjson.dumps(body), (f"key-{number}",))


@pytest.mark.every_store
async def test_a_maximum_that_the_data_raised_keeps_buckets_and_shares_and_outlives_a_restart(
    engine: Opened,
) -> None:
    async with engine(growing()) as opened:
        container = await made(opened, Throughput(12_000, autoscale=True))
        await set_bucket(opened, container, 30)
        await opened.offers.redistribute(container, {0: 9_000, 1: 3_000})
        await fill(container, 135)
        await opened.keeper.settled()
        content = offer_of(opened, container).properties["content"]
        assert content["offerAutopilotSettings"]["maxThroughput"] == 14_000
        assert content["offerMinimumThroughputParameters"]["maxThroughputEverProvisioned"] == 14_000
        assert content["throughputBuckets"][0]["maxThroughputPercentage"] == 30
        assert [each.governor.rate_ru for each in container.map.partitions] == [10_000, 3_500]
    async with engine(growing()) as opened:
        container = await opened.container("db-c", "c")
        assert [each.governor.rate_ru for each in container.map.partitions] == [10_000, 3_500]


@pytest.mark.requirement("R12")
async def test_the_data_of_a_database_with_shared_throughput_counts_when_its_containers_are_at_work(
    engine: Opened,
) -> None:
    async with engine(Limits()) as opened:
        database = await opened.create_database({"id": "db"}, Throughput(1_000, autoscale=True))
        for id in ("one", "two"):
            await opened.create_container(database, {"id": id, "partitionKey": KEY}, None)
            await fill(await opened.container("db", id), 8)
    async with engine(growing()) as opened:
        offer = opened.catalog.offer_of(opened.database("db").rid)
        assert offer is not None
        state = await opened.offer_state(offer)
        assert state.minimum_ru == 2_000
        await opened.keeper.settled()
        raised = opened.catalog.offer_of(opened.database("db").rid)
        assert raised is not None
        assert raised.properties["content"]["offerAutopilotSettings"]["maxThroughput"] == 2_000
