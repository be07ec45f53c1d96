"""The path indexes of one segment as one server knows them: which are wanted, built, used and dropped.

An index is the rows of `entry` with its id, and a row of `path_index`. Writes enter their rows from the moment the
index is made; the rows that were there before are entered in pieces, each between two writes. Several servers may
build the same index: each piece locks its row, so they take turns. What this server believes to be ready is tested
by every statement that uses it, so a belief that is out of date costs one attempt and no wrong answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pleiad.store.index_use import LOADED, IndexSettings, PathUses, Score, is_indexable
from pleiad.store.postgres.connections import Connection, Connections
from pleiad.store.postgres.json_sql import address
from pleiad.store.postgres.schema import sql
from pleiad.store.predicate import ROW_COLUMNS
from pleiad.store.selection import IndexedPath

_log = logging.getLogger(__name__)

_REFRESH_SECONDS = 30.0
_KINDS = {"id": 2, "ts": 3}
_ENTRIES_DELETED = 20_000


class State(Enum):
    """How far an index is; only a ready one is used."""

    WANTED = "wanted"
    BUILDING = "building"
    READY = "ready"
    DROPPING = "dropping"
    FAILED = "failed"


_UNFINISHED = frozenset({State.WANTED, State.BUILDING})


@dataclass(slots=True)
class PathIndex:
    """One index: what `path_index` says of it, and when this server used it."""

    path: IndexedPath
    state: State
    used_at: float
    id: int = 0
    items_done: int = 0
    score: Score = field(default_factory=Score)


class PathIndexes:
    """The indexes of one segment; work on them is done by one task at a time."""

    def __init__(self, schema: str, connections: Connections, settings: IndexSettings) -> None:
        self._schema = schema
        self._connections = connections
        self._settings = settings
        self._uses = PathUses()
        self._indexes: dict[IndexedPath, PathIndex] = {}
        self._worker: asyncio.Task[None] | None = None
        self._loaded_at = 0.0
        self._checked_at = settings.clock()
        self._is_closed = False
        self.items = 0
        """About how many items the segment has."""

    # -- asking --------------------------------------------------------------------------------

    def ready(self, path: IndexedPath) -> int | None:
        """The id of the index of a path if it may be used."""
        index = self._indexes.get(path)
        return index.id if index is not None and index.state is State.READY else None

    def progress(self) -> float:
        """How much of the wanted indexes is there, between 0 and 1."""
        building = [index for index in self._indexes.values() if index.state in _UNFINISHED]
        if not building:
            return 1.0
        done = sum(index.items_done for index in building)
        return min(0.99, done / max(1, self.items * len(building)))

    def note_use(self, paths: Iterable[IndexedPath], found: bool = False) -> None:
        """Remembers that a query asked for paths; a path asked for again gets an index if there are many items."""
        for path in paths:
            index = self._indexes.get(path)
            if index is not None and index.state is not State.DROPPING:
                index.used_at = self._settings.clock()
                index.score.add(found, index.used_at)
            elif (
                self._uses.add(path, found, self._settings.clock()).asked >= self._settings.uses_min
                and self.items > self._settings.items_min
            ):
                self._want(path)
        if self._has_work or self._is_stale:
            self._wake()

    def _want(self, path: IndexedPath) -> None:
        if (
            path not in self._indexes
            and is_indexable(path)
            and not (path.element and path.path in ROW_COLUMNS)
            and self._has_room(path)
        ):
            now = self._settings.clock()
            self._indexes[path] = PathIndex(path, State.WANTED, now, score=self._uses.score_of(path))

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
        """Stops using the indexes of all other paths at once; the worker removes them."""
        for path, index in list(self._indexes.items()):
            if not keep(path):
                self._uses.forget(path)
                self._discard(index)
        if self._has_work:
            self._wake()

    def _discard(self, index: PathIndex) -> None:
        if index.id or (self._worker is not None and index.state is State.WANTED):
            index.state = State.DROPPING
        else:
            del self._indexes[index.path]

    # -- working -------------------------------------------------------------------------------

    async def load(self, connection: Connection) -> None:
        """Learns which indexes the segment has now."""
        text = f"SELECT path, element, id, state, items_done, used_at FROM {self._schema}.path_index"
        rows = await (await connection.execute(sql(text))).fetchall()
        items = await connection.execute(
            sql(f"SELECT coalesce(sum(items), 0)::bigint FROM {self._schema}.partition")
        )
        self.items = (await items.fetchall())[0][0]
        self._loaded_at = asyncio.get_running_loop().time()
        found: dict[IndexedPath, PathIndex] = {}
        for path_text, element, id, state, items_done, used_at in rows:
            path = IndexedPath(tuple(json.loads(path_text)), element)
            known = self._indexes.get(path)
            index = PathIndex(path, State(state), used_at, id, items_done)
            index.score = Score(LOADED, self._settings.clock()) if known is None else known.score
            if known is not None:
                index.used_at = max(known.used_at, used_at)
                if known.id in (0, id) and known.state in (State.DROPPING, State.FAILED):
                    index.state = known.state
            if path not in found or index.state is not State.DROPPING:
                found[path] = index
        for path, index in self._indexes.items():
            if not index.id and path not in found:
                found[path] = index
        self._indexes = found
        if self._has_work:
            self._wake()

    @property
    def _has_work(self) -> bool:
        return any(
            index.state in _UNFINISHED or index.state is State.DROPPING for index in self._indexes.values()
        )

    @property
    def _is_stale(self) -> bool:
        now = asyncio.get_running_loop().time()
        return (
            now - self._loaded_at >= _REFRESH_SECONDS
            or self._settings.clock() - self._checked_at >= self._settings.check_seconds
        )

    def _wake(self) -> None:
        if self._worker is None and not self._is_closed:
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            await self._check()
            while not self._is_closed and self._has_work:
                by_state = {index.state: index for index in reversed(self._indexes.values())}
                if (index := by_state.get(State.DROPPING)) is not None:
                    await self._drop_one(index)
                elif (index := by_state.get(State.BUILDING)) is not None:
                    await self._build(index)
                elif (index := by_state.get(State.WANTED)) is not None:
                    await self._make(index)
        except Exception as error:
            _log.error("building or dropping a path index of %s failed: %s", self._schema, error)
            for index in self._indexes.values():
                if index.state in _UNFINISHED or index.state is State.DROPPING:
                    index.state = State.FAILED
        finally:
            self._worker = None

    async def _check(self) -> None:
        """From time to time: learns what others made, lets go of what nobody uses, saves what was used."""
        if not self._is_stale:
            return
        if self._settings.clock() - self._checked_at >= self._settings.check_seconds:
            self._checked_at = self._settings.clock()
            for index in list(self._indexes.values()):
                if index.id:
                    save = (
                        f"UPDATE {self._schema}.path_index SET used_at = greatest(used_at, %s) WHERE id = %s"
                    )
                    await self._execute(save, (index.used_at, index.id))
        await self._connections.read(self.load)
        limit = self._settings.clock() - self._settings.unused_seconds
        for index in list(self._indexes.values()):
            if index.used_at < limit:
                self._discard(index)

    async def _make(self, index: PathIndex) -> None:
        column = ROW_COLUMNS.get(index.path.path)
        kind = _KINDS[column] if column else int(index.path.element)
        params = (
            json.dumps(index.path.path),
            index.path.element,
            kind,
            address(index.path.path),
            index.used_at,
        )
        call = f"SELECT {self._schema}.make_index_1(%s, %s, %s::int, %s::jsonpath, %s::float8)"
        rows = await self._execute(call, params)
        index.id = rows[0][0]
        if index.state is State.WANTED:
            index.state = State.BUILDING

    async def _build(self, index: PathIndex) -> None:
        call = f"SELECT {self._schema}.build_1(%s::int, %s::int)"
        rows = await self._execute(call, (index.id, self._settings.chunk_items))
        index.items_done += self._settings.chunk_items
        if index.state is State.BUILDING:
            index.state = State(rows[0][0])

    async def _drop_one(self, index: PathIndex) -> None:
        if index.id:
            await self._execute(f"SELECT {self._schema}.stop_index_1(%s::int)", (index.id,))
            some = (
                f"WITH part AS (SELECT ctid FROM {self._schema}.entry WHERE index = %s LIMIT {_ENTRIES_DELETED}), "
                f"gone AS (DELETE FROM {self._schema}.entry WHERE ctid IN (SELECT ctid FROM part) RETURNING 1) "
                "SELECT count(*) FROM gone"
            )
            while (await self._execute(some, (index.id,)))[0][0] == _ENTRIES_DELETED:
                await asyncio.sleep(0)
            await self._execute(f"DELETE FROM {self._schema}.path_index WHERE id = %s", (index.id,))
        self._indexes.pop(index.path, None)

    async def _execute(self, text: str, params: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        async def work(connection: Connection) -> list[tuple[Any, ...]]:
            cursor = await connection.execute(sql(text), params)
            return await cursor.fetchall() if cursor.description is not None else []

        return await self._connections.write(work)

    async def close(self) -> None:
        """Ends the work after the step it is at; another server, or the next start, goes on."""
        self._is_closed = True
        if self._worker is not None:
            await asyncio.wait({self._worker})
