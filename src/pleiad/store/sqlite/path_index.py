"""The physical path indexes of one segment: how they are made, built and dropped between the groups of writes.

An index is a table path_<id>(rank, value, number) with one entry for each item (with `element`: for each distinct
scalar in the item's array), and three triggers on the table of items. The table of contents is

    path_index(id, path, element, state, built_to, build_end, items_done, used_at)

An index is built while writes go on. Its table and triggers come first, so that every later write is in it,
whole, in the transaction of the write. Then the items up to `build_end`, the highest number of that moment, are
entered in runs: a run is gathered in a temporary table, a chunk of items a step, and then moved into the index in
the order of the index, a chunk of entries a step, so that each page is written about once. While a run waits,
temporary triggers take out of it what writes make stale.

Invariants:
- an index that is ready holds exactly the entries of the committed items;
- the entry of an item with a number up to `built_to`, or written since the index was made, is in the index;
- a step is one transaction or none at all, and holds the writer no longer than a chunk takes;
- after a crash the build goes on behind `built_to`; entries that are already there are left as they are.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import apsw

from pleiad.store.index_use import IndexSettings, PathUses
from pleiad.store.path_index import IndexLives, PathIndex, State
from pleiad.store.selection import IndexedPath
from pleiad.store.sqlite import path_index_sql as sql

_log = logging.getLogger(__name__)

Step = Callable[[], None]
_Place = tuple[int, str | int | float, int]

_RUN_BYTES_MAX = 32 << 20
_ENTRIES_PER_ITEM = 3
"""To move an entry costs this much less than to read an item, so chunks of entries are so much larger."""


@dataclass(slots=True)
class SqliteIndex(PathIndex):
    """One index, and the run that is being entered."""

    built_to: int = 0
    build_end: int = 0
    run_to: int | None = None
    """The highest number in the run; None while there is no run."""
    run_items: int = 0
    run_is_full: bool = False
    place: _Place = sql.FIRST_PLACE
    """The last entry of the run that is in the index."""

    @property
    def items_entered(self) -> float:
        return self.items_done + self.run_items / 2

    @property
    def table(self) -> str:
        return f"path_{self.id}"


class PathIndexes(IndexLives[SqliteIndex]):
    """The indexes of one open file. Steps run while nobody else uses the writer; all else on the event loop."""

    def __init__(
        self, writer: apsw.Connection, settings: IndexSettings, uses: PathUses, items: Callable[[], int]
    ) -> None:
        super().__init__(SqliteIndex, settings, uses, items)
        self._writer = writer
        self._wants_saving = False
        self.learn(_loaded(row) for row in sql.load(writer))
        self.discard_unused()

    def check(self) -> None:
        """When it is due: lets go of indexes nobody uses and saves when the others were used."""
        self.note_check()
        self.discard_unused()
        self._wants_saving = any(index.id for index in self._indexes.values())
        self._note_work()

    # -- working -------------------------------------------------------------------------------

    def _note_work(self) -> None:
        super()._note_work()
        self.has_work = self.has_work or self._wants_saving

    def next_step(self) -> tuple[Step, Step] | None:
        """The next thing to do with the writer, and what to do on the loop once it is done and durable."""
        if self._wants_saving:
            return self._save_uses()
        index = self.next_in_work()
        if index is None:
            return None
        if index.state is State.DROPPING:
            return self._drop_one(index)
        if index.state is State.WANTED:
            return self._make(index)
        # One run at a time, since there is one temporary table.
        is_gathered = index.run_to is not None and index.run_is_full
        return self._enter(index) if is_gathered else self._gather(index)

    def fail(self, error: BaseException) -> None:
        """After a step that did not succeed: gives up what it worked on until the file is opened again."""
        _log.error("building or dropping a path index failed: %s", error, exc_info=error)
        self._wants_saving = False
        self.failed()
        sql.drop_run(self._writer)

    def _save_uses(self) -> tuple[Step, Step]:
        rows = [(index.id, index.used_at) for index in self._indexes.values() if index.id]

        def step() -> None:
            with _Transaction(self._writer):
                self._writer.executemany(sql.SAVE_USE, rows)

        def done() -> None:
            self._wants_saving = False
            self._note_work()

        return step, done

    def _make(self, index: SqliteIndex) -> tuple[Step, Step]:
        found: list[tuple[int, int]] = []
        self.making(index)

        def step() -> None:
            with _Transaction(self._writer):
                found.append(sql.make(self._writer, index.path, index.used_at))

        def done() -> None:
            id, index.build_end = found[0]
            self.made(index, id)

        return step, done

    def _gather(self, index: SqliteIndex) -> tuple[Step, Step]:
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

    def _enter(self, index: SqliteIndex) -> tuple[Step, Step]:
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
            self.built(index, State.READY if run_to >= index.build_end else State.BUILDING)

        return step, done

    def _drop_one(self, index: SqliteIndex) -> tuple[Step, Step]:
        def step() -> None:
            sql.drop_run(self._writer)
            with _Transaction(self._writer):
                sql.drop(self._writer, index.id)

        def done() -> None:
            self.dropped(index)
            for other in self._indexes.values():
                # The run went with the index it was dropped beside.
                other.run_to, other.place, other.run_items, other.run_is_full = (
                    None,
                    sql.FIRST_PLACE,
                    0,
                    False,
                )

        return step, done


def _loaded(columns: tuple[Any, ...]) -> SqliteIndex:
    id, path, element, state, built_to, build_end, items_done, used_at = columns
    return SqliteIndex(
        IndexedPath(tuple(json.loads(path)), bool(element)),
        State(state),
        used_at,
        id,
        items_done,
        built_to=built_to,
        build_end=build_end,
    )


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
