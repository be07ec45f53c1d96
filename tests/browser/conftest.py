"""A real browser at a real server: Debian's Chromium, driven from outside, against `pleiad serve` in its own process.

Every test fails when the page throws, breaks its own policy or asks for something from elsewhere. Pictures go to
`build/explorer`; those of the documentation come from the same run.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from azure.cosmos import CosmosClient

from pleiad.account.keys import EMULATOR_KEY
from tests.project import ROOT
from tests.stores import StoreOf
from tests.waiting import SECONDS_MAX

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request

PICTURES = ROOT / "build" / "explorer"
READ_ONLY_KEY = base64.b64encode(b"read-only" * 7 + b"!").decode()
WAIT_MS = 1000 * SECONDS_MAX
WIDE = (1440, 900)


@dataclass(frozen=True)
class Served:
    """A server in a process of its own."""

    endpoint: str
    link: str
    """Opens the explorer once."""
    store: str


@contextmanager
def serving(store: str, *options: str) -> Iterator[Served]:
    """`pleiad serve` on a free port, until it is not needed any more."""
    with tempfile.TemporaryDirectory() as folder, open(Path(folder, "log"), "w+") as log:
        command = [
            sys.executable,
            "-m",
            "pleiad",
            "serve",
            "--port",
            "0",
            "--link",
            "--read-only-key",
            READ_ONLY_KEY,
        ]
        command += ["--store", store] if store != "sqlite" else ["--data", str(Path(folder, "data"))]
        process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            said = ""
            for line in process.stdout:
                said += line
                if "stop" in line:
                    break
            endpoint = re.search(r"endpoint +(\S+)", said)
            link = re.search(r"\S+#handover=\S+", said)
            assert endpoint is not None, said + Path(folder, "log").read_text()
            yield Served(endpoint[1].rstrip("/"), link[0] if link else "", store)
        finally:
            process.terminate()
            process.wait(60)
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser, shared by all tests; a test has a window of its own in it."""
    program = (
        os.environ.get("PLEIAD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    if program is None:
        pytest.skip("there is no Chromium here: 'apt-get install chromium', or PLEIAD_CHROMIUM names one")
    driver = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: 'make browser' does"
    )
    with driver.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def served(lasting_store: StoreOf) -> Iterator[Served]:
    """One server for all tests of a store; each makes what it needs in a database of its own."""
    with serving(lasting_store(), "--sample") as server:
        yield server


@pytest.fixture(scope="session")
def client(served: Served) -> Iterator[CosmosClient]:
    """The official client, to put data in and to see what the page did."""
    with CosmosClient(served.endpoint, EMULATOR_KEY) as client:
        yield client


class Window:
    """A window with the explorer in it."""

    def __init__(self, page: Page, served: Served, store_kind: str) -> None:
        self.page = page
        self.served = served
        self.problems: list[str] = []
        self._store_kind = store_kind
        page.set_default_timeout(WAIT_MS)
        page.on("pageerror", lambda error: self.problems.append(f"threw {error}"))
        page.on("console", self._heard)
        page.on("request", self._asked)

    def _heard(self, message: ConsoleMessage) -> None:
        # A refused request is told by the browser too; that the page deals with it is what tests look at.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.served.endpoint, self._loopback, "blob:")):
            self.problems.append(f"asked for {request.url}")

    @property
    def _loopback(self) -> str:
        return self.served.endpoint.replace("localhost", "127.0.0.1")

    def sign_in(self, key: str = EMULATOR_KEY) -> None:
        self.page.goto(f"{self.served.endpoint}/")
        self.page.get_by_label("Account key, read-only key or resource token").fill(key)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.locator(".side").wait_for(state="attached")

    def go(self, address: str, *names: str) -> None:
        """Goes to an address of the page, such as `c/{}/{}/items` with names."""
        path = address.format(*(quote(name, safe="") for name in names))
        self.page.evaluate("address => { location.hash = address }", f"#/{path}")

    def container(self, at: tuple[str, str], tab: str) -> None:
        self.go("c/{}/{}/" + tab, *at)
        self.page.locator(".tabs [aria-current=page]").wait_for()

    def say(self, text: str) -> Locator:
        """Waits until a text is seen."""
        found = self.page.get_by_text(text).first
        found.wait_for()
        return found

    def press(self, name: str | re.Pattern[str], within: str = "body") -> None:
        self.page.locator(within).get_by_role("button", name=name).first.click()

    def picture(self, name: str, whole: bool = True) -> Path:
        """Keeps a picture in build/explorer."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}-{self._store_kind}.png"
        self.page.evaluate("scrollTo(0, 0)")
        self.page.screenshot(path=path, full_page=whole)
        return path


OpenWindow = Callable[..., Window]


@pytest.fixture
def open_window(chromium: Browser, served: Served, store_kind: str) -> Iterator[OpenWindow]:
    """Opens windows that share nothing, and looks at the end whether all went well in them."""
    with ExitStack() as life:
        windows: list[Window] = []

        def opened(size: tuple[int, int] = WIDE, **options: Any) -> Window:
            viewport = {"width": size[0], "height": size[1]}
            context = chromium.new_context(viewport=viewport, reduced_motion="reduce", **options)  # type: ignore[arg-type]
            life.callback(context.close)
            windows.append(Window(context.new_page(), served, store_kind))
            return windows[-1]

        yield opened
        assert [window.problems for window in windows if window.problems] == []


@pytest.fixture
def window(open_window: OpenWindow) -> Window:
    """A window that is signed in with the account's key."""
    window = open_window()
    window.sign_in()
    return window


@pytest.fixture
def database(client: CosmosClient, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database for one test."""
    name = re.sub(r"\W+", "-", request.node.name)[:60]
    client.create_database(name)
    yield name
    client.delete_database(name)
