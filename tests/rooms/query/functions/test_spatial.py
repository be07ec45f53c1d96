"""Spatial functions."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from pleiad.query import QueryContext
from pleiad.query.functions import REGISTRY
from pleiad.values.undefined import UNDEFINED

U = UNDEFINED
Call = Callable[..., Any]


def point(longitude: float, latitude: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [longitude, latitude]}


def line(*positions: tuple[float, float]) -> dict[str, Any]:
    return {"type": "LineString", "coordinates": [list(position) for position in positions]}


def ring(west: float, south: float, east: float, north: float) -> list[list[float]]:
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def box(west: float, south: float, east: float, north: float, *holes: list[list[float]]) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [ring(west, south, east, north), *holes]}


def clockwise_box(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [ring(west, south, east, north)[::-1]]}


@pytest.mark.parametrize(
    ("a", "b", "metres"),
    [
        (point(0, 0), point(1, 0), 111319.4908),
        (point(0, 0), point(0, 1), 110574.3886),
        (point(179.5, 0), point(-179.5, 0), 111319.4908),
        (point(5, 5), point(5, 5), 0),
        (point(0, 1), line((-1, 0), (1, 0)), 110574.3886),
        (line((-1, 0), (1, 0)), point(3, 0), 222638.9816),
        (point(0.5, 0.5), box(0, 0, 1, 1), 0),
        (point(0.5, -1), box(0, 0, 1, 1), 110574.3886),
        (box(0, 0, 1, 1), box(2, 0, 3, 1), 111302.6493),
        (box(0, 0, 1, 1), box(0.5, 0.5, 3, 1), 0),
        (box(178, 0, 179, 1), point(-180, 0.5), 111315.2800),
        (point(0.5, 0.5), clockwise_box(0, 0, 1, 1), 55287.1520),
        (point(5, 5), clockwise_box(0, 0, 1, 1), 0),
    ],
)
def test_distance_is_measured_on_the_ellipsoid(a: Any, b: Any, metres: float, call: Call) -> None:
    assert call("ST_DISTANCE", a, b) == pytest.approx(metres, rel=1e-8)
    assert call("ST_DISTANCE", b, a) == pytest.approx(call("ST_DISTANCE", a, b), rel=1e-9)


def on_the_arc(start: tuple[float, float], end: tuple[float, float], part: float) -> tuple[float, float]:
    """A place on the great elliptic arc between two: it lies in their plane with the centre of the Earth."""

    def centred(longitude: float, latitude: float) -> tuple[float, float, float]:
        east, north = math.radians(longitude), math.radians(latitude)
        flat = (1 - 1 / 298.257223563) ** 2
        down = 1 / math.sqrt(math.cos(north) ** 2 + flat * math.sin(north) ** 2)
        across = math.cos(north) * down
        return across * math.cos(east), across * math.sin(east), flat * math.sin(north) * down

    x, y, z = (a * (1 - part) + b * part for a, b in zip(centred(*start), centred(*end), strict=True))
    flat = (1 - 1 / 298.257223563) ** 2
    return math.degrees(math.atan2(y, x)), math.degrees(math.atan2(z, flat * math.hypot(x, y)))


@pytest.mark.parametrize(
    ("text", "metres"),
    [
        ("[44.245, 43.522] [106.27, 79.641]", 4724965.828471268),
        ("[86.363, 76.018] [-169.558, -6.188]", 11044012.554427791),
        ("[42.283, -67.194] [-179.361, 66.853]", 18227342.862864718),
        ("[-104.596, -45.523] [-104.114, -45.151]", 56005.729237747495),
    ],
)
def test_distance_is_that_of_the_service_along_great_elliptic_arcs(
    text: str, metres: float, call: Call
) -> None:
    one, two = (json.loads(f"[{each.strip('[]')}]") for each in text.split("] ["))
    assert call("ST_DISTANCE", point(*one), point(*two)) == pytest.approx(metres, rel=3e-9)


@pytest.mark.parametrize(
    ("positions", "square_metres"),
    [
        ([(0, 0), (1, 0), (1, 1), (0, 1)], 12308776255.868843),
        ([(0, 0), (10, 0), (10, 10), (0, 10)], 1227857363514.956),
        ([(10, 50), (11, 50), (11, 51), (10, 51)], 7892062645.89801),
        ([(0, 0), (0, 1), (1, 1), (1, 0)], 510053312934740.56),
        ([(3, 20), (50, -30), (70, 60)], 32606861708950.406),
    ],
)
def test_area_is_that_of_the_service(
    positions: list[tuple[float, float]], square_metres: float, call: Call
) -> None:
    outline = [list(position) for position in [*positions, positions[0]]]
    found = call("ST_AREA", {"type": "Polygon", "coordinates": [outline]})
    assert found == pytest.approx(square_metres, rel=3e-9)


def test_the_way_to_the_other_side_of_the_globe_leads_over_a_pole(call: Call) -> None:
    half = 20_003_931.458
    assert call("ST_DISTANCE", point(0, 0), point(180, 0)) == pytest.approx(half, rel=1e-9)
    assert call("ST_DISTANCE", point(10, 90), point(20, -90)) == pytest.approx(half, rel=1e-9)
    assert call("ST_DISTANCE", point(10, 90), point(50, 90)) == pytest.approx(0, abs=1e-6)


def test_distance_to_a_line_is_the_least_distance_to_any_place_on_it(call: Call) -> None:
    places = random.Random(5)
    for _ in range(8):
        (x, y), (west, south) = ((places.uniform(-170, 170), places.uniform(-80, 80)) for _ in range(2))
        east, north = min(180.0, west + places.uniform(0, 60)), min(89.0, south + places.uniform(0, 40))
        places_on_it = [on_the_arc((west, south), (east, north), step / 400) for step in range(401)]
        sampled = min(call("ST_DISTANCE", point(x, y), point(*place)) for place in places_on_it)
        found = call("ST_DISTANCE", point(x, y), line((west, south), (east, north)))
        assert sampled * (1 - 1e-3) <= found <= sampled * (1 + 1e-12)


def test_distance_to_a_long_line_is_to_its_arc_not_to_its_parallel(call: Call) -> None:
    # The arc between two points of the 40th parallel bulges towards the pole.
    assert call("ST_DISTANCE", point(0, 50), line((-30, 40), (30, 40))) < 700_000
    assert call("ST_DISTANCE", point(0, 50), point(0, 40)) > 1_100_000


def test_distance_to_a_shape_of_many_vertices_is_the_distance_to_its_nearest(call: Call) -> None:
    edge = [[step / 50, 0.0] for step in range(1000)]
    outline = [*edge, [19.98, 5.0], [0.0, 5.0], [0.0, 0.0]]
    comb = {"type": "Polygon", "coordinates": [outline]}
    other = {"type": "Polygon", "coordinates": [[[x, y - 10] for x, y in outline]]}
    assert call("ST_DISTANCE", point(10, -1), comb) == pytest.approx(110574.39, rel=1e-6)
    assert call("ST_DISTANCE", comb, other) == pytest.approx(552885.45, rel=1e-4)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (point(0.5, 0.5), box(0, 0, 1, 1), True),
        (point(0, 0.5), box(0, 0, 1, 1), False),
        (point(2, 0.5), box(0, 0, 1, 1), False),
        (point(0.5, 0.5), box(0, 0, 1, 1, ring(0.4, 0.4, 0.6, 0.6)[::-1]), False),
        (point(-179.5, 0.5), box(179, 0, -179, 1), True),
        (point(0.5, 0.5), clockwise_box(0, 0, 1, 1), False),
        (point(2, 0.5), clockwise_box(0, 0, 1, 1), True),
        (clockwise_box(0, 0, 2, 2), clockwise_box(0, 0, 1, 1), True),
        (clockwise_box(0, 0, 2, 2), box(0, 0, 1, 1), False),
        (box(0, 0, 1, 1), box(-1, -1, 2, 2), True),
        (line((0, 0), (1, 1)), box(-1, -1, 2, 2), True),
        (line((0, 0), (5, 5)), box(-1, -1, 2, 2), False),
        (
            point(10.5, 0.5),
            {"type": "MultiPolygon", "coordinates": [[ring(0, 0, 1, 1)], [ring(10, 0, 11, 1)]]},
            True,
        ),
    ],
)
def test_within(a: Any, b: Any, expected: bool, call: Call) -> None:
    assert call("ST_WITHIN", a, b) is expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (box(0, 0, 1, 1), box(1, 0, 2, 1), True),
        (box(0, 0, 1, 1), box(2, 0, 3, 1), False),
        (point(0, 0.5), box(0, 0, 1, 1), True),
        (line((-1, 0.5), (2, 0.5)), box(0, 0, 1, 1), True),
        (box(179, 0, -179, 1), point(-179.5, 0.5), True),
        (box(0.2, 0.2, 0.4, 0.4), clockwise_box(0, 0, 1, 1), False),
        (clockwise_box(0, 0, 1, 1), box(0.5, 0.5, 2, 2), True),
        (clockwise_box(0, 0, 1, 1), clockwise_box(5, 5, 6, 6), True),
    ],
)
def test_intersects(a: Any, b: Any, expected: bool, call: Call) -> None:
    assert call("ST_INTERSECTS", a, b) is expected


def test_area_is_in_square_metres_and_that_of_a_clockwise_ring_is_the_rest_of_the_globe(call: Call) -> None:
    area = call("ST_AREA", box(31.8, -5, 32, -4.7))
    assert area == pytest.approx(7.3597e8, rel=1e-4)
    assert call("ST_AREA", clockwise_box(31.8, -5, 32, -4.7)) == pytest.approx(
        5.100656217e14 - area, rel=1e-6
    )
    holed = box(0, 0, 1, 1, ring(0.25, 0.25, 0.75, 0.75)[::-1])
    assert call("ST_AREA", holed) == pytest.approx(call("ST_AREA", box(0, 0, 1, 1)) * 0.75, rel=1e-4)
    assert call("ST_AREA", point(0, 0)) == 0
    assert call("ST_AREA", line((0, 0), (1, 1))) == 0


INVALID: list[Any] = [
    None,
    5,
    "Point",
    [],
    {},
    {"type": "Point"},
    {"type": "Circle", "coordinates": [0, 0]},
    {"type": "Point", "coordinates": [0]},
    {"type": "Point", "coordinates": ["0", "0"]},
    {"type": "Point", "coordinates": [True, False]},
    {"type": "Point", "coordinates": [float("nan"), 0]},
    point(0, 91),
    point(181, 0),
    {"type": "LineString", "coordinates": [[0, 0]]},
    {"type": "Polygon", "coordinates": []},
    {"type": "Polygon", "coordinates": [[]]},
    {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1]]]},
    {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]},
    {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 0]]]},
    {"type": "MultiPolygon", "coordinates": []},
    {"type": "MultiPolygon", "coordinates": [5]},
    {"type": "LineString", "coordinates": [[0, 0]] * 5000},
]


@pytest.mark.parametrize("value", INVALID)
def test_an_invalid_geometry_is_told_with_a_reason_and_computes_to_undefined(value: Any, call: Call) -> None:
    detailed = call("ST_ISVALIDDETAILED", value)
    assert detailed["valid"] is False
    assert detailed["reason"]
    assert call("ST_ISVALID", value) is False
    for name in ("ST_DISTANCE", "ST_WITHIN", "ST_INTERSECTS"):
        assert call(name, value, point(0, 0)) is U
        assert call(name, point(0, 0), value) is U
    assert call("ST_AREA", value) is U


def test_the_reason_for_a_bad_latitude_is_the_documented_sentence(call: Call) -> None:
    assert call("ST_ISVALIDDETAILED", point(133.7, -184.3)) == {
        "valid": False,
        "reason": "Latitude values must be between -90 and 90 degrees.",
    }
    assert call("ST_ISVALIDDETAILED", point(-84.3, 33.7)) == {"valid": True}


def test_undefined_is_no_valid_geometry(call: Call) -> None:
    assert call("ST_ISVALID", U) is False
    assert call("ST_ISVALIDDETAILED", U) == {"valid": False, "reason": "Unable to process the geometry."}


def test_a_planar_container_measures_in_plain_units() -> None:
    planar = QueryContext(is_planar=True)

    def call(name: str, *arguments: Any) -> Any:
        return REGISTRY[name].call(planar, *arguments)

    assert call("ST_DISTANCE", point(0, 0), point(300, 400)) == 500
    assert call("ST_AREA", clockwise_box(0, 0, 200, 100)) == 20000
    assert call("ST_WITHIN", point(50, 50), clockwise_box(0, 0, 200, 100)) is True
    assert call("ST_ISVALID", point(1000, 1000)) is True


def test_a_long_line_on_the_globe_is_an_arc(call: Call) -> None:
    wide = box(-60, 20, 70, 70)
    north_of_the_parallel = {"type": "LineString", "coordinates": [[0, 0], [0, 40]]}
    assert call("ST_WITHIN", point(0, 40), wide) is False
    assert call("ST_WITHIN", point(0, 42), wide) is True
    assert call("ST_INTERSECTS", north_of_the_parallel, wide) is False
    planar = QueryContext(is_planar=True)
    assert REGISTRY["ST_WITHIN"].call(planar, point(0, 40), wide) is True
