"""Turns at patching: who reads an item, changes it and puts it back is alone with that in this process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_Item = tuple[str, bytes, str]
"""The rid of a container, and the hash and the id that name an item there."""


class PatchTurns:
    """The items that are being patched, each with those who wait for their turn at it, in their order."""

    def __init__(self) -> None:
        self._waiting: dict[_Item, deque[asyncio.Future[None]]] = {}

    def take(self, item: _Item) -> bool:
        """Whether the turn at an item is free; then it is taken, until it is left."""
        if item in self._waiting:
            return False
        self._waiting[item] = deque()
        return True

    @asynccontextmanager
    async def turn(self, container_rid: str, epk: bytes, id: str) -> AsyncIterator[None]:
        """`async with`: waits for the turn at an item, and leaves it in the end."""
        item = container_rid, epk, id
        if not self.take(item):
            await self._wait(item)
        try:
            yield
        finally:
            self.leave(item)

    async def _wait(self, item: _Item) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[item].append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.leave(item)  # it came at the moment in which nobody wanted it any more
            raise

    def leave(self, item: _Item) -> None:
        """Gives the turn to the next who waits for it, if there is one."""
        waiting = self._waiting[item]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[item]


patch_turns = PatchTurns()
