"""Spatial functions over GeoJSON: metres and square metres on WGS 84, or plain units when the container is
planar.

A container is planar when its geospatialConfig says Geometry; the context tells. What is no valid geometry
makes the result undefined, except for the two functions that ask about validity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pleiad.query.context import QueryContext
from pleiad.query.functions import geodesy, geojson
from pleiad.query.functions.geojson import Geometry, InvalidGeometry
from pleiad.query.functions.registry import register
from pleiad.query.plane import measure, relate
from pleiad.query.plane.shapes import Shape
from pleiad.values.undefined import UNDEFINED

_FAMILY = "spatial"


def _turns(a: Geometry, b: Geometry, planar: bool) -> Iterator[Shape]:
    """Shape of b, and the same one turn of the globe to the east and west where a may lie."""
    yield b.shape
    if planar:
        return
    for turn in (360.0, -360.0):
        west, _, east, _ = b.shape.bounds
        if west + turn <= a.shape.bounds.east and east + turn >= a.shape.bounds.west:
            yield b.shape.moved(turn)


def intersects(a: Geometry, b: Geometry, planar: bool) -> bool:
    """True when the geometries share a point; touching is enough."""
    if a.complement and b.complement:
        return True
    if a.complement:
        a, b = b, a
    if b.complement:
        return not any(relate.is_inside(a.shape, shape) for shape in _turns(a, b, planar))
    return any(relate.intersects(a.shape, shape) for shape in _turns(a, b, planar))


def within(a: Geometry, b: Geometry, planar: bool) -> bool:
    """True when a lies in b; a point on the boundary does not."""
    if a.complement and b.complement:
        return any(relate.within(shape, a.shape) for shape in _turns(a, b, planar))
    if a.complement:
        return False
    if b.complement:
        return not any(relate.intersects(a.shape, shape) for shape in _turns(a, b, planar))
    return any(relate.within(a.shape, shape) for shape in _turns(a, b, planar))


def distance(a: Geometry, b: Geometry, planar: bool) -> Any:
    """Distance between the nearest points of two geometries, 0 when they meet."""
    if planar:
        return measure.distance(a.shape, b.shape)
    return 0.0 if intersects(a, b, planar) else geodesy.distance_m(a, b)


def _of_pair(compute: Callable[[Geometry, Geometry, bool], Any]) -> Callable[..., Any]:
    def call(context: QueryContext, left: Any, right: Any) -> Any:
        planar = context.is_planar
        try:
            return compute(geojson.parse(left, planar), geojson.parse(right, planar), planar)
        except InvalidGeometry:
            return UNDEFINED

    return call


register(_FAMILY, "ST_DISTANCE", 2, 2, needs_context=True)(_of_pair(distance))
register(_FAMILY, "ST_WITHIN", 2, 2, needs_context=True)(_of_pair(within))
register(_FAMILY, "ST_INTERSECTS", 2, 2, needs_context=True)(_of_pair(intersects))


@register(_FAMILY, "ST_AREA", 1, 1, needs_context=True)
def area(context: QueryContext, value: Any) -> Any:
    planar = context.is_planar
    problem, geometry = _read(value, planar)
    if problem is not None or geometry is None:
        return UNDEFINED
    return measure.area_of(geometry.shape) if planar else geodesy.area_m2(geometry)


def _read(value: Any, planar: bool) -> tuple[str | None, Geometry | None]:
    """What is wrong with the value, or its geometry."""
    try:
        return None, geojson.parse(value, planar)
    except InvalidGeometry as invalid:
        return str(invalid), None


@register(_FAMILY, "ST_ISVALID", 1, 1, needs_context=True)
def is_valid(context: QueryContext, value: Any) -> Any:
    return _read(value, context.is_planar)[0] is None


@register(_FAMILY, "ST_ISVALIDDETAILED", 1, 1, needs_context=True)
def is_valid_detailed(context: QueryContext, value: Any) -> Any:
    problem, _ = _read(value, context.is_planar)
    return {"valid": True} if problem is None else {"valid": False, "reason": problem}
