"""How many writes share a commit and how long it takes: the figures that tell whether group commit does its work."""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_WRITES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""The upper ends of the classes of the histogram; one more class has no end."""
BOUNDS_SECONDS = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""The same of the time that a commit takes."""


class CommitCounts:
    """Commits of a store since it was opened, by the number of writes in them and by their time."""

    __slots__ = ("buckets", "commits", "seconds", "seconds_buckets", "writes")

    def __init__(self) -> None:
        self.commits = 0
        self.writes = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(BOUNDS_WRITES) + 1)
        self.seconds_buckets = [0] * (len(BOUNDS_SECONDS) + 1)

    def note(self, writes: int, seconds: float) -> None:
        """Counts one commit, from its first statement to its end."""
        self.commits += 1
        self.writes += writes
        self.seconds += seconds
        self.buckets[bisect_left(BOUNDS_WRITES, writes)] += 1
        self.seconds_buckets[bisect_left(BOUNDS_SECONDS, seconds)] += 1
