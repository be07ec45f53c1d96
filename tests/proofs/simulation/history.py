"""What the clients of a simulated server were told, and what may therefore be there.

Every item has one owner, who changes it in sequence; so its state is the last acknowledged one or, after a crash, the
one that was in flight. Counters have many owners: each leaves the number of its last increment in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

State = int | None
"""The stamp of the write that made an item as it is; None for absent."""
Key = tuple[str, str]
"""Partition key and id."""


class ViolationError(AssertionError):
    """An invariant does not hold."""


def demand(holds: object, text: str) -> None:
    """Raises unless something holds."""
    if not holds:
        raise ViolationError(text)


@dataclass
class Owned:
    """What an item was acknowledged to be, and what it may be besides while a write is in flight."""

    state: State = None
    in_flight: list[State] = field(default_factory=list)
    lsn: int = 0
    expires_at: float | None = None
    ttl: int | None = None


@dataclass
class Counter:
    """Increments that were acknowledged, and those in flight by the worker who sent them."""

    acknowledged: int = 0
    last_of: dict[int, int] = field(default_factory=dict)
    in_flight: dict[int, int] = field(default_factory=dict)


@dataclass
class Batch:
    """A transaction in flight: the states its items have if it was applied."""

    stamp: int
    items: dict[Key, State]
    counter: Key
    worker: int


class History:
    """Everything clients know, over all lives of the server."""

    def __init__(self) -> None:
        self.owned: dict[Key, Owned] = {}
        self.counters: dict[Key, Counter] = {}
        self.batches: list[Batch] = []
        self.fixed: dict[Key, int] = {}
        self.stamps: dict[int, Key | None] = {}
        self.lsn_of_key: dict[str, int] = {}
        self.lsns_used: dict[tuple[str, int], int] = {}
        self.acknowledged = 0
        self.may_time_out = False
        self.stamp_at_start = 0
        self.trace: list[tuple[Any, ...]] = []

    def stamp(self) -> int:
        """A number for one write."""
        number = len(self.stamps) + 1
        self.stamps[number] = None
        return number

    def floor(self, pk: str) -> int:
        """The LSN that every later write to a logical partition must exceed."""
        return self.lsn_of_key.get(pk, 0)

    def note_lsn(self, pk: str, lsn: int, stamp: int, floor: int) -> None:
        """A write was acknowledged with an LSN."""
        self.acknowledged += 1
        self.trace.append((pk, lsn, stamp))
        demand(lsn > floor, f"I4: a write to {pk} got LSN {lsn}, not above {floor} that was given before")
        other = self.lsns_used.setdefault((pk, lsn), stamp)
        demand(other == stamp, f"I4: LSN {lsn} of {pk} was given to the writes {other} and {stamp}")
        self.lsn_of_key[pk] = max(self.floor(pk), lsn)

    # -- after a crash, and at the end ----------------------------------------------------------------

    def check(self, found: dict[Key, tuple[dict[str, Any], int]], began: float, ended: float) -> None:
        """Compares everything with what is there: body and LSN by key, as read between two moments.

        From then on that is what is known.
        """
        self._check_batches(found)
        for key, owned in self.owned.items():
            self._check_owned(key, owned, found.get(key), began, ended)
        for key, counter in self.counters.items():
            demand(key in found, f"I1: the counter {key} is gone")
            self._check_counter(key, counter, found[key][0])
        for key, lsn in self.fixed.items():
            demand(key in found and found[key][1] == lsn, f"I1: {key} is not as it was made")
        unknown = found.keys() - self.owned.keys() - self.counters.keys() - self.fixed.keys()
        demand(not unknown, f"I1: nobody made {sorted(unknown)[:5]}")
        claims: dict[tuple[str, str], Key] = {}
        for (pk, id), (body, _) in found.items():
            other = claims.setdefault((pk, body["u"]), (pk, id))
            demand(other == (pk, id), f"unique key: {other} and {(pk, id)} both have {body['u']}")

    def _check_owned(
        self, key: Key, owned: Owned, there: tuple[dict[str, Any], int] | None, began: float, ended: float
    ) -> None:
        state = there[0]["stamp"] if there is not None else None
        possible = [owned.state, *owned.in_flight]
        if owned.ttl is not None and (owned.expires_at is None or ended >= owned.expires_at):
            possible.append(None)
        if owned.expires_at is not None and began >= owned.expires_at:
            possible = [None]
        demand(state in possible, f"I1: {key} is at write {state}; it may be at {possible}")
        if there is not None and state == owned.state:
            demand(there[1] == owned.lsn, f"I1: {key} has LSN {there[1]}, acknowledged was {owned.lsn}")
        owned.state, owned.lsn = state, there[1] if there is not None else 0
        owned.in_flight.clear()

    def _check_counter(self, key: Key, counter: Counter, body: dict[str, Any]) -> None:
        for worker, stamp in counter.in_flight.items():
            if body.get(f"by{worker}") == stamp:
                counter.acknowledged += 1
                counter.last_of[worker] = stamp
        counter.in_flight.clear()
        demand(body["n"] == counter.acknowledged, f"I2: {key} counts {body['n']}, not {counter.acknowledged}")
        for worker, stamp in counter.last_of.items():
            demand(body.get(f"by{worker}") == stamp, f"I1: {key} has lost the increment {stamp}")

    def _check_batches(self, found: dict[Key, tuple[dict[str, Any], int]]) -> None:
        for batch in self.batches:
            applied = set()
            for key, state in batch.items.items():
                there = found.get(key)
                applied.add((there[0]["stamp"] if there is not None else None) == state)
            counter = found.get(batch.counter)
            applied.add(counter is not None and counter[0].get(f"by{batch.worker}") == batch.stamp)
            demand(len(applied) == 1, f"I7: the batch {batch.stamp} is there in part: {batch.items}")
        self.batches.clear()
