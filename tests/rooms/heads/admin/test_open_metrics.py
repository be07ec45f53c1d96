"""The metrics as OpenMetrics, the figures of process and store in them, and the dashboard that shows them."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from azure.cosmos import ContainerProxy

from pleiad.heads.admin.metrics_page import Page, PageFormat, wanted
from pleiad.testing.start import RunningServer
from tests.project import ROOT
from tests.waiting import SECONDS_MAX

from .open_metrics import families

DASHBOARD = ROOT / "deploy" / "grafana.json"
ACCEPT = "application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.5"


def page_of(server: RunningServer, accept: str = ACCEPT) -> str:
    request = urllib.request.Request(f"{server.endpoint}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as response:
        assert response.headers["Content-Type"] == PageFormat.OPEN_METRICS.value
        return str(response.read().decode())


@pytest.mark.every_store
def test_the_page_is_open_metrics_where_a_client_asks_for_it(
    server: RunningServer, container: ContainerProxy
) -> None:
    container.upsert_item({"id": "1", "pk": "a"})
    found = {name: (kind, samples) for name, kind, samples in families(page_of(server))}
    assert found["pleiad_requests"][0] == "counter"
    assert found["pleiad_commit_duration_seconds"][0] == "histogram"
    assert found["pleiad_partition_items"][0] == "gauge"
    (build,) = found["pleiad_build_info"][1]
    assert build[2] == 1
    assert set(build[1]) == {"version", "python", "sqlite", "store"}
    values = {name: samples[0][2] for name, (_, samples) in found.items()}
    assert values["process_cpu_seconds"] > 0
    assert 0 < values["process_open_fds"] <= values["process_max_fds"]
    assert values["process_virtual_memory_bytes"] >= values["process_resident_memory_bytes"] > 10_000_000
    assert values["pleiad_store_open_segments"] >= 1
    commits = {name: value for name, _, value in found["pleiad_commit_duration_seconds"][1]}
    assert commits["pleiad_commit_duration_seconds_count"] >= 1
    states = {labels["state"]: value for _, labels, value in found["pleiad_store_connections"][1]}
    assert set(states) == {"used", "idle"}
    assert (values["pleiad_store_connections_max"] > 0) == (build[1]["store"] == "postgresql")
    assert (sum(states.values()) > 0) == (build[1]["store"] == "postgresql")


def test_the_parser_of_the_client_library_takes_the_page(server: RunningServer) -> None:
    parser: Any = pytest.importorskip("prometheus_client.openmetrics.parser")
    assert list(parser.text_string_to_metric_families(page_of(server)))


def test_writes_that_wait_are_counted(run: Callable[..., Any]) -> None:
    running = run()
    if running.node.settings.store != "sqlite":
        pytest.skip("the disk threads are those of SQLite")
    store = running.node.engine.store

    async def hold() -> tuple[int, int]:
        """Keeps all disk threads busy for a moment, and puts a call behind them."""
        import threading

        released = threading.Event()
        for _ in range(6):
            store._threads.run(released.wait, lambda _: None)
        # Four threads take four of them.
        while store._threads.waiting > 2:
            await asyncio.sleep(0)
        waiting = store.figures().disk_calls_waiting
        released.set()
        while store._threads.waiting:
            await asyncio.sleep(0)
        return waiting, store.figures().disk_calls_waiting

    assert running.ask(hold()) == (2, 0)


@pytest.mark.parametrize(
    ("accept", "format"),
    [
        ("", PageFormat.PROMETHEUS),
        ("*/*", PageFormat.PROMETHEUS),
        ("text/plain", PageFormat.PROMETHEUS),
        (ACCEPT, PageFormat.OPEN_METRICS),
        ("Application/OpenMetrics-Text", PageFormat.OPEN_METRICS),
        (",;,,;;", PageFormat.PROMETHEUS),
    ],
)
def test_the_format_is_the_one_that_is_asked_for(accept: str, format: PageFormat) -> None:
    assert wanted(accept) is format


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# EOF\n", ""),
        ("x_total 3", "x 3"),
        ('le="1.0"', 'le="1"'),
        ('le="+Inf"} 3', 'le="+Inf"} 1'),
        ("x_total 3", "x_total 3\nx_total 3"),
        ("x_total 3", "x_total -3"),
        ("# TYPE x counter", "# TYPE y counter"),
    ],
)
def test_the_strict_reader_finds_mistakes(old: str, new: str) -> None:
    page = Page(PageFormat.OPEN_METRICS)
    page.add("x_total", "counter", "text", [({}, 3)])
    page.add_histogram("h", "text", (1, 2.5), [({}, [1, 1, 1], 4.5)])
    text = page.text().decode()
    assert len(families(text)) == 2
    assert old in text
    with pytest.raises(AssertionError):
        families(text.replace(old, new))


def test_every_metric_and_label_of_the_dashboard_is_one_of_the_page(
    server: RunningServer, container: ContainerProxy
) -> None:
    container.upsert_item({"id": "1", "pk": "a"})
    names: dict[str, set[str]] = {
        # There when there is something to tell.
        "pleiad_warnings": {"kind"},
        "pleiad_last_backup_timestamp_seconds": set(),
    }
    for _, _, samples in families(page_of(server)):
        for name, labels, _ in samples:
            names.setdefault(name, set()).update(labels)
    panels = [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]
    shown: set[str] = set()
    for panel in panels:
        for target in panel["targets"]:
            used = re.findall(r"\b((?:pleiad|process)_\w+)", target["expr"])
            assert used, target
            shown.update(used)
            assert set(used) <= set(names), f"{panel['title']}: {set(used) - set(names)}"
            known = {"instance", "le"}.union(*(names[name] for name in used))
            asked = set(re.findall(r"[{,](\w+)=~?\"", target["expr"]))
            grouped = {
                each.strip() for by in re.findall(r"by \(([^)]*)\)", target["expr"]) for each in by.split(",")
            }
            told = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert asked | grouped | told <= known, panel["title"]
    families_shown = {re.sub("_(bucket|sum|count)$", "", name) for name in shown}
    families_there = {re.sub("_(bucket|sum|count)$", "", name) for name in names}
    assert families_there == families_shown, "what is measured is shown"


def test_the_panels_of_the_dashboard_do_not_cover_each_other() -> None:
    board = json.loads(DASHBOARD.read_text())
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    variables = {each["name"] for each in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", DASHBOARD.read_text())) - {"__rate_interval", "__all"}
    assert used <= variables
