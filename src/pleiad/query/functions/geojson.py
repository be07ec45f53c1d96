"""GeoJSON values read into geometries: Point, LineString, Polygon, MultiPolygon.

Coordinates are [longitude, latitude] in degrees, or plain x and y when planar. A ring is closed, has at
least four positions and does not cross itself. Geographic rings run counter-clockwise around their area; a
clockwise outer ring means the rest of the globe. Longitudes are unwrapped: a line over the antimeridian
goes on past 180 degrees instead of jumping. Rings around a pole are refused.

Between two positions of a line on the globe lies the arc in which a plane through its centre cuts it, not the straight
line of the map. Shapes lie in the plane of degrees, so they have positions in between where a line is long.
"""

from __future__ import annotations

import math
import operator
from collections import OrderedDict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pleiad.query.functions.numbers import double
from pleiad.query.pace import tick, worked
from pleiad.query.plane.shapes import Area, PointShape, Polygon, Shape, line_shape, signed_area
from pleiad.query.plane.soundness import flaw

POSITIONS_MAX = 4_096
ARC_POSITIONS_MAX = 4_096
_ARC_STEP_DEGREES = 0.25
_FLATTENING_SQUARED = 0.006694379990141316
"""The squared eccentricity of WGS 84."""

Position = tuple[float, float]
Line = list[Position]


