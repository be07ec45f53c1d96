"""How many writes share a commit and how long it takes: the figures that tell whether group commit does its work."""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_WRITES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""The upper ends of the classes of the histogram; one more class has no end."""
BOUNDS_SECONDS = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""The same of the time that a commit takes."""


NOTED_MAX = 256


class CommitCounts:
    """Commits of a store since it was opened, by the number of writes in them and by their time.

    A commit is only noted when it ends, and counted when somebody asks or when many are noted.
    """

    __slots__ = ("_buckets", "_seconds", "_seconds_buckets", "_writes", "noted")

    def __init__(self) -> None:
        self.noted: list[tuple[int, float]] = []
        """Commits that are yet to be counted: their writes, and their time from the first statement to the end."""
        self._writes = 0
        self._seconds = 0.0
        self._buckets = [0] * (len(BOUNDS_WRITES) + 1)
        self._seconds_buckets = [0] * (len(BOUNDS_SECONDS) + 1)

    def note(self, writes: int, seconds: float) -> None:
        """Notes one commit."""
        self.noted.append((writes, seconds))
        if len(self.noted) >= NOTED_MAX:
            self.count()

    def count(self) -> None:
        """Counts what is noted."""
        for writes, seconds in self.noted:
            self._writes += writes
            self._seconds += seconds
            self._buckets[bisect_left(BOUNDS_WRITES, writes)] += 1
            self._seconds_buckets[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.noted.clear()

    @property
    def commits(self) -> int:
        return sum(self.buckets)

    @property
    def writes(self) -> int:
        self.count()
        return self._writes

    @property
    def seconds(self) -> float:
        self.count()
        return self._seconds

    @property
    def buckets(self) -> list[int]:
        """How many commits had so many writes."""
        self.count()
        return self._buckets

    @property
    def seconds_buckets(self) -> list[int]:
        """How many commits took so long."""
        self.count()
        return self._seconds_buckets
