"""What containers remember of the queries they were asked, within one bound for all of them.

Whoever may read chooses the texts and the parameters, and what is remembered of a query holds it in its compiled form,
also when the cache of compiled queries has forgotten it. So it is counted by its size and not only by its number: a
compiled query once in each memory, however many parameters it was asked with. Queries are prepared in several threads:
who adds or forgets has the lock of the room; who reads needs none.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakValueDictionary

from pleiad.query import Query

REMEMBERED_MAX = 1_000
"""As many entries as one memory has."""
REMEMBERED_BYTES_MAX = 32 * 1024 * 1024
_ENTRY_BYTES = 1_000
"""What an entry takes beside its texts and its query."""


class Remembered(dict[Any, Any]):
    """One memory, read as the dictionary it is and filled by `keep` alone; one that is let go counts no more."""

    __slots__ = ("__weakref__", "_counted", "_room", "size_bytes")

    def __init__(self, room: RememberedRoom | None = None) -> None:
        self.size_bytes = 0
        self._counted: dict[Query, int] = {}
        self._room = _ROOM if room is None else room

    def keep(self, key: Any, found: Any, query: Query | None, text_bytes: int) -> None:
        """Takes an entry with texts of so many bytes; where it is one too many, all others are forgotten."""
        with self._room.lock:
            if len(self) >= REMEMBERED_MAX:
                self.clear()
            size_bytes = _ENTRY_BYTES + text_bytes
            if query is not None:
                # It grows when it is asked with parameters of other types.
                size_bytes += query.size_bytes - self._counted.get(query, 0)
                self._counted[query] = query.size_bytes
            self[key] = found
            self.size_bytes += size_bytes
            self._room.mind(self)

    def clear(self) -> None:
        with self._room.lock:
            super().clear()
            self._counted.clear()
            self.size_bytes = 0


class RememberedRoom:
    """The room that memories share; where it is too small, the largest of them forgets all it has."""

    def __init__(self, bytes_max: int = REMEMBERED_BYTES_MAX) -> None:
        self.lock = threading.RLock()
        self._bytes_max = bytes_max
        self._memories: WeakValueDictionary[int, Remembered] = WeakValueDictionary()

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self._memories.values())

    def mind(self, memory: Remembered) -> None:
        """A memory has grown, of one who has the lock."""
        self._memories[id(memory)] = memory
        while self.size_bytes > self._bytes_max:
            max(self._memories.values(), key=lambda each: each.size_bytes).clear()


_ROOM = RememberedRoom()
