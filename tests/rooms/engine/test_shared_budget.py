"""Request units of one budget at several servers: together they admit what one would, and a chunk each at most.

Where figures are counted the governors run on a clock that the test turns, and the test takes the turns of the
servers by hand, so nothing depends on how fast the machine is.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
import pytest

from pleiad.catalog.resource import Kind
from pleiad.catalog.throughput import Throughput
from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS
from pleiad.engine.sweeper import sweep
from pleiad.engine.throughput import shared_budget
from pleiad.engine.throughput.shared_budget import LEASE_SECONDS, fair_part
from pleiad.errors import PleiadError
from pleiad.partition.governor import CHUNK, NORMAL, SYSTEM, Governor, Lane, Throttle
from pleiad.server.http.failures import status_of
from pleiad.store.postgres.store import PostgresStore
from tests.postgres_server import PostgresServer
from tests.rooms.engine.test_throttling import Clock
from tests.stores import PATIENT
from tests.waiting import until

RATE = 1_000.0
STEP_SECONDS = 0.05


@pytest.fixture
def slow_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases that no slow machine lets end, and no turns but those the test takes."""
    monkeypatch.setattr(shared_budget, "LEASE_SECONDS", 60.0)
    for name in ("TURN_SECONDS", "ALONE_TURN_SECONDS", "_AT_ONCE_SECONDS"):
        monkeypatch.setattr(shared_budget, name, 600.0)


async def opened(stack: AsyncExitStack, dsn: str, throttle: Throttle) -> Engine:
    engine = Engine(await PostgresStore.open(dsn), PATIENT, throttle=throttle)
    await engine.open()
    stack.push_async_callback(engine.close)
    return engine


async def made(engine: Engine, id: str = "c", ru: int = int(RATE), **more: object) -> Container:
    if engine.catalog.find(Kind.DATABASE, "", "db") is None:
        await engine.create_database({"id": "db"}, None)
    body = {"id": id, "partitionKey": {"paths": ["/pk"], "version": 2}, **more}
    await engine.create_container(engine.database("db"), body, Throughput(ru))
    return await engine.container("db", id)


async def seen(engine: Engine, id: str = "c") -> Container:
    await engine.openings.look()
    return await engine.container("db", id)


def governor_of(container: Container) -> Governor:
    return container.map.partitions[0].governor


def served(governor: Governor, ru_max: float, cost_ru: float = 5.0, lane: Lane = NORMAL) -> float:
    """What a client gets that asks for no more than so many units now."""
    got = 0.0
    while got < ru_max:
        try:
            governor.admit(lane)
        except PleiadError:
            break
        governor.spend(cost_ru, lane)
        got += cost_ru
    return got


class Trial:
    """Servers with one budget, a clock, and the units each one served."""

    def __init__(self, clock: Clock, engines: Sequence[Engine], governors: Sequence[Governor]) -> None:
        self.clock = clock
        self.engines = list(engines)
        self.governors = list(governors)
        self.served = [0.0 for _ in engines]
        self.began = clock.now

    async def run(self, seconds: float, wants: Callable[[int], float]) -> list[float]:
        """What each server serves in a time; `wants` is how many units are asked for at one of them in a step."""
        before = list(self.served)
        for step in range(round(seconds / STEP_SECONDS)):
            self.clock.now += STEP_SECONDS
            for index, governor in enumerate(self.governors):
                self.served[index] += served(governor, wants(index))
            if step % 4 == 3:
                for engine in self.engines:
                    await engine.budget.turn()
            self.check()
        return [now - then for now, then in zip(self.served, before, strict=True)]

    def check(self) -> None:
        """What the house promises: the budget of the time, a full bucket, a chunk and a last request at each."""
        assert sum(governor.share for governor in self.governors) <= 1 + 1e-9
        in_buckets = sum(max(0.0, governor.snapshot().level_ru) for governor in self.governors)
        assert in_buckets <= RATE + RATE * CHUNK * len(self.governors)
        seconds = self.clock.now - self.began
        each = RATE * CHUNK + 5.0
        assert sum(self.served) <= RATE * (seconds + 1) + each * len(self.governors) + 1e-6


@asynccontextmanager
async def trial(dsn: str, servers: int) -> AsyncIterator[Trial]:
    clock = Clock()
    throttle = Throttle(clock=clock)
    async with AsyncExitStack() as stack:
        engines = [await opened(stack, dsn, throttle) for _ in range(servers)]
        first = await made(engines[0])
        containers = [first, *[await seen(engine) for engine in engines[1:]]]
        for _ in range(3):
            for engine in engines:
                await engine.budget.turn()
        yield Trial(clock, engines, [governor_of(container) for container in containers])


