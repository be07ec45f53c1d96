"""Rows and versions that come from another store, written as they were there: one transaction on the writer."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from pleiad.store.contract import Version, WholeRow

_FORGET_UNIQUE = "DELETE FROM unique_value WHERE number = ?1"
_FORGET_ITEM = "DELETE FROM item WHERE number = ?1"
_PUT_ITEM = "INSERT INTO item VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, jsonb(?9))"
_PUT_UNIQUE = "INSERT INTO unique_value VALUES(?1, ?2, ?3, ?4)"
_PUT_VERSION = (
    "INSERT OR IGNORE INTO version "
    "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, jsonb(?10), ?11, ?12, jsonb(?13))"
)


def restore(writer: apsw.Connection, rows: Sequence[WholeRow], versions: Sequence[Version]) -> None:
    """Writes rows in place of those with their numbers, and the versions that are not there."""
    numbers = [(row.number,) for row, _ in rows]
    unique = [(row.epk, key, value, row.number) for row, values in rows for key, value in enumerate(values)]
    with writer:
        writer.executemany(_FORGET_UNIQUE, numbers)
        writer.executemany(_FORGET_ITEM, numbers)
        writer.executemany(_PUT_ITEM, [(*row[:-1], row.body.decode()) for row, _ in rows])
        writer.executemany(_PUT_UNIQUE, unique)
        writer.executemany(_PUT_VERSION, map(_columns, versions))


def _columns(version: Version) -> tuple[str | int | bytes | None, ...]:
    return (
        *version[:3],
        version.verb.value,
        *version[4:9],
        _image(version.body),
        version.previous_lsn,
        version.previous_ts,
        _image(version.previous_body),
    )


def _image(body: bytes) -> str | None:
    """An image of an item; before its creation and after its end there is none."""
    return body.decode() or None
