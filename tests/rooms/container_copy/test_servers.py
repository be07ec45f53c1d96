"""Copies where several servers work on one PostgreSQL: one of them copies, all of them keep its promises."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from pleiad.engine import items
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS
from pleiad.errors import PleiadError
from pleiad.job.copy.job import Asked, CopyState
from pleiad.job.copy.run import CopyRun
from pleiad.store.postgres.store import PostgresStore
from tests.stores import PATIENT
from tests.waiting import until

from .conftest import Account, Writers


async def opened(stack: AsyncExitStack, dsn: str) -> Account:
    engine = Engine(await PostgresStore.open(dsn), PATIENT)
    await engine.open()
    stack.push_async_callback(engine.close)
    account = Account(engine)
    account.copies.open()
    stack.push_async_callback(account.copies.close)
    return account


async def knows(account: Account, name: str) -> None:
    """Waits until a server has heard of a container."""

    async def is_there() -> bool:
        try:
            await account.engine.container("db", name)
        except PleiadError as error:
            return await account.engine.second_look(error) and False
        return True

    assert await until(is_there)


async def test_writers_at_every_server_lose_nothing_by_an_exchange(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        first = await opened(stack, postgres_database)
        source = await first.container("a")
        for number in range(200):
            await first.put(source, id=f"i{number}", pk=f"p{number % 5}", t=f"t{number % 3}")
        second = await opened(stack, postgres_database)
        await knows(second, "a")
        here, there = Writers(first, 2, prefix="x"), Writers(second, 2, prefix="y")
        assert await until(lambda: here.writes > 50 and there.writes > 50)
        job = await first.copied(partitionKey="/t", switch=True)
        seen = here.writes, there.writes
        assert await until(lambda: here.writes > seen[0] + 100 and there.writes > seen[1] + 100)
        await here.stop()
        await there.stop()
        assert (await first.engine.container("db", "a")).resource.rid == job.target_rid
        found = {item["id"]: item["n"] for item in await first.all_of("a") if "n" in item}
        expected = {**here.expected(), **there.expected()}
        assert found == {id: item["n"] for id, item in expected.items()}


async def test_one_server_works_on_a_copy_and_another_one_takes_it_over(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        leaving = AsyncExitStack()
        first = await opened(leaving, postgres_database)
        source = await first.container("a")
        for number in range(200):
            await first.put(source, id=f"i{number}", pk=f"p{number % 5}", t=f"t{number % 3}")
        second = await opened(stack, postgres_database)
        job = await first.start(partitionKey="/t", online=True)
        assert await until(lambda: first.look(job).job.is_ready)
        assert first.look(job).rate is not None
        assert await until(lambda: any(each.job.id == job.id for each in second.copies.all()))
        assert second.look(job).rate is None
        await leaving.aclose()
        assert await until(lambda: second.look(job).rate is not None)
        await second.copies.ask(job.id, Asked.COMPLETE)
        assert (await second.ended(job)).state is CopyState.DONE
        assert await second.all_of("a") == await second.all_of("b")


async def test_a_server_that_was_taken_for_dead_writes_nothing_more(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        first = await opened(stack, postgres_database)
        source = await first.container("a")
        await first.put(source, id="1", pk="p", t="t", n=1)
        job = await first.start(partitionKey="/t", online=True)
        assert await until(lambda: first.look(job).job.is_ready)
        run = first.copies._runs[job.id][0]
        second = await opened(stack, postgres_database)
        record = second.engine.catalog.copy_record(job.id)
        assert record is not None
        other = CopyRun(second.engine, record)
        task = asyncio.create_task(other.run())
        assert await until(lambda: second.look(job).job.resumed == 1)
        # The first one is still there with what it knew, and stops by itself.
        assert await until(
            lambda: job.id not in first.copies._runs or first.copies._runs[job.id][0] is not run
        )
        await items.delete(source, "1", ("p",), NO_CONDITIONS)
        await second.copies.ask(job.id, Asked.COMPLETE)
        assert (await first.ended(job)).state is CopyState.DONE
        await asyncio.wait([task])
        assert await first.all_of("b") == []


@pytest.mark.parametrize("asked", list(Asked))
async def test_a_copy_can_be_ended_at_any_server(postgres_database: str, asked: Asked) -> None:
    async with AsyncExitStack() as stack:
        first = await opened(stack, postgres_database)
        await first.put(await first.container("a"), id="1", pk="p", t="t")
        second = await opened(stack, postgres_database)
        job = await first.start(partitionKey="/t", online=True)
        assert await until(lambda: any(each.job.id == job.id for each in second.copies.all()))
        await second.copies.ask(job.id, asked)
        ended = await first.ended(job)
        assert ended.state is (CopyState.DONE if asked is Asked.COMPLETE else CopyState.CANCELLED)
