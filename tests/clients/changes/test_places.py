"""Places in the change feeds while physical partitions are divided, moved and merged beneath them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.feed import changes, versions
from pleiad.engine.feed.changes import Origin
from pleiad.engine.items import NO_CONDITIONS
from pleiad.engine.sweeper import VERSIONS_GRACE_SECONDS, forget_versions
from pleiad.errors import PleiadError
from pleiad.heads.nosql.resource_json import to_json
from pleiad.keys.range import MAX, MIN, WHOLE, EpkRange
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of
from pleiad.store.rows import Verb, Version
from tests.stores import PATIENT, OpenStore

pytestmark = pytest.mark.every_store

KEYS = [f"k{number}" for number in range(12)]
Opened = Callable[..., AbstractAsyncContextManager[Container]]
ENGINES: WeakKeyDictionary[Container, Engine] = WeakKeyDictionary()


def engine_of(container: Container) -> Engine:
    return ENGINES[container]


@pytest.fixture
def opened(tmp_path: Path, open_store: OpenStore) -> Opened:
    """A container of one physical partition that keeps its versions."""

    @asynccontextmanager
    async def open_container(limits: Limits | None = None, **more: Any) -> AsyncIterator[Container]:
        engine = Engine(await open_store(tmp_path / "data"), limits or PATIENT)
        await engine.open()
        try:
            database = await engine.create_database({"id": "db"}, None)
            body = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}}
            policy = {"changeFeedPolicy": {"retentionDuration": 10}}
            await engine.create_container(database, {**body, **policy, **more}, None)
            container = await engine.container("db", "c")
            ENGINES[container] = engine
            yield container
        finally:
            await engine.close()

    return open_container


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which only the test moves on."""
    now = [float(int(time.time()))]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


async def upsert(container: Container, key: str, id: str, n: int = 0) -> None:
    body = json.dumps({"id": id, "pk": key, "n": n}).encode()
    await items.upsert(container, body, (key,), NO_CONDITIONS)


class Follower:
    """Reads a range of the container from the beginning, page after page, and remembers what it was shown."""

    def __init__(self, container: Container, span: EpkRange, page_items: int) -> None:
        self.container, self.span, self.page_items = container, span, page_items
        self.place = ""
        self.seen: dict[tuple[str, str], int] = {}
        self.lsns: dict[str, int] = {}

    async def follow(self) -> None:
        while True:
            page = await changes.page(
                self.container, self.span, self.place, Origin.BEGINNING, 0, self.page_items
            )
            self.place = page.place
            if not page.rows:
                return
            for row in page.rows:
                item = json.loads(row.body)
                key = item["pk"]
                assert self.span.contains(row.epk)
                assert self.lsns.get(key, 0) < row.lsn, (
                    "each change once, in the order of its logical partition"
                )
                self.lsns[key] = row.lsn
                self.seen[key, item["id"]] = item["n"]


class VersionFollower(Follower):
    """Reads every change from now on."""

    async def follow(self) -> None:
        while True:
            page = await versions.page(self.container, self.span, self.place, self.page_items)
            self.place = page.place
            if not page.versions:
                return
            for version in page.versions:
                self.replay(version)

    def replay(self, version: Version) -> None:
        item = json.loads(version.body or version.previous_body)
        place = (item["pk"], item["id"])
        before = json.loads(version.previous_body)["n"] if version.previous_body else None
        assert self.seen.get(place) == before, "the image before is what the change before left"
        assert self.lsns.get(item["pk"], 0) < version.lsn
        self.lsns[item["pk"]] = version.lsn
        if version.verb is Verb.DELETE:
            del self.seen[place]
        else:
            self.seen[place] = item["n"]


@pytest.mark.parametrize("seed", range(4))
async def test_every_change_is_seen_in_order_over_splits_and_merges(opened: Opened, seed: int) -> None:
    chooser = random.Random(seed)
    async with opened() as container:
        middle = container.epk_of((KEYS[seed],))
        halves = (EpkRange(MIN, middle), EpkRange(middle, MAX))
        followers: list[Follower] = [Follower(container, WHOLE, 3), VersionFollower(container, WHOLE, 3)]
        followers += [Follower(container, half, 2) for half in halves]
        followers += [VersionFollower(container, half, 2) for half in halves]
        for follower in followers:
            await follower.follow()
        alive: dict[tuple[str, str], int] = {}
        stop = asyncio.Event()
        reshaping = asyncio.ensure_future(reshape_on_and_on(container, random.Random(seed), stop))
        step = 0
        while step < 300 or container.map.version <= 3:
            step += 1
            await change_something(container, chooser, alive, step)
            if step % 7 == 0:
                await chooser.choice(followers).follow()
        stop.set()
        await reshaping
        for follower in followers:
            await follower.follow()
            mine = {
                place: n
                for place, n in alive.items()
                if follower.span.contains(container.epk_of((place[0],)))
            }
            # The feed of latest versions does not show that an item is gone.
            shown = {place: n for place, n in follower.seen.items() if place in mine}
            assert shown == mine
            if isinstance(follower, VersionFollower):
                assert follower.seen == mine


async def change_something(
    container: Container, chooser: random.Random, alive: dict[tuple[str, str], int], step: int
) -> None:
    key, id = chooser.choice(KEYS), chooser.choice("abc")
    if (key, id) in alive and chooser.random() < 0.4:
        await items.delete(container, id, (key,), NO_CONDITIONS)
        del alive[key, id]
    else:
        await upsert(container, key, id, step)
        alive[key, id] = step


