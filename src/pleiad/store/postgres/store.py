"""The PostgreSQL store: one database that one or several servers work on.

Nothing is locked for one server: what keeps two of them from doing the same thing is the partition row for items, and
the expected records for the catalog.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import psycopg

from pleiad import errors
from pleiad.store.commits import CommitCounts
from pleiad.store.contract import Record
from pleiad.store.index_use import DEFAULT_INDEX_SETTINGS, IndexSettings
from pleiad.store.postgres import schema
from pleiad.store.postgres.connections import Connection, Connections, ConnectionSettings
from pleiad.store.postgres.segment import PostgresSegment, schema_name

_log = logging.getLogger(__name__)

_PUT = (
    "INSERT INTO pleiad.record(kind, rid, parent, name, body) VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT (kind, rid) DO UPDATE SET parent = excluded.parent, name = excluded.name, body = excluded.body"
)
_SEGMENTS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pleiad\\_%%'"


class PostgresStore:
    """The contract's Store over one database; `open` makes one that is ready."""

    def __init__(self, connections: Connections, index_settings: IndexSettings) -> None:
        self.connections = connections
        self._index_settings = index_settings
        self.commits = CommitCounts()
        self._segments: dict[str, PostgresSegment] = {}
        self._last_drop = 0

    @classmethod
    async def open(
        cls,
        dsn: str,
        index_settings: IndexSettings = DEFAULT_INDEX_SETTINGS,
        connection_settings: ConnectionSettings | None = None,
    ) -> PostgresStore:
        """Connects and makes what a new database lacks.

        StoreUnreachableError or SchemaError say why that is not possible.
        """
        connections = Connections(dsn, connection_settings or ConnectionSettings())
        store = cls(connections, index_settings)
        await connections.open()
        try:
            await connections.write(schema.prepare)
            store._last_drop = await connections.read(schema.last_drop)
        except BaseException:
            await connections.close()
            raise
        return store

    async def load_records(self) -> Sequence[Record]:
        async def load(connection: Connection) -> list[tuple[Any, ...]]:
            cursor = await connection.execute("SELECT kind, rid, parent, name, body FROM pleiad.record")
            return await cursor.fetchall()

        return [_record(*row) for row in await self.connections.read(load)]

    async def save_records(
        self, puts: Iterable[Record], deletes: Iterable[Record], expected: Iterable[Record] = ()
    ) -> bool:
        new = [(r.kind, r.rid, r.parent, r.name, orjson.dumps(r.body).decode()) for r in puts]
        gone = [(record.kind, record.rid) for record in deletes]
        wanted = list(expected)

        async def save(connection: Connection) -> bool:
            async with connection.transaction():
                await connection.execute("LOCK TABLE pleiad.record IN SHARE ROW EXCLUSIVE MODE")
                for record in wanted:
                    if await _stored(connection, record) != record:
                        return False
                async with connection.cursor() as cursor:
                    await cursor.executemany("DELETE FROM pleiad.record WHERE kind = %s AND rid = %s", gone)
                    await cursor.executemany(_PUT, new)
                await connection.execute("NOTIFY pleiad_catalog")
            return True

        try:
            return await self.connections.write(save)
        except psycopg.Error as error:
            _log.error("a change of the catalog was rolled back: %s", error, exc_info=error)
            raise errors.UNAVAILABLE(reason="The store could not write; nothing was changed.") from error

    def segment(self, name: str) -> PostgresSegment:
        found = self._segments.get(name)
        if found is None:
            found = PostgresSegment(
                name, self.connections, self._index_settings, self._last_drop, self.commits
            )
            self._segments[name] = found
        return found

    async def drop_segments(self, names: Iterable[str]) -> None:
        for name in names:
            segment = self._segments.pop(name, None)
            if segment is not None:
                segment.mark_dropped()
            self._last_drop = await self._drop(name)
            if segment is not None:
                await segment.settle()

    async def _drop(self, name: str) -> int:
        async def drop(connection: Connection) -> int:
            return await schema.drop_segment(connection, schema_name(name), name)

        try:
            return await self.connections.write(drop)
        except psycopg.Error as error:
            raise errors.UNAVAILABLE(reason="The store could not drop a segment.") from error

    async def keep_segments(self, names: Iterable[str]) -> None:
        async def find(connection: Connection) -> list[tuple[Any, ...]]:
            return await (await connection.execute(_SEGMENTS)).fetchall()

        found = {str(name).removeprefix("pleiad_") for (name,) in await self.connections.read(find)}
        await self.drop_segments(sorted(found - set(names)))

    async def close(self) -> None:
        for segment in list(self._segments.values()):
            await segment.settle()
        await self.connections.close()


def _record(kind: str, rid: str, parent: str, name: str, body: str) -> Record:
    return Record(kind, rid, parent, name, orjson.loads(body))


async def _stored(connection: Connection, record: Record) -> Record | None:
    cursor = await connection.execute(
        "SELECT kind, rid, parent, name, body FROM pleiad.record WHERE kind = %s AND rid = %s",
        (record.kind, record.rid),
    )
    rows = await cursor.fetchall()
    return _record(*rows[0]) if rows else None
