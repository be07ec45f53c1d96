"""Which paths get a physical index: those that queries ask for again, in segments with many items.

The number of indexes is bounded, so a place has to be earned. Every path has a score: it grows with each query that
asks for it, tenfold with one that finds something, and halves in a day. When all places are taken, a path that has
clearly earned more than the weakest index takes its place; not often, since an index costs a walk over all items. So
paths that are in no item, asked for by mistake or by malice, cannot keep out those that queries live on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pleiad.store.predicate import is_addressable
from pleiad.store.selection import IndexedPath

_USES_KEPT_MAX = 1_000
_STEPS_OF_PATH_MAX = 32
_CHARACTERS_OF_PATH_MAX = 2_000
_HALF_LIFE_SECONDS = 86_400.0
_TIMES_BETTER = 2
_ASKED = 1.0
_FOUND = 10.0
"""What a path earns when a query asks for it, and when the query finds something."""
LOADED = 20.0
"""What an index counts with that was made before the server started."""


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """When path indexes are made and dropped, and in how large pieces they are built."""

    items_min: int = 500
    uses_min: int = 2
    indexes_max: int = 32
    unused_seconds: float = 7 * 86_400
    check_seconds: float = 3_600
    replace_seconds: float = 60.0
    chunk_items: int = 2_000
    run_items: int = 50_000
    clock: Callable[[], float] = time.time


DEFAULT_INDEX_SETTINGS = IndexSettings()


@dataclass(slots=True)
class Score:
    """What a path has earned."""

    value: float = 0.0
    at: float = 0.0
    asked: int = 0

    def now(self, now: float) -> float:
        return float(self.value * 0.5 ** (max(0.0, now - self.at) / _HALF_LIFE_SECONDS))

    def add(self, found: bool, now: float) -> None:
        self.value, self.at = self.now(now) + (_FOUND if found else _ASKED), now
        self.asked += 1


class PathUses:
    """The scores of paths that have no index; those asked for longest ago are forgotten first."""

    def __init__(self) -> None:
        self._scores: dict[IndexedPath, Score] = {}
        self._replaced_at = float("-inf")

    def score_of(self, path: IndexedPath) -> Score:
        return self._scores.get(path) or Score()

    def add(self, path: IndexedPath, found: bool, now: float) -> Score:
        score = self._scores.pop(path, None) or Score()
        score.add(found, now)
        self._scores[path] = score
        if len(self._scores) > _USES_KEPT_MAX:
            del self._scores[next(iter(self._scores))]
        return score

    def forget(self, path: IndexedPath) -> None:
        self._scores.pop(path, None)

    def replaced_by(
        self, path: IndexedPath, scores: Mapping[IndexedPath, Score], settings: IndexSettings
    ) -> IndexedPath | None:
        """The path whose index has to make room for this one, None when no index has earned less."""
        now = settings.clock()
        mine = self._scores.get(path)
        if mine is None or not scores or now - self._replaced_at < settings.replace_seconds:
            return None
        weakest = min(scores, key=lambda each: scores[each].now(now))
        if mine.now(now) < _TIMES_BETTER * scores[weakest].now(now) + _ASKED:
            return None
        self._replaced_at = now
        return weakest


def is_indexable(path: IndexedPath) -> bool:
    """Whether a path is short and real enough for an index."""
    return (
        0 < len(path.path) <= _STEPS_OF_PATH_MAX
        and sum(map(len, path.path)) <= _CHARACTERS_OF_PATH_MAX
        and is_addressable(path.path)
    )