GREEDY = 1e9


def test_a_part_is_what_is_wanted_or_an_even_one_and_parts_sum_up_to_the_whole() -> None:
    assert fair_part(1.0, []) == 1.0
    assert fair_part(0.02, []) == 1.0
    assert fair_part(1.0, [1.0]) == pytest.approx(0.5)
    assert fair_part(1.0, [0.1, 1.0]) == pytest.approx(0.45)
    assert fair_part(0.1, [1.0, 1.0]) == pytest.approx(0.1)
    assert fair_part(0.2, [0.4]) == pytest.approx(0.4)
    order = random.Random(5)
    for _ in range(2_000):
        wants = [order.choice([0.02, 1.0, order.random()]) for _ in range(order.randint(1, 6))]
        parts = [fair_part(want, wants[:n] + wants[n + 1 :]) for n, want in enumerate(wants)]
        assert sum(parts) == pytest.approx(1.0)
        lacking = [part for part, want in zip(parts, wants, strict=True) if part < want - 1e-9]
        assert all(part >= max(parts) - 1e-9 for part in lacking)


@pytest.mark.usefixtures("slow_leases")
async def test_busy_servers_together_serve_the_budget_of_one_and_share_it(postgres_database: str) -> None:
    async with trial(postgres_database, 3) as run:
        await run.run(2, lambda _: GREEDY)
        shares = await run.run(10, lambda _: GREEDY)
        assert sum(shares) == pytest.approx(RATE * 10, rel=0.03)
        assert min(shares) > 0.9 * max(shares)


@pytest.mark.usefixtures("slow_leases")
async def test_an_idle_server_leaves_the_whole_budget_to_a_busy_one_and_gets_its_part_when_it_wants_it(
    postgres_database: str,
) -> None:
    async with trial(postgres_database, 2) as run:
        await run.run(2, lambda _: GREEDY)
        await run.run(3, lambda index: GREEDY if index == 0 else 0)
        busy, idle = await run.run(5, lambda index: GREEDY if index == 0 else 0)
        assert busy == pytest.approx(RATE * 5, rel=0.02)
        assert idle == 0
        assert served(run.governors[1], RATE * CHUNK) == pytest.approx(RATE * CHUNK)  # at once
        run.served[1] += RATE * CHUNK
        await run.run(1, lambda _: GREEDY)
        shares = await run.run(3, lambda _: GREEDY)
        assert shares == [pytest.approx(RATE * 1.5, rel=0.05)] * 2


@pytest.mark.usefixtures("slow_leases")
async def test_a_modest_server_gets_what_it_asks_for_and_a_greedy_one_the_rest(
    postgres_database: str,
) -> None:
    async with trial(postgres_database, 2) as run:
        await run.run(3, lambda index: GREEDY if index == 0 else 5)
        greedy, modest = await run.run(5, lambda index: GREEDY if index == 0 else 5)
        assert modest == 5 * 100
        assert greedy > RATE * 5 * 0.7


@pytest.mark.usefixtures("slow_leases")
async def test_no_order_of_turns_and_loads_serves_more_than_the_budget(postgres_database: str) -> None:
    async with trial(postgres_database, 3) as run:
        order = random.Random(11)
        for _ in range(400):
            run.clock.now += order.random() * 0.1
            index = order.randrange(3)
            run.served[index] += served(run.governors[index], order.choice([5, 50, GREEDY]))
            if order.random() < 0.4:
                await run.engines[order.randrange(3)].budget.turn()
            run.check()


@pytest.mark.usefixtures("slow_leases")
async def test_turns_that_overlap_never_give_one_share_twice(postgres_database: str) -> None:
    async with trial(postgres_database, 3) as run:
        for _ in range(60):
            run.clock.now += 0.05
            for index, governor in enumerate(run.governors):
                run.served[index] += served(governor, GREEDY)
            await asyncio.gather(*[engine.budget.turn() for engine in run.engines])
            run.check()
        assert sum(governor.share for governor in run.governors) == pytest.approx(1.0)


