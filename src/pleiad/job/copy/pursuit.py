"""The pursuit of a source that goes on to be written to: whether a copy comes nearer, and what it does if not.

A copy that keeps to its share may be slower than the writers of its source, and then never ends. So it looks now and
then how much is left: where that would take too long at this pace it takes more than its share, step by step, and
where it would take a small part of that time, less again, since the writers pay for it. Where it comes no nearer at
full speed either it gives up, after a time in which the writers might have come to rest.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from pleiad.job.copy.failure import CopyFailedError
from pleiad.job.copy.pacer import Pacer

LOOK_SECONDS = 0.5
PATIENCE_SECONDS = 600.0
_SOON = 0.25
"""Of the time that catching up may take: a copy that needs less is faster than it has to be."""


class Pursuit:
    """One time of catching up, from the changes that are left at its beginning."""

    def __init__(
        self, pacer: Pacer, seconds_max: float, left: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pacer = pacer
        self._seconds_max = seconds_max
        """How long it may take before it takes more than its share."""
        self._clock = clock
        self._left = self._least = left
        self._looked_at = self._nearer_at = clock()

    @property
    def is_due(self) -> bool:
        """Whether it is time to look again."""
        return self._clock() - self._looked_at >= LOOK_SECONDS

    def look(self, left: int) -> None:
        """Takes how many changes are left now; CopyFailedError when that has not become less for too long."""
        now = self._clock()
        done, seconds = self._left - left, now - self._looked_at
        self._left, self._looked_at = left, now
        needed = seconds * left / done if done > 0 else math.inf
        is_hastened = needed > self._seconds_max and self._pacer.hasten()
        if needed < _SOON * self._seconds_max:
            self._pacer.ease()
        if left < self._least or is_hastened:
            self._least, self._nearer_at = min(left, self._least), now
        elif now - self._nearer_at > PATIENCE_SECONDS:
            raise outpaced()


def outpaced() -> CopyFailedError:
    """What is told of a source that cannot be caught up with."""
    return CopyFailedError(
        "the source is written to faster than it can be followed, so that its writers would have to wait too long: "
        "complete the copy at a quieter time"
    )
