"""The scans of ``scan.py`` on PostgreSQL.

Bars: million items a second of CPU time, that of Pleiad's loop and of PostgreSQL together.
"""

from __future__ import annotations

import asyncio
import time

from bench.items import items
from bench.load import LoadProcess
from bench.process import cpu_seconds_of_all
from bench.report import Bar, FamilyReport
from bench.scenarios.postgres import postgres_server
from bench.scenarios.scan import NO_INDEXES, SCANS, Scan, scan_seconds
from bench.settings import Settings
from pleiad.store.postgres.store import PostgresStore

ITEMS = 100_000
BARS = {
    "scan_aggregates_by_group": 0.06,
    "scan_exists": 0.2,
    "scan_array_contains": 0.2,
    "scan_offset": 0.3,
}
"""Million items a second of CPU time; 0.08 for the others."""


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """A bar for each scan."""
    with postgres_server() as postgres:

        async def measure() -> dict[str, list[float]]:
            store = await PostgresStore.open(postgres.new_database(), index_settings=NO_INDEXES)
            clocks = (time.thread_time, lambda: cpu_seconds_of_all(postgres.pid))
            return await scan_seconds(store, items("scan", ITEMS), settings.rounds, clocks)

        seconds = asyncio.run(measure())
    return FamilyReport(lines=(), bars=tuple(_bar(scan, *seconds[scan.name]) for scan in SCANS))


def _bar(scan: Scan, own_seconds: float, database_seconds: float) -> Bar:
    rate = ITEMS / (own_seconds + database_seconds)
    own, database = (1e6 * seconds / ITEMS for seconds in (own_seconds, database_seconds))
    return Bar(
        name=f"postgres_{scan.name}",
        ratio=rate / 1e6,
        bar=BARS.get(scan.name, 0.08),
        meaning=f"million items a second of CPU time ({own:.1f} + {database:.1f} µs an item): {scan.text}",
    )
