"""Sides of lines and meetings of segments, without rounding."""

from __future__ import annotations

from fractions import Fraction

Number = float | Fraction
Place = tuple[Number, Number]
Position = tuple[float, float]

_SIDE_ERROR = 4e-16
"""What the sum of two products of differences may be wrong by, as a part of their sizes."""


def side(start: Place, end: Place, place: Place) -> int:
    """On which side of the line from a start to an end a place lies: 1 left, -1 right, 0 on it."""
    (x1, y1), (x2, y2), (x, y) = start, end, place
    # Only here are fractions rounded: what they may be wrong by is in the error.
    ax, ay, bx, by, cx, cy = float(x1), float(y1), float(x2), float(y2), float(x), float(y)
    dx, dy, ex, ey = bx - ax, by - ay, cx - ax, cy - ay
    one, two = dx * ey, dy * ex
    # Products that overflow or are too small to be told from nothing fall through as well.
    error = _SIDE_ERROR * (abs(one) + abs(two)) + 1e-290
    if type(x) is not float or type(x1) is not float or type(x2) is not float:
        sizes = max(abs(ax), abs(ay), abs(bx), abs(by), abs(cx), abs(cy))
        error += _SIDE_ERROR * sizes * (abs(dx) + abs(dy) + abs(ex) + abs(ey) + sizes * _SIDE_ERROR)
    if one - two > error:
        return 1
    if two - one > error:
        return -1
    # Ends, and lines along an axis, are common, and need no fractions.
    if place in (start, end) or (x == x1 == x2) or (y == y1 == y2):
        return 0
    return _exact_side(start, end, place)


def _exact_side(start: Place, end: Place, place: Place) -> int:
    x1, y1 = Fraction(start[0]), Fraction(start[1])
    turn = (Fraction(end[0]) - x1) * (Fraction(place[1]) - y1) - (Fraction(end[1]) - y1) * (
        Fraction(place[0]) - x1
    )
    return (turn > 0) - (turn < 0)


def is_between(start: Place, end: Place, place: Place) -> bool:
    """Whether a place that is known to lie on the line through two others lies between them, or on one of them."""
    (x1, y1), (x2, y2), (x, y) = start, end, place
    return (x1 <= x <= x2 or x2 <= x <= x1) and (y1 <= y <= y2 or y2 <= y <= y1)


def meeting(a: Place, b: Place, c: Place, d: Place) -> tuple[Place, ...]:
    """Where the segments a-b and c-d meet: nowhere, in one place, or between two."""
    side_c, side_d = side(a, b, c), side(a, b, d)
    if side_c * side_d > 0:
        return ()
    side_a, side_b = side(c, d, a), side(c, d, b)
    if side_a * side_b > 0:
        return ()
    if side_a and side_b and side_c and side_d:
        return (_crossing(a, b, c, d),)
    found: list[Place] = []
    ends = ((a, b, c, side_c), (a, b, d, side_d), (c, d, a, side_a), (c, d, b, side_b))
    for start, end, place, turned in ends:
        if turned == 0 and place not in found and is_between(start, end, place):
            found.append(place)
    return tuple(found)


def _crossing(a: Place, b: Place, c: Place, d: Place) -> Place:
    """Where two segments cross that do."""
    x1, y1, x3, y3 = Fraction(a[0]), Fraction(a[1]), Fraction(c[0]), Fraction(c[1])
    dx, dy = Fraction(b[0]) - x1, Fraction(b[1]) - y1
    ex, ey = Fraction(d[0]) - x3, Fraction(d[1]) - y3
    part = ((x3 - x1) * ey - (y3 - y1) * ex) / (dx * ey - dy * ex)
    return x1 + part * dx, y1 + part * dy


def middle(a: Place, b: Place) -> Place:
    """The place half-way between two."""
    return (Fraction(a[0]) + Fraction(b[0])) / 2, (Fraction(a[1]) + Fraction(b[1])) / 2
