"""Which partition keys of a container use the most request units: a tally of the last minute or two.

The tally keeps at most `KEYS_MAX` keys a window; then all but the hottest `KEYS_KEPT` are forgotten. A key that uses a
notable share of the container's throughput comes back with its next requests, so what is hot is found, and what is
shown of it is never more than it used.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass

from pleiad.keys.value import KeyValue

KEYS_MAX = 1_000
KEYS_KEPT = 200
WINDOW_SECONDS = 60.0

Key = tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True)
class HotKey:
    """A partition key and what it used per second on average over the windows."""

    key: Key
    ru_per_second: float


class Heat:
    """The tally of one container."""

    def __init__(self) -> None:
        self._window: dict[Key, float] = {}
        self._last: dict[Key, float] = {}
        self._began_at = self._last_began_at = time.monotonic()

    def note(self, key: Key, charge_ru: float) -> None:
        """Adds what a request for a key was charged."""
        window = self._window
        window[key] = window.get(key, 0.0) + charge_ru
        if len(window) > KEYS_MAX:
            self._window = dict(heapq.nlargest(KEYS_KEPT, window.items(), key=lambda pair: pair[1]))

    def turn(self, now: float | None = None) -> None:
        """Begins a new window when the current one is old enough; background work calls it."""
        now = time.monotonic() if now is None else now
        if now - self._began_at >= WINDOW_SECONDS:
            self._last, self._window = self._window, {}
            self._last_began_at, self._began_at = self._began_at, now

    def hottest(self, count: int, now: float | None = None) -> list[HotKey]:
        """The keys that used the most, hottest first."""
        now = time.monotonic() if now is None else now
        sums = dict(self._last)
        for key, charge_ru in self._window.items():
            sums[key] = sums.get(key, 0.0) + charge_ru
        seconds = max(1.0, now - self._last_began_at)
        top = heapq.nlargest(count, sums.items(), key=lambda pair: pair[1])
        return [HotKey(key, charge_ru / seconds) for key, charge_ru in top]
