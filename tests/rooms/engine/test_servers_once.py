"""What several servers on one PostgreSQL database do once: chores by one of them at a time, and each effect once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import orjson
import psycopg
import pytest

from pleiad import errors
from pleiad.catalog.resource import Kind
from pleiad.engine import reading
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.phase import Phase
from pleiad.engine.script import definition, execution
from pleiad.errors import PleiadError
from pleiad.partition.partition import Partition
from pleiad.store.postgres.company import Company
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.segments import SegmentDroppedError
from tests.rooms.engine.test_scripts import COUNT
from tests.rooms.engine.test_servers import names, opened, put, seen
from tests.waiting import SECONDS_MAX, until


async def made(engine: Engine, **more: Any) -> Container:
    await engine.create_database({"id": "db"}, None)
    body = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}, **more}
    await engine.create_container(engine.database("db"), body, None)
    return await engine.container("db", "c")


async def stored(container: Container) -> int:
    """The rows there are, expired or not."""
    return sum([(await partition.state()).items for partition in container.map.partitions])


async def until_swept(container: Container) -> None:
    async def is_swept() -> bool:
        return await stored(container) == 0

    assert await until(is_swept)


class Refusals:
    """Who asked for which lease in vain."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, str]] = []
        take = Company._take

        async def noted(company: Company, name: str) -> bool:
            is_ours = await take(company, name)
            if not is_ours:
                self.seen.append((name, company._owner))
            return is_ours

        monkeypatch.setattr(Company, "_take", noted)

    def askers(self, name: str) -> int:
        return len({owner for refused, owner in self.seen if refused.startswith(name)})


async def deafen(engine: Engine) -> None:
    """From here on the server learns nothing of what others change, unless it asks."""
    await engine.keeper.stop()
    engine.store.watch(lambda: None)
    for task in engine._background:
        task.cancel()
    await asyncio.wait(engine._background)


