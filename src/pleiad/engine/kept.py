"""What the pages of a query have gathered so far, kept for the page that comes next.

It is a shortcut and never the only copy: a token says where its query stands, and what was gathered up to there can be
gathered again, after a restart, on another server, or when there was no room here. Names are random, so a client
cannot find the work of another. A container keeps `KEPT_BYTES_MAX` at most, and all containers of the process together
`ALL_KEPT_BYTES_MAX`, so that pages nobody asks for the next of take no more memory for being of many containers.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, NamedTuple

KEPT_SECONDS = 60.0
KEPT_BYTES_MAX = 32 * 1024 * 1024
ALL_KEPT_BYTES_MAX = 64 * 1024 * 1024


class _Kept(NamedTuple):
    mark: int
    work: Any
    size_bytes: int


class KeptRoom:
    """The room that containers share; where it is too small, the one with most gives up its oldest."""

    def __init__(self, bytes_max: int = ALL_KEPT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._keepers: dict[KeptWork, None] = {}
        """Those that keep something."""

    def add(self, keeper: KeptWork, size_bytes: int) -> None:
        """A container keeps so much more."""
        self._keepers[keeper] = None
        self._bytes += size_bytes
        while self._bytes > self._bytes_max:
            max(self._keepers, key=lambda each: each.size_bytes).forget_oldest()

    def take(self, keeper: KeptWork, size_bytes: int) -> None:
        """A container keeps so much less."""
        self._bytes -= size_bytes
        if not keeper.size_bytes:
            self._keepers.pop(keeper, None)


_ROOM = KeptRoom()


class KeptWork:
    """Unfinished queries of one container, the oldest given up first."""

    __slots__ = ("_kept", "_room", "bytes_max", "size_bytes")

    def __init__(self, room: KeptRoom = _ROOM) -> None:
        self._kept: dict[str, _Kept] = {}
        self._room = room
        self.size_bytes = 0
        self.bytes_max = KEPT_BYTES_MAX

    def keep(self, mark: int, work: Any, size_bytes: int) -> str:
        """The name under which the work is found again, unless it is too large to be kept."""
        name = secrets.token_urlsafe(9)
        if size_bytes > self.bytes_max:
            return name
        self._kept[name] = _Kept(mark, work, size_bytes)
        self.size_bytes += size_bytes
        while self.size_bytes > self.bytes_max:
            self.forget_oldest()
        self._room.add(self, size_bytes)
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self.forget, name)
        return name

    def look(self, name: Any, mark: int) -> Any:
        """The work of a query under a name, or None."""
        found = self._kept.get(name) if isinstance(name, str) else None
        return found.work if found is not None and found.mark == mark else None

    def take(self, name: Any, mark: int) -> Any:
        """The same, for one who goes on with it: a second request with the same token gathers for itself."""
        work = self.look(name, mark)
        if work is not None:
            self.forget(name)
        return work

    def forget_oldest(self) -> None:
        self.forget(next(iter(self._kept)))

    def forget(self, name: str) -> None:
        found = self._kept.pop(name, None)
        if found is not None:
            self.size_bytes -= found.size_bytes
            self._room.take(self, found.size_bytes)
