"""The path indexes of one segment as one server knows them: how they are made, built and dropped.

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
from typing import Any

from pleiad.store.index_use import IndexSettings, PathUses, is_indexable
from pleiad.store.path_index import IndexLives, PathIndex, State
from pleiad.store.postgres.connections import Connection, Connections
from pleiad.store.postgres.json_sql import address
from pleiad.store.postgres.schema import sql
from pleiad.store.predicate import ROW_COLUMNS
from pleiad.store.selection import IndexedPath

_log = logging.getLogger(__name__)

_REFRESH_SECONDS = 30.0
_KINDS = {"id": 2, "ts": 3}
_ENTRIES_DELETED = 20_000


def _may_have(path: IndexedPath) -> bool:
    return is_indexable(path) and not (path.element and path.path in ROW_COLUMNS)


class PathIndexes(IndexLives[PathIndex]):
    """The indexes of one segment; work on them is done by one task at a time."""

    def __init__(self, schema: str, connections: Connections, settings: IndexSettings) -> None:
        super().__init__(PathIndex, settings, PathUses(), lambda: self.items, _may_have)
        self._schema = schema
        self._connections = connections
        self._worker: asyncio.Task[None] | None = None
        self._loaded_at = 0.0
        self._is_closed = False
        self.items = 0
        """About how many items the segment has."""

    # -- asking --------------------------------------------------------------------------------

    def note_use(self, paths: Iterable[IndexedPath], found: bool = False) -> None:
        """Counts the paths a query asked for, and sets to work what that makes due."""
        self.count_use(paths, found)
        if self.has_work or self._is_stale:
            self._wake()

    def drop(self, keep: Callable[[IndexedPath], bool]) -> None:
        """Stops using the indexes of all other paths at once; the worker removes them."""
        self.discard_all_but(keep)
        if self.has_work:
            self._wake()

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
        self.learn(
            PathIndex(IndexedPath(tuple(json.loads(path)), element), State(state), used_at, id, items_done)
            for path, element, id, state, items_done, used_at in rows
        )
        if self.has_work:
            self._wake()

    @property
    def _is_stale(self) -> bool:
        now = asyncio.get_running_loop().time()
        return now - self._loaded_at >= _REFRESH_SECONDS or self.is_check_due

    def _wake(self) -> None:
        if self._worker is None and not self._is_closed:
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            await self._check()
            while not self._is_closed and (index := self.next_in_work()) is not None:
                if index.state is State.DROPPING:
                    await self._drop_one(index)
                elif index.state is State.BUILDING:
                    await self._build(index)
                else:
                    await self._make(index)
        except Exception as error:
            _log.error("building or dropping a path index of %s failed: %s", self._schema, error)
            self.failed()
        finally:
            self._worker = None

    async def _check(self) -> None:
        """From time to time: learns what others made, lets go of what nobody uses, saves what was used."""
        if not self._is_stale:
            return
        if self.is_check_due:
            self.note_check()
            for index in list(self._indexes.values()):
                if index.id:
                    save = (
                        f"UPDATE {self._schema}.path_index SET used_at = greatest(used_at, %s) WHERE id = %s"
                    )
                    await self._execute(save, (index.used_at, index.id))
        await self._connections.read(self.load)
        self.discard_unused()

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
        self.making(index)
        rows = await self._execute(call, params)
        self.made(index, rows[0][0])

    async def _build(self, index: PathIndex) -> None:
        call = f"SELECT {self._schema}.build_1(%s::int, %s::int)"
        rows = await self._execute(call, (index.id, self._settings.chunk_items))
        index.items_done += self._settings.chunk_items
        self.built(index, State(rows[0][0]))

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
        self.dropped(index)

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
