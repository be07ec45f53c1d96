"""Answers and metrics of several workers made into one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pleiad.engine.shared_counts import SharedCounts
from pleiad.heads.admin.metrics_page import Page, PageFormat
from pleiad.heads.admin.workers import sums
from pleiad.heads.admin.workers.metrics_sum import one_page
from pleiad.heads.admin.workers.workers import Answer
from pleiad.limits import Limits
from pleiad.server.worker_place import WorkersState

STATE = WorkersState(wanted=2, running=1, restarts=3)


def page(requests: int, connections: int, items: int, seconds: list[int], form: PageFormat) -> bytes:
    made = Page(form)
    made.add("pleiad_requests_total", "counter", "Requests.", [({"operation": "read"}, requests)])
    made.add("pleiad_open_connections", "gauge", "Connections.", [({}, connections)])
    made.add("pleiad_partition_items", "gauge", "Items.", [({"partition": "0"}, items)])
    made.add("pleiad_splits_total", "counter", "Splits.", [({}, 4)])
    made.add_histogram("pleiad_request_duration_seconds", "Time.", [0.1, 1.0], [({}, seconds, 1.5)])
    return made.text()


def test_counters_are_added_up_and_never_fall_when_a_worker_dies(tmp_path: Path) -> None:
    for form in PageFormat:
        directory = tmp_path / form.name
        directory.mkdir()
        own = page(10, 1, 7, [1, 2, 3], form)
        other = Answer(process_id=1, status=200, body=page(5, 2, 7, [1, 0, 0], form))
        both = one_page(own, [other], directory, STATE).decode().splitlines()
        assert 'pleiad_requests_total{operation="read"} 15' in both
        assert "pleiad_open_connections 3" in both
        assert 'pleiad_partition_items{partition="0"} 7' in both
        assert "pleiad_splits_total 4" in both
        assert "pleiad_request_duration_seconds_count 7" in both
        assert "pleiad_request_duration_seconds_sum 3" in both
        assert "pleiad_worker_restarts_total 3" in both
        assert (both[-1] == "# EOF") == (form is PageFormat.OPEN_METRICS)
        assert both.count("# EOF") == (form is PageFormat.OPEN_METRICS)
        # What the dead one had counted stays; what it had open does not.
        alone = one_page(page(12, 1, 8, [1, 2, 3], form), [], directory, STATE).decode().splitlines()
        assert 'pleiad_requests_total{operation="read"} 17' in alone
        assert "pleiad_open_connections 1" in alone
        assert 'pleiad_partition_items{partition="0"} 8' in alone


def container(ru: float, level: str, percent: float, key: str) -> dict[str, Any]:
    return {
        "at": 1.5,
        "container": "c",
        "throughput": {"ru": 400},
        "level": level,
        "lastMinute": {"requests": 3, "ru": ru, "p99Ms": ru},
        "partitions": [
            {"id": "0", "items": 10, "ru": {"allowed": 400, "lastSecond": ru, "normalizedPercent": percent}}
        ],
        "hottest": [{"key": [key], "epk": key, "ruPerSecond": ru, "share": 50.0, "throttled": 1}],
    }


def test_use_is_added_up_and_what_all_see_is_told_once() -> None:
    one = sums.one_of([container(6, "good", 70, "a"), container(2, "bad", 60, "b")])
    assert one["throughput"] == {"ru": 400}
    assert one["level"] == "bad"
    assert one["lastMinute"] == {"requests": 6, "ru": 8, "p99Ms": 6}
    assert one["partitions"] == [
        {"id": "0", "items": 10, "ru": {"allowed": 400, "lastSecond": 8, "normalizedPercent": 100}}
    ]
    # 6 of the 12 of the first and the 4 of the second.
    assert [(each["key"], each["share"]) for each in one["hottest"]] == [(["a"], 37.5)]
    same = sums.one_of([container(6, "good", 7, "a"), container(2, "good", 6, "a")])
    assert [(each["ruPerSecond"], each["share"], each["throttled"]) for each in same["hottest"]] == [
        (8, 50.0, 2)
    ]


def test_minutes_of_workers_that_began_at_different_times_find_each_other() -> None:
    def answer(at: int, ru: list[float | None]) -> dict[str, Any]:
        minutes = [
            {"at": at + 60 * place, "requests": {"read": 1}, "ru": each} for place, each in enumerate(ru)
        ]
        short = {"database": "d", "container": "c", "at": at, "ru": ru, "throttled": [0] * len(ru)}
        return {"at": 900, "minutes": minutes, "events": [], "containers": [short]}

    merged = sums.one_history([answer(120, [3.0]), answer(60, [1.0, 2.0])])
    assert [(each["at"], each["ru"], each["requests"]) for each in merged["minutes"]] == [
        (60, 1.0, {"read": 1}),
        (120, 5.0, {"read": 2}),
    ]
    (short,) = merged["containers"]
    assert (short["at"], short["ru"], short["throttled"]) == (60, [1.0, 5.0], [0, 0])


def test_heat_is_added_slice_by_slice() -> None:
    def answer(ru: list[float], throttled: dict[str, int]) -> dict[str, Any]:
        return {
            "slices": 2,
            "allowed": 400,
            "rows": [{"at": 60, "seconds": 60.0, "ru": ru, "throttled": throttled}],
        }

    merged = sums.one_of([answer([1.0, 2.0], {"0": 1}), answer([0.5, 0.0], {"0": 2, "1": 4})])
    assert merged["rows"] == [{"at": 60, "seconds": 60.0, "ru": [1.5, 2.0], "throttled": {"0": 3, "1": 4}}]
    assert (merged["slices"], merged["allowed"]) == (2, 400)


def test_what_keeps_workers_busy_is_added_up_by_kind() -> None:
    def entry(operation: str, requests: int) -> dict[str, Any]:
        counts = {
            "requests": requests,
            "throttled": 0,
            "ru": 1.5,
            "ms": 2.0,
            "partitions": 1,
            "buckets": [1, 0],
        }
        return {"container": "d/c", "operation": operation, "query": "", **counts}

    merged = sums.one_list_of_busiest(
        [
            {"at": 1, "entries": [entry("read", 2)]},
            {"at": 1, "entries": [entry("read", 3), entry("query", 1)]},
        ]
    )
    assert [(each["operation"], each["requests"], each["buckets"]) for each in merged["entries"]] == [
        ("read", 5, [2, 0]),
        ("query", 1, [1, 0]),
    ]


def test_shared_counts_end_where_they_may(tmp_path: Path) -> None:
    one, other = SharedCounts(tmp_path / "counts"), SharedCounts(tmp_path / "counts")
    assert [one.up("a", 3), other.up("a", 3), one.up("a", 3), other.up("a", 3)] == [1, 2, 3, None]
    assert (other.value("a"), one.value("b")) == (3, 0)


def test_the_limits_of_workers_add_up_to_those_of_one_server() -> None:
    whole, part = Limits(), Limits().for_one_of(4)
    assert part.connections * 4 == whole.connections
    assert part.bodies_bytes * 4 == whole.bodies_bytes
    assert part.queries_memory_bytes == whole.query_memory_bytes
    assert Limits().for_one_of(64).script_processes == 1
    assert part.item_bytes == whole.item_bytes
