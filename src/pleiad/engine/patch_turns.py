"""Turns at patching: who reads an item, changes it and puts it back is alone with that in this process."""

from __future__ import annotations

import asyncio


class _PatchTurns:
    """One lock per item that is being patched, kept only while somebody holds or awaits it."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, bytes, str], tuple[asyncio.Lock, int]] = {}

    def __call__(self, container_rid: str, epk: bytes, id: str) -> _PatchTurn:
        return _PatchTurn(self._locks, (container_rid, epk, id))


class _PatchTurn:
    """The asynchronous context of one patch."""

    def __init__(
        self, locks: dict[tuple[str, bytes, str], tuple[asyncio.Lock, int]], item: tuple[str, bytes, str]
    ) -> None:
        self._locks = locks
        self._item = item

    async def __aenter__(self) -> None:
        lock, holders = self._locks.get(self._item) or (asyncio.Lock(), 0)
        self._locks[self._item] = (lock, holders + 1)
        try:
            await lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._locks[self._item][0].release()
        self._leave()

    def _leave(self) -> None:
        lock, holders = self._locks[self._item]
        if holders == 1:
            del self._locks[self._item]
        else:
            self._locks[self._item] = (lock, holders - 1)


patch_turn = _PatchTurns()
"""`async with patch_turn(container_rid, epk, id)`: alone in this process in reading and changing that item."""
