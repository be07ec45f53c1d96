"""The reconciler: brings to an end what movers have left behind that ended in the middle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pleiad.strategy.move.mark import MARK, Mark, mark_of
from pleiad.strategy.move.settle import Ending, Wish, settle
from pleiad.strategy.plan import KeyValue, Plan, Query, call

IDLE_SECONDS = 60.0
_QUERY = (
    f"SELECT c.id, c.{MARK} FROM c WHERE IS_DEFINED(c.{MARK}) "
    "AND c._ts * 1000 + @idleMs <= GetCurrentTimestamp()"
)


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A move that a reconciler could not bring to an end."""

    item_id: str
    source: KeyValue
    target: KeyValue
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What a reconciler found and did."""

    finished: int
    undone: int
    unsettled: tuple[Unsettled, ...]
    unreadable: tuple[str, ...]
    """The ids of items that have something else where marks are kept; they are left alone."""
    is_all: bool
    """Whether there were no more marks than were asked for."""


def reconcile(
    *, idle_seconds: float = IDLE_SECONDS, wish: Wish = Wish.FINISH, marks_max: int = 1_000
) -> Plan[Reconciled]:
    """Brings to an end the moves whose marks nobody has touched for a while, by the clock of the server.

    A move whose item has left is always finished; one that has no copy yet is undone; the others follow the wish,
    unless that would lose somebody's update. Any number of reconcilers and movers may run at once. A failure with one
    move is told and does not hold up the others.
    """
    if idle_seconds < 0 or marks_max < 1:
        raise ValueError("idle_seconds is at least 0, and marks_max at least 1")
    found = yield from call(Query(_QUERY, {"@idleMs": round(idle_seconds * 1000)}, items_max=marks_max))
    marks = [(str(row["id"]), mark_of(row)) for row in found.items]
    endings: list[Ending] = []
    unsettled: list[Unsettled] = []
    for id, move in _moves(found.items):
        try:
            ending = yield from settle(id, move, wish)
        except Exception as error:
            unsettled.append(Unsettled(id, move.source, move.target, str(error)))
            continue
        endings.append(ending)
        if ending is Ending.CONFLICT:
            unsettled.append(Unsettled(id, move.source, move.target, ending.value))
    return Reconciled(
        finished=endings.count(Ending.FINISHED),
        undone=endings.count(Ending.UNDONE),
        unsettled=tuple(unsettled),
        unreadable=tuple(id for id, mark in marks if mark is None),
        is_all=len(found.items) < marks_max,
    )


def _moves(rows: tuple[Mapping[str, Any], ...]) -> list[tuple[str, Mark]]:
    """Each move once, though both of its items carry its mark."""
    moves: dict[tuple[str, str, KeyValue, KeyValue], tuple[str, Mark]] = {}
    for row in rows:
        mark = mark_of(row)
        if mark is not None:
            id = str(row["id"])
            moves.setdefault((id, mark.move_id, mark.source, mark.target), (id, mark))
    return list(moves.values())
