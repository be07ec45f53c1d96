"""One moment of a segment, kept for as long as somebody needs it.

A snapshot is a read transaction on a connection of its own kind of pool, so those who keep one never wait for each
other's writes. It begins by itself; writes of this server to the segment wait until it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psycopg

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.keys.range import EpkRange
from pleiad.store.postgres import statements
from pleiad.store.postgres.arrays import byteas, texts
from pleiad.store.postgres.connections import Connection, Connections
from pleiad.store.postgres.json_sql import to_text
from pleiad.store.postgres.schema import sql
from pleiad.store.postgres.select import ROW_COLUMNS_COUNT, row_of
from pleiad.store.rows import ItemKey, Row


class PostgresSnapshot:
    """The contract's Snapshot."""

    def __init__(
        self,
        schema_name: str,
        connections: Connections,
        missing: Callable[[], Awaitable[object]],
        row_of: Callable[[Sequence[Any]], Row] = row_of,
    ) -> None:
        """`missing` is called where there are no tables: it fails unless the segment was not made yet."""
        self._schema = schema_name
        self._row_of = row_of
        self._missing = missing
        self._connections = connections
        self.begun = asyncio.get_running_loop().create_task(self._begin())
        self.ended: asyncio.Task[None] | None = None

    async def _begin(self) -> Connection | None:
        """A connection with the moment; None when the segment was not made then."""
        connection = await self._connections.take()
        # BEGIN alone waits for the first read to fix the moment; this one also keeps the table from going. Both are one
        # round trip, which a statement that is prepared could not be.
        begin = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT FROM {self._schema}.item LIMIT 1"
        try:
            with self._connections.in_time(connection):
                try:
                    await connection.execute(sql(begin), prepare=False)
                    return connection
                except psycopg.errors.UndefinedTable:
                    await connection.execute("ROLLBACK")
        except psycopg.Error as error:
            await self._connections.give_back(connection)
            raise errors.UNAVAILABLE(reason="The store cannot be reached; nothing was changed.") from error
        await self._connections.give_back(connection)
        await self._missing()
        return None

    async def read_many(self, keys: Sequence[ItemKey]) -> Sequence[Row | None]:
        if not keys:
            return []
        epks, ids = byteas([key.epk for key in keys]), texts([to_text(key.id) for key in keys])
        rows = await self._rows(statements.READ_SEVERAL, (epks, ids))
        by_place = {row[ROW_COLUMNS_COUNT]: self._row_of(row) for row in rows}
        return [by_place.get(place) for place in range(1, len(keys) + 1)]

    async def find(self, number: int) -> Row | None:
        rows = await self._rows(statements.FIND, (number,))
        return self._row_of(rows[0]) if rows else None

    async def scan(self, span: EpkRange, after: int, limit: int, bytes_max: int) -> Sequence[Row]:
        found = await self._rows(statements.SCAN_BYTES, (after, span.min, span.max, limit, bytes_max))
        return [self._row_of(row) for row in found]

    async def _rows(self, text: str, params: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        connection = await asyncio.shield(self.begun)
        if connection is None or self.ended is not None:
            return []
        try:
            with self._connections.in_time(connection):
                cursor = connection.cursor(binary=True)
                await cursor.execute(sql(text.format(s=self._schema)), params)
                return await cursor.fetchall()
        except psycopg.Error as error:
            raise errors.UNAVAILABLE(reason="The snapshot is lost; nothing was changed.") from error

    def close(self) -> None:
        if self.ended is None:
            self.ended = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        try:
            connection = await self.begun
            if connection is None:
                return
            try:
                with self._connections.in_time(connection):
                    await connection.execute("ROLLBACK")
            finally:
                await self._connections.give_back(connection)
        except (psycopg.Error, PleiadError):
            return  # the connection was lost, and the snapshot with it
