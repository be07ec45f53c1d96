"""Which paths get a physical index: those that queries ask for again, in segments with many items."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pleiad.store.predicate import is_addressable
from pleiad.store.selection import IndexedPath

_USES_KEPT_MAX = 1_000
_STEPS_OF_PATH_MAX = 32
_CHARACTERS_OF_PATH_MAX = 2_000


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """When path indexes are made and dropped, and in how large pieces they are built."""

    items_min: int = 500
    uses_min: int = 2
    indexes_max: int = 32
    unused_seconds: float = 7 * 86_400
    check_seconds: float = 3_600
    chunk_items: int = 2_000
    run_items: int = 50_000
    clock: Callable[[], float] = time.time


DEFAULT_INDEX_SETTINGS = IndexSettings()


class PathUses:
    """How often queries asked for paths that have no index; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._counts: dict[IndexedPath, int] = {}

    def add(self, path: IndexedPath) -> int:
        count = self._counts.pop(path, 0) + 1
        self._counts[path] = count
        if len(self._counts) > _USES_KEPT_MAX:
            del self._counts[next(iter(self._counts))]
        return count

    def forget(self, path: IndexedPath) -> None:
        self._counts.pop(path, None)


def is_indexable(path: IndexedPath) -> bool:
    """Whether a path is short and real enough for an index."""
    return (
        0 < len(path.path) <= _STEPS_OF_PATH_MAX
        and sum(map(len, path.path)) <= _CHARACTERS_OF_PATH_MAX
        and is_addressable(path.path)
    )
