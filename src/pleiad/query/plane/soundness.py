"""Whether a polygon is sound.

No ring meets itself, rings meet each other in single places only, holes lie side by side within the outer ring, and
what remains is in one piece.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

from pleiad.query.plane.arrangement import parts
from pleiad.query.plane.edges import Bands, Edge
from pleiad.query.plane.exact import Place, Position, is_between, middle, side
from pleiad.query.plane.shapes import Area, Cuts, Line, Polygon, distinct
from pleiad.values.salt import salted

_POSITIONS_MIN = 4


def flaw(rings: Sequence[Line]) -> str | None:
    """What is wrong with the polygon of an outer ring and holes, each of them closed; nothing when it is sound."""
    lines = [distinct(ring) for ring in rings]
    for line in lines:
        if len(line) < _POSITIONS_MIN:
            return _said("Too few points in geometry component", line[0])
        for before, place, after in zip(line, line[1:], [*line[2:], line[1]], strict=False):
            if side(before, place, after) == 0 and not is_between(before, after, place):
                return _said("Self-intersection", place)
    edges = [Edge(start, end, owner) for owner, line in enumerate(lines) for start, end in pairwise(line)]
    touches: Cuts = {}
    found = _crossing(edges, lines, touches)
    if found is not None or len(lines) == 1:
        return found
    return _misplaced(lines, edges, touches) or _cut_apart(edges, touches)


def _crossing(edges: list[Edge], lines: list[list[Position]], touches: Cuts) -> str | None:
    """Where rings cross or run along themselves or each other; notes where an edge touches another ring."""
    followers = list(range(1, len(edges) + 1))
    for number, edge in enumerate(edges):
        if number + 1 == len(edges) or edges[number + 1].owner != edge.owner:
            followers[number] -= len(lines[edge.owner]) - 1

    def are_apart(a: int, b: int) -> bool:
        return followers[a] != b and followers[b] != a

    for a, b, places in Bands(edges).meetings(are_apart):
        place = places[0]
        is_touch = len(places) == 1 and any(place in (edge.start, edge.end) for edge in (edges[a], edges[b]))
        if not is_touch:
            return _said("Self-intersection", place)
        if edges[a].owner == edges[b].owner:
            return _said("Ring Self-intersection", place)
        touches.setdefault(a, []).append(place)
        touches.setdefault(b, []).append(place)
    return None


def _misplaced(lines: list[list[Position]], edges: list[Edge], touches: Cuts) -> str | None:
    """What is wrong with where holes lie."""
    area = Area(tuple(Polygon((line,)) for line in lines))
    touching = {edges[number].owner for number in touches}
    seen: set[int] = {0}
    for number, edge in enumerate(edges):
        if edge.owner in seen:
            continue
        if edge.owner not in touching:
            # A ring that meets no other lies where its first position does.
            seen.add(edge.owner)
            probes: list[Place] = [edge.start]
        else:
            probes = [middle(*part) for part in parts(edge, touches.get(number, []))]
        for place in probes:
            inside, _ = area.look(place)
            around = inside & ~(1 << edge.owner)
            if not around & 1:
                return _said("Hole lies outside shell", edge.start)
            if around != 1:
                return _said("Holes are nested", edge.start)
    return None


def _cut_apart(edges: list[Edge], touches: Cuts) -> str | None:
    """A place that, together with others where rings touch, cuts the polygon apart: rings and places form a circle."""
    group: dict[Hashable, Hashable] = {}

    def first(of: Hashable) -> Hashable:
        while group.setdefault(of, of) != of:
            of = group[of]
        return of

    met = {
        salted(*place, edges[number].owner): (place, edges[number].owner)
        for number, places in touches.items()
        for place in places
    }
    for place, owner in met.values():
        one, other = first(salted(*place)), first(owner)
        if one == other:
            return _said("Interior is disconnected", place)
        group[one] = other
    return None


def _said(what: str, place: Place) -> str:
    return f"{what}[{float(place[0]):g} {float(place[1]):g}]"
