"""The life of a path index, which is the same in every store; what a store does for it is SQL.

    (asked for again) -> WANTED -> MAKING -> BUILDING -> READY
                            |         |          |         |
                          (gone)      +----------+---------+--> DROPPING -> (gone)

A step that fails makes FAILED of all that is unfinished, until the segment is opened again.

Invariants:
- only a READY index is used;
- one that may exist in the database ends by DROPPING, so nothing is left of it; one that was only WANTED just goes;
- one index is worked on at a time: what is to go before what is half built before what is not begun, the older first;
- no more than `indexes_max` exist beside those that are going.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from pleiad.store.index_use import LOADED, IndexSettings, PathUses, Score, is_indexable
from pleiad.store.selection import IndexedPath


class State(Enum):
    """How far an index is."""

    WANTED = "wanted"
    MAKING = "making"
    BUILDING = "building"
    READY = "ready"
    DROPPING = "dropping"
    FAILED = "failed"


_UNFINISHED = frozenset({State.WANTED, State.MAKING, State.BUILDING})
_IN_WORK = _UNFINISHED | {State.DROPPING}


@dataclass(slots=True)
class PathIndex:
    """One index: what its store says of it, and when it was used."""

    path: IndexedPath
    state: State
    used_at: float
    id: int = 0
    """What the store knows it by; 0 until it is made."""
    items_done: int = 0
    score: Score = field(default_factory=Score)

    @property
    def items_entered(self) -> float:
        """How many items of its building are done, half done ones as halves."""
        return self.items_done


Index = TypeVar("Index", bound=PathIndex)


class IndexLives(Generic[Index]):
    """The indexes of one segment and what becomes of them; a store does the work and tells how it went."""

    def __init__(
        self,
        kind: Callable[[IndexedPath, State, float], Index],
        settings: IndexSettings,
        uses: PathUses,
        items: Callable[[], int],
        may_have: Callable[[IndexedPath], bool] = is_indexable,
    ) -> None:
        self._kind = kind
        self._settings = settings
        self._uses = uses
        self._items = items
        self._may_have = may_have
        self.check_due_at = settings.clock() + settings.check_seconds
        """When it is time again to save which indexes were used."""
        self.has_work = False
        """Whether there is a next step; kept up to date, since it is asked after every group of writes."""
        self._indexes: dict[IndexedPath, Index] = {}

    # -- asking ----------------------------------------------------------------------------------

    def ready(self, path: IndexedPath) -> Index | None:
        """The index of a path if it may be used."""
        index = self._indexes.get(path)
        return index if index is not None and index.state is State.READY else None

    def progress(self) -> float:
        """How much of the wanted indexes is there, between 0 and 1."""
        building = [index for index in self._indexes.values() if index.state in _UNFINISHED]
        if not building:
            return 1.0
        done = sum(index.items_entered for index in building)
        return min(0.99, done / max(1, self._items() * len(building)))

    def next_in_work(self) -> Index | None:
        """The index to work on: one that is DROPPING, else BUILDING, else WANTED."""
        by_state = {index.state: index for index in reversed(self._indexes.values())}
        order = (State.DROPPING, State.BUILDING, State.WANTED)
        return next((by_state[state] for state in order if state in by_state), None)

    def _note_work(self) -> None:
        """After every change of a state."""
        self.has_work = any(index.state in _IN_WORK for index in self._indexes.values())

    # -- wanting, and letting go ---------------------------------------------------------------------

    def count_use(self, paths: Iterable[IndexedPath], found: bool) -> bool:
        """Remembers that a query asked for paths; a path asked for again gets an index if there are many items.

        Tells whether there is something new to build.
        """
        is_new = False
        for path in paths:
            index = self._indexes.get(path)
            if index is not None and index.state is not State.DROPPING:
                index.used_at = self._settings.clock()
                index.score.add(found, index.used_at)
            elif (
                self._uses.add(path, found, self._settings.clock()).asked >= self._settings.uses_min
                and self._items() > self._settings.items_min
            ):
                is_new = self._want(path) or is_new
        return is_new

    def _want(self, path: IndexedPath) -> bool:
        if path in self._indexes or not self._may_have(path) or not self._has_room(path):
            return False
        index = self._indexes[path] = self._kind(path, State.WANTED, self._settings.clock())
        index.score = self._uses.score_of(path)
        self._note_work()
        return True

    def _has_room(self, path: IndexedPath) -> bool:
        """Whether there is a place for one more index; where there is none, an index that earned less makes room."""
        scores = {each: i.score for each, i in self._indexes.items() if i.state is not State.DROPPING}
        if len(scores) < self._settings.indexes_max:
            return True
        weakest = self._uses.replaced_by(path, scores, self._settings)
        if weakest is not None:
            self._discard(self._indexes[weakest])
        return weakest is not None

    def discard_all_but(self, keep: Callable[[IndexedPath], bool]) -> None:
        """Stops using the indexes of all other paths at once; the work on them removes them."""
        for path, index in list(self._indexes.items()):
            if not keep(path):
                self._uses.forget(path)
                self._discard(index)

    def discard_unused(self) -> None:
        """Lets go of indexes nobody has used for long."""
        limit = self._settings.clock() - self._settings.unused_seconds
        for index in list(self._indexes.values()):
            if index.used_at < limit:
                self._discard(index)

    def _discard(self, index: Index) -> None:
        # One that is let go of again before it is made is still on its way.
        if index.id or index.state in (State.MAKING, State.DROPPING):
            index.state = State.DROPPING
        else:
            del self._indexes[index.path]
        self._note_work()

    @property
    def is_check_due(self) -> bool:
        return self._settings.clock() >= self.check_due_at

    def note_check(self) -> None:
        self.check_due_at = self._settings.clock() + self._settings.check_seconds

    # -- what the store found and did ------------------------------------------------------------------

    def learn(self, found: Iterable[Index]) -> None:
        """Takes over what the database says of its indexes; what was decided here meanwhile stays decided."""
        learned: dict[IndexedPath, Index] = {}
        for index in found:
            known = self._indexes.get(index.path)
            index.score = Score(LOADED, self._settings.clock()) if known is None else known.score
            if known is not None:
                index.used_at = max(known.used_at, index.used_at)
                if known.id in (0, index.id) and known.state in (State.DROPPING, State.FAILED):
                    index.state = known.state
            if index.path not in learned or index.state is not State.DROPPING:
                learned[index.path] = index
        for path, index in self._indexes.items():
            if not index.id and path not in learned:
                learned[path] = index
        self._indexes = learned
        self._note_work()

    def making(self, index: Index) -> None:
        """The store begins to make an index: from now on there may be something of it."""
        index.state = State.MAKING
        self._note_work()

    def made(self, index: Index, id: int) -> None:
        """The index is made, and later writes are entered in it."""
        index.id = id
        if index.state is State.MAKING:
            index.state = State.BUILDING
        self._note_work()

    def built(self, index: Index, state: State) -> None:
        """A piece was built; what the database says of the index then."""
        if index.state is State.BUILDING:
            index.state = state
        self._note_work()

    def dropped(self, index: Index) -> None:
        """Nothing is left of the index."""
        self._indexes.pop(index.path, None)
        self._note_work()

    def failed(self) -> None:
        """A step did not succeed: what is unfinished stays so until the segment is opened again."""
        for index in self._indexes.values():
            if index.state in _IN_WORK:
                index.state = State.FAILED
        self._note_work()
