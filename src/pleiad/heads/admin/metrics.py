"""The figures of a server in the text format of Prometheus.

The format is a few lines a metric, and the counters are plain numbers that the hot path adds to; a client library
would bring its own counters, whose labels and locks cost a request more than all of its counting here.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from pleiad.catalog.placement import changes_of
from pleiad.engine.engine import Engine
from pleiad.engine.watch.traffic import BOUNDS_SECONDS, Traffic
from pleiad.partition.governor import GovernorSnapshot
from pleiad.store.commits import BOUNDS_WRITES, CommitCounts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]


class Page:
    """A page of metrics under construction."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, name: str, kind: str, text: str, samples: Iterable[tuple[Labels, float]]) -> None:
        """A counter or gauge with one sample for each set of labels; a metric without samples is left out."""
        lines = [f"{name}{_braced(labels)} {_number(value)}" for labels, value in samples]
        if lines:
            self._lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *lines]

    def add_histogram(
        self,
        name: str,
        text: str,
        bounds: Sequence[float],
        samples: Iterable[tuple[Labels, Sequence[int], float]],
    ) -> None:
        """A histogram: for each set of labels the count in each class, and the sum of the values."""
        self._lines += [f"# HELP {name} {text}", f"# TYPE {name} histogram"]
        for labels, counts, total in samples:
            ends = [*map(_number, bounds), "+Inf"]
            for end, count in zip(ends, accumulate(counts), strict=True):
                self._lines.append(f"{name}_bucket{_braced({**labels, 'le': end})} {count}")
            self._lines.append(f"{name}_sum{_braced(labels)} {_number(total)}")
            self._lines.append(f"{name}_count{_braced(labels)} {sum(counts)}")

    def text(self) -> bytes:
        return ("\n".join(self._lines) + "\n").encode("utf-8", "replace")


def _braced(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))


async def page(engine: Engine, connections: int) -> bytes:
    """All metrics of this moment."""
    made = Page()
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
    memory = resident_bytes()
    if memory is not None:
        made.add("process_resident_memory_bytes", "gauge", "Memory of the process.", [({}, memory)])
    return made.text()


def _add_traffic(made: Page, traffic: Traffic) -> None:
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
        split_count, merge_count = changes_of(engine.catalog.history(container.resource.rid))
        splits.append((names, split_count))
        merges.append((names, merge_count))
        for partition in list(container.map.partitions):
            labels = {**names, "partition": partition.range_id}
            state = await engine.watch.census.state(container, partition)
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


def _add_commits(made: Page, commits: CommitCounts) -> None:
    made.add_histogram(
        "pleiad_commit_writes",
        "Writes that shared one commit.",
        BOUNDS_WRITES,
        [({}, commits.buckets, commits.writes)],
    )


def resident_bytes() -> int | None:
    """How much memory the process has, where the system tells."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
