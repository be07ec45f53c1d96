"""The clients of a simulated server: writers and readers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from pleiad import errors
from pleiad.engine import batch, items, patching, reading
from pleiad.engine.batch import ItemOperation, ItemVerb
from pleiad.engine.container import Container
from pleiad.engine.feed import listing
from pleiad.engine.items import NO_CONDITIONS, ItemAnswer
from pleiad.engine.query import execution
from pleiad.engine.query.request import QueryRequest
from pleiad.engine.session import Seen
from pleiad.errors import PleiadError
from pleiad.keys.range import WHOLE
from pleiad.server.http.failures import status_of
from tests.proofs.simulation.history import Batch, Counter, History, Key, Owned, State, demand

KEYS = 12
FIXED = 40
COUNTERS = 3
_PAUSE_SECONDS = 0.01
_HUNG_UP_SECONDS = 0.1
"""After this time a write that its client gave up is applied, or never will be."""


def body_of(pk: str, id: str, stamp: int, u: str, **more: object) -> bytes:
    return orjson.dumps({"id": id, "pk": pk, "stamp": stamp, "u": u, **more})


async def prepare(container: Container, history: History) -> None:
    """The items that are there from the beginning: some that nobody changes, and the counters."""
    for number in range(FIXED):
        pk, id = f"k{number % KEYS}", f"fixed{number}"
        raw = body_of(pk, id, 0, id, kind="fixed", number=number % 7)
        answer = await items.create(container, raw, (pk,))
        assert answer.row is not None
        history.fixed[pk, id] = answer.row.lsn
        history.note_lsn(pk, answer.row.lsn, history.stamp(), history.floor(pk))
    for number in range(COUNTERS):
        pk, id = f"k{number * 3}", f"counter{number}"
        answer = await items.create(container, body_of(pk, id, 0, id, n=0), (pk,))
        assert answer.row is not None
        history.counters[pk, id] = Counter()
    history.stamp_at_start = len(history.stamps)


class Writer:
    """One client that writes items of its own, contends for unique values, and counts."""

    def __init__(self, container: Container, history: History, number: int, random_of: random.Random) -> None:
        self._container = container
        self._history = history
        self._number = number
        self._random = random_of

    async def run(self, count: int) -> None:
        acts: list[Callable[[], Awaitable[None]]] = [
            self._put,
            self._put,
            self._delete,
            self._increment,
            self._increment,
            self._batch,
            self._claim,
            self._short_lived,
            self._hang_up,
        ]
        for _ in range(count):
            await self._random.choice(acts)()
            if self._random.random() < 0.3:
                await asyncio.sleep(self._random.uniform(0, _PAUSE_SECONDS))
        await asyncio.sleep(_HUNG_UP_SECONDS)

    def _own(self, prefix: str = "w") -> Key:
        return f"k{self._random.randrange(KEYS)}", f"{prefix}{self._number}-{self._random.randrange(3)}"

    async def _try(
        self, sent: Awaitable[ItemAnswer], allowed: tuple[errors.ErrorRow, ...] = ()
    ) -> ItemAnswer | None:
        """The answer, or None when nothing was done: refused as expected, or told to come back later."""
        try:
            return await sent
        except PleiadError as error:
            if error.row is errors.COMPLETING_SPLIT and self._history.may_time_out:
                return None
            demand(error.row in allowed, f"a write was refused: {status_of(error)} {error.message}")
            return None

    async def _change(
        self,
        key: Key,
        state: State,
        sent: Awaitable[ItemAnswer],
        stamp: int,
        ttl: int | None = None,
        allowed: tuple[errors.ErrorRow, ...] = (),
    ) -> None:
        """One change of an owned item, with its place in the history."""
        history = self._history
        owned = history.owned.setdefault(key, Owned())
        floor = history.floor(key[0])
        owned.in_flight.append(state)
        owned.ttl = ttl
        answer = await self._try(sent, allowed)
        owned.in_flight.remove(state)
        if answer is None:
            return
        lsn = 0
        if answer.row is not None:
            lsn = answer.row.lsn
            history.note_lsn(key[0], lsn, stamp, floor)
            owned.expires_at = answer.row.ts + ttl if ttl is not None else None
        else:
            history.acknowledged += 1
        owned.state, owned.lsn = state, lsn
        owned.in_flight.clear()
        if ttl is None:
            partition = answer.partition
            await self._read_back(
                key, Seen(partition.range_id, self._container.resource.number, partition.lsn)
            )

    async def _read_back(self, key: Key, seen: Seen) -> None:
        owned = self._history.owned[key]
        try:
            answer = await reading.read(self._container, key[1], (key[0],), seen=[seen])
        except PleiadError as error:
            demand(error.row is errors.ITEM_NOT_FOUND, f"a read failed: {status_of(error)} {error.message}")
            demand(owned.state is None, f"I8: {key} is not there for the one who wrote it")
            return
        assert answer.row is not None
        stamp = orjson.loads(answer.row.body)["stamp"]
        demand(stamp == owned.state, f"I8: {key} is at {stamp} for the one who wrote {owned.state}")

    async def _put(self) -> None:
        key, stamp = self._own(), self._history.stamp()
        raw = body_of(*key, stamp, key[1], pad="x" * self._random.choice((0, 10, 200)))
        await self._change(key, stamp, items.upsert(self._container, raw, (key[0],), NO_CONDITIONS), stamp)

    async def _hang_up(self) -> None:
        """Sends a change and does not wait for the answer."""
        key, stamp = self._own(), self._history.stamp()
        self._history.owned.setdefault(key, Owned()).in_flight.append(stamp)
        raw = body_of(*key, stamp, key[1])
        sent = asyncio.ensure_future(items.upsert(self._container, raw, (key[0],), NO_CONDITIONS))
        await asyncio.sleep(self._random.uniform(0, 0.006))
        sent.cancel()
        await asyncio.wait([sent])

    def _is_known_there(self, key: Key) -> bool:
        owned = self._history.owned.get(key, Owned())
        return owned.state is not None and not owned.in_flight

    async def _delete(self) -> None:
        key = self._own()
        if self._is_known_there(key):
            sent = items.delete(self._container, key[1], (key[0],), NO_CONDITIONS)
            await self._change(key, None, sent, self._history.stamp())

    async def _claim(self) -> None:
        """Wants a unique value that others want too, and gives it back later."""
        key, stamp = self._own("claim"), self._history.stamp()
        if self._is_known_there(key):
            sent = items.delete(self._container, key[1], (key[0],), NO_CONDITIONS)
            await self._change(key, None, sent, stamp)
            return
        raw = body_of(*key, stamp, f"wanted{self._random.randrange(2)}")
        sent = items.create(self._container, raw, (key[0],))
        await self._change(key, stamp, sent, stamp, allowed=(errors.UNIQUE_KEY_CONFLICT,))

    async def _short_lived(self) -> None:
        stamp, ttl = self._history.stamp(), self._random.randint(1, 2)
        key = f"k{self._random.randrange(KEYS)}", f"short{stamp}"
        raw = body_of(*key, stamp, key[1], ttl=ttl)
        await self._change(key, stamp, items.create(self._container, raw, (key[0],)), stamp, ttl)

    async def _increment(self) -> None:
        key = self._random.choice(sorted(self._history.counters))
        counter, stamp = self._history.counters[key], self._history.stamp()
        floor = self._history.floor(key[0])
        counter.in_flight[self._number] = stamp
        answer = await self._try(
            patching.patch(self._container, key[1], self._increments(stamp), (key[0],), NO_CONDITIONS)
        )
        del counter.in_flight[self._number]
        if answer is not None:
            assert answer.row is not None
            self._history.note_lsn(key[0], answer.row.lsn, stamp, floor)
            counter.acknowledged += 1
            counter.last_of[self._number] = stamp

    def _increments(self, stamp: int) -> bytes:
        operations = [
            {"op": "incr", "path": "/n", "value": 1},
            {"op": "set", "path": f"/by{self._number}", "value": stamp},
        ]
        return orjson.dumps({"operations": operations})

    async def _batch(self) -> None:
        """Two items and a counter of one logical partition, all or nothing."""
        history, stamp = self._history, self._history.stamp()
        counter_key = self._random.choice(sorted(history.counters))
        pk, counter = counter_key[0], history.counters[counter_key]
        floor = history.floor(pk)
        first, second = (pk, f"w{self._number}-0"), (pk, f"w{self._number}-1")
        states: dict[Key, State] = {first: stamp, second: stamp}
        operations = [
            ItemOperation(ItemVerb.UPSERT, "", body_of(*first, stamp, first[1])),
            ItemOperation(ItemVerb.UPSERT, "", body_of(*second, stamp, second[1])),
            ItemOperation(ItemVerb.PATCH, counter_key[1], self._increments(stamp)),
        ]
        if self._is_known_there(second) and self._random.random() < 0.3:
            operations[1] = ItemOperation(ItemVerb.DELETE, second[1])
            states[second] = None
        noted = Batch(stamp, states, counter_key, self._number)
        history.batches.append(noted)
        for key, state in states.items():
            history.owned.setdefault(key, Owned()).in_flight.append(state)
        counter.in_flight[self._number] = stamp
        answer = None
        try:
            answer = await batch.run_transaction(self._container, (pk,), operations)
        except PleiadError as error:
            demand(
                error.row is errors.COMPLETING_SPLIT and history.may_time_out,
                f"a batch was refused: {status_of(error)} {error.message}",
            )
        history.batches.remove(noted)
        del counter.in_flight[self._number]
        for key, state in states.items():
            history.owned[key].in_flight.remove(state)
        if answer is None:
            return
        demand(not answer.has_failure, f"a batch failed: {answer.answers}")
        counter.acknowledged += 1
        counter.last_of[self._number] = stamp
        for each, key in zip(answer.answers, (first, second), strict=False):
            assert isinstance(each, ItemAnswer)
            lsn = each.row.lsn if each.row is not None else 0
            if lsn:
                history.note_lsn(pk, lsn, stamp, floor)
            history.owned[key].state, history.owned[key].lsn = states[key], lsn
            history.owned[key].in_flight.clear()


class Reader:
    """One client that asks for the items nobody changes: each is there once, whatever happens meanwhile."""

    _TEXTS = (
        "SELECT VALUE c.id FROM c WHERE c.kind = 'fixed'",
        "SELECT VALUE c.id FROM c WHERE c.kind = 'fixed' ORDER BY c.number",
        "SELECT VALUE c.id FROM c WHERE c.kind = 'fixed' AND c.number < 9 ORDER BY c.id DESC",
    )

    def __init__(self, container: Container, history: History, random_of: random.Random) -> None:
        self._container = container
        self._wanted = sorted(id for _, id in history.fixed)
        self._random = random_of

    async def run(self, count: int) -> None:
        for _ in range(count):
            how = self._random.randrange(5)
            if how < 3:
                self._compare(await self._pages(self._TEXTS[how]), self._TEXTS[how])
            elif how == 3:
                text = "SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'fixed'"
                counts = await self._pages(text)
                demand(counts == [len(self._wanted)], f"{text}: {counts}")
            else:
                self._compare(await self._feed(), "the feed")
            await asyncio.sleep(self._random.uniform(0, _PAUSE_SECONDS))

    def _compare(self, found: list[str], what: str) -> None:
        demand(sorted(found) == self._wanted, f"{what}: {len(found)} items, {len(set(found))} different ones")

    async def _pages(self, text: str) -> list[Any]:
        found: list[Any] = []
        token: str | None = ""
        while token is not None:
            request = QueryRequest(
                text=text,
                parameters={},
                span=WHOLE,
                token=token,
                items_max=self._random.choice((3, 11, 50)),
            )
            page = await execution.run(self._container, request)
            found += [orjson.loads(each) for each in page.results]
            token = page.token
            await asyncio.sleep(self._random.uniform(0, _PAUSE_SECONDS))
        return found

    async def _feed(self) -> list[str]:
        found: list[str] = []
        token: str | None = ""
        while token is not None:
            page = await listing.page(self._container, WHOLE, token, self._random.choice((3, 11, 50)))
            found += [row.id for row in page.rows if row.id.startswith("fixed")]
            token = page.token
            await asyncio.sleep(self._random.uniform(0, _PAUSE_SECONDS))
        return found


async def everything(container: Container) -> dict[Key, tuple[dict[str, object], int]]:
    """All live items, with their LSN."""
    found: dict[Key, tuple[dict[str, object], int]] = {}
    token: str | None = ""
    while token is not None:
        page = await listing.page(container, WHOLE, token, 20)
        now = time.time()
        for row in page.rows:
            body = orjson.loads(row.body)
            demand((body["pk"], row.id) not in found, f"{row.id} of {body['pk']} is there twice")
            if not container.is_expired(row, now):
                found[body["pk"], row.id] = body, row.lsn
        token = page.token
    return found