@pytest.mark.usefixtures("slow_leases")
async def test_alone_a_server_has_everything_says_only_that_it_is_there_and_gives_way_when_another_comes(
    postgres_database: str,
) -> None:
    clock = Clock()
    async with AsyncExitStack() as stack:
        one = await opened(stack, postgres_database, Throttle(clock=clock))
        container = await made(one)
        governor = governor_of(container)
        assert governor.share == 1.0
        assert served(governor, GREEDY) == RATE
        await one.budget.turn()
        with psycopg.connect(postgres_database) as connection:
            assert connection.execute("SELECT name, share FROM pleiad.budget").fetchall() == [("", 1.0)]
        other = await opened(stack, postgres_database, Throttle(clock=clock))
        twin = governor_of(await seen(other))
        assert twin.share == 0.0  # the first one does not know yet
        assert served(twin, GREEDY) == RATE * CHUNK
        for _ in range(3):
            for engine in (one, other):
                await engine.budget.turn()
                assert governor.share + twin.share <= 1.0
        assert (governor.share, twin.share) == (0.5, 0.5)
        await stack.enter_async_context(_closed(other))
        await one.budget.turn()
        assert governor.share == 1.0
        clock.now += 10
        assert served(governor, GREEDY) == RATE


@asynccontextmanager
async def _closed(engine: Engine) -> AsyncIterator[None]:
    await engine.store.close()
    yield


@pytest.mark.usefixtures("slow_leases")
async def test_a_refused_request_is_told_a_time_at_which_it_is_served(postgres_database: str) -> None:
    async with trial(postgres_database, 2) as run:
        await run.run(3, lambda index: GREEDY if index == 0 else 0)
        idle = run.governors[1]
        run.served[1] += served(idle, GREEDY, 50.0)
        with pytest.raises(PleiadError) as caught:
            idle.admit()
        assert caught.value.retry_after_ms is not None
        end = run.clock.now + caught.value.retry_after_ms / 1000
        while run.clock.now < end - 0.2:
            await run.run(0.2, lambda index: GREEDY if index == 0 else 0)
        run.clock.now = end
        idle.admit()


@pytest.mark.usefixtures("slow_leases")
async def test_priority_buckets_and_burst_are_parts_of_what_they_are_for_one_server(
    postgres_database: str,
) -> None:
    async with trial(postgres_database, 2) as run:
        await run.run(2, lambda _: GREEDY)
        run.clock.now += 1
        governor = run.governors[0]
        assert governor.share == 0.5
        assert served(governor, GREEDY, lane=Lane(low_priority=True)) == pytest.approx(RATE * 0.5 * 0.8)
        content = [{"id": 1, "maxThroughputPercentage": 20, "isDefaultBucket": False}]
        for engine in run.engines:
            container = await seen(engine)
            offer = engine.catalog.offer_of(container.resource.rid)
            assert offer is not None
            body = {**offer.properties, "content": {"offerThroughput": 1_000, "throughputBuckets": content}}
            if engine is run.engines[0]:
                await engine.replace_offer(offer.rid, body, None)
        run.clock.now += 1
        assert governor.share == 0.5  # a change of the offer leaves it
        assert served(governor, GREEDY, lane=Lane(bucket=1)) == pytest.approx(RATE * 0.5 * 0.2)


@pytest.mark.usefixtures("slow_leases")
async def test_idle_servers_go_on_sweeping_what_has_expired(postgres_database: str) -> None:
    clock = Clock()
    async with AsyncExitStack() as stack:
        one = await opened(stack, postgres_database, Throttle(clock=clock))
        container = await made(one, defaultTtl=3_000)
        raw = [json.dumps({"id": f"{n}", "pk": "k"}).encode() for n in range(300)]
        for each in raw:
            await items.create(container, each, ("k",), SYSTEM)
        other = await opened(stack, postgres_database, Throttle(clock=clock))
        await one.budget.turn()
        swept = 0
        for _ in range(60):
            clock.now += 0.1
            for engine in (one, other):
                await engine.budget.turn()
            swept += await sweep(container, int(time.time()) + 4_000)
            if swept == 300:
                break
        assert swept == 300
        assert clock.now - 1_000.0 > 0.2  # beyond the first second's spare units there was need of a share


