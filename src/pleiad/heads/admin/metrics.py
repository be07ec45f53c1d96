"""The figures of a server for Prometheus and those who read its formats.

The format is a few lines a metric, and the counters are plain numbers that the hot path adds to; a client library
would bring its own counters, whose labels and locks cost a request more than all of its counting here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from pleiad.catalog.placement import changes_of
from pleiad.engine.engine import Engine
from pleiad.engine.traffic import AccountTraffic
from pleiad.heads.admin.metrics_page import Labels, Page, PageFormat
from pleiad.heads.admin.process import add_process
from pleiad.partition.governor import GovernorSnapshot
from pleiad.partition.latency import BOUNDS_SECONDS
from pleiad.store import commits as commit_classes
from pleiad.store.commits import CommitCounts
from pleiad.store.figures import StoreFigures
from pleiad.store.segments import SegmentDroppedError


async def page(engine: Engine, connections: int, format: PageFormat, last_backup_at: float | None) -> bytes:
    """All metrics of this moment; `last_backup_at` is None where there are no backups to be taken."""
    made = Page(format)
    add_process(made, "postgresql" if engine.store.is_shared else "sqlite")
    _add_traffic(made, engine.traffic)
    await _add_partitions(made, engine)
    _add_commits(made, engine.store.commits)
    kinds = Counter(warning.kind for warning in engine.watch.warnings.standing())
    made.add(
        "pleiad_warnings",
        "gauge",
        "Warnings that stand, by kind.",
        [({"kind": kind}, count) for kind, count in sorted(kinds.items())],
    )
    made.add("pleiad_faults", "gauge", "Faults on demand in force.", [({}, len(engine.faults.live()))])
    made.add("pleiad_open_connections", "gauge", "Open connections of clients.", [({}, connections)])
    _add_store(made, engine.store.figures())
    if last_backup_at is not None:
        made.add(
            "pleiad_last_backup_timestamp_seconds",
            "gauge",
            "The point in time of the newest backup; 0 when there is none.",
            [({}, last_backup_at)],
        )
    return made.text()


def _add_store(made: Page, figures: StoreFigures) -> None:
    gauges = (
        ("pleiad_store_open_segments", "Segments that are open.", figures.segments_open),
        (
            "pleiad_store_waiting_writes",
            "Writes that wait for the commit before theirs.",
            figures.writes_waiting,
        ),
        (
            "pleiad_store_waiting_disk_calls",
            "Long calls that wait for a disk thread.",
            figures.disk_calls_waiting,
        ),
        (
            "pleiad_store_connection_waiters",
            "Requests that wait for a connection.",
            figures.connection_waiters,
        ),
        ("pleiad_store_connections_max", "Connections to the database at most.", figures.connections_max),
    )
    for name, text, value in gauges:
        made.add(name, "gauge", text, [({}, value)])
    made.add(
        "pleiad_store_connections",
        "gauge",
        "Connections to the database, by what they do.",
        [({"state": "used"}, figures.connections_used), ({"state": "idle"}, figures.connections_idle)],
    )


def _add_traffic(made: Page, traffic: AccountTraffic) -> None:
    series = list(traffic)
    made.add(
        "pleiad_requests_total",
        "counter",
        "Requests answered, by operation and status.",
        [({"operation": each.operation, "status": str(each.status)}, each.requests) for each in series],
    )
    charges: defaultdict[str, float] = defaultdict(float)
    times: dict[str, tuple[list[int], float]] = {}
    for each in series:
        charges[each.operation] += each.charge_ru
        counts, seconds = times.get(each.operation, ([0] * len(each.buckets), 0.0))
        summed = [one + other for one, other in zip(counts, each.buckets, strict=True)]
        times[each.operation] = (summed, seconds + each.seconds)
    made.add(
        "pleiad_request_units_total",
        "counter",
        "Request units charged, by operation.",
        [({"operation": operation}, round(ru, 2)) for operation, ru in charges.items()],
    )
    made.add_histogram(
        "pleiad_request_duration_seconds",
        "Time from a request's last byte read to its answer, by operation.",
        BOUNDS_SECONDS,
        [({"operation": operation}, counts, seconds) for operation, (counts, seconds) in times.items()],
    )


async def _add_partitions(made: Page, engine: Engine) -> None:
    items: list[tuple[Labels, float]] = []
    sizes: list[tuple[Labels, float]] = []
    splits: list[tuple[Labels, float]] = []
    merges: list[tuple[Labels, float]] = []
    loads: list[tuple[Labels, GovernorSnapshot]] = []
    for container in engine.containers:
        names = {"database": container.database.id, "container": container.resource.id}
        try:
            states = await engine.watch.census.states(container)
        except SegmentDroppedError:
            continue  # it was deleted meanwhile
        split_count, merge_count = changes_of(engine.catalog.history(container.resource.rid))
        splits.append((names, split_count))
        merges.append((names, merge_count))
        for partition, state in states:
            labels = {**names, "partition": partition.range_id}
            items.append((labels, state.items))
            sizes.append((labels, state.size_bytes))
            loads.append((labels, partition.governor.snapshot()))
    made.add("pleiad_partition_items", "gauge", "Items of a physical partition.", items)
    made.add("pleiad_partition_bytes", "gauge", "Bytes stored in a physical partition.", sizes)
    _add_loads(made, loads)
    made.add("pleiad_splits_total", "counter", "Splits of physical partitions of a container.", splits)
    made.add("pleiad_merges_total", "counter", "Merges of physical partitions of a container.", merges)


def _add_loads(made: Page, loads: Sequence[tuple[Labels, GovernorSnapshot]]) -> None:
    made.add(
        "pleiad_partition_allowed_ru",
        "gauge",
        "RU/s that a physical partition is allowed.",
        [(labels, load.rate_ru) for labels, load in loads],
    )
    made.add(
        "pleiad_partition_server_share",
        "gauge",
        "The part of the allowed RU/s that this server may use now.",
        [(labels, round(load.share, 3)) for labels, load in loads],
    )
    made.add(
        "pleiad_partition_normalized_ru_percent",
        "gauge",
        "The busiest second of the last minute: request units used of those allowed.",
        [(labels, load.normalized_percent) for labels, load in loads],
    )
    made.add(
        "pleiad_partition_request_units_total",
        "counter",
        "Request units charged to a physical partition.",
        [(labels, round(load.ru, 2)) for labels, load in loads],
    )
    made.add(
        "pleiad_partition_throttled_total",
        "counter",
        "Requests that a physical partition answered with 429.",
        [(labels, load.refused) for labels, load in loads],
    )
    made.add(
        "pleiad_partition_over_budget_total",
        "counter",
        "Requests beyond the throughput that were served, since it is only observed.",
        [(labels, load.over_budget) for labels, load in loads],
    )


def _add_commits(made: Page, commits: CommitCounts) -> None:
    made.add_histogram(
        "pleiad_commit_writes",
        "Writes that shared one commit.",
        commit_classes.BOUNDS_WRITES,
        [({}, commits.buckets, commits.writes)],
    )
    made.add_histogram(
        "pleiad_commit_duration_seconds",
        "Time of a commit, from its first statement until it is durable.",
        commit_classes.BOUNDS_SECONDS,
        [({}, commits.seconds_buckets, commits.seconds)],
    )