async def reshape_on_and_on(container: Container, chooser: random.Random, stop: asyncio.Event) -> None:
    """Splits, merges and moves physical partitions, one after the other, until it is stopped."""
    reshaper = engine_of(container).reshaper
    while not stop.is_set():
        ranges = [partition.range_id for partition in container.map.partitions]
        deed = chooser.random()
        place = chooser.randrange(len(ranges))
        if len(ranges) > 1 and deed < 0.4:
            place = min(place, len(ranges) - 2)
            await reshaper.merge(container, ranges[place : place + 2])
        elif deed < 0.6:
            await reshaper.rehome(container, ranges[place])
        else:
            with contextlib.suppress(PleiadError):  # a range with one key is not split
                await reshaper.split(container, ranges[place])
        await asyncio.sleep(0)


async def test_a_time_in_the_past_is_found_behind_many_older_changes(
    opened: Opened, clock: list[float]
) -> None:
    async with opened() as container:
        for number in range(300):
            await upsert(container, KEYS[number % 3], str(number))
        clock[0] += 10
        await upsert(container, "new", "new")
        page = await changes.page(container, WHOLE, "", Origin.BEGINNING, clock[0] - 5, 10)
        assert [row.id for row in page.rows] == ["new"]
        assert len((await changes.page(container, WHOLE, "", Origin.BEGINNING, 0, 1_000)).rows) == 301


async def test_expired_items_at_the_start_do_not_end_the_feed(opened: Opened, clock: list[float]) -> None:
    async with opened(defaultTtl=-1) as container:
        for number in range(150):
            body = json.dumps({"id": str(number), "pk": "a", "ttl": 5}).encode()
            await items.create(container, body, ("a",))
        await upsert(container, "a", "stays")
        clock[0] += 10
        page = await changes.page(container, WHOLE, "", Origin.BEGINNING, 0, 10)
        assert [row.id for row in page.rows] == ["stays"]


async def test_a_page_is_no_larger_than_a_response_and_loses_nothing(opened: Opened) -> None:
    limits = replace(Limits(), response_bytes=20_000)
    async with opened(limits) as container:
        for number in range(40):
            body = json.dumps({"id": str(number), "pk": "a", "text": "x" * 2_000}).encode()
            await items.create(container, body, ("a",))
        big = json.dumps({"id": "big", "pk": "a", "text": "x" * 30_000}).encode()
        await items.create(container, big, ("a",))
        seen, place = [], ""
        while True:
            page = await changes.page(container, WHOLE, place, Origin.BEGINNING, 0, 1_000)
            if not page.rows:
                break
            assert len(page.rows) == 1 or sum(row.size_bytes for row in page.rows) <= 20_000
            seen += [row.id for row in page.rows]
            place = page.place
        assert seen == [*map(str, range(40)), "big"]


async def test_versions_are_forgotten_after_the_retention_and_old_places_are_refused(
    opened: Opened, clock: list[float]
) -> None:
    async with opened() as container:
        start = clock[0]
        place = (await versions.page(container, WHOLE, "", 10)).place
        await upsert(container, "a", "old")
        clock[0] = start + 600
        assert len((await versions.page(container, WHOLE, place, 10)).versions) == 1
        assert await forget_versions(container) == 0, "a place that is still good has lost nothing"
        clock[0] = start + 602
        with pytest.raises(PleiadError) as caught:
            await versions.page(container, WHOLE, place, 10)
        assert status_of(caught.value) == 400
        assert caught.value.message.startswith(
            "You must read the change feed from within the retention period. This place is older than the 10 minutes"
        )
        fresh = (await versions.page(container, WHOLE, "", 10)).place
        await upsert(container, "a", "new")
        clock[0] = start + 600 + VERSIONS_GRACE_SECONDS + 2
        assert await forget_versions(container) == 1
        (kept,) = (await versions.page(container, WHOLE, fresh, 10)).versions
        assert kept.id == "new"


async def test_an_interruption_of_the_versions_ends_every_place(opened: Opened) -> None:
    async with opened() as container:
        place = (await versions.page(container, WHOLE, "", 10)).place
        await upsert(container, "a", "seen")
        engine = engine_of(container)
        body = {"id": "c", "partitionKey": container.key.to_json()}
        await engine.replace_container(container.database, "c", body, None)
        assert len((await versions.page(container, WHOLE, place, 10)).versions) == 1, (
            "kept without being named"
        )
        off = {**body, "changeFeedPolicy": {"retentionDuration": 0}}
        await engine.replace_container(container.database, "c", off, None)
        with pytest.raises(PleiadError):
            await versions.page(container, WHOLE, place, 10)
        await upsert(container, "a", "missed")
        assert await forget_versions(container) == 1
        assert await forget_versions(container) == 0
        on = {**body, "changeFeedPolicy": {"retentionDuration": 5}}
        replaced = await engine.replace_container(container.database, "c", on, None)
        assert replaced.properties["changeFeedPolicy"] == {"retentionDuration": 5}
        assert not any(name.startswith(".") for name in to_json(engine.catalog, replaced))
        with pytest.raises(PleiadError) as caught:
            await versions.page(container, WHOLE, place, 10)
        assert status_of(caught.value) == 400
        place = (await versions.page(container, WHOLE, "", 10)).place
        await upsert(container, "a", "again")
        assert [each.id for each in (await versions.page(container, WHOLE, place, 10)).versions] == ["again"]
