"""What keeps an account busy: requests summed by container, operation and query, while somebody looks.

Sums only grow, so that whoever looks twice knows what came between, however many look. When nobody has looked for a
minute, they are forgotten and no request is counted any more.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from pleiad.engine.operation import Operation
from pleiad.engine.watch.observer import Seen
from pleiad.partition.latency import BOUNDS_SECONDS, CLASSES

ENTRIES_MAX = 1_000
"""What comes after so many kinds is counted together."""
FORGOTTEN_SECONDS = 60.0
_QUERY_CHARACTERS_MAX = 500
_TOO_MANY_REQUESTS = 429
_NAMELESS = frozenset({400, 401, 403, 404})
_OTHERS = ("", "others", "")


@dataclass(slots=True)
class Entry:
    """The sums of one kind of request."""

    container: str
    operation: str
    query: str
    requests: int = 0
    throttled: int = 0
    charge_ru: float = 0.0
    seconds: float = 0.0
    partitions: int = 0
    """The physical partitions that the requests went to, added up."""
    buckets: list[int] = field(default_factory=lambda: [0] * CLASSES)
    """How many took how long, in the classes of the latency histogram."""


class Busiest:
    """The sums since somebody began to look."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[tuple[str, str, str], Entry] = {}
        self._looked_at = -FORGOTTEN_SECONDS

    @property
    def is_over(self) -> bool:
        return self._clock() - self._looked_at >= FORGOTTEN_SECONDS

    def saw(self, seen: Seen) -> None:
        if seen.operation == Operation.READ_BUSIEST.word:
            return  # looking is not what keeps an account busy
        # Who may not ask, or asks for what is not there, shall not fill the list with names.
        path = "" if seen.status in _NAMELESS else seen.path
        kind = (path, seen.operation, seen.query[:_QUERY_CHARACTERS_MAX])
        if kind not in self._entries and len(self._entries) >= ENTRIES_MAX:
            kind = _OTHERS
        entry = self._entries.get(kind)
        if entry is None:
            entry = self._entries[kind] = Entry(*kind)
        entry.requests += 1
        entry.throttled += seen.status == _TOO_MANY_REQUESTS
        entry.charge_ru += seen.charge_ru
        entry.seconds += seen.seconds
        entry.partitions += len(seen.partitions)
        entry.buckets[bisect_left(BOUNDS_SECONDS, seen.seconds)] += 1

    def look(self) -> list[Entry]:
        """The sums of each kind; who comes after nobody had looked for a while finds none."""
        if self.is_over:
            self._entries = {}
        self._looked_at = self._clock()
        return list(self._entries.values())
