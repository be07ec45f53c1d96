"""The physical path indexes of one segment: which exist, which are wanted, how they are built and dropped.

An index is a table path_<id>(rank, value, number) with one entry for each item (with `element`: for each distinct
scalar in the item's array), and three triggers on the table of items. The table of contents is

    path_index(id, path, element, state, built_to, build_end, items_done, used_at)

An index is built while writes go on. Its table and triggers come first, so that every later write is in it,
whole, in the transaction of the write. Then the items up to `build_end`, the highest number of that moment, are
entered in runs: a run is gathered in a temporary table, a chunk of items a step, and then moved into the index in
the order of the index, a chunk of entries a step, so that each page is written about once. While a run waits,
temporary triggers take out of it what writes make stale.

Invariants:
- an index is used only when it is ready, and then it holds exactly the entries of the committed items;
- the entry of an item with a number up to `built_to`, or written since the index was made, is in the index;
- a step is one transaction or none at all, and holds the writer no longer than a chunk takes;
- after a crash the build goes on behind `built_to`; entries that are already there are left as they are.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import apsw

from pleiad.store.index_use import LOADED, IndexSettings, PathUses, Score, is_indexable
from pleiad.store.selection import IndexedPath
from pleiad.store.sqlite import path_index_sql as sql

_log = logging.getLogger(__name__)

Step = Callable[[], None]
_Place = tuple[int, str | int | float, int]

_RUN_BYTES_MAX = 32 << 20
_ENTRIES_PER_ITEM = 3
"""To move an entry costs this much less than to read an item, so chunks of entries are so much larger."""


class State(Enum):
    """How far an index is; only a ready one is used."""

    WANTED = "wanted"
    MAKING = "making"
    BUILDING = "building"
    READY = "ready"
    DROPPING = "dropping"
    FAILED = "failed"


_UNFINISHED = frozenset({State.WANTED, State.MAKING, State.BUILDING})


@dataclass(slots=True)
class PathIndex:
    """One index: what path_index says of it, and the run that is being entered."""

    path: IndexedPath
    state: State
    used_at: float
    id: int = 0
    built_to: int = 0
    build_end: int = 0
    items_done: int = 0
    run_to: int | None = None
    """The highest number in the run; None while there is no run."""
    run_items: int = 0
    run_is_full: bool = False
    place: _Place = sql.FIRST_PLACE
    """The last entry of the run that is in the index."""
    score: Score = field(default_factory=Score)

    @property
    def table(self) -> str:
        return f"path_{self.id}"


class PathIndexes:
    """The indexes of one open file. Steps run while nobody else uses the writer; all else on the event loop."""

    def __init__(
        self, writer: apsw.Connection, settings: IndexSettings, uses: PathUses, items: Callable[[], int]
    ) -> None:
        self._writer = writer
        self._items = items
        self._settings = settings
        self._uses = uses
        self._saved_at = settings.clock()
        self._wants_saving = False
        self._indexes: dict[IndexedPath, PathIndex] = {}
        for index in sql.load(writer):
            path = IndexedPath(tuple(json.loads(index[1])), bool(index[2]))
            state = State(index[3])
            self._indexes[path] = PathIndex(path, state, index[7], index[0], index[4], index[5], index[6])
            self._indexes[path].score = Score(LOADED, settings.clock())
        self._drop_unused()

    # -- asking --------------------------------------------------------------------------------

    def ready(self, path: IndexedPath) -> PathIndex | None:
        """The index of a path if it may be used."""
        index = self._indexes.get(path)
        return index if index is not None and index.state is State.READY else None

    def progress(self) -> float:
        """How much of the wanted indexes is there, between 0 and 1."""
        building = [i for i in self._indexes.values() if i.state in _UNFINISHED]
        if not building:
            return 1.0
        done = sum(index.items_done + index.run_items / 2 for index in building)
        return min(0.99, done / max(1, self._items() * len(building)))

    def note_use(self, paths: Iterable[IndexedPath], found: bool = False) -> bool:
        """Remembers that a query asked for paths; a path asked for again gets an index if there are many items.

        Tells whether there is something new to build.
        """
        wanted = False
        for path in paths:
            index = self._indexes.get(path)
            if index is not None and index.state is not State.DROPPING:
                index.used_at = self._settings.clock()
                index.score.add(found, index.used_at)
            elif (
                self._uses.add(path, found, self._settings.clock()).asked >= self._settings.uses_min
                and self._items() > self._settings.items_min
            ):
                wanted = self._want(path) or wanted
        return wanted

    def _want(self, path: IndexedPath) -> bool:
        if path in self._indexes or not is_indexable(path) or not self._has_room(path):
            return False
        now = self._settings.clock()
        self._indexes[path] = PathIndex(path, State.WANTED, now, score=self._uses.score_of(path))
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

    def drop(self, keep: Callable[[IndexedPath], bool]) -> None:
        """Stops using the indexes of all other paths at once; steps remove them."""
        for path, index in list(self._indexes.items()):
            if not keep(path):
                self._uses.forget(path)
                self._discard(index)

    def _discard(self, index: PathIndex) -> None:
        if index.id or index.state is State.MAKING:
            index.state = State.DROPPING
        else:
            del self._indexes[index.path]

    def check(self) -> None:
        """From time to time: lets go of indexes nobody uses and saves when the others were used."""
        now = self._settings.clock()
        if now - self._saved_at >= self._settings.check_seconds:
            self._saved_at = now
            self._drop_unused()
            self._wants_saving = any(index.id for index in self._indexes.values())

    def _drop_unused(self) -> None:
        limit = self._settings.clock() - self._settings.unused_seconds
        for index in list(self._indexes.values()):
            if index.used_at < limit:
                self._discard(index)

    # -- working -------------------------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        return self._wants_saving or any(
            index.state in _UNFINISHED or index.state is State.DROPPING for index in self._indexes.values()
        )

    def next_step(self) -> tuple[Step, Step] | None:
        """The next thing to do with the writer, and what to do on the loop once it is done and durable."""
        if self._wants_saving:
            return self._save_uses()
        by_state = {index.state: index for index in reversed(self._indexes.values())}
        if (index := by_state.get(State.DROPPING)) is not None:
            return self._drop_one(index)
        # One run at a time, since there is one temporary table.
        if (index := by_state.get(State.BUILDING)) is not None:
            if index.run_to is None or not index.run_is_full:
                return self._gather(index)
            return self._enter(index)
        if (index := by_state.get(State.WANTED)) is not None:
            return self._make(index)
        return None

    def fail(self, error: BaseException) -> None:
        """After a step that did not succeed: gives up what it worked on until the file is opened again."""
        _log.error("building or dropping a path index failed: %s", error, exc_info=error)
        self._wants_saving = False
        for index in self._indexes.values():
            if index.state in _UNFINISHED or index.state is State.DROPPING:
                index.state = State.FAILED
        sql.drop_run(self._writer)

    def _save_uses(self) -> tuple[Step, Step]:
        rows = [(index.id, index.used_at) for index in self._indexes.values() if index.id]

        def step() -> None:
            with _Transaction(self._writer):
                self._writer.executemany(sql.SAVE_USE, rows)

        def done() -> None:
            self._wants_saving = False

        return step, done

    def _make(self, index: PathIndex) -> tuple[Step, Step]:
        found: list[tuple[int, int]] = []
        index.state = State.MAKING

        def step() -> None:
            with _Transaction(self._writer):
                found.append(sql.make(self._writer, index.path, index.used_at))

        def done() -> None:
            index.id, index.build_end = found[0]
            if index.state is State.MAKING:
                index.state = State.BUILDING

        return step, done

    def _gather(self, index: PathIndex) -> tuple[Step, Step]:
        """Adds a chunk of items to the run."""
        first_of_run = index.run_to is None
        after = index.built_to if index.run_to is None else index.run_to
        ends: list[tuple[int, int, int]] = []

        def step() -> None:
            if first_of_run:
                sql.make_run(self._writer, index.path)
            ends.append(
                sql.gather(self._writer, index.path, after, index.build_end, self._settings.chunk_items)
            )

        def done() -> None:
            index.run_to, items, size_bytes = ends[0]
            index.run_items += items
            index.run_is_full = (
                index.run_to >= index.build_end
                or index.run_items >= self._settings.run_items
                or size_bytes >= _RUN_BYTES_MAX
            )

        return step, done

    def _enter(self, index: PathIndex) -> tuple[Step, Step]:
        """Moves a chunk of the run into the index; the last one makes the index ready or ends the run."""
        assert index.run_to is not None
        run_to = index.run_to
        places: list[_Place | None] = []

        def step() -> None:
            with _Transaction(self._writer):
                last = sql.enter(
                    self._writer, index.table, index.place, _ENTRIES_PER_ITEM * self._settings.chunk_items
                )
                places.append(last)
                if last is None:
                    state = State.READY if run_to >= index.build_end else State.BUILDING
                    done_items = index.items_done + index.run_items
                    self._writer.execute(sql.SAVE_STATE, (index.id, state.value, run_to, done_items))
            if places[0] is None:
                sql.drop_run(self._writer)

        def done() -> None:
            place = places[0]
            if place is not None:
                index.place = place
                return
            index.built_to, index.run_to, index.place = run_to, None, sql.FIRST_PLACE
            index.items_done, index.run_items, index.run_is_full = (
                index.items_done + index.run_items,
                0,
                False,
            )
            if run_to >= index.build_end and index.state is State.BUILDING:
                index.state = State.READY

        return step, done

    def _drop_one(self, index: PathIndex) -> tuple[Step, Step]:
        def step() -> None:
            sql.drop_run(self._writer)
            with _Transaction(self._writer):
                sql.drop(self._writer, index.id)

        def done() -> None:
            del self._indexes[index.path]
            for other in self._indexes.values():
                # The run went with the index it was dropped beside.
                other.run_to, other.place, other.run_items, other.run_is_full = (
                    None,
                    sql.FIRST_PLACE,
                    0,
                    False,
                )

        return step, done


class _Transaction:
    """BEGIN IMMEDIATE, then COMMIT, or ROLLBACK when the block fails."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
