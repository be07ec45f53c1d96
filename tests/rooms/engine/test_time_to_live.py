"""Time to live at work: hidden at once, swept later, and never at the cost of a newer version."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from pleiad.engine import items, patching, reading, sweeper
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.feed import listing
from pleiad.engine.items import NO_CONDITIONS
from pleiad.engine.sweeper import sweep
from pleiad.errors import PleiadError
from pleiad.keys.range import WHOLE
from pleiad.partition.map import PartitionMap
from pleiad.server.http.failures import status_of
from pleiad.store.rows import Row
from tests.waiting import SECONDS_MAX, until

Opened = Callable[..., AbstractAsyncContextManager[Engine]]
PK = ("p",)


class Clock:
    """A time that only a test moves on."""

    def __init__(self) -> None:
        self.now = float(int(time.time()))

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Nothing is swept but by the test itself, however long it takes."""
    monkeypatch.setattr(sweeper, "INTERVAL_SECONDS", 1e9)
    moved = Clock()
    monkeypatch.setattr(time, "time", moved.time)
    return moved


async def new_container(engine: Engine, **more: Any) -> Container:
    database = await engine.create_database({"id": "db"}, None)
    body = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}, **more}
    await engine.create_container(database, body, None)
    return await engine.container("db", "c")


def text(id: str, **more: Any) -> bytes:
    return json.dumps({"id": id, "pk": "p", **more}).encode()


async def visible(container: Container) -> list[str]:
    """The ids that reads and the feed both show."""
    listed = [row.id for row in (await listing.page(container, WHOLE, "", 100)).rows]
    backward = await listing.page(container, WHOLE, "", 100, is_backward=True)
    assert [row.id for row in backward.rows] == listed[::-1]
    readable = []
    for id in ("default", "short", "never"):
        try:
            await reading.read(container, id, PK)
        except PleiadError:
            continue
        readable.append(id)
    assert sorted(listed) == sorted(readable)
    return sorted(listed)


async def stored(container: Container) -> list[Row]:
    return list(await container.map.partitions[0].scan(WHOLE, 0, 1_000))


async def create_three(container: Container) -> None:
    await items.create(container, text("default"), PK)
    await items.create(container, text("short", ttl=5), PK)
    await items.create(container, text("never", ttl=-1), PK)


async def test_an_expired_item_is_hidden_at_once_and_swept_later(engine: Opened, clock: Clock) -> None:
    async with engine() as opened:
        container = await new_container(opened, defaultTtl=60)
        await create_three(container)
        clock.now += 4
        assert await visible(container) == ["default", "never", "short"]
        clock.now += 1
        assert await visible(container) == ["default", "never"]
        clock.now += 55
        assert await visible(container) == ["never"]
        assert len(await stored(container)) == 3, "hidden, not yet removed"
        assert await sweep(container) == 2
        assert [row.id for row in await stored(container)] == ["never"]
        state = await container.map.partitions[0].state()
        assert state.items == 1
        assert await sweep(container) == 0


async def test_time_to_live_counts_from_the_property_that_the_container_names(
    engine: Opened, clock: Clock
) -> None:
    made = int(clock.now) - 40
    async with engine() as opened:
        container = await new_container(opened, defaultTtl=60, ttlPropertyPath="/times/made")
        await items.create(container, text("default", times={"made": made}), PK)
        await items.create(container, text("short", ttl=50, times={"made": float(made)}), PK)
        await items.create(container, text("never", ttl=-1, times={"made": made}), PK)
        clock.now += 9
        assert await visible(container) == ["default", "never", "short"]
        clock.now += 1
        assert await visible(container) == ["default", "never"]
        change = json.dumps({"operations": [{"op": "set", "path": "/n", "value": 1}]}).encode()
        await patching.patch(container, "default", change, PK, NO_CONDITIONS)
        clock.now += 9
        assert await visible(container) == ["default", "never"]
        clock.now += 1
        assert await visible(container) == ["never"], "a write starts nothing anew"
        assert await sweep(container) == 2
        await items.upsert(container, text("default", times={"made": made + 100}), PK, NO_CONDITIONS)
        clock.now = made + 159
        assert await visible(container) == ["default", "never"]
        clock.now += 1
        assert await visible(container) == ["never"], "a property in the time to come keeps an item"


@pytest.mark.parametrize("value", [None, "soon", True, [1], {"at": 1}])
async def test_time_to_live_counts_from_the_write_where_the_property_is_no_number(
    engine: Opened, clock: Clock, value: Any
) -> None:
    async with engine() as opened:
        container = await new_container(opened, defaultTtl=60, ttlPropertyPath="/made")
        await items.create(container, text("default", **({} if value is None else {"made": value})), PK)
        clock.now += 59
        assert await visible(container) == ["default"]
        clock.now += 1
        assert await visible(container) == []


