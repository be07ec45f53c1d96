"""Rows and versions that come from another store, written as they were there: one transaction on the writer."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from pleiad.store.checksum import fields_checksum
from pleiad.store.contract import Row, Version, WholeRow
from pleiad.store.sqlite.rows import checksum_of, stored_body

_FORGET_UNIQUE = "DELETE FROM unique_value WHERE number = ?1"
_FORGET_ITEM = "DELETE FROM item WHERE number = ?1"
_PUT_ITEM = "INSERT INTO item VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
_PUT_UNIQUE = "INSERT INTO unique_value VALUES(?1, ?2, ?3, ?4)"
_PUT_VERSION = (
    "INSERT OR IGNORE INTO version VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
)


def restore(writer: apsw.Connection, rows: Sequence[WholeRow], versions: Sequence[Version]) -> None:
    """Writes rows in place of those with their numbers, and the versions that are not there."""
    numbers = [(row.number,) for row, _ in rows]
    unique = [(row.epk, key, value, row.number) for row, values in rows for key, value in enumerate(values)]
    with writer:
        writer.executemany(_FORGET_UNIQUE, numbers)
        writer.executemany(_FORGET_ITEM, numbers)
        writer.executemany(_PUT_ITEM, [_row_columns(writer, row) for row, _ in rows])
        writer.executemany(_PUT_UNIQUE, unique)
        writer.executemany(_PUT_VERSION, [_version_columns(writer, version) for version in versions])


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
