"""Rows that leave for a segment anywhere, and rows that come from one, written as they were there.

An export is one snapshot on a connection of its own, an import one transaction on the writer; both run in disk threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from pleiad.keys.range import EpkRange
from pleiad.store.checksum import fields_checksum
from pleiad.store.moves import Export, ExportMark, TotalsChange
from pleiad.store.rows import Row, Version, WholeRow
from pleiad.store.sqlite import changes
from pleiad.store.sqlite.rows import checksum_of, stored_body

_IS_THERE = "SELECT 1 FROM item WHERE number = ?1"
_SIZE_BY_NUMBER = "SELECT size_bytes FROM item WHERE number = ?1"
_NUMBER_IN_RANGE = "SELECT number FROM item WHERE number = ?1 AND epk >= ?2 AND epk < ?3"
_NUMBER_BY_ID = "SELECT number FROM item WHERE epk = ?1 AND id = ?2"
_NUMBER_BY_VALUE = "SELECT number FROM unique_value WHERE epk = ?1 AND key = ?2 AND value = ?3"
_FORGET_UNIQUE = "DELETE FROM unique_value WHERE number = ?1"
_FORGET_ITEM = "DELETE FROM item WHERE number = ?1"
_PUT_ITEM = "INSERT INTO item VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
_PUT_UNIQUE = "INSERT INTO unique_value VALUES(?1, ?2, ?3, ?4)"
_PUT_VERSION = (
    "INSERT OR IGNORE INTO version VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
)


def export(
    reader: apsw.Connection, span: EpkRange, after: ExportMark, limit: int, deleted: Sequence[int] | None
) -> Export:
    """The next piece behind a mark; `deleted` is the list that deletes are tracked in, to which others append."""
    reader.execute("BEGIN")
    try:
        rows = changes.rows_behind(reader, span, after.lsn, limit)
        versions = changes.versions_behind(reader, span, after.version_lsn, limit)
        # Looked at when the snapshot has begun: what that has lost is in the list. What it still has was not committed
        # then, or was rolled back; the next piece looks at it again.
        gone, last_delete = [], after.delete
        if deleted is not None and after.delete is not None:
            numbers = deleted[after.delete :]
            is_there = [reader.execute(_IS_THERE, (number,)).fetchone() is not None for number in numbers]
            gone = [number for number, stays in zip(numbers, is_there, strict=True) if not stays]
            last_delete = after.delete + (is_there.index(True) if True in is_there else len(numbers))
    finally:
        reader.execute("ROLLBACK")
    mark = ExportMark(
        rows[-1].lsn if rows else after.lsn, versions[-1].lsn if versions else after.version_lsn, last_delete
    )
    return Export(rows, gone, versions, mark)


def import_rows(
    writer: apsw.Connection,
    span: EpkRange,
    rows: Sequence[WholeRow],
    deletes: Sequence[int],
    versions: Sequence[Version],
) -> TotalsChange:
    """Writes rows in place of what stands in their way, and the versions that are not there."""
    unique = [(row.epk, key, value, row.number) for row, values in rows for key, value in enumerate(values)]
    with writer:
        sizes = _remove(writer, _in_the_way(writer, span, rows, deletes))
        writer.executemany(_PUT_ITEM, [_row_columns(writer, row) for row, _ in rows])
        writer.executemany(_PUT_UNIQUE, unique)
        writer.executemany(_PUT_VERSION, [_version_columns(writer, version) for version in versions])
    return TotalsChange(len(rows) - len(sizes), sum(row.size_bytes for row, _ in rows) - sum(sizes))


def _in_the_way(
    writer: apsw.Connection, span: EpkRange, rows: Sequence[WholeRow], deletes: Iterable[int]
) -> set[int]:
    """The rows that were deleted, and those with a number, an id or a unique value of one that comes."""
    execute = writer.cursor().execute
    found: list[Any] = []
    for number in deletes:
        found += execute(_NUMBER_IN_RANGE, (number, span.min, span.max)).fetchall()
    for row, values in rows:
        found.append((row.number,))
        found += execute(_NUMBER_BY_ID, (row.epk, row.id)).fetchall()
        for key, value in enumerate(values):
            found += execute(_NUMBER_BY_VALUE, (row.epk, key, value)).fetchall()
    return {number for (number,) in found}


def _remove(writer: apsw.Connection, numbers: Iterable[int]) -> list[int]:
    """Removes those of the rows that are there; their sizes."""
    sizes: list[int] = []
    for number in numbers:
        size: Any = writer.execute(_SIZE_BY_NUMBER, (number,)).fetchone()
        if size is not None:
            sizes.append(size[0])
            writer.execute(_FORGET_UNIQUE, (number,))
            writer.execute(_FORGET_ITEM, (number,))
    return sizes


def _row_columns(writer: apsw.Connection, row: Row) -> tuple[str | int | bytes | None, ...]:
    body = stored_body(writer.execute, row.body)
    return (*row[:-1], body, checksum_of(row, body))


def _version_columns(writer: apsw.Connection, version: Version) -> tuple[str | int | bytes | None, ...]:
    columns = (
        *version[:3],
        version.verb.value,
        int(version.is_expiry),
        *version[5:9],
        _image(writer, version.body),
        version.previous_lsn,
        version.previous_ts,
        _image(writer, version.previous_body),
    )
    return (*columns, fields_checksum(*columns))


def _image(writer: apsw.Connection, body: bytes) -> bytes | None:
    """An image of an item; before its creation and after its end there is none."""
    return stored_body(writer.execute, body) if body else None
