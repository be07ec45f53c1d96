"""The partition map of one container: which physical partition a hash belongs to.

Invariant: the partitions tile the hash space in order, so exactly one of them contains any epk.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from pleiad.keys.range import WHOLE, EpkRange
from pleiad.partition.partition import Partition


class PartitionMap:
    """The live physical partitions of a container, ordered by range."""

    __slots__ = ("_by_range_id", "_lows", "partitions", "version")

    def __init__(self, partitions: Iterable[Partition]) -> None:
        self.partitions = sorted(partitions, key=lambda partition: partition.span.min)
        self._lows = [partition.span.min for partition in self.partitions]
        self._by_range_id = {partition.range_id: partition for partition in self.partitions}
        self.version = max(partition.id for partition in self.partitions) + 1
        _check_tiling([partition.span for partition in self.partitions])

    def find(self, epk: bytes) -> Partition:
        """The one partition whose range contains the hash."""
        return self.partitions[bisect_right(self._lows, epk) - 1]

    def by_range_id(self, range_id: str) -> Partition | None:
        return self._by_range_id.get(range_id)

    def overlapping(self, span: EpkRange) -> list[Partition]:
        """The partitions that hold some part of a range, in order."""
        return [partition for partition in self.partitions if partition.span.overlaps(span)]


def _check_tiling(spans: list[EpkRange]) -> None:
    edges = [WHOLE.min, *(span.max for span in spans)]
    if [span.min for span in spans] != edges[:-1] or edges[-1] != WHOLE.max:
        raise ValueError(f"the ranges of a container do not tile the hash space: {spans}")
