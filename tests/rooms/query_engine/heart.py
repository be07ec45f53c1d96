"""How long work keeps an event loop from everything else."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator


class Heart:
    """Counts how long other work keeps the loop, in processor time of its thread: other programs do not count."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0
        self.beats = 0

    async def beat(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest_seconds = max(self.longest_seconds, now - last)
            last = now
            self.beats += 1


@contextlib.asynccontextmanager
async def beating() -> AsyncIterator[Heart]:
    """A heart for the time of a `with` block."""
    heart = Heart()
    task = asyncio.create_task(heart.beat())
    try:
        yield heart
    finally:
        task.cancel()
