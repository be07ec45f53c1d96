"""Lengths and areas in the plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from pleiad.query.pace import worked
from pleiad.query.plane.bounds import Bounds, bounds_of
from pleiad.query.plane.exact import Position
from pleiad.query.plane.relate import boundary, intersects
from pleiad.query.plane.shapes import Area, Line, PointShape, Shape, signed_area

_RUN_POSITIONS = 16
"""How many segments of a line are compared with others by the box around them."""


def distance(a: Shape, b: Shape) -> float:
    """The distance between the nearest places of two shapes, 0 when they meet."""
    if intersects(a, b):
        return 0.0
    return nearest(_lines(a), _lines(b))[0]


def area_of(shape: Shape) -> float:
    """What an area covers, where polygons overlap once; 0 for points and lines."""
    if not isinstance(shape, Area):
        return 0.0
    if len(shape.polygons) == 1:
        return math.fsum(map(signed_area, shape.polygons[0].rings))
    x0, y0 = shape.polygons[0].rings[0][0]
    return (
        math.fsum(
            (float(x1) - x0) * (float(y2) - y0) - (float(x2) - x0) * (float(y1) - y0)
            for (x1, y1), (x2, y2), *_ in boundary(shape)
        )
        / 2
    )


def _lines(shape: Shape) -> list[Line]:
    if isinstance(shape, PointShape):
        return [[shape.position]]
    if isinstance(shape, Area):
        return [ring for polygon in shape.polygons for ring in polygon.rings]
    return [shape.positions]


def nearest(a: Sequence[Line], b: Sequence[Line]) -> tuple[float, Position]:
    """The distance between lines that do not cross, and the nearest position on the first ones."""
    runs = sorted(
        (
            (_gap(one_bounds, two_bounds), one, two)
            for one, one_bounds in _runs(a)
            for two, two_bounds in _runs(b)
        ),
        key=lambda run: run[0],
    )
    worked(len(runs))
    best = (math.inf, a[0][0])
    for gap, one, two in runs:
        if gap > best[0]:
            break
        for place in one:
            worked(len(two))
            best = min(best, *((math.dist(place, _foot(place, *ends)), place) for ends in _segments(two)))
        for place in two:
            worked(len(one))
            feet = [_foot(place, *ends) for ends in _segments(one)]
            best = min(best, *((math.dist(place, foot), foot) for foot in feet))
    return best


def _runs(lines: Sequence[Line]) -> list[tuple[Line, Bounds]]:
    runs = [
        line[at : at + _RUN_POSITIONS + 1]
        for line in lines
        for at in range(0, max(1, len(line) - 1), _RUN_POSITIONS)
    ]
    return [(run, bounds_of(run)) for run in runs]


def _segments(line: Line) -> list[tuple[Position, Position]]:
    return list(pairwise(line)) or [(line[0], line[0])]


def _gap(a: Bounds, b: Bounds) -> float:
    """How far apart two boxes are."""
    return math.hypot(
        max(0.0, a.west - b.east, b.west - a.east), max(0.0, a.south - b.north, b.south - a.north)
    )


def _foot(place: Position, start: Position, end: Position) -> Position:
    """The position on a segment that is nearest to a place."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = dx * dx + dy * dy
    if length == 0.0:
        return start
    part = ((place[0] - start[0]) * dx + (place[1] - start[1]) * dy) / length
    if part <= 0.0:
        return start
    return end if part >= 1.0 else (start[0] + part * dx, start[1] + part * dy)
