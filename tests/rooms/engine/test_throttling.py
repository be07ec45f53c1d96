"""Throughput at work: every operation is admitted and pays, hot partitions are limited, and shares follow the map."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from pleiad.catalog.throughput import Throughput
from pleiad.engine import batch, items, patching, reading
from pleiad.engine.batch import ItemOperation, ItemVerb
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.feed import changes, listing
from pleiad.engine.feed.changes import Origin
from pleiad.engine.items import NO_CONDITIONS
from pleiad.engine.query import execution
from pleiad.engine.query.request import QueryRequest
from pleiad.engine.sweeper import sweep
from pleiad.errors import PleiadError
from pleiad.heads.nosql.failures import substatus_of
from pleiad.keys.range import WHOLE
from pleiad.limits import PROFILES, Limits
from pleiad.partition.governor import SYSTEM, Lane, Throttle
from pleiad.partition.partition import Partition
from pleiad.server.http.failures import status_of

Opened = Callable[..., AbstractAsyncContextManager[Engine]]
FOODS = ("Beef Products", "Vegetable and Vegetable Products", "Soups, Sauces, and Gravies")


class Clock:
    """A clock that stands still until it is turned."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def strict(clock: Clock) -> Throttle:
    return Throttle(clock=clock)


async def new_container(
    engine: Engine, ru: int = 400, id: str = "c", throughput: Throughput | None = None, **more: Any
) -> Container:
    database = await engine.create_database({"id": f"db-{id}"}, None)
    body = {"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, **more}
    await engine.create_container(database, body, throughput or Throughput(ru))
    return await engine.container(f"db-{id}", id)


async def put(container: Container, id: str, pk: str, **more: Any) -> None:
    raw = json.dumps({"id": id, "pk": pk, **more}).encode()
    await items.create(container, raw, (pk,), SYSTEM)


def home(container: Container, pk: str) -> Partition:
    return container.map.find(container.epk_of((pk,)))


def one_key_for_each_partition(container: Container) -> dict[Partition, str]:
    found: dict[Partition, str] = {}
    number = 0
    while len(found) < len(container.map.partitions):
        found.setdefault(home(container, f"key-{number}"), f"key-{number}")
        number += 1
    return found


def exhaust(container: Container) -> None:
    for partition in container.map.partitions:
        partition.governor.spend(10 * partition.governor.rate_ru)


async def refusal_of(work: Awaitable[Any]) -> PleiadError:
    with pytest.raises(PleiadError) as caught:
        await work
    assert (status_of(caught.value), substatus_of(caught.value)) == (429, 3200)
    return caught.value


def select(text: str, **more: Any) -> QueryRequest:
    return QueryRequest(text=text, parameters={}, span=WHOLE, items_max=1_000, **more)


OPERATIONS: dict[str, Callable[[Container], Awaitable[Any]]] = {
    "read": lambda c: reading.read(c, "a", ("x",)),
    "create": lambda c: items.create(c, b'{"id":"new","pk":"x"}', ("x",)),
    "upsert": lambda c: items.upsert(c, b'{"id":"a","pk":"x"}', ("x",), NO_CONDITIONS),
    "replace": lambda c: items.replace(c, "a", b'{"id":"a","pk":"x","n":2}', ("x",), NO_CONDITIONS),
    "patch": lambda c: patching.patch(c, "a", b'[{"op":"set","path":"/n","value":3}]', ("x",), NO_CONDITIONS),
    "delete": lambda c: items.delete(c, "a", ("x",), NO_CONDITIONS),
    "batch": lambda c: batch.run_transaction(c, ("x",), [ItemOperation(ItemVerb.READ, "a")]),
    "query": lambda c: execution.run(c, select("SELECT * FROM c")),
    "ordered query": lambda c: execution.run(c, select("SELECT * FROM c ORDER BY c.n")),
    "count": lambda c: execution.run(c, select("SELECT VALUE COUNT(1) FROM c")),
    "look-up": lambda c: execution.run(c, select('SELECT * FROM c WHERE c.pk = "x" AND c.id = "a"')),
    "feed": lambda c: listing.page(c, WHOLE, "", 10),
    "change feed": lambda c: changes.page(c, WHOLE, "", Origin.BEGINNING, 0, 10),
}


def charged(answer: Any) -> float:
    return float(answer.charge_ru if hasattr(answer, "charge_ru") else answer.charge.ru)


@pytest.mark.parametrize("name", OPERATIONS)
async def test_every_operation_pays_its_charge_and_is_refused_when_nothing_is_left(
    engine: Opened, name: str
) -> None:
    clock = Clock()
    async with engine(throttle=strict(clock)) as opened:
        container = await new_container(opened, 12_000)
        await put(container, "a", "x", n=1)
        answer = await OPERATIONS[name](container)
        spent = sum(partition.governor.snapshot().ru for partition in container.map.partitions)
        assert spent == pytest.approx(charged(answer))
        exhaust(container)
        before = [partition.governor.snapshot() for partition in container.map.partitions]
        refusal = await refusal_of(OPERATIONS[name](container))
        assert refusal.charge_ru is None
        assert refusal.range_id in ("0", "1")
        after = [partition.governor.snapshot() for partition in container.map.partitions]
        assert [each.ru for each in before] == [each.ru for each in after]
        assert sum(each.refused for each in after) >= 1
        assert refusal.retry_after_ms is not None
        clock.now += refusal.retry_after_ms / 1000
        if name not in ("delete", "create"):
            await OPERATIONS[name](container)


async def test_a_failed_operation_pays_what_its_failure_says(engine: Opened) -> None:
    async with engine(throttle=strict(Clock())) as opened:
        container = await new_container(opened)
        await put(container, "a", "x")
        total = 0.0
        for work in (
            reading.read(container, "none", ("x",)),
            items.create(container, b'{"id":"a","pk":"x"}', ("x",)),
            items.delete(container, "none", ("x",), NO_CONDITIONS),
            patching.patch(container, "none", b'[{"op":"set","path":"/n","value":3}]', ("x",), NO_CONDITIONS),
        ):
            with pytest.raises(PleiadError) as caught:
                await work
            assert caught.value.charge_ru
            total += caught.value.charge_ru
        assert container.map.partitions[0].governor.snapshot().ru == pytest.approx(total)


async def test_a_request_that_is_wrong_in_itself_is_not_admitted_and_pays_nothing(engine: Opened) -> None:
    async with engine(throttle=strict(Clock())) as opened:
        container = await new_container(opened)
        exhaust(container)
        with pytest.raises(PleiadError) as caught:
            await items.create(container, b'{"pk":"x"}', ("x",))
        assert status_of(caught.value) == 400


async def test_in_bulk_each_operation_is_admitted_by_itself(engine: Opened) -> None:
    async with engine(throttle=strict(Clock())) as opened:
        container = await new_container(opened, 12_000)
        keys = one_key_for_each_partition(container)
        (hot, hot_key), (_, cold_key) = keys.items()
        hot.governor.spend(100_000)
        operations = [
            ItemOperation(ItemVerb.CREATE, body=json.dumps({"id": "i", "pk": key}).encode(), key=(key,))
            for key in (hot_key, cold_key)
        ]
        refused, done = (await batch.run_bulk(container, operations)).answers
        assert isinstance(refused, PleiadError)
        assert (status_of(refused), substatus_of(refused)) == (429, 3200)
        assert not isinstance(done, PleiadError)


@pytest.mark.requirement("R33", "R37", "R38", "R39", "R40")
async def test_r38_one_hot_food_group_gets_6000_of_18000_while_the_others_run_free(engine: Opened) -> None:
    """18,000 RU/s over three physical partitions: 6,000 each, whatever the others leave unused."""
    clock = Clock()
    async with engine(throttle=strict(clock)) as opened:
        container = await new_container(opened, 18_000)
        assert [each.governor.rate_ru for each in container.map.partitions] == [6_000] * 3
        names = dict(zip(one_key_for_each_partition(container).values(), FOODS, strict=True))
        for key, food in names.items():
            await put(container, "item", key, food=food)
        served = dict.fromkeys(names, 0.0)
        hot, *others = names
        refusals: list[tuple[int, str | None]] = []

        async def ask(key: str) -> bool:
            try:
                served[key] += (await reading.read(container, "item", (key,))).charge.ru
            except PleiadError as error:
                refusals.append((status_of(error), error.range_id))
                return False
            return True

        for partition in container.map.partitions:
            partition.governor.spend(partition.governor.rate_ru)  # what was saved before the first second
        for _ in range(20):
            clock.now += 0.01
            while await ask(hot):
                pass
            for other in others:
                assert await ask(other), "a partition that is not hot was limited"
        assert served[hot] / 0.2 == pytest.approx(6_000, rel=0.02)
        assert all(served[other] == 20 for other in others)
        assert refusals == [(429, home(container, hot).range_id)] * 20
        figures = {key: home(container, key).governor.snapshot() for key in names}
        assert figures[hot].refused == 20
        assert [figures[other].refused for other in others] == [0, 0]


async def test_a_page_ends_before_a_partition_that_admits_nobody_and_goes_on_later(engine: Opened) -> None:
    clock = Clock()
    async with engine(throttle=strict(clock)) as opened:
        container = await new_container(opened, 18_000)
        for number in range(30):
            await put(container, f"i{number}", f"key-{number}")
        second = container.map.partitions[1]
        second.governor.spend(7_000)
        page = await execution.run(container, select("SELECT VALUE c.id FROM c"))
        expected = {row.id for row in await container.map.partitions[0].scan(WHOLE, 0, 100)}
        assert {json.loads(text) for text in page.results} == expected
        assert page.token is not None
        rest = select("SELECT VALUE c.id FROM c", token=page.token)
        refusal = await refusal_of(execution.run(container, rest))
        assert refusal.range_id == second.range_id
        clock.now += (refusal.retry_after_ms or 0) / 1000
        last = await execution.run(container, rest)
        assert last.token is None
        everything = [json.loads(text) for text in [*page.results, *last.results]]
        assert sorted(everything) == sorted(f"i{number}" for number in range(30))

        second.governor.spend(7_000)
        fed = await listing.page(container, WHOLE, "", 100)
        assert {row.id for row in fed.rows} == expected
        assert fed.token is not None


async def test_a_query_of_everything_waits_for_the_slowest_partition(engine: Opened) -> None:
    async with engine(throttle=strict(Clock())) as opened:
        container = await new_container(opened, 18_000)
        container.map.partitions[0].governor.spend(7_000)
        container.map.partitions[2].governor.spend(12_000)
        refusal = await refusal_of(execution.run(container, select("SELECT VALUE COUNT(1) FROM c")))
        assert (refusal.range_id, refusal.retry_after_ms) == ("2", 1_001)


async def test_priority_and_buckets_reach_the_governor(engine: Opened) -> None:
    async with engine(throttle=strict(Clock())) as opened:
        container = await new_container(opened, 1_000)
        await put(container, "a", "x")
        offer = opened.catalog.offer_of(container.resource.rid)
        assert offer is not None
        buckets = [{"id": 2, "maxThroughputPercentage": 10}]
        content = {"offerThroughput": 1_000, "throughputBuckets": buckets}
        await opened.replace_offer(offer.rid, {"content": content}, None)
        for _ in range(100):
            await reading.read(container, "a", ("x",), lane=Lane(bucket=2))
        with pytest.raises(PleiadError) as caught:
            await reading.read(container, "a", ("x",), lane=Lane(bucket=2))
        assert (status_of(caught.value), substatus_of(caught.value)) == (429, 3212)
        container.map.partitions[0].governor.spend(750)
        await refusal_of(reading.read(container, "a", ("x",), lane=Lane(low_priority=True)))
        await reading.read(container, "a", ("x",))


async def test_the_sweeper_takes_only_what_requests_leave(engine: Opened) -> None:
    clock = Clock()
    async with engine(throttle=strict(clock)) as opened:
        container = await new_container(opened, defaultTtl=1)
        for number in range(300):
            await put(container, f"i{number}", "x")
        (partition,) = container.map.partitions
        later = 2**31
        partition.governor.spend_spare(400)
        assert await sweep(container, later) == 0
        clock.now += 3
        assert await sweep(container, later) == 100
        assert await sweep(container, later) == 0
        assert partition.governor.is_open(), "sweeping held up requests"


# -- shares ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R37")
async def test_shares_follow_a_split_a_merge_and_a_new_throughput(engine: Opened) -> None:
    async with engine(throttle=strict(Clock())) as opened:
        container = await new_container(opened, 12_000)
        kept = container.map.partitions[1].governor
        kept.spend(3)
        await opened.split(container, "0")
        assert [each.governor.rate_ru for each in container.map.partitions] == [4_000] * 3
        assert container.map.partitions[2].governor is kept
        await opened.keeper.settled()
        assert kept.snapshot().ru == 3
        offer = opened.catalog.offer_of(container.resource.rid)
        assert offer is not None
        await opened.replace_offer(offer.rid, {"content": {"offerThroughput": 6_000}}, None)
        assert [each.governor.rate_ru for each in container.map.partitions] == [2_000] * 3
        ids = [partition.range_id for partition in container.map.partitions[:2]]
        await opened.merge(container, ids)
        assert [each.governor.rate_ru for each in container.map.partitions] == [3_000] * 2


async def test_redistribution_sums_up_to_the_throughput_and_outlives_a_restart(engine: Opened) -> None:
    async with engine(throttle=strict(Clock())) as opened:
        container = await new_container(opened, 12_000)
        await opened.offers.redistribute(container, {0: 9_000, 1: 3_000})
        assert [each.governor.rate_ru for each in container.map.partitions] == [9_000, 3_000]
        for wrong in (
            {0: 9_000, 1: 2_000},
            {0: 12_000},
            {0: 11_000, 1: 1_000},
            {0: 12_000, 1: 0},
            {0: 9_000, 1: math.nan},
        ):
            with pytest.raises(PleiadError) as caught:
                await opened.offers.redistribute(container, wrong)
            assert status_of(caught.value) == 400
        offer = opened.catalog.offer_of(container.resource.rid)
        assert offer is not None
        await opened.replace_offer(offer.rid, {"content": {"offerThroughput": 4_000}}, None)
        assert [each.governor.rate_ru for each in container.map.partitions] == [3_000, 1_000]
    async with engine(throttle=strict(Clock())) as opened:
        container = await opened.container("db-c", "c")
        assert [each.governor.rate_ru for each in container.map.partitions] == [3_000, 1_000]
        await opened.offers.redistribute(container, None)
        assert [each.governor.rate_ru for each in container.map.partitions] == [2_000, 2_000]


@pytest.mark.requirement("R12", "R13")
async def test_r13_containers_of_a_database_spend_from_the_same_partitions(engine: Opened) -> None:
    clock = Clock()
    async with engine(throttle=strict(clock)) as opened:
        database = await opened.create_database({"id": "db"}, Throughput(400))
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        for id in ("one", "two"):
            await opened.create_container(database, {"id": id, "partitionKey": key}, None)
        await opened.create_container(database, {"id": "own", "partitionKey": key}, Throughput(400))
        one, two, own = [await opened.container("db", id) for id in ("one", "two", "own")]
        for container in (one, two, own):
            await put(container, "a", "x")
        one.map.partitions[0].governor.spend(500)
        await refusal_of(reading.read(two, "a", ("x",)))
        await reading.read(own, "a", ("x",))
        offer = opened.catalog.offer_of(database.rid)
        assert offer is not None
        await opened.replace_offer(offer.rid, {"content": {"offerThroughput": 1_000}}, None)
        await reading.read(two, "a", ("x",))


async def test_the_throughput_in_force_is_there_again_after_a_restart(engine: Opened) -> None:
    async with engine() as opened:
        container = await new_container(opened, 10_000)
        offer = opened.catalog.offer_of(container.resource.rid)
        assert offer is not None
        await opened.replace_offer(offer.rid, {"content": {"offerThroughput": 500}}, None)
    async with engine() as opened:
        container = await opened.container("db-c", "c")
        assert container.map.partitions[0].governor.rate_ru == 500


# -- kinds of accounts and containers --------------------------------------------------------------------------


async def test_a_serverless_account_has_no_offers_and_5000_for_each_partition(engine: Opened) -> None:
    async with engine(throttle=strict(Clock()), serverless=True) as opened:
        database = await opened.create_database({"id": "db"}, None)
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        await opened.create_container(database, {"id": "c", "partitionKey": key}, None)
        container = await opened.container("db", "c")
        assert [each.governor.rate_ru for each in container.map.partitions] == [5_000]
        for work in (
            opened.create_container(database, {"id": "d", "partitionKey": key}, Throughput(400)),
            opened.create_database({"id": "e"}, Throughput(400)),
        ):
            with pytest.raises(PleiadError, match="not supported for serverless accounts") as caught:
                await work
            assert status_of(caught.value) == 400
    with pytest.raises(ValueError, match="belongs to a serverless account"):
        async with engine():
            pass


async def test_data_with_provisioned_throughput_is_not_served_as_a_serverless_account(engine: Opened) -> None:
    async with engine() as opened:
        await new_container(opened)
    with pytest.raises(ValueError, match="not serverless"):
        async with engine(serverless=True):
            pass


@pytest.mark.requirement("R9", "R16")
async def test_r9_a_fixed_container_needs_no_key_and_has_10_gb_and_10000_ru(engine: Opened) -> None:
    limits = Limits(fixed_container_bytes=2_000, fixed_below_ru=1_000)
    async with engine(limits) as opened:
        database = await opened.create_database({"id": "db"}, None)
        with pytest.raises(PleiadError, match="at most 10000 RU/s"):
            await opened.create_container(database, {"id": "large"}, Throughput(10_100))
        await opened.create_container(database, {"id": "fixed"}, Throughput(10_000))
        fixed = await opened.container("db", "fixed")
        answer = await items.create(fixed, b'{"id":"a","city":"Rome"}', None)
        assert answer.row is not None
        assert (await reading.read(fixed, "a", None)).row == answer.row
        found = await execution.run(fixed, select("SELECT * FROM c ORDER BY c.city", may_fan_out=False))
        assert len(found.results) == 1
        for id in ("b", "c"):
            await items.create(fixed, b'{"id":"%s","text":"%s"}' % (id.encode(), b"x" * 900), None)
        with pytest.raises(PleiadError) as caught:
            await items.create(fixed, b'{"id":"d","text":"%s"}' % (b"x" * 900), None)
        assert (status_of(caught.value), substatus_of(caught.value)) == (403, 1014)
        offer = opened.catalog.offer_of(fixed.resource.rid)
        assert offer is not None
        with pytest.raises(PleiadError, match="copy its items into a container with a partition key"):
            await opened.replace_offer(offer.rid, {"content": {"offerThroughput": 10_100}}, None)
    assert PROFILES["2018"].fixed_container_bytes == 10 * 1024**3


@pytest.mark.requirement("R14", "R15")
async def test_r15_only_a_container_created_with_1000_ru_or_more_is_split(engine: Opened) -> None:
    limits = Limits(fixed_container_bytes=10**9, fixed_below_ru=1_000, physical_partition_bytes=1_000)
    async with engine(limits) as opened:
        small, large = await new_container(opened, 900, "small"), await new_container(opened, 1_000, "large")
        for container in (small, large):
            for number in range(40):
                await put(container, f"i{number}", f"key-{number}", text="x" * 40)
        await opened.keeper.settled()
        assert len(small.map.partitions) == 1
        assert len(large.map.partitions) > 1
        with pytest.raises(PleiadError, match="fixed"):
            await opened.split(small, "0")
        offer = opened.catalog.offer_of(small.resource.rid)
        assert offer is not None
        await opened.replace_offer(offer.rid, {"content": {"offerThroughput": 5_000}}, None)
        await opened.keeper.settled()
        assert len(small.map.partitions) == 1, "what was created below 1,000 RU/s stays fixed"


@pytest.mark.every_store
@pytest.mark.requirement("R9", "R15", "R16")
async def test_r9_a_fixed_container_with_a_key_is_limited_as_a_whole(engine: Opened) -> None:
    limits = Limits(fixed_container_bytes=3_000, fixed_below_ru=1_000, logical_partition_bytes=2_500)
    async with engine(limits) as opened:
        fixed, unlimited = (
            await new_container(opened, 900, "small"),
            await new_container(opened, 1_000, "large"),
        )
        for container in (fixed, unlimited):
            for key in ("LAX", "AMS"):
                await put(container, "a", key, text="x" * 1_200)
        with pytest.raises(PleiadError, match="The fixed container reached its maximum size of") as caught:
            await put(fixed, "a", "MEL", text="x" * 1_200)
        assert (status_of(caught.value), caught.value.charge_ru is not None) == (403, True)
        await put(unlimited, "a", "MEL", text="x" * 1_200)
        body = json.dumps({"id": "a", "pk": "MEL", "text": "x" * 1_200}).encode()
        (refused,) = (
            await batch.run_transaction(fixed, ("MEL",), [ItemOperation(ItemVerb.CREATE, body=body)])
        ).answers
        assert isinstance(refused, PleiadError)
        assert status_of(refused) == 403
        assert (await reading.read(fixed, "a", ("LAX",))).row is not None
        await items.delete(fixed, "a", ("LAX",), NO_CONDITIONS)
        await put(fixed, "a", "MEL", text="x" * 1_200)
        offer = opened.catalog.offer_of(fixed.resource.rid)
        assert offer is not None
        await opened.replace_offer(offer.rid, {"content": {"offerThroughput": 5_000}}, None)
        with pytest.raises(PleiadError, match="The fixed container reached its maximum size of"):
            await put(fixed, "a", "LAX", text="x" * 1_200)
    async with engine(limits) as opened:
        fixed = await opened.container("db-small", "small")
        with pytest.raises(PleiadError, match="The fixed container reached its maximum size of"):
            await put(fixed, "a", "LAX", text="x" * 1_200)


async def test_without_fixed_containers_a_partition_key_is_required(engine: Opened) -> None:
    async with engine() as opened:
        database = await opened.create_database({"id": "db"}, None)
        with pytest.raises(PleiadError) as caught:
            await opened.create_container(database, {"id": "c"}, Throughput(400))
        assert (status_of(caught.value), substatus_of(caught.value)) == (400, 1013)
