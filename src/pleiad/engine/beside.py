"""Work on large bodies beside the event loop: reading, checking and measuring much JSON takes long.

Small bodies, nearly all of them, are worked on where they are. A large one is given to a thread, one at a time, so that
other requests have their turn in between; its memory is bounded by the size of a body.

How long a thread may go on before another has its turn is a setting of the whole interpreter. It is short only while
there is such work: the loop then waits a millisecond and not five each time it wakes up, and writes, which change
threads all the time, would pay for it by a fourth.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

LARGE_BYTES: Final = 32 * 1024

TURN_SECONDS: Final = 0.001
"""How long a large body is worked on before others have their turn, where it is not one step of the interpreter."""

_WORKER = ThreadPoolExecutor(1, thread_name_prefix="large-bodies")
_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


async def beside(
    size_bytes: int,
    work: Callable[_Arguments, _Answer],
    *arguments: _Arguments.args,
    **named: _Arguments.kwargs,
) -> _Answer:
    """What some work on so many bytes gives; it must not touch what others change."""
    if size_bytes <= LARGE_BYTES:
        return work(*arguments, **named)
    return await asyncio.get_running_loop().run_in_executor(
        _WORKER, _in_short_turns, lambda: work(*arguments, **named)
    )


def _in_short_turns(work: Callable[[], _Answer]) -> _Answer:
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN_SECONDS)
    try:
        return work()
    finally:
        sys.setswitchinterval(before)
