"""Waiting in tests for what must come true and announces itself by no event: `assert wait_until(...)`.

Nothing is said of how soon: on a busy machine it takes as long as it takes, and only what never comes fails.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

SECONDS_MAX = 240.0
"""A bound that only a mistake can miss, for whatever else has to have one."""
_LOOK_SECONDS = 0.005


def wait_until(holds: Callable[[], object], seconds_max: float = SECONDS_MAX) -> bool:
    """Waits until something holds; whether it did in the end."""
    ends_at = time.monotonic() + seconds_max
    while not holds():
        if time.monotonic() > ends_at:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


async def until(
    holds: Callable[[], object] | Callable[[], Awaitable[object]], seconds_max: float = SECONDS_MAX
) -> bool:
    """The same on an event loop, where it may also be something to await."""
    ends_at = time.monotonic() + seconds_max
    while True:
        found = holds()
        if await found if isinstance(found, Awaitable) else found:
            return True
        if time.monotonic() > ends_at:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
