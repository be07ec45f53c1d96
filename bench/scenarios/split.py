"""A split of a physical partition of 1 KB items while writers are at work on it, in this process, on disk.

Bars:

- ``split_pause``: 50 ms over the longest wait of any write that met the split itself, the copies not included. The
  wait holds the usual time of a write too, so it is more than the time the partition was closed.
- ``rehome_items``: items per second that the children's copies move over 20,000, beside the load.
- ``split_load``: the rate of the writers from the split to the end of the copies, over 60 % of their rate before.

The lines are the rates of the same writers over one, two, four and eight physical partitions, on one disk: each
partition syncs for itself, so fewer writers share a commit.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from pathlib import Path

from bench.items import Item, items
from bench.load import LoadError, LoadProcess
from bench.process import BUILD
from bench.report import Bar, FamilyReport, Line
from bench.settings import Settings
from pleiad.engine import batch
from pleiad.engine import items as item_operations
from pleiad.engine.batch import ItemOperation, ItemVerb
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS
from pleiad.engine.phase import Phase
from pleiad.limits import Limits
from pleiad.store.sqlite.store import SqliteStore

PAUSE_MS = 50.0
REHOME_ITEMS_PER_SECOND = 20_000
LOAD_SHARE = 0.6
PARTITIONS_MAX = 8
_ITEMS_PER_SETTING = 5
"""The settings name 20,000 items; a split is measured on 100,000."""
_BULK = 1_000


class _Writers:
    """Clients that replace items as fast as they are answered, and how long each of them waited."""

    def __init__(self, container: Container, known: list[Item], count: int) -> None:
        self._container = container
        self._next = itertools.cycle(known)
        self.count = count
        self.waits: list[float] = []
        self._tasks = [asyncio.create_task(self._write()) for _ in range(count)]

    async def _write(self) -> None:
        while True:
            item = next(self._next)
            began = time.perf_counter()
            await item_operations.upsert(self._container, item.body, (item.pk,), NO_CONDITIONS)
            self.waits.append(time.perf_counter() - began)

    def rate(self, waits_before: int, seconds: float) -> float:
        return (len(self.waits) - waits_before) / seconds

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """One split under load, and the writers over growing numbers of partitions."""
    return asyncio.run(_measure(settings))


async def _measure(settings: Settings) -> FamilyReport:
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as directory:
        engine = Engine(SqliteStore(Path(directory)), Limits())
        await engine.open()
        try:
            container, known = await _filled(engine, settings.items * _ITEMS_PER_SETTING)
            writers = _Writers(container, known, settings.connections)
            lines = [await _line(container, writers, settings)]
            bars = await _split(engine, container, writers, lines[0].rate, len(known))
            while len(container.map.partitions) < PARTITIONS_MAX:
                lines.append(await _line(container, writers, settings))
                for partition in list(container.map.partitions):
                    await engine.split(container, partition.range_id)
                await engine.keeper.settled()
            lines.append(await _line(container, writers, settings))
            await writers.stop()
        finally:
            await engine.close()
    return FamilyReport(lines=tuple(lines), bars=tuple(bars))


async def _filled(engine: Engine, count: int) -> tuple[Container, list[Item]]:
    database = await engine.create_database({"id": "bench"}, None)
    await engine.create_container(
        database, {"id": "split", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}, None
    )
    container = await engine.container("bench", "split")
    known = items("split", count)
    for start in range(0, count, _BULK):
        chunk = [
            ItemOperation(ItemVerb.UPSERT, body=item.body, key=(item.pk,)) for item in known[start:][:_BULK]
        ]
        answer = await batch.run_bulk(container, chunk)
        if answer.has_failure:
            raise LoadError("an item could not be written")
    return container, known


async def _line(container: Container, writers: _Writers, settings: Settings) -> Line:
    """The writers for a while; they share this process and its CPU time with the engine."""
    before, began, cpu_began = len(writers.waits), time.perf_counter(), time.process_time()
    await asyncio.sleep(settings.seconds * settings.rounds)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    rate = writers.rate(before, seconds)
    waits = sorted(writers.waits[before:])
    return Line(
        name=f"write, partitions: {len(container.map.partitions)}",
        rounds=1,
        rate=rate,
        rate_min=rate,
        rate_max=rate,
        p50_ms=1000 * waits[len(waits) // 2],
        p99_ms=1000 * waits[len(waits) * 99 // 100],
        max_ms=1000 * waits[-1],
        rate_per_cpu=len(waits) / cpu_seconds,
        server_cpu_percent=100 * cpu_seconds / seconds,
        client_cpu_percent=0.0,
    )


async def _split(
    engine: Engine, container: Container, writers: _Writers, usual: float, count: int
) -> list[Bar]:
    """Splits the one partition while the writers go on, and waits until both children are at home."""
    copying_at = 0.0

    async def note(_: Container, phase: Phase) -> None:
        nonlocal copying_at
        if phase is Phase.COPYING and not copying_at:
            copying_at = time.perf_counter()

    engine.reshaper.report = note
    before, began = len(writers.waits), time.perf_counter()
    await engine.reshaper.split(container, "0")
    met = len(writers.waits) + writers.count
    engine.keeper.wake()
    while engine.catalog.is_unfinished(container.resource.rid):
        await asyncio.sleep(0.005)
    ended = time.perf_counter()
    pause_ms = 1000 * max(writers.waits[before:met])
    moved = count / (ended - copying_at)
    meanwhile = writers.rate(before, ended - began)
    waits = sorted(writers.waits[before:])
    p99_ms, longest_ms = 1000 * waits[len(waits) * 99 // 100], 1000 * waits[-1]
    seconds = f"{ended - began:.1f} s for {count:,} items"
    return [
        Bar(
            name="split_pause",
            ratio=PAUSE_MS / pause_ms,
            bar=1,
            meaning=f"{PAUSE_MS:.0f} ms over the longest write that met the split ({pause_ms:.1f} ms; "
            f"with the copies p99 {p99_ms:.1f} ms, longest {longest_ms:.0f} ms)",
        ),
        Bar(
            name="rehome_items",
            ratio=moved / REHOME_ITEMS_PER_SECOND,
            bar=1,
            meaning=f"items/s copied beside the load ({moved:,.0f}; {seconds}) over {REHOME_ITEMS_PER_SECOND:,}",
        ),
        Bar(
            name="split_load",
            ratio=meanwhile / usual / LOAD_SHARE,
            bar=1,
            meaning=f"writes/s during split and copies ({meanwhile:,.0f} of {usual:,.0f}) over {LOAD_SHARE:.0%}",
        ),
    ]
