"""Edges sorted into bands of the plane from south to north, so that each is compared with few others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pleiad.query.pace import worked
from pleiad.query.plane.bounds import Bounds
from pleiad.query.plane.exact import Number, Place, Position, meeting

_BANDS_OF_AN_EDGE = 4
"""How many bands an edge may be in, on average."""


class Edge(NamedTuple):
    """A segment of a line, or of a ring around the part of a polygon that lies to its left."""

    start: Position
    end: Position
    owner: int
    """The line, ring or polygon it belongs to."""


class Meeting(NamedTuple):
    """Where two edges meet, by their numbers: one place, or the ends of what they share."""

    one: int
    two: int
    places: tuple[Place, ...]


class Bands:
    """The edges of a shape, by the bands that they reach into."""

    __slots__ = ("_bands", "_boxes", "_height", "bounds", "edges")

    def __init__(self, edges: Sequence[Edge]) -> None:
        self.edges = edges
        worked(len(edges))
        self._boxes = [
            (
                x1 if x1 < x2 else x2,
                y1 if y1 < y2 else y2,
                x2 if x1 < x2 else x1,
                y2 if y1 < y2 else y1,
            )
            for (x1, y1), (x2, y2), _ in edges
        ]
        self.bounds = _around(self._boxes)
        count = max(len(edges), 1)
        edge_height = sum((north - south) / count for _, south, _, north in self._boxes)
        height = max((self.bounds.north - self.bounds.south) / count, edge_height / _BANDS_OF_AN_EDGE)
        # Bands need a height; where there is none, or none that a double can hold, there is one band.
        self._height = height if 0 < height < math.inf else math.inf
        self._bands: list[list[int]] = [[] for _ in range(self._band(self.bounds.north) + 1)]
        for number, (_, south, _, north) in enumerate(self._boxes):
            for band in range(self._band(south), self._band(north) + 1):
                self._bands[band].append(number)

    def _band(self, y: Number) -> int:
        # A quotient that is rounded still grows with y, so what is north of another is in no band south of it.
        return 0 if self._height == math.inf else int((float(y) - self.bounds.south) / self._height)

    def at(self, y: Number) -> Sequence[Edge]:
        """The edges that may reach a y, and others."""
        if not self.bounds.south <= y <= self.bounds.north:
            return ()
        edges, found = self.edges, self._bands[self._band(y)]
        worked(len(found) // 4)
        return [edges[number] for number in found]

    def reaching(self, bounds: tuple[float, float, float, float]) -> list[int]:
        """The numbers of the edges whose boxes meet a box, in their order."""
        west, south, east, north = bounds
        if south > self.bounds.north or north < self.bounds.south:
            return []
        first, last = self._band(max(south, self.bounds.south)), self._band(min(north, self.bounds.north))
        numbers = (
            self._bands[first]
            if first == last
            else sorted({number for band in self._bands[first : last + 1] for number in band})
        )
        worked(len(numbers) // 4)
        boxes = self._boxes
        return [
            number
            for number in numbers
            if boxes[number][0] <= east
            and boxes[number][2] >= west
            and boxes[number][1] <= north
            and boxes[number][3] >= south
        ]

    def meetings(self, concern: Callable[[int, int], bool]) -> Iterator[Meeting]:
        """Where edges meet each other, if they concern one."""
        for number, box in enumerate(self._boxes):
            others = [other for other in self.reaching(box) if other > number and concern(number, other)]
            yield from self._met(number, self, others)

    def meetings_with(self, shape: Bands) -> Iterator[Meeting]:
        """Where edges meet those of another shape."""
        for number in self.reaching(shape.bounds):
            yield from self._met(number, shape, shape.reaching(self._boxes[number]))

    def _met(self, number: int, shape: Bands, others: list[int]) -> Iterator[Meeting]:
        start, end, _ = self.edges[number]
        worked(1 + len(others))
        for other in others:
            places = meeting(start, end, shape.edges[other].start, shape.edges[other].end)
            if places:
                yield Meeting(number, other, places)


def _around(boxes: Sequence[tuple[float, float, float, float]]) -> Bounds:
    """The box around boxes; one that meets nothing where there are none."""
    return Bounds(
        min((box[0] for box in boxes), default=math.inf),
        min((box[1] for box in boxes), default=math.inf),
        max((box[2] for box in boxes), default=-math.inf),
        max((box[3] for box in boxes), default=-math.inf),
    )