@pytest.mark.every_store
async def test_a_write_beside_the_change_of_the_property_counts_from_the_new_one(
    engine: Opened, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine() as opened:
        container = await new_container(opened, defaultTtl=60)
        replace, writes = opened.catalog.replace, []

        async def replace_late(*arguments: Any) -> None:
            """Gives a write the time to be done before the change is."""
            create = items.create(container, text("default", made=int(clock.now) - 40), PK)
            writes.append(asyncio.create_task(create))
            await asyncio.wait(writes, timeout=0.2)
            await replace(*arguments)

        monkeypatch.setattr(opened.catalog, "replace", replace_late)
        changed = {**container.resource.properties, "id": "c", "ttlPropertyPath": "/made"}
        await opened.replace_container(opened.database("db"), "c", changed, None)
        await writes[0]
        clock.now += 19
        assert await visible(container) == ["default"]
        clock.now += 1
        assert await visible(container) == []


@pytest.mark.parametrize("default_ttl", [None, -1])
async def test_without_a_default_items_live_on(engine: Opened, clock: Clock, default_ttl: int | None) -> None:
    async with engine() as opened:
        more = {} if default_ttl is None else {"defaultTtl": default_ttl}
        container = await new_container(opened, **more)
        await create_three(container)
        clock.now += 1_000_000
        expected = ["default", "never"] if default_ttl == -1 else ["default", "never", "short"]
        assert await visible(container) == expected


async def test_a_write_starts_the_time_to_live_anew(engine: Opened, clock: Clock) -> None:
    async with engine() as opened:
        container = await new_container(opened, defaultTtl=10)
        await items.create(container, text("default"), PK)
        clock.now += 9
        change = json.dumps({"operations": [{"op": "set", "path": "/n", "value": 1}]}).encode()
        await patching.patch(container, "default", change, PK, NO_CONDITIONS)
        clock.now += 9
        assert await visible(container) == ["default"]
        clock.now += 1
        assert await visible(container) == []
        for operation in (
            items.replace(container, "default", text("default"), PK, NO_CONDITIONS),
            patching.patch(container, "default", change, PK, NO_CONDITIONS),
            items.delete(container, "default", PK, NO_CONDITIONS),
        ):
            with pytest.raises(PleiadError) as caught:
                await operation
            assert status_of(caught.value) == 404
        created = await items.create(container, text("default"), PK)
        assert created.created


async def test_the_sweeper_never_takes_a_version_that_was_written_after_it_looked(
    engine: Opened, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine() as opened:
        container = await new_container(opened, defaultTtl=5)
        await items.create(container, text("default", n=1), PK)
        await items.create(container, text("gone", n=1), PK)
        clock.now += 5
        (partition,) = container.map.partitions
        found = await partition.expired(int(clock.now), container.default_ttl, 10)
        assert len(found) == 2
        await items.upsert(container, text("default", n=2), PK, NO_CONDITIONS)
        pages = iter([found, []])

        async def stale(*_: object) -> list[Row]:
            return list(next(pages))

        monkeypatch.setattr(type(partition), "expired", stale)
        assert await sweep(container) == 1
        row = (await reading.read(container, "default", PK)).row
        assert row is not None
        assert json.loads(row.body)["n"] == 2
        assert [row.id for row in await stored(container)] == ["default"]


async def test_the_sweeper_lets_go_of_a_partition_that_was_split_meanwhile(
    engine: Opened, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine() as opened:
        container = await new_container(opened, defaultTtl=5)
        for key in "abcd":
            body = json.dumps({"id": "gone", "pk": key}).encode()
            await items.create(container, body, (key,))
        clock.now += 5
        (parent,) = container.map.partitions
        await opened.reshaper.split(container, parent.range_id)
        children, container.map = container.map, PartitionMap([parent])
        assert await asyncio.wait_for(sweep(container), SECONDS_MAX) == 0
        container.map = children
        assert await sweep(container) == 4


async def test_the_sweeper_works_by_itself_and_after_a_restart(
    engine: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeper, "INTERVAL_SECONDS", 0.05)
    async with engine() as opened:
        container = await new_container(opened, defaultTtl=1)
        for number in range(250):
            await items.create(container, text(f"i{number}"), PK)
    async with engine() as opened:
        container = await opened.container("db", "c")

        async def is_swept() -> bool:
            return await stored(container) == []

        assert await until(is_swept)
        assert (await container.map.partitions[0].state()).size_bytes == 0
