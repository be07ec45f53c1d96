"""Turns: one change of a container's partition map at a time in this process."""

from __future__ import annotations

import asyncio


class MapTurns:
    """Who may change the map of which container now, by rid."""

    def __init__(self) -> None:
        self._turns: dict[str, asyncio.Lock] = {}

    def of(self, rid: str) -> asyncio.Lock:
        return self._turns.setdefault(rid, asyncio.Lock())

    def is_taken(self, rid: str) -> bool:
        """Whether a change of the container's map is under way here."""
        turn = self._turns.get(rid)
        return turn is not None and turn.locked()

    async def ended(self) -> None:
        """Waits until every change that is under way has ended."""
        for turn in list(self._turns.values()):
            async with turn:
                pass
