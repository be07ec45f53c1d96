"""The metrics of all workers as one page: counters are added up, and of gauges those that each worker has for itself.

A counter must never fall, or who reads it takes that for a restart of the server and counts twice. So the last page of
each worker is kept where the workers meet, and what one that has died had counted stays in the sums.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pleiad.heads.admin.metrics_page import OPEN_METRICS_END
from pleiad.heads.admin.workers.workers import Answer
from pleiad.server.worker_place import WorkersState

_ADDED_GAUGES = frozenset(
    {"pleiad_open_connections", "pleiad_store_open_segments", "pleiad_store_waiting_writes"}
    | {"pleiad_store_waiting_disk_calls", "pleiad_store_connection_waiters", "pleiad_store_connections_max"}
    | {"pleiad_store_connections", "process_virtual_memory_bytes", "process_resident_memory_bytes"}
    | {"process_open_fds", "process_max_fds"}
)  # fmt: skip
_SHARES = {"pleiad_partition_server_share": 1.0, "pleiad_partition_normalized_ru_percent": 100.0}
"""Gauges that are added up, and what their sum cannot be above."""
_OF_THE_CATALOG = frozenset({"pleiad_splits", "pleiad_merges"})
"""Counters that all workers read from the catalog."""
_LEAST = frozenset({"process_start_time_seconds"})
_DIGITS = 6


def one_page(own: bytes, others: Iterable[Answer], directory: Path, state: WorkersState) -> bytes:
    """The page of all workers, those that have died among them."""
    pages = {os.getpid(): own, **{each.process_id: each.body for each in others}}
    kept = directory / "metrics"
    kept.mkdir(exist_ok=True, mode=0o700)
    past: list[bytes] = []
    for path in kept.iterdir():
        if path.suffix == ".page" and int(path.stem) not in pages:
            past.append(path.read_bytes())
    for process_id, page in pages.items():
        beside = kept / f"{process_id}.{os.getpid()}.new"
        beside.write_bytes(page)
        beside.replace(kept / f"{process_id}.page")
    return _summed(list(pages.values()), past, state)


def _summed(pages: list[bytes], past: list[bytes], state: WorkersState) -> bytes:
    kinds: dict[str, str] = {}
    heads: dict[str, list[str]] = {}
    sums: dict[str, dict[str, float]] = {}
    for number, page in enumerate([*pages, *past]):
        family = ""
        for line in page.decode().splitlines():
            if line.startswith("# "):
                family = _noted(line, family, kinds, heads)
                continue
            if number >= len(pages) and kinds[family] == "gauge":
                continue  # of a worker that is no more only what it has done counts
            sample, _, text = line.rpartition(" ")
            found = sums.setdefault(family, {})
            value = float(text)
            found[sample] = value if sample not in found else _together(family, kinds, found[sample], value)
    lines = [
        line
        for family, samples in sums.items()
        for line in [*heads[family], *(f"{name} {_number(value)}" for name, value in samples.items())]
    ]
    is_open = pages[0].endswith(OPEN_METRICS_END)
    counter = "pleiad_worker_restarts" if is_open else "pleiad_worker_restarts_total"
    lines += [
        "# HELP pleiad_workers Worker processes of the server.",
        "# TYPE pleiad_workers gauge",
        f'pleiad_workers{{state="wanted"}} {state.wanted}',
        f'pleiad_workers{{state="running"}} {state.running}',
        f"# HELP {counter} Workers that were started again.",
        f"# TYPE {counter} counter",
        f"pleiad_worker_restarts_total {state.restarts}",
    ]
    return ("\n".join(lines) + "\n").encode() + (OPEN_METRICS_END if is_open else b"")


def _noted(line: str, family: str, kinds: dict[str, str], heads: dict[str, list[str]]) -> str:
    """Takes down what a comment says of a metric; the metric that the next lines are about."""
    words = line.split(" ", 3)
    if words[1] == "HELP":
        heads.setdefault(words[2], [line])
    elif words[1] == "TYPE":
        kinds[words[2]] = words[3]
        if len(heads[words[2]]) == 1:
            heads[words[2]].append(line)
    else:
        return family
    return words[2]


def _together(family: str, kinds: dict[str, str], one: float, other: float) -> float:
    if family in _LEAST:
        return min(one, other)
    if family in _SHARES:
        return min(one + other, _SHARES[family])
    is_added = kinds[family] != "gauge" or family in _ADDED_GAUGES
    if is_added and family.removesuffix("_total") not in _OF_THE_CATALOG:
        return one + other
    return max(one, other)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, _DIGITS))