@pytest.mark.usefixtures("slow_leases")
async def test_containers_that_share_throughput_share_it_at_all_servers_together(
    postgres_database: str,
) -> None:
    clock = Clock()
    async with AsyncExitStack() as stack:
        one = await opened(stack, postgres_database, Throttle(clock=clock))
        other = await opened(stack, postgres_database, Throttle(clock=clock))
        await one.create_database({"id": "db"}, Throughput(1_000))
        for id in ("a", "b"):
            body = {"id": id, "partitionKey": {"paths": ["/pk"], "version": 2}}
            await one.create_container(one.database("db"), body, None)
        a = await one.container("db", "a")
        await items.create(a, b'{"id":"1","pk":"x"}', ("x",), SYSTEM)
        await items.create(a, b'{"id":"1","pk":"y"}', ("y",), SYSTEM)
        b = await seen(other, "b")
        run = Trial(clock, [one, other], [governor_of(a), governor_of(b)])
        await run.run(2, lambda _: GREEDY)
        assert sum(await run.run(5, lambda _: GREEDY)) == pytest.approx(RATE * 5, rel=0.03)
        await one.split(a, "0")  # two places from now on, at both servers
        await other.openings.look()
        for engine in (one, other):
            await engine.budget.turn()
        places = [list(engine.budget.governors().items()) for engine in (one, other)]
        assert [name for name, _ in places[0]] == [name for name, _ in places[1]]
        assert [governor.rate_ru for found in places for _, governor in found] == [500.0] * 4


async def test_without_the_database_a_server_serves_what_it_has_and_then_nothing_and_then_goes_on() -> None:
    server = PostgresServer()
    server.start()
    clock = Clock()
    try:
        async with AsyncExitStack() as stack:
            one = await opened(stack, server.new_database(), Throttle(clock=clock))
            governor = governor_of(await made(one))
            assert served(governor, 500) == 500
            server.stop(signal.SIGQUIT)
            assert await until(lambda: governor.share == 0)
            clock.now += 1_000
            assert served(governor, GREEDY) <= RATE * CHUNK
            with pytest.raises(PleiadError) as caught:
                governor.admit()
            assert status_of(caught.value) == 429
            server.start()
            assert await until(lambda: one.budget.is_alone)
            assert governor.share == 1.0
    finally:
        server.remove()


_GATEWAY = """
import asyncio, sys
from pleiad.engine.engine import Engine
from pleiad.limits import Limits
from pleiad.partition.governor import Throttle
from pleiad.store.postgres.store import PostgresStore

async def main():
    engine = Engine(await PostgresStore.open(sys.argv[1]), Limits(), throttle=Throttle())
    await engine.open()
    container = await engine.container("db", "c")
    governor = container.map.partitions[0].governor
    print("here", flush=True)
    while True:
        while governor.is_open():
            governor.admit()
            governor.spend(5.0)
        await asyncio.sleep(0.01)  # until there is something to take again

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "leases_max", [20, pytest.param(10, marks=pytest.mark.long, id="on a quiet machine, by `make truth`")]
)
async def test_a_killed_server_keeps_its_part_for_two_seconds_at_most(
    postgres_database: str, leases_max: int
) -> None:
    async with AsyncExitStack() as stack:
        one = await opened(stack, postgres_database, Throttle())
        container = await made(one)
        governor = governor_of(container)
        process = subprocess.Popen(
            [sys.executable, "-c", _GATEWAY, postgres_database], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            await asyncio.to_thread(process.stdout.readline)

            def is_shared() -> bool:
                served(governor, GREEDY)
                return not one.budget.is_alone and 0.4 < governor.share < 0.6

            assert await until(is_shared)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
        killed = time.monotonic()
        assert await until(lambda: governor.share == 1.0)
        # A second or two, and many times as much for a machine that is busy with something else.
        assert time.monotonic() - killed < leases_max * (LEASE_SECONDS + 0.5)


@pytest.mark.parametrize("is_quiet", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_requests_at_two_servers_over_seconds_get_the_throughput_of_one(
    postgres_database: str, is_quiet: bool
) -> None:
    async with AsyncExitStack() as stack:
        engines = [await opened(stack, postgres_database, Throttle()) for _ in range(2)]
        containers = [await made(engines[0], ru=400), await seen(engines[1])]
        charged: list[float] = []
        began = time.monotonic()

        async def client(container: Container, name: str) -> None:
            # However busy the machine is, what was there at the beginning is served.
            while time.monotonic() - began < 4 or sum(charged) < 400:
                raw = json.dumps({"id": name, "pk": name}).encode()
                try:
                    answer = await items.upsert(container, raw, (name,), NO_CONDITIONS)
                    charged.append(answer.charge.ru)
                except PleiadError as error:
                    if error.retry_after_ms is None:
                        raise
                    await asyncio.sleep(error.retry_after_ms / 1000)  # as it is told to

        await asyncio.gather(*[client(containers[n % 2], f"c{n}") for n in range(8)])
        seconds = time.monotonic() - began
        last = 8 * max(charged)
        assert sum(charged) <= 400 * (seconds + 1) + 2 * 400 * CHUNK + last
        if is_quiet:  # by `make truth`, on a machine that has nothing else to do
            assert sum(charged) >= 400 * seconds / 3
