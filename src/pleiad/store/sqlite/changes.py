"""What changed in a segment: rows by the LSN of their last change, and the versions of all changes.

Rows are found by walking the LSN index. A range or a time that few rows satisfy makes that walk long, so it goes in
windows of LSNs, each one short statement; between windows other work of the event loop runs.

A version is written by copying the old image inside SQLite, so that a mutation that does not need the old body does
not load it either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import apsw

from pleiad.keys.range import EpkRange
from pleiad.store.checksum import created_checksum
from pleiad.store.rows import Mutation, PartitionWrite, Row, Verb, Version
from pleiad.store.sqlite.rows import ROW, VERSION, VERSION_CHECKSUM, checked_row, checked_version

if TYPE_CHECKING:
    from pleiad.store.sqlite.reads import Read  # a file that is read is one that changes are written to

_WINDOW_LSNS = 5_000
_LSN_MAX = 2**63 - 1
_IN_RANGE = "epk >= ?2 AND epk < ?3"
_NEXT_CHANGE = "SELECT min(lsn) FROM item WHERE lsn > ?1"
_CHANGES = (
    f"SELECT {ROW} FROM item INDEXED BY item_lsn WHERE lsn > ?1 AND {_IN_RANGE} AND ts >= ?4 AND lsn <= ?5 "
    "ORDER BY lsn, number LIMIT ?6"
)
_CHANGES_ALONGSIDE = (
    f"SELECT {ROW} FROM item WHERE lsn = ?1 AND {_IN_RANGE} AND ts >= ?4 AND number > ?5 ORDER BY number"
)
_NEXT_VERSION = "SELECT min(lsn) FROM version WHERE lsn > ?1"
_VERSIONS = (
    f"SELECT {VERSION} FROM version INDEXED BY version_place WHERE lsn > ?1 AND {_IN_RANGE} AND lsn <= ?4 "
    "ORDER BY lsn, epk, position LIMIT ?5"
)
_VERSIONS_ALONGSIDE = (
    f"SELECT {VERSION} FROM version WHERE lsn = ?1 AND {_IN_RANGE} AND (epk, position) > (?4, ?5) "
    "ORDER BY epk, position"
)
_LAST_LSN = "SELECT lsn FROM partition WHERE id = ?1"
_COLUMNS = (
    "lsn, epk, position, verb, is_expiry, ts, number, id, size_bytes, "
    "body, previous_lsn, previous_ts, previous_body"
)


def _insert(values: str, source: str = "") -> str:
    """Writes one version, given as SQL for each of its columns, with its checksum."""
    named = ", ".join(
        f"{value} AS {column}"
        for value, column in zip(values.split(" | "), _COLUMNS.split(", "), strict=True)
    )
    return f"INSERT INTO version SELECT {_COLUMNS}, {VERSION_CHECKSUM} FROM (SELECT {named} {source})"


_CREATE = Verb.CREATE.value
_CREATED = f"INSERT INTO version VALUES({', '.join('?' * 14)})"
_REPLACED = _insert(
    "?1 | ?2 | ?3 | 'replace' | 0 | ?4 | number | ?6 | ?7 + size_bytes | ?8 | lsn | ts | body",
    "FROM item WHERE number = ?5",
)
_REMOVED = _insert(
    "?1 | epk | ?2 | 'delete' | ?3 | ?4 | number | id | size_bytes | NULL | lsn | ts | body",
    "FROM item WHERE number = ?5",
)
_OLD_VERSION = "SELECT 1 FROM version WHERE ts < ?1 LIMIT 1"
_FORGET = (
    "DELETE FROM version WHERE rowid IN (SELECT rowid FROM version INDEXED BY version_ts WHERE ts < ?1 "
    "ORDER BY ts LIMIT ?2)"
)


def rows_behind(connection: apsw.Connection, span: EpkRange, after_lsn: int, limit: int) -> list[Row]:
    """Rows of a range by the LSN of their last change, in one statement however long it takes."""
    bounds = (span.min, span.max, 0)
    found: list[Any] = connection.execute(_CHANGES, (after_lsn, *bounds, _LSN_MAX, limit)).fetchall()
    rows = list(map(checked_row, found))
    if len(rows) >= limit:
        last = rows[-1]
        more: Any = connection.execute(_CHANGES_ALONGSIDE, (last.lsn, *bounds, last.number)).fetchall()
        rows += map(checked_row, more)
    return rows


def versions_behind(connection: apsw.Connection, span: EpkRange, after_lsn: int, limit: int) -> list[Version]:
    """Versions of a range in their order, in one statement however long it takes."""
    bounds = (span.min, span.max)
    found: list[Any] = connection.execute(_VERSIONS, (after_lsn, *bounds, _LSN_MAX, limit)).fetchall()
    versions = list(map(checked_version, found))
    if len(versions) >= limit:
        last = versions[-1]
        place = (last.lsn, *bounds, last.epk, last.position)
        more: Any = connection.execute(_VERSIONS_ALONGSIDE, place).fetchall()
        versions += map(checked_version, more)
    return versions


async def changes(
    read: Read, span: EpkRange, after_lsn: int, limit: int, since_ts: int, partition: int | None
) -> list[Row]:
    """Rows of a range by the LSN of their last change, as the contract promises them."""
    rows: list[Row] = []
    last_lsn = _last_lsn(read, partition)
    bounds = (span.min, span.max, since_ts)
    while (reading := read()) is not None:
        connection = reading.connection
        upto = _end_of_window(connection, _NEXT_CHANGE, after_lsn, last_lsn)
        if upto is None:
            break
        found: Any = connection.execute(_CHANGES, (after_lsn, *bounds, upto, limit - len(rows))).fetchall()
        rows += map(checked_row, found)
        if len(rows) >= limit:
            last = rows[-1]
            more: Any = connection.execute(_CHANGES_ALONGSIDE, (last.lsn, *bounds, last.number)).fetchall()
            rows += map(checked_row, more)
            break
        after_lsn = upto
        await asyncio.sleep(0)
    return rows


async def versions(
    read: Read, span: EpkRange, after_lsn: int, limit: int, partition: int | None
) -> list[Version]:
    """Versions of a range in their order, as the contract promises them."""
    found: list[Version] = []
    last_lsn = _last_lsn(read, partition)
    bounds = (span.min, span.max)
    while (reading := read()) is not None:
        connection = reading.connection
        upto = _end_of_window(connection, _NEXT_VERSION, after_lsn, last_lsn)
        if upto is None:
            break
        rows: Any = connection.execute(_VERSIONS, (after_lsn, *bounds, upto, limit - len(found))).fetchall()
        found += map(checked_version, rows)
        if len(found) >= limit:
            last = found[-1]
            place = (last.lsn, *bounds, last.epk, last.position)
            more: Any = connection.execute(_VERSIONS_ALONGSIDE, place).fetchall()
            found += map(checked_version, more)
            break
        after_lsn = upto
        await asyncio.sleep(0)
    return found


def _end_of_window(connection: apsw.Connection, statement: str, after_lsn: int, last_lsn: int) -> int | None:
    """The last LSN of the window that begins with the next LSN in use; None when there is none."""
    found: Any = connection.execute(statement, (after_lsn,)).fetchone()
    if found[0] is None or found[0] > last_lsn:
        return None
    return min(int(found[0]) + _WINDOW_LSNS, last_lsn)


def _last_lsn(read: Read, partition: int | None) -> int:
    """The last LSN of a partition now, or the highest there can be."""
    reading = read()
    found: Any = reading and reading.connection.execute(_LAST_LSN, (partition,)).fetchone()
    return int(found[0]) if found else _LSN_MAX


def has_versions_before(connection: apsw.Connection, ts: int) -> bool:
    return connection.execute(_OLD_VERSION, (ts,)).fetchone() is not None


def forget_versions(writer: apsw.Connection, before_ts: int, limit: int) -> int:
    """Removes old versions in a transaction of its own; how many."""
    writer.execute(_FORGET, (before_ts, limit))
    return writer.changes()


class VersionLog:
    """Writes the versions of one segment, in the transaction that changes the rows."""

    def __init__(self, execute: Callable[..., apsw.Cursor]) -> None:
        self._execute = execute
        self._position = 0

    def begin(self) -> None:
        """Begins the versions of the next write."""
        self._position = 0

    def note_put(
        self, write: PartitionWrite, mutation: Mutation, body: bytes, lsn: int, number: int, is_new: bool
    ) -> None:
        """Remembers a row that is about to be inserted or overwritten with a body in its stored form."""
        id, size_bytes, position = mutation.id_after, mutation.size_bytes, self._position
        self._position += 1
        if is_new:
            # There is no old image to copy, so all of it is known here, its checksum too.
            epk, now = mutation.epk, write.now
            checksum = created_checksum(lsn, epk, position, now, number, id, size_bytes, body)
            columns = (
                lsn,
                epk,
                position,
                _CREATE,
                0,
                now,
                number,
                id,
                size_bytes,
                body,
                0,
                0,
                None,
                checksum,
            )
            self._execute(_CREATED, columns)
        else:
            place = (lsn, mutation.epk, position, write.now, number)
            self._execute(_REPLACED, (*place, id, size_bytes, body))

    def note_removal(self, write: PartitionWrite, number: int, lsn: int, is_expiry: bool) -> None:
        """Remembers a row that is about to be deleted."""
        self._execute(_REMOVED, (lsn, self._position, int(is_expiry), write.now, number))
        self._position += 1
