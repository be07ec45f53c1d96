"""Answers that are made once a second at most, however many ask: pages that are open cost what one of them does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

FRESH_SECONDS = 1.0
_PLACES_MAX = 1_000


class OnceASecond:
    """The last answer of each kind."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: dict[Hashable, tuple[float, asyncio.Task[bytes]]] = {}

    async def get(self, place: Hashable, make: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """The answer of a place: the one of this second, the one that is being made, or a new one.

        Who comes while it is made waits for it too; one that could not be made is not kept.
        """
        now = self._clock()
        found = self._made.get(place)
        if found is None or (found[1].done() and now - found[0] >= FRESH_SECONDS) or _has_failed(found[1]):
            if len(self._made) >= _PLACES_MAX:
                self._made = {
                    other: made for other, made in self._made.items() if now - made[0] < FRESH_SECONDS
                }
            found = self._made[place] = (now, asyncio.create_task(make()))
        # Who gives up waiting ends nothing for the others.
        return await asyncio.shield(found[1])


def _has_failed(task: asyncio.Task[bytes]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
