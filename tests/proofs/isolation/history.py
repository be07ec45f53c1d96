"""A record of what clients of one logical partition were told, and whether one serial order explains it.

The truth is the change feed of all versions, which gives every change with its LSN: after each LSN the logical
partition had one state. A history is good when
- every acknowledged write is there once, as it was acknowledged, and nothing else is;
- a write that was based on a version, by its ETag or because it was a patch, came directly after that version;
- writes are in the order of the clock: what ended before something else began comes before it;
- everything that was seen is one of those states, or the part of it that was asked for, and never a later state than
  what was seen afterwards.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import NamedTuple

Value = str
State = dict[str, tuple[int, Value]]
"""The items of the logical partition: LSN and value by id."""


class Change(NamedTuple):
    """One change of one item, in the order they were made; no value when it was deleted."""

    lsn: int
    id: str
    value: Value | None


class Told(NamedTuple):
    """An acknowledged write: its LSN, what it left, and which version of an item it was based on."""

    began: float
    ended: float
    lsn: int
    left: dict[str, Value]
    based_on: dict[str, Value] | None = None


class Seen(NamedTuple):
    """Items that one read showed together; `ids` is what it asked for, None for all."""

    began: float
    ended: float
    items: State
    ids: frozenset[str] | None = None


class Page(NamedTuple):
    """A page of the change feed of latest versions: the changes between two LSNs."""

    began: float
    ended: float
    after: int
    upto: int
    items: State


@dataclass
class History:
    """What was recorded, and what the store says really happened."""

    truth: list[Change] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    deletes_told: list[str] = field(default_factory=list)
    refused: set[Value] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)

    def problems(self) -> list[str]:
        """Everything that no serial order explains."""
        lsns, states = self._states()
        return [
            *self._misreported_writes(lsns, states),
            *self._dirty_reads(),
            *self._disordered_writes(),
            *self._unexplained_reads(lsns, states),
        ]

    def _states(self) -> tuple[list[int], list[State]]:
        """The LSNs in order, beginning with 0, and the state after each."""
        lsns, states = [0], [State()]
        for change in self.truth:
            if change.lsn != lsns[-1]:
                lsns.append(change.lsn)
                states.append(dict(states[-1]))
            if change.value is None:
                states[-1].pop(change.id, None)
            else:
                states[-1][change.id] = (change.lsn, change.value)
        return lsns, states

    def _misreported_writes(self, lsns: list[int], states: list[State]) -> list[str]:
        found = []
        if lsns != sorted(set(lsns)):
            found.append("the truth is not in the order of its LSNs")
        acknowledged = {told.lsn for told in self.told}
        deleted = [change for change in self.truth if change.value is None and change.lsn not in acknowledged]
        if sorted(change.id for change in deleted) != sorted(self.deletes_told):
            found.append(f"{len(self.deletes_told)} deletes were acknowledged, {len(deleted)} happened")
        extra = set(lsns[1:]) - acknowledged - {change.lsn for change in deleted}
        if extra:
            found.append(f"writes that nobody was told of: {sorted(extra)[:5]}")
        if len(acknowledged) != len(self.told):
            found.append("two writes were told the same LSN")
        for told in self.told:
            place = bisect_left(lsns, told.lsn)
            if place == len(lsns) or lsns[place] != told.lsn:
                found.append(f"the acknowledged write {told.lsn} never happened")
                continue
            left = {id: value for id, (lsn, value) in states[place].items() if lsn == told.lsn}
            if left != told.left:
                found.append(f"write {told.lsn} was told to have left {told.left}, but left {left}")
            for id, base in (told.based_on or {}).items():
                _, before = states[place - 1].get(id, (0, None))
                if before != base:
                    found.append(f"lost update: write {told.lsn} of {id} is based on {base}, not on {before}")
        return found

    def _dirty_reads(self) -> list[str]:
        shown: list[Seen | Page] = [*self.seen, *self.pages]
        values = {value for read in shown for _, value in read.items.values()}
        return [f"dirty read: {value} was never committed" for value in sorted(values & self.refused)]

    def _disordered_writes(self) -> list[str]:
        found = []
        newest = 0
        by_end = sorted(self.told, key=lambda told: told.ended)
        position = 0
        for told in sorted(self.told, key=lambda told: told.began):
            while by_end[position].ended < told.began:
                newest = max(newest, by_end[position].lsn)
                position += 1
            if told.lsn < newest:
                found.append(f"write {told.lsn} began after write {newest} had ended")
        return found

    def _unexplained_reads(self, lsns: list[int], states: list[State]) -> list[str]:
        """Gives each read the earliest state that explains it and is not older than what was known before it."""
        found = []
        known = [(told.ended, bisect_left(lsns, told.lsn)) for told in self.told]
        heapify(known)
        future = sorted((told.began, bisect_left(lsns, told.lsn)) for told in self.told)
        earliest_of_rest = [*accumulate((place for _, place in reversed(future)), min)][::-1]
        least = 0
        reads: list[Seen | Page] = [*self.seen, *self.pages]
        for read in sorted(reads, key=lambda read: read.began):
            while known and known[0][0] < read.began:
                least = max(least, heappop(known)[1])
            later = bisect_left(future, (read.ended, len(lsns)))
            most = earliest_of_rest[later] if later < len(future) else len(lsns)
            explains = (place for place in range(least, most) if _shows(states[place], read))
            place = next(explains, None)
            if place is None:
                found.append(f"torn, stale or future read: no state from {lsns[least]} on shows {read}")
            else:
                heappush(known, (read.ended, place))
        return found


def _shows(state: State, read: Seen | Page) -> bool:
    if isinstance(read, Page):
        return read.items == {id: item for id, item in state.items() if read.after < item[0] <= read.upto}
    wanted = state if read.ids is None else {id: state[id] for id in read.ids if id in state}
    return read.items == wanted
