"""The box around positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pleiad.query.plane.exact import Position


class Bounds(NamedTuple):
    west: float
    south: float
    east: float
    north: float

    def hold(self, other: Bounds) -> bool:
        return (
            self.west <= other.west
            and other.east <= self.east
            and self.south <= other.south
            and other.north <= self.north
        )

    def meet(self, other: Bounds) -> bool:
        return (
            self.west <= other.east
            and other.west <= self.east
            and self.south <= other.north
            and other.south <= self.north
        )


def bounds_of(positions: Sequence[Position]) -> Bounds:
    xs, ys = [x for x, _ in positions], [y for _, y in positions]
    return Bounds(min(xs), min(ys), max(xs), max(ys))
