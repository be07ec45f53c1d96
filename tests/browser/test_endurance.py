"""A page that stays open on a server at work: what it costs the server, and whether it leaks.

`make endurance` keeps it open for an hour, or for as long as `PAGE_SECONDS` says; among the other tests it is open for
a short time. Cost is processor time of the server: what the page takes of a second is what is missing for the requests
of others. Each stretch at work is followed by a short one in the background, where the page asks for nothing, so both
are measured all along, on a machine that is as busy with other things in the one as in the other.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

from pleiad.account.keys import EMULATOR_KEY
from tests.stores import StoreOf
from tests.waiting import wait_until

from .conftest import PICTURES, OpenWindow, Served, Window, serving

if TYPE_CHECKING:
    from playwright.sync_api import Request

SECONDS = float(os.environ.get("PLEIAD_PAGE_SECONDS", "24"))
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900 + 2 * SECONDS),
    pytest.mark.parametrize("store_kind", ["sqlite"], scope="session"),
]
IS_LONG = SECONDS >= 600
SAMPLES = 12
SCREENS = ("c/shop/orders/partitions", "", "c/shop/orders/metrics", "c/shop/orders/feed", "metrics")
REQUESTS_PER_SECOND = 60.0
COST_MAX = 0.02 if IS_LONG else 0.2
"""Of the processor time that requests can have. A short look sees the page being loaded, and the garbage of before."""
GROWTH_MAX = 1.15 if IS_LONG else 1.5
RESTING_SHARE = 1 / 15
"""So much of the time the page is in the background, and a second at least at a time."""
SETTLED = "document.querySelector('main h1') && !document.querySelector('main .bone')"


class Load:
    """Requests at an even pace: so many reads and writes a second, whatever they take."""

    def __init__(self, container: ContainerProxy) -> None:
        self._container = container
        self.requests = 0
        self.is_over = False

    def run(self) -> None:
        due = time.monotonic()
        while not self.is_over:
            number = self.requests % 500
            if self.requests % 4:
                self._container.read_item(f"{number}", f"c{number % 50}")
            else:
                self._container.upsert_item(
                    {"id": f"{number}", "customer": f"c{number % 50}", "n": self.requests}
                )
            self.requests += 1
            due += 1 / REQUESTS_PER_SECOND
            time.sleep(max(0.0, due - time.monotonic()))  # the rate is the load


@pytest.fixture
def served(store_of: StoreOf) -> Iterator[Served]:
    """A server that nobody else uses."""
    with serving(store_of()) as server:
        yield server


@pytest.fixture
def load(served: Served) -> Iterator[Load]:
    with CosmosClient(served.endpoint, EMULATOR_KEY) as client:
        container = client.create_database("shop").create_container(
            "orders", PartitionKey("/customer"), offer_throughput=30_000
        )
        for number in range(500):
            container.upsert_item({"id": f"{number}", "customer": f"c{number % 50}"})
        load = Load(container)
        thread = threading.Thread(target=load.run)
        thread.start()
        try:
            yield load
        finally:
            load.is_over = True
            thread.join()


class Meter:
    """Processor time of the server, and requests that it answered meanwhile."""

    def __init__(self, served: Served, load: Load) -> None:
        self._address = f"{served.endpoint}/metrics"
        self._load = load
        self.cpu = self.requests = self.seconds = 0.0

    def _now(self) -> tuple[float, float, float]:
        with urlopen(self._address) as page:
            found = re.search(r"^process_cpu_seconds_total (\S+)", page.read().decode(), re.MULTILINE)
        assert found is not None
        return float(found[1]), self._load.requests, time.monotonic()

    @contextmanager
    def running(self) -> Iterator[None]:
        before = self._now()
        yield
        after = self._now()
        self.cpu += after[0] - before[0]
        self.requests += after[1] - before[1]
        self.seconds += after[2] - before[2]


def sample(window: Window) -> dict[str, float]:
    """What the page holds, without what could be collected."""
    session = window.page.context.new_cdp_session(window.page)
    session.send("Performance.enable")
    session.send("HeapProfiler.collectGarbage")
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return {name: metrics[name] for name in ("JSHeapUsedSize", "Nodes", "JSEventListeners")}


def visit(window: Window, screen: str) -> None:
    window.page.evaluate("address => { location.hash = address }", f"#/{screen}")
    assert wait_until(lambda: window.page.evaluate(SETTLED))


@contextmanager
def in_background(window: Window) -> Iterator[None]:
    """The page as it is in a tab that nobody looks at, once it has what it asked for before."""
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    def is_quiet() -> bool:
        asked.clear()
        window.page.wait_for_timeout(300)
        return not asked

    shown = "hidden => Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden })"
    window.page.evaluate(shown, True)
    window.page.on("request", note)
    assert wait_until(is_quiet)
    yield
    window.page.remove_listener("request", note)
    window.page.evaluate(shown, False)
    assert not asked, "a page in the background asks for nothing"


def test_a_page_that_stays_open_leaks_nothing_and_costs_next_to_nothing(
    open_window: OpenWindow, served: Served, load: Load
) -> None:
    without, with_page = Meter(served, load), Meter(served, load)
    pause = SECONDS / SAMPLES
    rest = max(1.0, pause * RESTING_SHARE)
    window = open_window()
    window.sign_in()
    for screen in SCREENS:  # everything is loaded once before anything is counted
        visit(window, screen)
    held = []
    for number in range(SAMPLES):
        with with_page.running():
            visit(window, SCREENS[number % len(SCREENS)])
            window.page.wait_for_timeout(1000 * (pause - rest))
            visit(window, SCREENS[0])
        with in_background(window), without.running():
            window.page.wait_for_timeout(1000 * rest)
        held.append(sample(window))
    each = without.cpu / without.requests
    cost = (with_page.cpu - each * with_page.requests) / with_page.seconds
    told = {
        "seconds": round(with_page.seconds),
        "requests": with_page.requests,
        "cpuMsPerRequestWithout": 1000 * each,
        "cpuMsPerRequestWith": 1000 * with_page.cpu / with_page.requests,
        "costOfACore": cost,
        "held": held,
    }
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "endurance.json").write_text(json.dumps(told, indent=1))
    print(json.dumps(told, indent=1))
    assert cost < COST_MAX, told
    for name in held[0]:
        first, last = ([one[name] for one in part] for part in (held[1:4], held[-3:]))
        assert statistics.median(last) < GROWTH_MAX * statistics.median(first), (name, held)
