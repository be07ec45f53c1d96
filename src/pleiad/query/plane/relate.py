"""What two shapes have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from pleiad.query.plane.arrangement import Piece, parts, pieces
from pleiad.query.plane.exact import Place, middle
from pleiad.query.plane.shapes import Area, Cuts, LineShape, PointShape, Shape, Standing
from pleiad.values.salt import salted


def intersects(a: Shape, b: Shape) -> bool:
    """True when two shapes share a place; touching is enough."""
    if not a.bounds.meet(b.bounds):
        return False
    if isinstance(a, PointShape) or isinstance(b, PointShape):
        point, other = (a, b) if isinstance(a, PointShape) else (b, a)
        assert isinstance(point, PointShape)
        return _has(other, point.position)
    if not (_is_sum(a) and _is_sum(b)):
        area, other = (a, b) if isinstance(a, Area) else (b, a)
        assert isinstance(area, Area)
        return _share_a_piece(other, area)
    if any(True for _ in a.bands.meetings_with(b.bands)):
        return True
    # Their edges do not meet: one lies in the other, or they lie apart.
    return any(_has(b, corner) for corner in _corners(a)) or any(_has(a, corner) for corner in _corners(b))


def within(a: Shape, b: Shape) -> bool:
    """True when all of a lies in b, and not only on its edge."""
    if isinstance(a, PointShape):
        return _holds(b, a.position)
    if isinstance(b, PointShape) or (isinstance(a, Area) and isinstance(b, LineShape)):
        return False
    if not b.bounds.hold(a.bounds):
        return False
    if isinstance(b, LineShape):
        assert isinstance(a, LineShape)
        return _runs_along(a, b)
    if isinstance(a, Area):
        return _covers(b, a)
    is_inside = False
    for piece in pieces(a, b):
        if any(piece.one):
            if not any(piece.two):
                return False
            is_inside = is_inside or all(piece.two)
    return is_inside


def _covers(b: Area, a: Area) -> bool:
    """True when all of an area lies in another."""
    return not any(
        of_a and not of_b for piece in pieces(a, b) for of_a, of_b in zip(piece.one, piece.two, strict=True)
    )


def is_inside(a: Shape, b: Shape) -> bool:
    """True when all of a lies in an area and nothing of it on the edge; in points and lines nothing does."""
    if not isinstance(b, Area):
        return False
    if isinstance(a, PointShape):
        return b.standing(a.position) is Standing.INSIDE
    edge: set[Hashable] = set()
    reached: set[Hashable] = set()
    for piece in pieces(a, b):
        ends = (salted(*piece.start), salted(*piece.end))
        if any(piece.one):
            if not all(piece.two):
                return False
            reached.update(ends)
        if not all(piece.two):
            edge.update(ends)
    return edge.isdisjoint(reached)


def _is_sum(shape: Shape) -> bool:
    return not isinstance(shape, Area) or shape.is_sum


def _has(shape: Shape, place: Place) -> bool:
    if isinstance(shape, PointShape):
        return shape.position == place
    if isinstance(shape, LineShape):
        return shape.has(place)
    return shape.standing(place) is not Standing.OUTSIDE


def _holds(shape: Shape, place: Place) -> bool:
    """Whether a place lies in a shape and is not on its edge; the edge of a line are its ends, unless it is closed."""
    if isinstance(shape, Area):
        return shape.standing(place) is Standing.INSIDE
    if isinstance(shape, LineShape) and not shape.is_closed:
        return place not in (shape.positions[0], shape.positions[-1]) and shape.has(place)
    return _has(shape, place)


def _corners(shape: LineShape | Area) -> Iterator[Place]:
    if isinstance(shape, LineShape):
        yield shape.positions[0]
    else:
        yield from shape.corners()


def _share_a_piece(a: LineShape | Area, b: Area) -> bool:
    """True when there is a piece, or the end of a piece, of both."""
    of_a: set[Hashable] = set()
    of_b: set[Hashable] = set()
    for piece in pieces(a, b):
        if any(piece.one) and any(piece.two):
            return True
        for of_shape, sides in ((of_a, piece.one), (of_b, piece.two)):
            if any(sides):
                of_shape.update((salted(*piece.start), salted(*piece.end)))
    return not of_a.isdisjoint(of_b)


def _runs_along(a: LineShape, b: LineShape) -> bool:
    """True when all of a line lies on another."""
    cuts: Cuts = {}
    for number, _, places in a.bands.meetings_with(b.bands):
        cuts.setdefault(number, []).extend(places)
    return all(
        b.has(middle(*part))
        for number, edge in enumerate(a.edges)
        for part in parts(edge, cuts.get(number, []))
    )


def boundary(area: Area) -> Iterator[Piece]:
    """The pieces of the edge of an area, which lies to the left of each; of pieces that lie on another, one."""
    for piece in pieces(area, Area(())):
        if piece.one == (True, False):
            _, on = area.look(middle(piece.start, piece.end))
            if not any(other.owner < piece.edge.owner for other in on):
                yield piece
