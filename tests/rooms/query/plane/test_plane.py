"""Plane geometry: random shapes, and what GEOS says of them through shapely."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st

from pleiad.query.plane import measure, relate
from pleiad.query.plane.exact import meeting, side
from pleiad.query.plane.shapes import Area, PointShape, Polygon, Shape, line_shape
from pleiad.query.plane.soundness import flaw

Position = tuple[float, float]
Pair = tuple[Any, Shape]
"""A shape as shapely knows it, and ours."""

GRID = st.integers(0, 6).map(float)
ANYWHERE = st.integers(-6 << 20, 6 << 20).map(lambda parts: parts / (1 << 20))
"""So fine that hardly anything lies on a line, and so coarse that GEOS, which rounds, rounds nothing."""


def positions(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Position]:
    return st.tuples(numbers, numbers)


@st.composite
def rings(draw: st.DrawFn, numbers: st.SearchStrategy[float]) -> list[Position]:
    """A ring around the middle of some positions, or through them in any order, which often is none."""
    found = draw(st.lists(positions(numbers), min_size=3, max_size=7))
    if draw(st.booleans()):
        x, y = (math.fsum(values) / len(found) for values in zip(*found, strict=True))
        found.sort(key=lambda position: math.atan2(position[1] - y, position[0] - x))
    return [*found, found[0]]


def box(west: float, south: float, width: float, height: float) -> list[Position]:
    east, north = west + width, south + height
    return [(west, south), (east, south), (east, north), (west, north), (west, south)]


BOXES = st.builds(box, GRID, GRID, st.integers(1, 4).map(float), st.integers(1, 4).map(float))


@st.composite
def polygons(draw: st.DrawFn) -> Pair:
    rings_of_it = [draw(rings(draw(st.sampled_from([GRID, ANYWHERE]))))]
    if draw(st.booleans()):
        rings_of_it = [box(-9, -9, 18, 18), *rings_of_it]
    assume(flaw(rings_of_it) is None)
    return shapely.Polygon(rings_of_it[0], rings_of_it[1:]), Area((Polygon.of_rings(rings_of_it),))


@st.composite
def sums(draw: st.DrawFn) -> Pair:
    """Some boxes together: their corners are whole numbers, so that GEOS rounds nothing."""
    boxes = draw(st.lists(BOXES, min_size=1, max_size=4))
    return shapely.union_all([shapely.Polygon(each) for each in boxes]), Area(
        tuple(Polygon.of_rings([each]) for each in boxes)
    )


@st.composite
def rests(draw: st.DrawFn) -> Pair:
    """What some boxes have in common, without others."""
    common, others = (
        draw(st.lists(BOXES, min_size=size, max_size=2)) for size in (1, draw(st.integers(0, 1)))
    )
    rest = shapely.intersection_all([shapely.Polygon(each) for each in common])
    rest = rest.difference(shapely.union_all([shapely.Polygon(each) for each in others]))
    # What is thinner than an area is nothing for us: the closure of an open set.
    assume(rest.area > 0 and rest.geom_type in ("Polygon", "MultiPolygon"))
    made = [tuple(Polygon.of_rings([each]) for each in boxes) for boxes in (others, common)]
    return rest, Area(*made)


POINTS = positions(GRID).map(lambda position: (shapely.Point(position), PointShape(position)))
LINES = st.lists(positions(GRID), min_size=2, max_size=5, unique=True).map(
    lambda line: (shapely.LineString(line), line_shape(line))
)
SHAPES = st.one_of(POINTS, LINES, polygons(), sums(), rests())


@given(st.lists(st.one_of(rings(GRID), rings(ANYWHERE), BOXES), min_size=1, max_size=3))
def test_a_polygon_is_sound_when_geos_says_so(rings_of_it: list[list[Position]]) -> None:
    if len(rings_of_it) > 1:
        rings_of_it = [box(-7, -7, 16, 16), *rings_of_it]
    polygon = shapely.Polygon(rings_of_it[0], rings_of_it[1:])
    assert (flaw(rings_of_it) is None) == polygon.is_valid, shapely.is_valid_reason(polygon)


@pytest.mark.parametrize(
    ("rings_of_it", "what"),
    [
        ([[(0, 0), (2, 2), (2, 0), (0, 2), (0, 0)]], "Self-intersection[1 1]"),
        ([[(0, 0), (4, 0), (4, 4), (2, 0), (0, 4), (0, 0)]], "Ring Self-intersection[2 0]"),
        ([[(0, 0), (4, 0), (4, 4), (4, 5), (4, 3), (0, 0)]], "Self-intersection[4 5]"),
        ([[(0, 0), (0, 0), (1, 1), (0, 0)]], "Too few points in geometry component[0 0]"),
        ([box(0, 0, 2, 2), box(5, 5, 1, 1)], "Hole lies outside shell[5 5]"),
        ([box(0, 0, 9, 9), box(1, 1, 6, 6), box(2, 2, 1, 1)], "Holes are nested[2 2]"),
        ([box(0, 0, 9, 9), box(1, 1, 3, 3), box(2, 2, 3, 3)], "Self-intersection"),
        ([box(0, 0, 4, 4), [(0, 2), (2, 4), (4, 2), (2, 0), (0, 2)]], "Interior is disconnected"),
        ([box(0, 0, 4, 4), [(0, 2), (2, 3), (2, 1), (0, 2)]], None),
        ([box(0, 0, 9, 9), [(1, 1), (4, 4), (1, 4), (1, 1)], [(4, 4), (7, 7), (7, 4), (4, 4)]], None),
    ],
)
def test_what_is_wrong_with_a_polygon_is_said_with_its_place(
    rings_of_it: list[list[Position]], what: str | None
) -> None:
    found = flaw([[(float(x), float(y)) for x, y in ring] for ring in rings_of_it])
    assert found is None if what is None else found is not None and found.startswith(what)


@given(SHAPES, SHAPES)
def test_shapes_share_places_where_geos_finds_some(one: Pair, other: Pair) -> None:
    assert relate.intersects(one[1], other[1]) == one[0].intersects(other[0])
    assert relate.intersects(other[1], one[1]) == one[0].intersects(other[0])


@given(SHAPES, SHAPES)
def test_a_shape_lies_in_another_where_geos_finds_it(one: Pair, other: Pair) -> None:
    assert relate.within(one[1], other[1]) == one[0].within(other[0])


@given(SHAPES, st.one_of(polygons(), sums(), rests()))
def test_a_shape_keeps_off_an_edge_where_geos_finds_it(one: Pair, other: Pair) -> None:
    assert relate.is_inside(one[1], other[1]) == bool(shapely.contains_properly(other[0], one[0]))


@given(st.one_of(POINTS, LINES, polygons(), sums()), st.one_of(POINTS, LINES, polygons(), sums()))
def test_distances_and_areas_are_those_of_geos(one: Pair, other: Pair) -> None:
    assert measure.distance(one[1], other[1]) == pytest.approx(
        one[0].distance(other[0]), rel=1e-12, abs=1e-12
    )
    assert measure.area_of(one[1]) == pytest.approx(one[0].area, rel=1e-12)


def comb(teeth: int, west: float = 0.0) -> list[Position]:
    """A ring of many edges."""
    upper = [(west + at / 2, 5.0 if at % 2 else 1.0) for at in range(2 * teeth)]
    return [*upper, (west + teeth, 0.0), (west, 0.0), upper[0]]


def test_shapes_of_many_edges_are_found_as_geos_finds_them() -> None:
    ours = [Area((Polygon.of_rings([comb(60, west)]),)) for west in (0.0, 0.25, 500.0)]
    theirs = [shapely.Polygon(comb(60, west)) for west in (0.0, 0.25, 500.0)]
    assert all(flaw([comb(60, west)]) is None for west in (0.0, 0.25))
    for one in range(3):
        for other in range(3):
            assert relate.intersects(ours[one], ours[other]) == theirs[one].intersects(theirs[other])
            assert relate.within(ours[one], ours[other]) == theirs[one].within(theirs[other])
            assert measure.distance(ours[one], ours[other]) == pytest.approx(
                theirs[one].distance(theirs[other])
            )
    assert measure.area_of(Area((*ours[0].polygons, *ours[1].polygons))) == pytest.approx(
        shapely.union_all(theirs[:2]).area, rel=1e-12
    )


NEAR = st.integers(0, 40).map(lambda steps: 0.5 + steps * 2.0**-53)


@given(positions(NEAR))
def test_places_that_rounding_would_mistake_have_one_side(place: Position) -> None:
    # The classic trap: on which side of the diagonal from 12 to 24 places near 0.5 lie.
    found = side((12.0, 12.0), (24.0, 24.0), place)
    assert found == (place[1] > place[0]) - (place[1] < place[0])


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_no_number_is_too_small_or_too_large(scale: float) -> None:
    square = [(x * scale, y * scale) for x, y in box(1, 1, 3, 3)]
    assert flaw([square]) is None
    area = Area((Polygon.of_rings([square]),))
    assert relate.within(PointShape((2 * scale, 2 * scale)), area)
    assert not relate.intersects(PointShape((5 * scale, 2 * scale)), area)
    assert meeting((0.0, 0.0), (4 * scale, 4 * scale), (0.0, 2 * scale), (2 * scale, 0.0)) == (
        (scale, scale),
    )


def seam(*boxes: Sequence[Position]) -> Area:
    return Area(tuple(Polygon.of_rings([each]) for each in boxes))


def test_a_seam_between_two_polygons_is_no_edge_of_both_together() -> None:
    both = seam(box(0, 0, 2, 2), box(2, 0, 2, 2))
    assert relate.within(PointShape((2.0, 1.0)), both)
    assert relate.is_inside(PointShape((2.0, 1.0)), both)
    assert not relate.within(PointShape((2.0, 2.0)), both)
    assert relate.within(line_shape([(2.0, 0.0), (2.0, 2.0)]), both)
    around = seam(box(0, 0, 2, 2), box(2, 0, 2, 2), box(0, 2, 2, 2), box(2, 2, 2, 2))
    assert relate.is_inside(PointShape((2.0, 2.0)), around)


def test_a_line_of_no_length_is_a_point() -> None:
    dot = line_shape([(1.0, 1.0), (1.0, 1.0)])
    assert relate.intersects(dot, line_shape([(1.0, 1.0), (1.0, 2.0)]))
    assert relate.within(dot, seam(box(0, 0, 2, 2)))
    assert measure.distance(dot, PointShape((1.0, 4.0))) == 3


def test_a_hole_that_touches_the_edge_leaves_the_polygon_within_its_outer_ring() -> None:
    holed = Area((Polygon.of_rings([box(0, 0, 6, 6), [(0, 3), (2, 3), (4, 2), (5, 5), (0, 3)]]),))
    assert relate.within(holed, seam(box(0, 0, 6, 6)))
