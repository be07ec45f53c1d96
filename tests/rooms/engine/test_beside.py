"""Large bodies are worked on beside the event loop, small ones where they are."""

from __future__ import annotations

import asyncio
import threading

from pleiad.engine.beside import LARGE_BYTES, beside
from tests.waiting import SECONDS_MAX


async def test_work_on_a_large_body_leaves_the_loop_to_others_and_on_a_small_one_does_not() -> None:
    turns = 0
    go_on = threading.Event()

    async def others() -> None:
        nonlocal turns
        for _ in range(3):
            turns += 1
            await asyncio.sleep(0)
        go_on.set()

    def work() -> str:
        # Only ends when others had their turns meanwhile.
        assert go_on.wait(SECONDS_MAX)
        return threading.current_thread().name

    small = await beside(LARGE_BYTES, lambda: threading.current_thread().name)
    _, large = await asyncio.gather(others(), beside(LARGE_BYTES + 1, work))
    assert small == threading.main_thread().name
    assert large.startswith("large-bodies")
    assert turns == 3
