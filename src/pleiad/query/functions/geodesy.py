"""Distances and areas on the WGS 84 ellipsoid, with great elliptic arcs as edges.

Such an arc lies in a plane through the centre of the Earth; the service measures along them, and geodesics are up to a
few millionths shorter. With its polar axis stretched the ellipsoid is a sphere and the arcs are great circles, so
positions are unit vectors of that sphere: planes, feet and the side of a ring are found there, lengths by integration.
A length on the sphere is at most 0.4 % wrong, so of many segments those near to the best one are measured.

Between a point and a line the distance is to the nearest place on the line. Between two lines or areas every vertex is
such a point. With very many vertices the nearest pair in a locally scaled plane is the start instead, and each end is
then moved to the point nearest to the other.
"""

from __future__ import annotations

import heapq
import math

from pleiad.query.functions.geojson import Geometry, Line, Position
from pleiad.query.pace import tick
from pleiad.query.plane.measure import nearest

_EQUATOR_M = 6_378_137.0
_FLATTENING = 1 / 298.257223563
_POLE_M = _EQUATOR_M * (1 - _FLATTENING)
_ECCENTRICITY_2 = _FLATTENING * (2 - _FLATTENING)
_ECCENTRICITY = math.sqrt(_ECCENTRICITY_2)
_SPHERE_TOLERANCE = 1.012
_SPHERE_TOLERANCE_M = 1.0
_SEGMENTS_MEASURED_MAX = 8
_FOOT_ANGLE = 0.02
"""How far the foot on the ellipsoid may be from that on the sphere, as a part of the distance."""
_FOOT_STEPS = 24
_FOOT_TOLERANCE_M = 1e-4
_GOLDEN = (math.sqrt(5) - 1) / 2
_NO_PLANE = 1e-14
_PAIR_STEPS_MAX = 4
_VERTEX_PAIRS_MAX = 10_000
_AREA_STEP = math.radians(15)

_GAUSS = (
    (0.1834346424956498, 0.3626837833783620),
    (0.5255324099163290, 0.3137066458778873),
    (0.7966664774136267, 0.2223810344533745),
    (0.9602898564975363, 0.1012285362903763),
)
_NODES = tuple((sign * place, weight) for place, weight in _GAUSS for sign in (-1, 1))
"""Places between -1 and 1 and their weights: the integral over eight of them is exact to the last digits here."""

_Vector = tuple[float, float, float]
UnitLine = tuple[Line, list[_Vector]]
_Estimate = tuple[float, Position, Position, Position]  # metres, from, start and end of the segment

_SEGMENT_STEPS = 4
_ARC_STEPS = 20
"""What a segment on the sphere and an arc on the ellipsoid take, in steps."""


def _unit(position: Position) -> _Vector:
    """The position on the sphere that the ellipsoid is when its polar axis is stretched."""
    longitude, latitude = math.radians(position[0]), math.radians(position[1])
    x, z = math.cos(latitude), (1 - _FLATTENING) * math.sin(latitude)
    length = math.hypot(x, z)
    return x * math.cos(longitude) / length, x * math.sin(longitude) / length, z / length


def _position(unit: _Vector) -> Position:
    """Longitude and latitude of a vector, whatever its length."""
    across = math.hypot(unit[0], unit[1]) * (1 - _FLATTENING)
    return math.degrees(math.atan2(unit[1], unit[0])), math.degrees(math.atan2(unit[2], across))


