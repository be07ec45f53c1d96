"""The pieces into which the edges of two shapes cut each other, and on which side of each piece which shape lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from pleiad.query.pace import worked
from pleiad.query.plane.edges import Edge
from pleiad.query.plane.exact import Place, middle
from pleiad.query.plane.shapes import Area, Cuts, LineShape, Sides

_NONE: Sides = (False, False)
_BOTH: Sides = (True, True)


class Piece(NamedTuple):
    """A part of an edge that meets no other edge but at its ends, or runs along it."""

    start: Place
    end: Place
    edge: Edge
    one: Sides
    """Whether the first shape lies to its left and right; a line lies on both sides of its own pieces."""
    two: Sides


def pieces(one: LineShape | Area, two: Area) -> Iterator[Piece]:
    """The pieces of all edges of a shape, and those of the edges of an area that may lie in it.

    The edges of one polygon do not cut each other: it is sound.
    """
    cuts_one: Cuts = {number: list(places) for number, places in one.seams.items()}
    cuts_two: Cuts = {number: list(places) for number, places in two.seams.items()}
    for number_one, number_two, places in one.bands.meetings_with(two.bands):
        cuts_one.setdefault(number_one, []).extend(places)
        cuts_two.setdefault(number_two, []).extend(places)
    yield from _pieces(one, two, one, range(len(one.edges)), cuts_one)
    yield from _pieces(one, two, two, two.bands.reaching(one.bands.bounds), cuts_two)


def _pieces(
    one: LineShape | Area, two: Area, cut: LineShape | Area, numbers: Iterable[int], cuts: Cuts
) -> Iterator[Piece]:
    """The pieces of some edges of one of two shapes."""
    before: Piece | None = None
    for number in numbers:
        edge = cut.edges[number]
        worked(1)
        places = cuts.get(number)
        if places is None:
            # Nothing else meets the edge, so all of it lies where its start does; and so does the edge that goes on.
            if before is not None and before.edge.end == edge.start:
                sides_one, sides_two = before.one, before.two
            else:
                sides_one, sides_two = (_sides(shape, edge.start, edge, shape is cut) for shape in (one, two))
            before = Piece(edge.start, edge.end, edge, sides_one, sides_two)
            yield before
            continue
        before = None
        for start, end in parts(edge, places):
            worked(16)
            at = middle(start, end)
            yield Piece(
                start, end, edge, _sides(one, at, edge, one is cut), _sides(two, at, edge, two is cut)
            )


def _sides(shape: LineShape | Area, place: Place, edge: Edge, is_own: bool) -> Sides:
    if isinstance(shape, LineShape):
        return _BOTH if is_own else _NONE
    return shape.sides(place, edge, edge.owner if is_own else None)


def parts(edge: Edge, places: list[Place]) -> Iterator[tuple[Place, Place]]:
    """An edge cut at places."""
    yield from pairwise(sorted({edge.start, edge.end, *places}, reverse=edge.start > edge.end))
