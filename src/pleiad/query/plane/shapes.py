"""The shapes of the plane: a point, a line, and an area bounded by polygons."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from pleiad.query.pace import worked
from pleiad.query.plane.bounds import Bounds, bounds_of
from pleiad.query.plane.edges import Bands, Edge
from pleiad.query.plane.exact import Place, Position, is_between, side

Line = Sequence[Position]
Cuts = dict[int, list[Place]]
"""The places where edges meet others, by their numbers."""


class Standing(Enum):
    """Where a place stands to an area."""

    INSIDE = "inside"
    EDGE = "edge"
    OUTSIDE = "outside"


def distinct(line: Line) -> list[Position]:
    """The positions of a line, each only once where it stands several times in a row."""
    return [line[0], *(after for before, after in pairwise(line) if after != before)]


@dataclass(frozen=True)
class PointShape:
    position: Position

    @property
    def bounds(self) -> Bounds:
        return Bounds(*self.position, *self.position)

    def moved(self, east: float) -> PointShape:
        return PointShape((self.position[0] + east, self.position[1]))


@dataclass(frozen=True)
class LineShape:
    """A line of some length; no position follows itself."""

    positions: list[Position]

    @cached_property
    def bounds(self) -> Bounds:
        return bounds_of(self.positions)

    @cached_property
    def edges(self) -> list[Edge]:
        return [Edge(start, end, 0) for start, end in pairwise(self.positions)]

    @cached_property
    def bands(self) -> Bands:
        return Bands(self.edges)

    @property
    def seams(self) -> Cuts:
        return {}

    @property
    def is_closed(self) -> bool:
        return self.positions[0] == self.positions[-1]

    def has(self, place: Place) -> bool:
        return any(
            is_between(start, end, place) and side(start, end, place) == 0
            for start, end, _ in self.bands.at(place[1])
        )

    def moved(self, east: float) -> LineShape:
        return LineShape([(x + east, y) for x, y in self.positions])


def line_shape(line: Line) -> PointShape | LineShape:
    """The shape of a line; one of no length is a point."""
    positions = distinct(line)
    return LineShape(positions) if len(positions) > 1 else PointShape(positions[0])


@dataclass(frozen=True)
class Polygon:
    """A sound polygon: its rings run around it counter-clockwise, its holes clockwise, and none meets itself."""

    rings: tuple[list[Position], ...]

    @classmethod
    def of_rings(cls, rings: Sequence[Line]) -> Polygon:
        outer, *holes = (distinct(ring) for ring in rings)
        turned = [outer if signed_area(outer) > 0 else outer[::-1]]
        turned += (hole if signed_area(hole) < 0 else hole[::-1] for hole in holes)
        return cls(tuple(turned))


def signed_area(ring: Line) -> float:
    """The area in a ring, negative where it runs clockwise."""
    x0, y0 = ring[0]
    return (
        math.fsum((x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0) for (x1, y1), (x2, y2) in pairwise(ring)) / 2
    )


Sides = tuple[bool, bool]
"""Whether an area lies to the left and to the right of an edge."""


@dataclass(frozen=True)
class Area:
    """What any of some polygons covers, or what all `common` ones cover and none of the others does.

    The closure of an open set: a seam between two polygons is no edge of the area that they are together.
    """

    polygons: tuple[Polygon, ...]
    common: tuple[Polygon, ...] = ()
    _moved: dict[float, Area] = field(default_factory=dict, init=False, compare=False, repr=False)

    @cached_property
    def bounds(self) -> Bounds:
        """What the area does not reach beyond."""
        return bounds_of(
            [position for polygon in self.common[:1] or self.polygons for position in polygon.rings[0]]
        )

    @cached_property
    def edges(self) -> list[Edge]:
        return [
            Edge(start, end, number)
            for number, polygon in enumerate(self.common + self.polygons)
            for ring in polygon.rings
            for start, end in pairwise(ring)
        ]

    @cached_property
    def bands(self) -> Bands:
        return Bands(self.edges)

    @cached_property
    def seams(self) -> Cuts:
        """Where edges of one polygon meet those of others."""
        edges = self.edges
        found: Cuts = {}
        if len(self.common) + len(self.polygons) > 1:
            for one, two, places in self.bands.meetings(lambda a, b: edges[a].owner != edges[b].owner):
                found.setdefault(one, []).extend(places)
                found.setdefault(two, []).extend(places)
        return found

    @cached_property
    def is_sum(self) -> bool:
        """Whether it is its polygons together, so that what one of them meets meets the area."""
        return not self.common or len(self.common) + len(self.polygons) == 1

    def corners(self) -> Iterator[Position]:
        """A position of each ring."""
        for polygon in self.common + self.polygons:
            for ring in polygon.rings:
                yield ring[0]

    def moved(self, east: float) -> Area:
        """The same area elsewhere; kept, because an area of a query is moved for one row after the other."""
        found = self._moved.get(east)
        if found is None:
            polygons, common = (
                tuple(
                    Polygon(tuple([(x + east, y) for x, y in ring] for ring in polygon.rings))
                    for polygon in polygons
                )
                for polygons in (self.polygons, self.common)
            )
            found = self._moved[east] = Area(polygons, common)
        return found

    # -- sets of polygons are numbers with a bit for each of them ----------------------------------

    def covers(self, polygons: int) -> bool:
        """Whether a place that lies in these polygons and no others belongs to the area."""
        if not self.common:
            return polygons != 0
        return polygons == (1 << len(self.common)) - 1

    def look(self, place: Place) -> tuple[int, list[Edge]]:
        """The polygons that a place lies in, and the edges that it lies on; their polygons are not to be relied on."""
        # Rounding keeps the order of numbers, so only equal ones need a second look.
        x, y = float(place[0]), float(place[1])
        inside = 0
        on: list[Edge] = []
        for edge in self.bands.at(y):
            start, end, polygon = edge
            (x1, y1), (x2, y2) = start, end
            if y1 != y != y2:
                if (y1 > y) == (y2 > y) or (x > x1 and x > x2):
                    continue
                if x < x1 and x < x2:
                    inside ^= 1 << polygon
                    continue
            is_west = _is_west(place, start, end)
            if is_west is None:
                on.append(edge)
            elif is_west:
                inside ^= 1 << polygon
        return inside, on

    def standing(self, place: Place) -> Standing:
        """Where a place stands."""
        inside, on = self.look(place)
        if not on:
            return Standing.INSIDE if self.covers(inside) else Standing.OUTSIDE
        if len(self.common) + len(self.polygons) == 1:
            return Standing.EDGE
        covered = set(self._around(place, inside, on))
        if len(covered) == 2:
            return Standing.EDGE
        return Standing.INSIDE if covered.pop() else Standing.OUTSIDE

    def _around(self, place: Place, inside: int, on: list[Edge]) -> Iterator[bool]:
        """Whether the area covers what is between each two of the edges around a place, counter-clockwise."""
        rays: list[_Ray] = []
        for edge in on:
            # An edge has its polygon to its left, which follows on its way to its end counter-clockwise.
            if place != edge.end:
                rays.append(_Ray(edge.end, edge.owner, True))
            if place != edge.start:
                rays.append(_Ray(edge.start, edge.owner, False))
        worked(len(rays) ** 2)
        order = _by_direction(place, rays)
        current = inside
        for ray in order:
            current &= ~(1 << ray.polygon)
        # The polygon before the first ray is what its last ray says.
        for ray in order:
            current = current | 1 << ray.polygon if ray.opens else current & ~(1 << ray.polygon)
        for at, ray in enumerate(order):
            current = current | 1 << ray.polygon if ray.opens else current & ~(1 << ray.polygon)
            if at + 1 == len(order) or not _is_same_direction(place, ray, order[at + 1]):
                yield self.covers(current)

    def sides(self, place: Place, edge: Edge, own: int | None) -> Sides:
        """Whether the area lies to the left and to the right of an edge near a place on it.

        `own` is the polygon of this area that the edge belongs to. The place is no end of another edge.
        """
        inside, on = self.look(place)
        left = right = inside
        for other in on:
            bit = 1 << other.owner
            if other.owner == own:
                continue
            is_along = _is_along(edge, other)
            left = left | bit if is_along else left & ~bit
            right = right & ~bit if is_along else right | bit
        if own is not None:
            left, right = left | 1 << own, right & ~(1 << own)
        return self.covers(left), self.covers(right)


def _is_west(place: Place, start: Position, end: Position) -> bool | None:
    """Whether a ray to the east crosses an edge, of which the lower end counts; nothing where the place is on it."""
    (x1, y1), (x2, y2), (x, y) = start, end, place
    if (y1 > y) != (y2 > y):
        turned = side(start, end, place)
        return None if turned == 0 else (turned > 0) == (y2 > y1)
    is_on = place in (start, end) or (y1 == y == y2 and (x1 <= x <= x2 or x2 <= x <= x1))
    return None if is_on else False


class _Ray(NamedTuple):
    """An edge as it leaves a place, and whether its polygon lies on its left."""

    towards: Position
    polygon: int
    opens: bool


def _is_along(edge: Edge, other: Edge) -> bool:
    """Whether two edges of one line have one direction."""
    if edge.start[0] != edge.end[0]:
        return (edge.start[0] < edge.end[0]) == (other.start[0] < other.end[0])
    return (edge.start[1] < edge.end[1]) == (other.start[1] < other.end[1])


def _is_upper(place: Place, ray: _Ray) -> bool:
    x, y = ray.towards
    return y > place[1] or (y == place[1] and x > place[0])


def _by_direction(place: Place, rays: list[_Ray]) -> list[_Ray]:
    """Rays around a place, counter-clockwise from the east."""
    order: list[_Ray] = []
    for ray in rays:
        at = next((at for at, other in enumerate(order) if _is_before(place, ray, other)), len(order))
        order.insert(at, ray)
    return order


def _is_before(place: Place, ray: _Ray, other: _Ray) -> bool:
    upper, other_upper = _is_upper(place, ray), _is_upper(place, other)
    if upper != other_upper:
        return upper
    return side(place, other.towards, ray.towards) < 0


def _is_same_direction(place: Place, ray: _Ray, other: _Ray) -> bool:
    return _is_upper(place, ray) == _is_upper(place, other) and side(place, ray.towards, other.towards) == 0


Shape = PointShape | LineShape | Area
