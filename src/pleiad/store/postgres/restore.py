"""Rows and versions that come from another store, written as they were there: one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pleiad.store.checksum import content_checksum, row_checksum
from pleiad.store.contract import Row, Version, WholeRow
from pleiad.store.postgres import statements
from pleiad.store.postgres.connections import Connection
from pleiad.store.postgres.json_sql import document_of, to_text
from pleiad.store.postgres.mutate import unique_key
from pleiad.store.postgres.schema import sql


async def restore(
    connection: Connection, schema: str, rows: Sequence[WholeRow], versions: Sequence[Version]
) -> None:
    """Writes rows in place of those with their numbers, and the versions that are not there."""

    async def execute(text: str, params: tuple[Any, ...]) -> None:
        await connection.execute(sql(text.format(t=schema)), params)

    async with connection.transaction():
        if rows:
            numbers = [row.number for row, _ in rows]
            await execute(statements.REMOVE, (numbers,))
            await execute(statements.RESTORE_ITEMS, _item_columns(rows))
            await execute(statements.RESTORE_UNIQUE_VALUES, _unique_columns(rows))
            await execute(statements.ENTER, (numbers,))
        if versions:
            await execute(statements.RESTORE_VERSIONS, _version_columns(versions))


def _item_columns(rows: Sequence[WholeRow]) -> tuple[list[Any], ...]:
    kept = [(*row._replace(id=to_text(row.id)), document_of(row.body), _checksum(row)) for row, _ in rows]
    return tuple(map(list, zip(*kept, strict=True)))


def _checksum(row: Row) -> int:
    content = content_checksum(row.epk, row.id.encode(), row.ts, row.ttl, row.size_bytes, row.terms, row.body)
    return row_checksum(content, row.number, row.lsn)


def _unique_columns(rows: Sequence[WholeRow]) -> tuple[list[Any], ...]:
    kept = [
        (row.epk, key, unique_key(value), row.number)
        for row, values in rows
        for key, value in enumerate(values)
    ]
    return tuple(map(list, zip(*kept, strict=True))) if kept else ([], [], [], [])


def _version_columns(versions: Sequence[Version]) -> tuple[list[Any], ...]:
    kept = [
        (*version[:3], version.verb.value, *version[4:7], to_text(version.id), *version[8:])
        for version in versions
    ]
    return tuple(map(list, zip(*kept, strict=True)))
