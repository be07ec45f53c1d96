"""Distances and areas on the WGS 84 ellipsoid.

Between two points the distance is the geodesic. Between a point and a line it is found on the geodesic of
the nearest segments, which a sphere picks out first: a sphere is at most 0.6 % wrong, so segments that near
to the best one are measured exactly. Between two lines or areas every vertex is such a point. With very
many vertices the nearest pair in a locally scaled plane is the start instead, and each end is then moved to
the point nearest to the other.
"""

from __future__ import annotations

import heapq
import math
from typing import Any

from pleiad.query.functions.geojson import Geometry, Line, Position
from pleiad.query.pace import tick

_RADIUS_M = 6_371_008.8
_SPHERE_TOLERANCE = 1.012
_SPHERE_TOLERANCE_M = 1.0
_SEGMENTS_MEASURED_MAX = 8
_FOOT_STEPS_MAX = 16
_FOOT_TOLERANCE_M = 1e-4
_PAIR_STEPS_MAX = 4
_VERTEX_PAIRS_MAX = 10_000

_Vector = tuple[float, float, float]
UnitLine = tuple[Line, list[_Vector]]
_Estimate = tuple[float, Position, Position, Position]  # metres, from, start and end of the segment

_SEGMENT_STEPS = 4
_GEODESIC_STEPS = 100
"""What a segment on the sphere and a geodesic on the ellipsoid take, in steps."""


def _ellipsoid() -> Any:
    from geographiclib.geodesic import Geodesic  # loaded by the first distance that is asked for

    return Geodesic.WGS84


def point_distance_m(a: Position, b: Position) -> float:
    """Length of the geodesic between two points."""
    return float(_ellipsoid().Inverse(a[1], a[0], b[1], b[0])["s12"])


def _unit(position: Position) -> _Vector:
    longitude, latitude = math.radians(position[0]), math.radians(position[1])
    return (
        math.cos(latitude) * math.cos(longitude),
        math.cos(latitude) * math.sin(longitude),
        math.sin(latitude),
    )


def _cross(a: _Vector, b: _Vector) -> _Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _dot(a: _Vector, b: _Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _sphere_distance_m(point: _Vector, start: _Vector, end: _Vector) -> float:
    """Distance from a point to an arc on the sphere."""
    normal = _cross(start, end)
    length = math.sqrt(_dot(normal, normal))
    if length > 1e-15 and _dot(_cross(normal, start), point) >= 0 and _dot(_cross(end, normal), point) >= 0:
        return _RADIUS_M * math.asin(min(1.0, abs(_dot(point, normal)) / length))
    chord = min(math.dist(point, start), math.dist(point, end))
    return _RADIUS_M * 2 * math.asin(min(1.0, chord / 2))


def _nearest_on_segment(point: Position, start: Position, end: Position) -> tuple[float, Position]:
    """Distance in metres from a point to a geodesic segment, and the position on it that is nearest."""
    ellipsoid = _ellipsoid()
    line = ellipsoid.InverseLine(start[1], start[0], end[1], end[0])
    length_m = line.s13
    at_m = length_m / 2
    best: tuple[float, Position] = (point_distance_m(point, start), start)
    end_distance = point_distance_m(point, end)
    if end_distance < best[0]:
        best = (end_distance, end)
    for _ in range(_FOOT_STEPS_MAX):
        tick(_GEODESIC_STEPS)
        here = line.Position(at_m)
        towards = ellipsoid.Inverse(here["lat2"], here["lon2"], point[1], point[0])
        distance_m = towards["s12"]
        if distance_m < best[0]:
            best = (distance_m, (here["lon2"], here["lat2"]))
        angle = distance_m / _RADIUS_M
        turn = math.radians(towards["azi1"] - here["azi2"])
        # The foot of a right-angled triangle on the sphere; repeated, it converges on the ellipsoid's.
        step_m = _RADIUS_M * math.atan2(math.sin(angle) * math.cos(turn), math.cos(angle))
        moved_m = min(max(at_m + step_m, 0.0), length_m)
        if abs(moved_m - at_m) < _FOOT_TOLERANCE_M:
            break
        at_m = moved_m
    return best


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
    import shapely
    from shapely.affinity import scale, translate

    bounds = (*a.shape.bounds, *b.shape.bounds)
    middle = (bounds[1] + bounds[3] + bounds[5] + bounds[7]) / 4
    squeeze = max(math.cos(math.radians(middle)), 0.01)
    flat = [
        scale(shapely.MultiLineString(geometry.lines), xfact=squeeze, yfact=1.0, origin=(0, 0))
        for geometry in (a, b)
    ]
    turns = [translate(flat[1], xoff=turn * squeeze) for turn in (0.0, 360.0, -360.0)]
    nearest = min(turns, key=flat[0].distance)
    x, y = shapely.shortest_line(flat[0], nearest).coords[0]
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


def _ring_area_m2(ring: Line, whole_globe: bool) -> float:
    """Area to the left of a ring when it may be most of the globe, otherwise the smaller side."""
    polygon = _ellipsoid().Polygon()
    for longitude, latitude in ring[:-1]:
        tick(_GEODESIC_STEPS)
        polygon.AddPoint(latitude, longitude)
    return float(abs(polygon.Compute(False, not whole_globe)[2]))


def area_m2(geometry: Geometry) -> float:
    """Area of all polygons without their holes; 0 for points and lines."""
    return sum(
        _ring_area_m2(outer, whole_globe=True) - sum(_ring_area_m2(hole, whole_globe=False) for hole in holes)
        for outer, *holes in geometry.rings_by_polygon
    )
