"""Rows that leave for a segment anywhere, and rows that come from one, written as they were there.

An export is one snapshot, an import one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pleiad import errors
from pleiad.keys.range import EpkRange
from pleiad.store.checksum import content_checksum, row_checksum
from pleiad.store.moves import Export, ExportMark, TotalsChange
from pleiad.store.postgres import statements
from pleiad.store.postgres.connections import Connection
from pleiad.store.postgres.json_sql import document_of, to_text
from pleiad.store.postgres.mutate import unique_key
from pleiad.store.postgres.rehome import SNAPSHOT
from pleiad.store.postgres.schema import sql
from pleiad.store.postgres.select import version_of
from pleiad.store.rows import Row, Version, WholeRow


async def export(
    connection: Connection,
    schema: str,
    span: EpkRange,
    after: ExportMark,
    limit: int,
    row_of: Callable[[Sequence[Any]], Row],
) -> Export:
    """The next piece behind a mark."""

    async def fetch(text: str, *params: Any) -> list[tuple[Any, ...]]:
        async with connection.cursor(binary=True) as cursor:
            await cursor.execute(sql(text.format(s=schema)), params)
            return await cursor.fetchall()

    bounds = (span.min, span.max)
    deletes: list[tuple[Any, ...]] = []
    async with connection.transaction():
        await connection.execute(SNAPSHOT)
        rows = [row_of(row) for row in await fetch(statements.CHANGES, after.lsn, *bounds, 0, None, limit)]
        found = await fetch(statements.VERSIONS, after.version_lsn, *bounds, None, limit)
        if after.delete is not None:
            if await fetch(statements.TRACKS_DELETES) != [(True,)]:
                raise errors.UNAVAILABLE(reason="The deletes of the segment are not tracked.")
            deletes = await fetch(statements.DELETED, after.delete, *bounds)
    versions = [version_of(row) for row in found]
    mark = ExportMark(
        rows[-1].lsn if rows else after.lsn,
        versions[-1].lsn if versions else after.version_lsn,
        max((sequence for sequence, _ in deletes), default=after.delete),
    )
    return Export(rows, [number for _, number in deletes], versions, mark)


async def import_rows(
    connection: Connection,
    schema: str,
    span: EpkRange,
    rows: Sequence[WholeRow],
    deletes: Sequence[int],
    versions: Sequence[Version],
) -> TotalsChange:
    """Writes rows in place of what stands in their way, and the versions that are not there."""

    async def execute(text: str, params: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        cursor = await connection.execute(sql(text.format(t=schema)), params)
        return await cursor.fetchall() if cursor.description is not None else []

    numbers = [row.number for row, _ in rows]
    unique = _unique_columns(rows)
    async with connection.transaction():
        keys = ([row.epk for row, _ in rows], [to_text(row.id) for row, _ in rows])
        wanted = (list(deletes), span.min, span.max, numbers, *keys, *unique[:3])
        found = await execute(statements.IN_THE_WAY_OF_IMPORT, wanted)
        gone = await execute(statements.REMOVE, ([number for (number,) in found],)) if found else []
        if rows:
            await execute(statements.IMPORT_ITEMS, _item_columns(rows))
            await execute(statements.IMPORT_UNIQUE_VALUES, unique)
            await execute(statements.ENTER, (numbers,))
        if versions:
            await execute(statements.IMPORT_VERSIONS, _version_columns(versions))
    return TotalsChange(
        len(rows) - len(gone), sum(row.size_bytes for row, _ in rows) - sum(size for size, _ in gone)
    )


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
