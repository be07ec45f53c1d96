"""Work that is not stopped in the middle, and reads that start over when what they read has moved."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from pleiad.engine.container import Container
from pleiad.store.segments import SegmentDroppedError

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


def to_the_end(
    change: Callable[_Arguments, Coroutine[Any, Any, _Answer]],
) -> Callable[_Arguments, Coroutine[Any, Any, _Answer]]:
    """A change of the catalog that goes on when its caller is cancelled, as when a client hangs up.

    Stopped between the disk and the memory it would leave the two telling different stories until a restart.
    """

    @functools.wraps(change)
    async def whole(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Answer:
        return await asyncio.shield(change(*arguments, **named))

    return whole


def over_moves(
    page: Callable[Concatenate[Container, _Arguments], Coroutine[Any, Any, _Answer]],
) -> Callable[Concatenate[Container, _Arguments], Coroutine[Any, Any, _Answer]]:
    """A read of several steps that starts over when rows it was reading have moved to another segment."""

    @functools.wraps(page)
    async def whole(
        container: Container, /, *arguments: _Arguments.args, **named: _Arguments.kwargs
    ) -> _Answer:
        while True:
            seen = container.map
            try:
                return await page(container, *arguments, **named)
            except SegmentDroppedError:
                if container.map is seen and container.looks is not None:
                    await container.looks.look()
                if container.map is seen:
                    raise

    return whole