async def test_sweeping_is_the_work_of_whoever_has_the_lease_and_a_dead_server_loses_it(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = Refusals(monkeypatch)
    async with AsyncExitStack() as stack:
        one = await opened(stack, postgres_database)
        container = await made(one, defaultTtl=1)
        await opened(stack, postgres_database)
        dead = await PostgresStore.open(postgres_database)
        stack.push_async_callback(dead.close)
        async with asyncio.timeout(SECONDS_MAX):
            lease = dead.lease("sweep")
            while not await stack.enter_async_context(lease):
                lease = dead.lease("sweep")
        for n in range(5):
            await put(container, "k", f"i{n}", n)

        async def is_expired() -> bool:
            return await names(container) == set()

        assert await until(is_expired)
        refusals.seen.clear()
        assert await until(lambda: refusals.askers("sweep") == 2)
        assert await stored(container) == 5  # hidden, and left to the server that has the lease
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute("UPDATE pleiad.lease SET expires = now() WHERE name = 'sweep'")
        await until_swept(container)


async def test_a_server_sweeps_what_one_that_is_gone_has_made(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        other = await opened(stack, postgres_database)
        async with AsyncExitStack() as life:
            container = await made(await opened(life, postgres_database), defaultTtl=1)
            await put(container, "k", "a", 1)
        assert await until(lambda: other.containers)
        await until_swept(other.containers[0])


async def test_the_halves_of_a_split_are_given_their_homes_once(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = Refusals(monkeypatch)
    async with AsyncExitStack() as stack:
        one, other = await opened(stack, postgres_database), await opened(stack, postgres_database)
        container = await made(one)
        for n in range(40):
            await put(container, f"k{n}", "i", n)
        twin = await seen(other)
        begun: list[tuple[str, Phase]] = []
        for name, engine in (("one", one), ("other", other)):

            async def note(_: Container, phase: Phase, name: str = name) -> None:
                begun.append((name, phase))
                if phase is Phase.COPYING:  # the other one comes, and goes
                    assert await until(lambda: refusals.askers("map/"))

            engine.reshaper.report = note
        await one.split(container, "0")
        for _ in range(2):
            await asyncio.gather(one.keeper.settled(), other.keeper.settled())
        assert [phase for _, phase in begun].count(Phase.COPYING) == 2
        for engine, place in ((one, container), (other, twin)):
            await engine.openings.look()
            assert [partition.id for partition in place.map.partitions] == [1, 2]
            assert not engine.reshaper.homeless(place)
            assert await names(place) == {"i"}
        with psycopg.connect(postgres_database) as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pleiad\\_%'"
            ).fetchall()
        assert found == [(2,)]


async def test_a_script_at_two_servers_takes_effect_once_for_each_call(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        one, other = await opened(stack, postgres_database), await opened(stack, postgres_database)
        container = await made(one)
        body = {"id": "count", "body": COUNT.replace("pk: null", "pk: 'k'")}
        procedure, _ = await definition.create(one, Kind.STORED_PROCEDURE, container.resource, body)
        twin = await seen(other)

        async def work(place: Container) -> None:
            for _ in range(10):
                await execution.execute(place, procedure, ("k",), "[]")

        await asyncio.gather(work(container), work(twin))
        answer = await reading.read(twin, "count", ("k",))
        assert answer.row is not None
        assert orjson.loads(answer.row.body)["n"] == 20
        assert await names(container) == {"count", *(f"log-{n}" for n in range(1, 21))}


async def put_as_a_head_does(engine: Engine, container: Container, pk: str, id: str, n: int) -> None:
    """Writes, and asks for a second look where rows have moved to another segment, before it gives up."""
    try:
        await put(container, pk, id, n)
    except SegmentDroppedError as error:
        if not await engine.second_look(error):
            raise
        await put(container, pk, id, n)


async def test_a_server_that_missed_every_notice_is_put_right_by_the_fence(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        one, other = await opened(stack, postgres_database), await opened(stack, postgres_database)
        container = await made(one)
        for n in range(20):
            await put(container, f"k{n}", f"i{n}", 0)
        twin = await seen(other)
        await deafen(other)
        go_on = asyncio.Event()

        async def hold(_: Container, phase: Phase) -> None:
            if phase is Phase.COPYING:
                await go_on.wait()

        one.reshaper.report = hold
        await one.split(container, "0")
        assert [partition.id for partition in twin.map.partitions] == [0]  # nobody told it
        for n in range(20):
            await put(twin, f"k{n}", f"i{n}", 1)
        assert [partition.id for partition in twin.map.partitions] == [1, 2]
        old_segment = twin.map.partitions[0].segment_name
        go_on.set()
        await one.keeper.settled()
        assert [partition.segment_name for partition in twin.map.partitions] == [old_segment] * 2
        for n in range(20):
            await put_as_a_head_does(other, twin, f"k{n}", f"i{n}", 2)
        for n in range(20):
            answer = await reading.read(container, f"i{n}", (f"k{n}",))
            assert answer.row is not None
            assert orjson.loads(answer.row.body)["n"] == 2


async def test_a_map_that_was_changed_while_this_server_asked_for_its_lease_is_taken_over_afterwards(
    postgres_database: str,
) -> None:
    async with AsyncExitStack() as stack:
        one, other = await opened(stack, postgres_database), await opened(stack, postgres_database)
        container = await made(one)
        for n in range(20):
            await put(container, f"k{n}", f"i{n}", 0)
        twin = await seen(other)
        await other.keeper.stop()
        async with other.openings._turns.of(twin.resource.rid):
            await one.split(container, "0")
            await one.keeper.settled()
            await other.openings.look()
            assert [partition.id for partition in twin.map.partitions] == [0]
        # Nobody changes anything any more, so that no notice comes.
        for n in range(20):
            await put_as_a_head_does(other, twin, f"k{n}", f"i{n}", 1)
        assert [partition.id for partition in twin.map.partitions] == [1, 2]


async def test_a_look_that_failed_half_way_is_made_again(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        one, other = await opened(stack, postgres_database), await opened(stack, postgres_database)
        container = await made(one)
        for n in range(10):
            await put(container, f"k{n}", "i", 0)
        twin = await seen(other)
        await deafen(other)
        await one.split(container, "0")
        await one.keeper.settled()

        async def fail(_: Partition) -> None:
            raise errors.UNAVAILABLE(reason="The store cannot be reached.")

        with monkeypatch.context() as broken:
            broken.setattr(Partition, "load", fail)
            with pytest.raises(PleiadError):
                await other.openings.look()
        assert await other.openings.look()
        assert [partition.id for partition in twin.map.partitions] == [1, 2]
        await put(twin, "k1", "i", 1)
