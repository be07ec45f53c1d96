"""An account in this process that copies containers, and can be opened again on the same data."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import orjson
import pytest

from pleiad.catalog.throughput import Throughput
from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS
from pleiad.errors import RESOURCE_EXISTS, PleiadError
from pleiad.item.body import load
from pleiad.job.copy.copies import Copies, CopyProgress
from pleiad.job.copy.job import CopyJob, CopyState
from pleiad.job.copy.plan import plan_from_json
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from tests.stores import PATIENT, OpenStore
from tests.waiting import until

SYSTEM = {"_rid", "_self", "_etag", "_attachments"}


class Account:
    """One server's engine with its copies."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.copies = Copies(engine)

    async def container(self, name: str, throughput_ru: int = 400, **definition: Any) -> Container:
        """The container of the database `db`, made where there is none."""
        with contextlib.suppress(PleiadError):
            await self.engine.create_database({"id": "db"}, None)
        body = {"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, **definition, "id": name}
        given = None if "shared" in definition else Throughput(throughput_ru)
        try:
            await self.engine.create_container(self.engine.database("db"), body, given)
        except PleiadError as error:
            if error.row is not RESOURCE_EXISTS:
                raise
        return await self.engine.container("db", name)

    async def put(self, container: Container, **item: Any) -> None:
        """Writes an item, again where it is told to; a stop of the writers is nothing that it sees."""
        await items.upsert(container, orjson.dumps(item), container.key.extract(item), NO_CONDITIONS)

    async def delete(self, container: Container, id: str, *key: Any) -> None:
        await items.delete(container, id, key, NO_CONDITIONS)

    async def all_of(self, name: str) -> list[dict[str, Any]]:
        """The items of a container with their time, by id and key."""
        container = await self.engine.container("db", name)
        found: list[dict[str, Any]] = []
        for partition in container.map.partitions:
            for row in await partition.scan(WHOLE, 0, 100_000):
                item = load(container.render(row))
                found.append({name: value for name, value in item.items() if name not in SYSTEM})
        return sorted(found, key=lambda item: (item["id"], orjson.dumps(item)))

    async def start(self, **plan: Any) -> CopyJob:
        """Begins a copy of `db/a` to `db/b`, or as the plan says."""
        body = {"source": "db/a", "target": "db/b", "share": 1, **plan}
        progress, _ = await self.copies.start(plan_from_json(body, self.engine.limits))
        return progress.job

    def look(self, job: CopyJob) -> CopyProgress:
        return self.copies.find(job.id)

    async def ended(self, job: CopyJob) -> CopyJob:
        """The copy when it is over."""
        assert await until(lambda: self.look(job).job.is_over)
        return self.look(job).job

    async def copied(self, **plan: Any) -> CopyJob:
        """A copy that is done."""
        job = await self.ended(await self.start(**plan))
        assert job.state is CopyState.DONE, (job.problem, job.items)
        return job

    async def failed(self, **plan: Any) -> CopyJob:
        job = await self.ended(await self.start(**plan))
        assert job.state is CopyState.FAILED
        return job


OpenAccount = Callable[..., AbstractAsyncContextManager[Account]]


@pytest.fixture
def account(tmp_path: Path, open_store: OpenStore) -> OpenAccount:
    """Opens the account for the length of an async with-block; a second block opens the same data."""

    @contextlib.asynccontextmanager
    async def opened(limits: Limits | None = None, **settings: Any) -> AsyncIterator[Account]:
        engine = Engine(await open_store(tmp_path / "data"), limits or PATIENT, **settings)
        await engine.open()
        made = Account(engine)
        made.copies.open()
        try:
            yield made
        finally:
            await made.copies.close()
            await engine.close()

    return opened


class Writers:
    """Coroutines that write to the source until they are stopped, and know what was acknowledged."""

    def __init__(self, account: Account, count: int = 4, keys: int = 50, prefix: str = "w") -> None:
        self._account = account
        self._keys = keys
        self._prefix = prefix
        self.written: dict[str, dict[str, Any] | None] = {}
        """The last acknowledged state of each item by its id; None after a delete."""
        self.writes = self.refusals = 0
        self._is_stopped = False
        self._tasks = [asyncio.create_task(self._write(number)) for number in range(count)]

    async def _write(self, number: int) -> None:
        turn = 0
        while not self._is_stopped:
            turn += 1
            key = turn * 7 % self._keys
            id = f"{self._prefix}{number}-{key}"
            container = await self._account.engine.container("db", "a")
            item = {"id": id, "pk": f"p{key % 5}", "t": f"t{key % 3}", "n": turn}
            try:
                if turn % 5 == 0 and self.written.get(id) is not None:
                    value = tuple(container.key.extract(item))
                    await items.delete(container, id, value, NO_CONDITIONS)
                    self.written[id] = None
                else:
                    await self._account.put(container, **item)
                    self.written[id] = item
                self.writes += 1
            except PleiadError as error:
                if error.retry_after_ms is None:
                    raise
                self.refusals += 1
            await asyncio.sleep(0)

    async def stop(self) -> None:
        self._is_stopped = True
        await asyncio.gather(*self._tasks)

    def expected(self) -> dict[str, dict[str, Any]]:
        return {id: item for id, item in self.written.items() if item is not None}