class InvalidGeometry(Exception):
    """The value is no valid geometry; the text says why."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """A geometry by its lines (a point is a line of one position) and its shape in the plane of degrees, with arcs.

    When complement is true, the geometry is everything outside the shape.
    """

    kind: str
    lines: tuple[Line, ...]
    rings_by_polygon: tuple[tuple[Line, ...], ...]
    shape: Shape
    complement: bool = False


def parse(value: Any, planar: bool = False) -> Geometry:
    """The geometry a GeoJSON object describes; raises InvalidGeometry."""
    if type(value) is not dict:
        raise InvalidGeometry("Unable to process the geometry.")
    cached = _parsed.get((id(value), planar))
    if cached is not None and cached[0] is value:
        tick(cached[2])
        return cached[1]
    reader = _Reader(planar)
    try:
        geometry = reader.read(value)
    finally:
        # Each use counts its positions once, whether they were read before or not.
        positions = POSITIONS_MAX - reader.positions_left + ARC_POSITIONS_MAX - reader.arc_positions_left
        tick(positions)
    if geometry.rings_by_polygon:
        # The entry holds the value itself, so its id cannot come to mean another one.
        _parsed[(id(value), planar)] = (value, geometry, positions)
        if len(_parsed) > _PARSED_MAX:
            _parsed.popitem(last=False)
    return geometry


# Polygons written in a query come back for each row as the same object.
_PARSED_MAX = 32
_POSITION_STEPS = 8
_parsed: OrderedDict[tuple[int, bool], tuple[Any, Geometry, int]] = OrderedDict()


class _Reader:
    def __init__(self, planar: bool) -> None:
        self.planar = planar
        self.positions_left = POSITIONS_MAX
        self.arc_positions_left = ARC_POSITIONS_MAX

    def read(self, value: dict[str, Any]) -> Geometry:
        kind, coordinates = value.get("type"), value.get("coordinates")
        if kind == "Point":
            position = self._position(coordinates)
            return Geometry(kind, ([position],), (), PointShape(position))
        if kind == "LineString":
            line = self._line(coordinates)
            if len(line) < 2:
                raise InvalidGeometry("A LineString must have at least two positions.")
            return Geometry(kind, (line,), (), line_shape(self._arcs(line)))
        if kind == "Polygon":
            return self._polygons(kind, [coordinates])
        if kind == "MultiPolygon":
            if type(coordinates) is not list or not coordinates:
                raise InvalidGeometry("The coordinates of a MultiPolygon must be an array of polygons.")
            return self._polygons(kind, coordinates)
        raise InvalidGeometry("Unable to process the geometry.")

    def _position(self, value: Any) -> Position:
        if type(value) is not list or len(value) < 2:
            raise InvalidGeometry("A position must be an array of at least two numbers.")
        x, y = double(value[0]), double(value[1])
        if x is None or y is None or x - x != 0 or y - y != 0:
            raise InvalidGeometry("A position must be an array of at least two numbers.")
        worked(_POSITION_STEPS)
        self.positions_left -= 1
        if self.positions_left < 0:
            raise InvalidGeometry(f"A geometry may have {POSITIONS_MAX} positions at most.")
        if not self.planar:
            if not -90 <= y <= 90:
                raise InvalidGeometry("Latitude values must be between -90 and 90 degrees.")
            if not -180 <= x <= 180:
                raise InvalidGeometry("Longitude values must be between -180 and 180 degrees.")
        return x, y

    def _line(self, value: Any) -> Line:
        if type(value) is not list:
            raise InvalidGeometry("A line must be an array of positions.")
        line: Line = []
        shift = 0.0
        for element in value:
            x, y = self._position(element)
            if line and not self.planar:
                step = x + shift - line[-1][0]
                shift += 360.0 if step < -180 else -360.0 if step > 180 else 0.0
            line.append((x + shift, y))
        return line

    def _arcs(self, line: Line) -> Line:
        """The line with the arcs between its positions, as far as the positions in between are not too many."""
        if self.planar:
            return line
        found = line[:1]
        for start, end in pairwise(line):
            between = arc_between(start, end, self.arc_positions_left)
            self.arc_positions_left -= len(between)
            found += (*between, end)
        return found

    def _ring(self, value: Any) -> Line:
        ring = self._line(value)
        if len(ring) < 4:
            raise InvalidGeometry("A ring must have at least four positions.")
        if ring[0] != ring[-1]:
            if ring[0][1] == ring[-1][1] and abs(ring[0][0] - ring[-1][0]) == 360.0:
                raise InvalidGeometry("A ring around a pole is not supported.")
            raise InvalidGeometry("A ring must end at the position where it starts.")
        return ring

    def _polygons(self, kind: str, polygons: list[Any]) -> Geometry:
        rings_by_polygon = []
        plain: list[Polygon] = []
        inverted: list[Polygon] = []
        for rings_value in polygons:
            if type(rings_value) is not list or not rings_value:
                raise InvalidGeometry("The coordinates of a Polygon must be an array of rings.")
            outer = self._ring(rings_value[0])
            holes = [_beside(self._ring(hole), outer) for hole in rings_value[1:]]
            rings_by_polygon.append((outer, *holes))
            clockwise = not self.planar and signed_area(outer) < 0
            (inverted if clockwise else plain).append(_valid_polygon(*map(self._arcs, (outer, *holes))))
        lines = tuple(ring for rings in rings_by_polygon for ring in rings)
        # With inverted polygons, the shape is what none of the polygons covers.
        shape = Area(tuple(plain), tuple(inverted))
        return Geometry(kind, lines, tuple(rings_by_polygon), shape, complement=bool(inverted))


def arc_between(start: Position, end: Position, positions_max: int) -> Line:
    """Positions on the arc between two positions of the globe, evenly spread; none where they are near."""
    one, two = _from_centre(start), _from_centre(end)
    lengths = math.hypot(*one) * math.hypot(*two)
    angle = math.acos(max(-1.0, min(1.0, sum(map(operator.mul, one, two)) / lengths)))
    count = min(math.ceil(math.degrees(angle) / _ARC_STEP_DEGREES) - 1, positions_max)
    if count < 1 or math.sin(angle) < 1e-9:
        return []
    found: Line = []
    longitude = start[0]
    for step in range(1, count + 1):
        first, second = math.sin(angle * (1 - step / (count + 1))), math.sin(angle * step / (count + 1))
        x, y, z = (first * left + second * right for left, right in zip(one, two, strict=True))
        turned = math.degrees(math.atan2(y, x))
        longitude = turned + 360.0 * round((longitude - turned) / 360.0)
        latitude = math.degrees(math.atan2(z, math.hypot(x, y) * (1 - _FLATTENING_SQUARED)))
        found.append((longitude, latitude))
    return found


def _from_centre(position: Position) -> tuple[float, float, float]:
    """Where a position lies, seen from the centre of the ellipsoid, in its larger radii."""
    longitude, latitude = math.radians(position[0]), math.radians(position[1])
    radius = 1 / math.sqrt(1 - _FLATTENING_SQUARED * math.sin(latitude) ** 2)
    return (
        radius * math.cos(latitude) * math.cos(longitude),
        radius * math.cos(latitude) * math.sin(longitude),
        radius * (1 - _FLATTENING_SQUARED) * math.sin(latitude),
    )


def _beside(hole: Line, outer: Line) -> Line:
    """The hole with its longitudes moved to the turn of the globe on which its outer ring lies."""
    low, high = min(x for x, _ in outer), max(x for x, _ in outer)
    for shift in (0.0, 360.0, -360.0):
        if all(low <= x + shift <= high for x, _ in hole):
            return [(x + shift, y) for x, y in hole]
    return hole


def _valid_polygon(*rings: Line) -> Polygon:
    problem = flaw(rings)
    if problem is not None:
        raise InvalidGeometry(f"The polygon is not valid: {problem}.")
    return Polygon.of_rings(rings)