def _cross(a: _Vector, b: _Vector) -> _Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _dot(a: _Vector, b: _Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _along(start: _Vector, across: _Vector, angle: float) -> _Vector:
    """The place at an angle from a start towards what is at a right angle to it."""
    near, far = math.cos(angle), math.sin(angle)
    return (
        start[0] * near + across[0] * far,
        start[1] * near + across[1] * far,
        start[2] * near + across[2] * far,
    )


def _arc(start: _Vector, end: _Vector) -> tuple[_Vector, float]:
    """The direction from a start towards an end, at a right angle to the start, and the angle between both."""
    normal = _cross(start, end)
    length = math.sqrt(_dot(normal, normal))
    angle = math.atan2(length, _dot(start, end))
    if length < _NO_PLANE:
        # Opposite places have no plane of their own; the shortest way leads over a pole.
        normal, length = (start[1], -start[0], 0.0), math.hypot(start[0], start[1]) or 1.0
    x, y, z = _cross(normal, start)
    return (x / length, y / length, z / length), angle


def _arc_m(start: _Vector, end: _Vector) -> float:
    """Length of the great elliptic arc between two places."""
    across, angle = _arc(start, end)
    half = angle / 2
    total = 0.0
    for node, weight in _NODES:
        here = half * (1 + node)
        rise = across[2] * math.cos(here) - start[2] * math.sin(here)
        total += weight * math.sqrt(1 - _ECCENTRICITY_2 * rise * rise)
    return _EQUATOR_M * half * total


def point_distance_m(a: Position, b: Position) -> float:
    """Length of the great elliptic arc between two points."""
    return _arc_m(_unit(a), _unit(b))


def _sphere_distance_m(point: _Vector, start: _Vector, end: _Vector) -> float:
    """Distance from a point to an arc on the sphere."""
    normal = _cross(start, end)
    length = math.sqrt(_dot(normal, normal))
    if length > 1e-15 and _dot(_cross(normal, start), point) >= 0 and _dot(_cross(end, normal), point) >= 0:
        return _EQUATOR_M * math.asin(min(1.0, abs(_dot(point, normal)) / length))
    chord = min(math.dist(point, start), math.dist(point, end))
    return _EQUATOR_M * 2 * math.asin(min(1.0, chord / 2))


def _nearest_on_segment(point: Position, start: Position, end: Position) -> tuple[float, Position]:
    """Distance in metres from a point to an arc, and the position on it that is nearest."""
    place, first, last = _unit(point), _unit(start), _unit(end)
    best = min((_arc_m(place, first), start), (_arc_m(place, last), end))
    across, angle = _arc(first, last)
    foot = math.atan2(_dot(place, across), _dot(place, first))
    reach = _FOOT_ANGLE * best[0] / _POLE_M
    low, high = max(0.0, foot - reach), min(angle, foot + reach)
    if low >= high:
        return best

    def measure(at: float) -> tuple[float, float]:
        tick(_ARC_STEPS)
        return _arc_m(place, _along(first, across, at)), at

    # The golden section of the part of the arc where the foot is.
    left, right = measure(high - _GOLDEN * (high - low)), measure(low + _GOLDEN * (high - low))
    for _ in range(_FOOT_STEPS):
        if left[0] < right[0]:
            high, right = right[1], left
            left = measure(high - _GOLDEN * (high - low))
        else:
            low, left = left[1], right
            right = measure(low + _GOLDEN * (high - low))
    nearest_m, at = min(left, right)
    return min(best, (nearest_m, _position(_along(first, across, at))))


def _estimates(point: Position, lines: tuple[UnitLine, ...]) -> list[_Estimate]:
    """Distance on the sphere from a point to each segment of the lines."""
    centre = _unit(point)
    found: list[_Estimate] = []
    for line, units in lines:
        tick(_SEGMENT_STEPS * len(line))
        if len(line) == 1:
            found.append((_sphere_distance_m(centre, units[0], units[0]), point, line[0], line[0]))
        for at in range(len(line) - 1):
            estimate = _sphere_distance_m(centre, units[at], units[at + 1])
            found.append((estimate, point, line[at], line[at + 1]))
    return found


def _measured(estimates: list[_Estimate]) -> tuple[float, Position]:
    """The least distance to the segments that the sphere finds nearest, and the position on the segment."""
    near = heapq.nsmallest(_SEGMENTS_MEASURED_MAX, estimates)
    limit = near[0][0] * _SPHERE_TOLERANCE + _SPHERE_TOLERANCE_M
    return min(
        (point_distance_m(point, start), start) if start == end else _nearest_on_segment(point, start, end)
        for estimate, point, start, end in near
        if estimate <= limit
    )


def _with_units(lines: tuple[Line, ...]) -> tuple[UnitLine, ...]:
    return tuple((line, [_unit(position) for position in line]) for line in lines)


def nearest_on_lines(point: Position, lines: tuple[Line, ...]) -> tuple[float, Position]:
    """Distance in metres from a point to the nearest of the lines, and the position on it that is nearest."""
    return _measured(_estimates(point, _with_units(lines)))


def _vertex_distance_m(a: Geometry, b: Geometry) -> float:
    """Distance between lines that do not cross: at one of its ends the shortest way meets a vertex."""
    nearest: list[_Estimate] = []
    for vertices, others in ((a.lines, _with_units(b.lines)), (b.lines, _with_units(a.lines))):
        for line in vertices:
            nearest.extend(min(_estimates(vertex, others)) for vertex in line)
    return _measured(nearest)[0]


def _planar_start(a: Geometry, b: Geometry) -> Position:
    """The position on a's lines that is nearest to b in a plane scaled for the latitude between them."""
    bounds = (a.shape.bounds, b.shape.bounds)
    middle = sum(each.south + each.north for each in bounds) / 4
    squeeze = max(math.cos(math.radians(middle)), 0.01)
    flat = [[[(x * squeeze, y) for x, y in line] for line in geometry.lines] for geometry in (a, b)]
    turns = (
        [[(x + turn * squeeze, y) for x, y in line] for line in flat[1]] for turn in (0.0, 360.0, -360.0)
    )
    x, y = min(nearest(flat[0], lines) for lines in turns)[1]
    return x / squeeze, y


def distance_m(a: Geometry, b: Geometry) -> float:
    """Distance between two geometries that do not meet."""
    if b.kind == "Point":
        a, b = b, a
    if a.kind == "Point":
        if b.kind == "Point":
            return point_distance_m(a.lines[0][0], b.lines[0][0])
        return nearest_on_lines(a.lines[0][0], b.lines)[0]
    if sum(map(len, a.lines)) * sum(map(len, b.lines)) <= _VERTEX_PAIRS_MAX:
        return _vertex_distance_m(a, b)
    best_m, on_b = nearest_on_lines(_planar_start(a, b), b.lines)
    for _ in range(_PAIR_STEPS_MAX):
        nearer_m, on_a = nearest_on_lines(on_b, a.lines)
        nearer_m, on_b = min((nearer_m, on_b), nearest_on_lines(on_a, b.lines))
        if nearer_m >= best_m - _FOOT_TOLERANCE_M:
            return min(best_m, nearer_m)
        best_m = nearer_m
    return best_m


def _zone_m2(sine: float) -> float:
    """Area between the equator and the latitude of a sine, for a radian of longitude."""
    inner = _ECCENTRICITY * sine
    return _POLE_M**2 / 2 * (sine / (1 - inner * inner) + math.atanh(inner) / _ECCENTRICITY)


_HEMISPHERE_M2 = 2 * math.pi * _zone_m2(1.0)


def _below_m2(start: _Vector, end: _Vector, west: float, turn: float) -> float:
    """Area between an arc, which begins at a longitude and turns by an angle, and the equator."""
    normal = _cross(start, end)
    if abs(abs(turn) - math.pi) < 1e-12 or normal[2] == 0.0:
        return math.copysign(_zone_m2(1.0), start[2] + end[2]) * turn
    pieces = 1 + int(abs(turn) / _AREA_STEP)
    half = turn / pieces / 2
    total = 0.0
    for piece in range(pieces):
        tick(_ARC_STEPS)
        for node, weight in _NODES:
            here = west + half * (2 * piece + 1 + node)
            slope = -(normal[0] * math.cos(here) + normal[1] * math.sin(here)) / normal[2]
            total += weight * half * _zone_m2(slope / math.hypot(slope, 1 - _FLATTENING))
    return total


def _ring_area_m2(ring: Line, whole_globe: bool) -> float:
    """Area to the left of a ring when it may be most of the globe, otherwise the smaller side."""
    units = [_unit(position) for position in ring]
    around = below = 0.0
    for at in range(len(ring) - 1):
        turn = math.radians((ring[at + 1][0] - ring[at][0] + 540) % 360 - 180)
        around += turn
        if turn:
            below += _below_m2(units[at], units[at + 1], math.radians(ring[at][0]), turn)
    left = (_HEMISPHERE_M2 if abs(around) > math.pi else 0.0) - below
    left %= 2 * _HEMISPHERE_M2
    return left if whole_globe else min(left, 2 * _HEMISPHERE_M2 - left)


def area_m2(geometry: Geometry) -> float:
    """Area of all polygons without their holes; 0 for points and lines."""
    return sum(
        _ring_area_m2(outer, whole_globe=True) - sum(_ring_area_m2(hole, whole_globe=False) for hole in holes)
        for outer, *holes in geometry.rings_by_polygon
    )
