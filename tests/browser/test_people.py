"""For people: nothing serious for a screen reader, light and dark, narrow and wide, no jumps, at once, no leaks."""

from __future__ import annotations

import json
import statistics
from typing import Any

import pytest
from azure.cosmos import CosmosClient

from tests.waiting import wait_until

from .conftest import PICTURES, READ_ONLY_KEY, OpenWindow, Window

pytestmark = [pytest.mark.long, pytest.mark.parametrize("store_kind", ["sqlite"], scope="session")]

SCREENS = (
    "",
    "c/sample/food/items",
    'c/sample/food/items?id=01001&pk=["Beef Products"]',
    "c/sample/food/query",
    "c/sample/food/partitions",
    "c/sample/food/metrics",
    "c/sample/food/feed",
    "c/sample/food/advisor",
    "c/sample/food/scripts",
    "c/sample/food/settings",
    "d/sample",
    "compare",
    "metrics",
    "faults",
)
SETTLED = "document.querySelector('main h1') && !document.querySelector('main .bone')"
SHIFTS = """() => new Promise((resolve) => {
    let sum = 0;
    const add = (list) => { for (const each of list.getEntries()) sum += each.value; };
    new PerformanceObserver(add).observe({ type: 'layout-shift' });
    setTimeout(() => resolve(sum), 2500);
})"""
"""What the browser counts as moved by nobody's wish, within some refreshes."""
START_MS_MAX = 30_000
"""Half a second on a machine that has nothing else to do; a bound that only a mistake can miss."""
HEAP_GROWTH_MAX = 1.3


def visit(window: Window, screen: str) -> None:
    window.page.evaluate("address => { location.hash = address }", f"#/{screen}")
    assert wait_until(lambda: window.page.evaluate(SETTLED))


def serious(page: Any, rule: str | None = None) -> list[str]:
    """What the checker finds that keeps people out, as one line each; one rule of it, or all."""
    checker = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = {"resultTypes": ["violations"], **({"runOnly": [rule]} if rule else {})}
    found = checker.run(page, options=options).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize(("theme", "rule"), [("light", None), ("dark", "color-contrast")])
def test_the_accessibility_check_finds_nothing_serious(
    theme: str, rule: str | None, open_window: OpenWindow
) -> None:
    """In the dark only the contrast can differ."""
    window = open_window(color_scheme=theme, bypass_csp=True)
    window.page.goto(window.served.endpoint)
    window.say("Sign in with a key")
    found = {"sign-in": serious(window.page, rule)}
    window.sign_in()
    for screen in SCREENS:
        visit(window, screen)
        found[screen] = serious(window.page, rule)
    assert {screen: each for screen, each in found.items() if each} == {}


def test_the_accessibility_check_sees_what_is_planted(open_window: OpenWindow) -> None:
    window = open_window(bypass_csp=True)
    window.sign_in()
    # Beside the screen, which may be drawn once more.
    window.page.evaluate("document.body.append(document.createElement('img'))")
    assert [each.partition(":")[0] for each in serious(window.page)] == ["image-alt"]


@pytest.mark.parametrize("width", [360, 768, 1920])
def test_every_screen_fits_from_a_telephone_to_a_wide_desk(width: int, open_window: OpenWindow) -> None:
    window = open_window(size=(width, 800))
    window.sign_in()
    wide = []
    for screen in SCREENS:
        visit(window, screen)
        if not window.page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            wide.append(screen)
    assert wide == []


def test_the_tree_is_a_drawer_on_a_telephone(open_window: OpenWindow) -> None:
    window = open_window(size=(390, 844), color_scheme="dark")
    window.sign_in()
    window.press("Databases and containers")
    window.page.locator(".side").get_by_role("link", name="food").click()
    window.page.get_by_role("group", name="Hash space of food").wait_for()
    assert window.page.locator(".app.open").count() == 0
    window.picture("partitions-390-dark")


def test_the_theme_is_chosen_and_kept(window: Window) -> None:
    canvas = "getComputedStyle(document.body).backgroundColor"
    light = window.page.evaluate(canvas)
    window.press("Dark")
    dark = window.page.evaluate(canvas)
    assert dark != light
    window.page.reload()
    window.say("Containers")
    assert window.page.evaluate(canvas) == dark
    window.picture("home-dark")
    window.press("As the system")
    assert window.page.evaluate(canvas) == light


def test_a_refresh_moves_nothing(window: Window) -> None:
    """Layout shifts that nobody has asked for, as the browser itself counts them."""
    for screen in ("", "c/sample/food/partitions"):
        visit(window, screen)
        # What is loaded comes in, however long that takes; from then on there are only refreshes.
        assert wait_until(lambda: window.page.evaluate(SHIFTS) < 0.01), screen
        assert window.page.evaluate(SHIFTS) < 0.01, screen


def test_the_page_is_there_at_once(open_window: OpenWindow) -> None:
    """From the request to the form that one can type in, without anything kept from before; the middle of three."""
    times = []
    for _ in range(3):
        window = open_window()
        window.page.goto(window.served.endpoint)
        window.say("Sign in with a key")
        shown = "performance.getEntriesByType('paint').find((each) => each.name === 'first-contentful-paint').startTime"
        times.append(float(window.page.evaluate(shown)))
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / "start.json").write_text(json.dumps({"firstPaintMs": times}))
    assert statistics.median(times) < START_MS_MAX, times


def test_the_page_works_without_any_network_but_its_server(
    open_window: OpenWindow, client: CosmosClient
) -> None:
    window = open_window()
    window.page.route(
        lambda address: not address.startswith(window.served.endpoint), lambda route: route.abort()
    )
    window.sign_in(READ_ONLY_KEY)
    window.say("Containers")
    assert [each["id"] for each in client.list_databases()]


def test_screens_that_are_left_leave_nothing_behind(window: Window) -> None:
    session = window.page.context.new_cdp_session(window.page)

    def heap_and_nodes() -> tuple[float, float]:
        session.send("HeapProfiler.collectGarbage")
        session.send("Performance.enable")
        metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        return metrics["JSHeapUsedSize"], metrics["Nodes"]

    def round_trip() -> None:
        for screen in SCREENS:
            visit(window, screen)

    round_trip()
    visit(window, "faults")
    before = heap_and_nodes()
    for _ in range(2):
        round_trip()
    visit(window, "faults")
    after = heap_and_nodes()
    assert after[0] < before[0] * HEAP_GROWTH_MAX, (before, after)
    assert after[1] < before[1] * HEAP_GROWTH_MAX, (before, after)
