"""A server for one run: real, in this process, with limits scaled down and a clock for its throughput."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from pleiad.account.keys import EMULATOR_KEY
from pleiad.client.connection import Connection
from pleiad.head_ports import NOSQL
from pleiad.node import Node
from pleiad.scenario.model import LIMITS
from pleiad.server.lifecycle import new_loop
from pleiad.settings import Settings

_START_SECONDS = 30.0


class TurnedClock:
    """Shows the time that it was turned to."""

    def __init__(self) -> None:
        self._now = 1_000.0

    def __call__(self) -> float:
        return self._now

    def turn(self, seconds: float) -> None:
        self._now += seconds


@contextlib.contextmanager
def serving() -> Iterator[tuple[Connection, TurnedClock]]:
    """An empty account, and the clock of its throughput. Its connection takes the first answer for the last."""
    clock = TurnedClock()
    node = Node(Settings(port=0, limits=LIMITS, throttle="enforce", direct=False, clock=clock))
    loop = new_loop()
    thread = threading.Thread(target=loop.run_forever, name="pleiad-scenario", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(node.start(), loop).result(_START_SECONDS)
        try:
            endpoint = f"http://localhost:{node.server.ports[NOSQL]}"
            with Connection(endpoint, EMULATOR_KEY, retries_max=0) as connection:
                yield connection, clock
        finally:
            asyncio.run_coroutine_threadsafe(node.stop(), loop).result(_START_SECONDS)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
