"""How many writes share a commit: the figures that tell whether group commit does its work."""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_WRITES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""The upper ends of the classes of the histogram; one more class has no end."""


class CommitCounts:
    """Commits of a store since it was opened, by the number of writes in them."""

    __slots__ = ("buckets", "commits", "writes")

    def __init__(self) -> None:
        self.commits = 0
        self.writes = 0
        self.buckets = [0] * (len(BOUNDS_WRITES) + 1)

    def note(self, writes: int) -> None:
        """Counts one commit."""
        self.commits += 1
        self.writes += writes
        self.buckets[bisect_left(BOUNDS_WRITES, writes)] += 1
