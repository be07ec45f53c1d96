"""A container in memory for plans, whose steps a test takes one at a time: with replicas that lag behind, if it likes.

A read without a session token may be told an older version than the newest, but none older than what its own client has
seen; writes and their conditions always meet the newest, as in the service.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pleiad.strategy.ledger import Ledger
from pleiad.strategy.move.mark import MARK
from pleiad.strategy.plan import (
    Create,
    Delete,
    Item,
    KeyValue,
    Outcome,
    Pause,
    Plan,
    Query,
    Read,
    Refusal,
    Replace,
    Step,
    Together,
)

KEY = "partitionKey"
Lag = Callable[[int], int]
"""`lag(most)`: how many versions behind a read is, up to so many."""


@dataclass
class Shelf:
    """Every version of every item, by key and id; None where it was deleted."""

    versions: dict[tuple[KeyValue, str], list[Item | None]] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=lambda: count(1))

    def put(self, item: Item) -> Item:
        kept = {**deepcopy(item), "_etag": f'"{next(self.numbers)}"'}
        self._of(item[KEY], item["id"]).append(kept)
        return kept

    def now(self, key: KeyValue, id: str) -> Item | None:
        return self._of(key, id)[-1]

    def items(self) -> list[Item]:
        """All items there are now."""
        return [found[-1] for found in self.versions.values() if found[-1] is not None]

    def write(self, step: Create | Replace | Delete) -> Outcome:
        key, id = (step.key, step.id) if isinstance(step, Delete) else (step.item[KEY], step.item["id"])
        present = self.now(key, id)
        token = str(len(self._of(key, id)) - 1)
        if isinstance(step, Create):
            if present is not None:
                return Outcome(refusal=Refusal.EXISTS, session_token=token)
            return Outcome(items=(deepcopy(self.put(dict(step.item))),))
        if present is None:
            return Outcome(refusal=Refusal.ABSENT, session_token=token)
        if step.etag is not None and step.etag != present["_etag"]:
            return Outcome(refusal=Refusal.CHANGED, session_token=token)
        if isinstance(step, Delete):
            self._of(key, id).append(None)
            return Outcome()
        return Outcome(items=(deepcopy(self.put(dict(step.item))),))

    def _of(self, key: KeyValue, id: str) -> list[Item | None]:
        return self.versions.setdefault((key, id), [None])

    def place(self, key: KeyValue, id: str) -> int:
        return len(self._of(key, id)) - 1

    def at(self, key: KeyValue, id: str, place: int) -> Item | None:
        return deepcopy(self._of(key, id)[place])


class Actor:
    """A client that carries out one plan, a step at a time."""

    def __init__(self, shelf: Shelf, plan: Plan[Any], lag: Lag = lambda _most: 0) -> None:
        self._shelf = shelf
        self._lag = lag
        self._seen: dict[tuple[KeyValue, str], int] = {}
        self.error: Exception | None = None
        self._ledger: Ledger[Any] = Ledger(plan)

    @property
    def is_done(self) -> bool:
        return self._ledger.step is None or self.error is not None

    @property
    def value(self) -> Any:
        return self._ledger.answer().value

    def go_on(self) -> None:
        """Takes one step."""
        step = self._ledger.step
        assert step is not None
        try:
            self._ledger.told(self._outcome(step))
        except Exception as error:
            self.error = error

    def finish(self) -> Actor:
        while not self.is_done:
            self.go_on()
        return self

    def _outcome(self, step: Step) -> Outcome | tuple[Outcome | None, ...] | None:
        match step:
            case Pause():
                return None
            case Together(calls):
                return tuple(self._one(call) for call in calls)
        return self._one(step)

    def _one(self, step: Create | Replace | Delete | Read | Query) -> Outcome:
        match step:
            case Read(id, key, token):
                newest = self._shelf.place(key, id)
                oldest = max(self._seen.get((key, id), 0), int(token or 0))
                place = newest - self._lag(newest - oldest)
                self._seen[key, id] = place
                found = self._shelf.at(key, id, place)
                return Outcome(refusal=Refusal.ABSENT) if found is None else Outcome(items=(found,))
            case Query():
                return Outcome(items=tuple(item for item in self._shelf.items() if MARK in item))
        outcome = self._shelf.write(step)
        if outcome.refusal is None:
            key, id = (step.key, step.id) if isinstance(step, Delete) else (step.item[KEY], step.item["id"])
            self._seen[key, id] = self._shelf.place(key, id)
        return outcome
