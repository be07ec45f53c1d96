"""Work on large bodies beside the event loop: reading, checking and measuring much JSON takes long.

Small bodies, nearly all of them, are worked on where they are. A large one is given to a thread, one at a time, so that
other requests have their turn within the interpreter's few milliseconds; its memory is bounded by the size of a body.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

LARGE_BYTES: Final = 32 * 1024

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
    return await asyncio.get_running_loop().run_in_executor(_WORKER, lambda: work(*arguments, **named))
