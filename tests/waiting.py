"""Waiting in tests for what must come true and announces itself by no event: `assert wait_until(...)`.

Nothing is said of how soon: on a busy machine it takes as long as it takes, and only what never comes fails.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

SECONDS_MAX = 240.0
"""A bound that only a mistake can miss, for whatever else has to have one."""
_LOOK_SECONDS = 0.002
_LOOK_SECONDS_MAX = 0.05
"""To look costs what it looks at its time too: who has waited long looks less often."""


def wait_until(holds: Callable[[], object], seconds_max: float = SECONDS_MAX) -> bool:
    """Waits until something holds; whether it did in the end."""
    ends_at = time.monotonic() + seconds_max
    pause_seconds = _LOOK_SECONDS
    while not holds():
        if time.monotonic() > ends_at:
            return False
        time.sleep(pause_seconds)
        pause_seconds = min(1.3 * pause_seconds, _LOOK_SECONDS_MAX)
    return True


async def until(
    holds: Callable[[], object] | Callable[[], Awaitable[object]], seconds_max: float = SECONDS_MAX
) -> bool:
    """The same on an event loop, where it may also be something to await."""
    ends_at = time.monotonic() + seconds_max
    pause_seconds = _LOOK_SECONDS
    while True:
        found = holds()
        if await found if isinstance(found, Awaitable) else found:
            return True
        if time.monotonic() > ends_at:
            return False
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(1.3 * pause_seconds, _LOOK_SECONDS_MAX)


async def turns(count: int = 1) -> None:
    """Leaves the loop to others so many times: whoever has to wait first, and in however many turns it likes."""
    for _ in range(count):
        await asyncio.sleep(0)


async def forever() -> None:
    """Does not return: what is under way until it is cancelled."""
    await asyncio.get_running_loop().create_future()


def any_moment(chance: random.Random, seconds_max: float) -> None:
    """Lets some time pass, so that what follows happens at any moment of what is under way: a fault, a kill."""
    time.sleep(chance.uniform(0.0, seconds_max))


class Latch:
    """Shut until a test opens it, for coroutines on loops of other threads."""

    def __init__(self) -> None:
        self._opened: Future[None] = Future()

    def open(self) -> None:
        self._opened.set_result(None)

    async def passed(self) -> None:
        """Returns when the latch is open."""
        await asyncio.shield(asyncio.wrap_future(self._opened))
