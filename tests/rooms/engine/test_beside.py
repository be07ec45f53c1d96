"""Large bodies are worked on beside the event loop, small ones where they are."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from pleiad.engine.beside import LARGE_BYTES, TURN_SECONDS, beside
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


async def test_others_have_their_turn_every_millisecond_while_a_large_body_is_worked_on() -> None:
    before = sys.getswitchinterval()
    assert before > TURN_SECONDS
    assert await beside(LARGE_BYTES + 1, sys.getswitchinterval) == pytest.approx(TURN_SECONDS)
    with pytest.raises(ZeroDivisionError):
        await beside(LARGE_BYTES + 1, lambda: 1 // 0)
    assert sys.getswitchinterval() == before
    assert await beside(LARGE_BYTES, sys.getswitchinterval) == before
