"""Queries that look at every item of 1 KB, as many as the other queries have, without a server and without indexes.

Bars: million items a second of CPU time of the loop, whatever else its machine does meanwhile. Every answer is compared
with that of the query over the same items in memory.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from bench.items import Item, items
from bench.load import LoadError
from bench.report import Bar
from pleiad.engine import items as item_operations
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.query import execution
from pleiad.engine.query.request import QueryRequest
from pleiad.item.body import SYSTEM_PROPERTIES
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from pleiad.query import Query, QueryContext
from pleiad.server.lifecycle import settle_garbage_collector
from pleiad.store.index_use import IndexSettings
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.store import Store

WRITERS = 50
PAGE_ITEMS = 1_000
NO_INDEXES = IndexSettings(items_min=10**9)

Clock = Callable[[], float]


class Scan(NamedTuple):
    """A query, and the million items a second that it is to reach."""

    name: str
    bar: float
    text: str


SCANS = (
    Scan("scan_distinct", 1.0, "SELECT DISTINCT VALUE c.category FROM c"),
    Scan("scan_count_by_group", 1.0, "SELECT c.category, COUNT(1) AS n FROM c GROUP BY c.category"),
    Scan(
        "scan_aggregates_by_group",
        0.6,
        "SELECT c.category, SUM(c.amount) AS total, AVG(c.amount) AS mean, MIN(c.amount) AS low, "
        "MAX(c.amount) AS high FROM c GROUP BY c.category",
    ),
    Scan("scan_contains", 0.6, "SELECT VALUE COUNT(1) FROM c WHERE CONTAINS(c.name, 'river 5')"),
    Scan(
        "scan_startswith_ignoring_case",
        0.6,
        "SELECT VALUE COUNT(1) FROM c WHERE STARTSWITH(c.name, 'RIVER 5', true)",
    ),
    Scan(
        "scan_exists",
        0.6,
        "SELECT VALUE COUNT(1) FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'river')",
    ),
    Scan("scan_array_contains", 0.6, "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.tags, 'river')"),
    Scan("scan_join", 0.25, "SELECT t, COUNT(1) AS n FROM c JOIN t IN c.tags GROUP BY t"),
    Scan("scan_order_by", 0.5, "SELECT TOP 100 * FROM c ORDER BY c.score"),
    Scan("scan_items", 0.4, "SELECT * FROM c WHERE CONTAINS(c.name, 'river 5')"),
    Scan("scan_offset", 1.0, "SELECT * FROM c OFFSET 15000 LIMIT 100"),
)


def scan_bars(count: int, rounds: int) -> tuple[Bar, ...]:
    """A bar for each scan on SQLite, the median of some rounds."""

    async def measure() -> tuple[Bar, ...]:
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            store = SqliteStore(Path(directory), durable=False, index_settings=NO_INDEXES)
            seconds = await scan_seconds(store, items("scan", count), rounds, (time.thread_time,))
        return tuple(_bar(scan, count / seconds[scan.name][0]) for scan in SCANS)

    return asyncio.run(measure())


async def scan_seconds(
    store: Store, loaded: Sequence[Item], rounds: int, clocks: Sequence[Clock]
) -> dict[str, list[float]]:
    """What each scan takes by each clock, the median of some rounds, in an empty store that is closed at the end."""
    thresholds = gc.get_threshold()
    settle_garbage_collector()  # as in a server
    limits = Limits()
    engine = Engine(store, limits)
    await engine.open()
    try:
        await engine.create_database({"id": "bench"}, None)
        definition = {"id": "scan", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
        await engine.create_container(engine.database("bench"), definition, None)
        container = await engine.container("bench", "scan")
        for first in range(0, len(loaded), WRITERS):
            group = loaded[first : first + WRITERS]
            await asyncio.gather(
                *(item_operations.create(container, item.body, (item.pk,)) for item in group)
            )
        taken: dict[str, list[list[float]]] = {scan.name: [] for scan in SCANS}
        for _ in range(rounds):
            for scan in SCANS:
                began = [clock() for clock in clocks]
                await _ask(container, scan.text)
                taken[scan.name].append([clock() - at for clock, at in zip(clocks, began, strict=True)])
        for scan in SCANS:
            await _check(container, scan, loaded, limits)
    finally:
        await engine.close()
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    return {
        name: [statistics.median(by_clock) for by_clock in zip(*each, strict=True)]
        for name, each in taken.items()
    }


def _bar(scan: Scan, rate: float) -> Bar:
    meaning = f"million items a second of CPU time, {rate:,.0f} items/s: {scan.text}"
    return Bar(name=scan.name, ratio=rate / 1e6, bar=scan.bar, meaning=meaning)


async def _ask(container: Container, text: str) -> list[Any]:
    """The results of a query, of all its pages."""
    results: list[bytes] = []
    token: str | None = ""
    while token is not None:
        request = QueryRequest(
            text=text, parameters={}, span=WHOLE, items_max=PAGE_ITEMS, is_confined=True, token=token
        )
        page = await execution.run(container, request)
        results += page.results
        token = page.token
    return [orjson.loads(result) for result in results]


async def _check(container: Container, scan: Scan, loaded: Sequence[Item], limits: Limits) -> None:
    """The answer is that of the query in memory; groups may come in another order."""
    found = await _ask(container, scan.text)
    decoded = (orjson.loads(item.body) for item in loaded)
    expected = Query(scan.text, limits).run(decoded, {}, QueryContext(limits=limits))
    if scan.name == "scan_aggregates_by_group":  # sums are rounded in the order of the rows
        found, expected = _rounded(found), _rounded(expected)
    if " * " in scan.text:  # numbers may be written in several ways in items as they are
        found, expected = [_written(item) for item in found], [_written(item) for item in expected]
    if sorted(map(repr, found)) != sorted(map(repr, expected)):
        raise LoadError(f"{scan.name} gave {found[:3]}, not {expected[:3]}")


def _written(item: dict[str, Any]) -> dict[str, Any]:
    """What clients wrote of an item, each number as a float."""
    return {
        name: float(value) if type(value) is int else value
        for name, value in item.items()
        if name not in SYSTEM_PROPERTIES
    }


def _rounded(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: round(value, 6) if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]
