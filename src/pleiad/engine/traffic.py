"""What requests leave behind in figures: those of a container and of the account by operation, and by partition key.

Counting is on the way of every request, so it is a look-up or two and a few additions. Whoever shows the figures does
the rest. A request on items is counted by its container and nowhere else; the account adds up.

The heat of a container keeps `KEYS_MAX` keys a window; then all but the hottest `KEYS_KEPT` are forgotten. A key
that uses a notable share of the container's throughput comes back with its next requests, so what is hot is found, and
what is shown of it is never more than it used. What the forgotten ones used stays in the slice of the hash space that
their hash is in, so the slices of a window have all that was spent on keys.
"""

from __future__ import annotations

import heapq
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pleiad.keys.value import KeyValue
from pleiad.partition.latency import BOUNDS_SECONDS, CLASSES

KEYS_MAX = 1_000
KEYS_KEPT = 200
SLICES = 96
"""Even parts of the hash space that heat is told by."""

Key = tuple[KeyValue, ...]


class Series:
    """The figures of one operation with one status."""

    __slots__ = ("buckets", "charge_ru", "operation", "requests", "seconds", "status")

    def __init__(self, operation: str, status: int) -> None:
        self.operation = operation
        self.status = status
        self.requests = 0
        self.charge_ru = 0.0
        self.seconds = 0.0
        self.buckets = [0] * CLASSES

    def add(self, other: Series) -> None:
        self.requests += other.requests
        self.charge_ru += other.charge_ru
        self.seconds += other.seconds
        self.buckets = [one + more for one, more in zip(self.buckets, other.buckets, strict=True)]


class Traffic:
    """The counters of one container, or of what is no container's."""

    def __init__(self) -> None:
        self.series: dict[tuple[str, int], Series] = {}

    def note(self, operation: str, status: int, seconds: float, charge_ru: float) -> int:
        """Counts one answered request; the class of its time."""
        series = self.series.get((operation, status))
        if series is None:
            series = self.series[operation, status] = Series(operation, status)
        series.requests += 1
        series.charge_ru += charge_ru
        series.seconds += seconds
        taken = bisect_left(BOUNDS_SECONDS, seconds)
        series.buckets[taken] += 1
        return taken

    def spent_ru(self) -> float:
        """The request units charged since the start."""
        return sum([series.charge_ru for series in self.series.values()])

    def add(self, other: Traffic) -> None:
        """Takes over the counts of another."""
        for place, series in other.series.items():
            self.series.setdefault(place, Series(*place)).add(series)


class AccountTraffic(Traffic):
    """The counters of an account: those of its containers, and its own for all that is none's."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[Traffic] = []

    def let_go(self, part: Traffic) -> None:
        """Keeps the counts of a container that is no more."""
        self.parts.remove(part)
        self.add(part)

    def __iter__(self) -> Iterator[Series]:
        """All series of the account, by operation and status."""
        together = Traffic()
        for part in (self, *self.parts):
            together.add(part)
        return iter([series for _, series in sorted(together.series.items())])


class _Cell:
    """What one key used and was refused in a window."""

    __slots__ = ("charge_ru", "refused", "slice")

    def __init__(self, slice: int) -> None:
        self.charge_ru = 0.0
        self.refused = 0
        self.slice = slice


@dataclass(frozen=True, slots=True)
class HotKey:
    """A partition key and what it used per second on average over the windows."""

    key: Key
    ru_per_second: float
    share_percent: float = 0.0
    """Of all that the container used in that time."""
    refused: int = 0


class Heat:
    """Which partition keys of one container use the most request units, and where they are: the last minute or two.

    `slice_of` tells the slice of a key, `spent_ru` what the container has used since the start.
    """

    def __init__(self, slice_of: Callable[[Key], int], spent_ru: Callable[[], float]) -> None:
        self._slice_of = slice_of
        self._spent_ru = spent_ru
        self._window: dict[Key, _Cell] = {}
        self._last: dict[Key, _Cell] = {}
        self._forgotten = array("d", bytes(8 * SLICES))
        """What keys used that are not in the window any more, by slice."""
        self._began_at = self._last_began_at = time.monotonic()
        self._began_ru = self._last_began_ru = 0.0
        self._keys_before = 0
        self._is_pruned = False

    def note(self, key: Key, charge_ru: float) -> None:
        """Adds what a request for a key was charged."""
        cell = self._window.get(key)
        if cell is None:
            cell = self._cell(key)
        cell.charge_ru += charge_ru

    def refuse(self, key: Key) -> None:
        """Counts a request for a key that was answered with 429."""
        cell = self._window.get(key) or self._cell(key)
        cell.refused += 1

    def _cell(self, key: Key) -> _Cell:
        window = self._window
        if len(window) >= KEYS_MAX:
            kept = heapq.nlargest(KEYS_KEPT, window.items(), key=lambda pair: pair[1].charge_ru)
            self._window = dict(kept)
            for other, cell in window.items():
                if other not in self._window:
                    self._forgotten[cell.slice] += cell.charge_ru
            self._is_pruned = True
        made = self._window[key] = _Cell(self._slice_of(key))
        return made

    @property
    def keys_seen(self) -> int:
        """How many keys had requests in one window, this or the last; there may have been more."""
        return max(self._keys_before, KEYS_MAX if self._is_pruned else len(self._window))

    def slices_ru(self) -> list[float]:
        """What was spent on keys since the window began, by slice."""
        slices = list(self._forgotten)
        for cell in self._window.values():
            slices[cell.slice] += cell.charge_ru
        return slices

    def turn(self, now: float | None = None) -> None:
        """Begins a new window; the chronicle calls it each minute."""
        self._keys_before = KEYS_MAX if self._is_pruned else len(self._window)
        self._is_pruned = False
        self._last, self._window = self._window, {}
        self._last_began_at, self._began_at = self._began_at, time.monotonic() if now is None else now
        self._last_began_ru, self._began_ru = self._began_ru, self._spent_ru()
        self._forgotten = array("d", bytes(8 * SLICES))

    def hottest(self, count: int, now: float | None = None) -> list[HotKey]:
        """The keys that used the most, hottest first."""
        now = time.monotonic() if now is None else now
        sums = {key: (cell.charge_ru, cell.refused) for key, cell in self._last.items()}
        for key, cell in self._window.items():
            charge_ru, refused = sums.get(key, (0.0, 0))
            sums[key] = (charge_ru + cell.charge_ru, refused + cell.refused)
        seconds = max(1.0, now - self._last_began_at)
        spent_ru = self._spent_ru() - self._last_began_ru
        top = heapq.nlargest(count, sums.items(), key=lambda pair: pair[1])
        return [
            HotKey(
                key,
                charge_ru / seconds,
                min(100.0, 100 * charge_ru / spent_ru) if spent_ru > 0 else 0.0,
                refused,
            )
            for key, (charge_ru, refused) in top
        ]
