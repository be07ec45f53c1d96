"""How fast work may go: a bucket that fills by the second and may be overdrawn by what is on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_BURST_SECONDS = 0.1


class Rate:
    """Lets work go on while something is left, from any thread; without a figure it never holds up."""

    def __init__(self, per_second: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._at = clock()
        self._level = 0.0 if per_second is None else per_second * _BURST_SECONDS
        self._lock = threading.Lock()

    def wait_seconds(self) -> float:
        """How long to wait before asking again; 0 when work may go on."""
        if self._per_second is None:
            return 0.0
        with self._lock:
            now = self._clock()
            most = self._per_second * _BURST_SECONDS
            self._level = min(most, self._level + (now - self._at) * self._per_second)
            self._at = now
            return 0.0 if self._level > 0 else (1e-3 - self._level / self._per_second)

    def spend(self, amount: float) -> None:
        if self._per_second is not None:
            with self._lock:
                self._level -= amount
