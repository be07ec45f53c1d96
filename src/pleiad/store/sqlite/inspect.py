"""Looking through the whole of one segment: every row against its checksum, the indexes against the rows and back.

It goes in slices, each a short snapshot of its own, so that it can run beside a server that writes: what it compares is
compared within one slice. Damage of the pages themselves shows as an error of SQLite on the way; a damaged index as a
row it does not lead to, or an entry that leads to no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import apsw

from pleiad.store.checksum import DamagedRowError
from pleiad.store.sqlite.failure import READ_FAILURES, damage_of
from pleiad.store.sqlite.path_index_sql import FIRST_PLACE
from pleiad.store.sqlite.rows import ROW, STATE, VERSION, checked_row, checked_state, checked_version

_ROWS = f"SELECT {ROW} FROM item NOT INDEXED WHERE number > ?1 ORDER BY number LIMIT ?2"
_NOT_BY_KEY = (
    "SELECT number FROM (SELECT number, epk, id FROM item NOT INDEXED WHERE number > ?1 AND number <= ?2) AS row "
    "WHERE NOT EXISTS (SELECT 1 FROM item INDEXED BY item_key WHERE epk = row.epk AND id = row.id "
    "AND number = row.number) LIMIT 1"
)
_NOT_BY_LSN = (
    "SELECT number FROM (SELECT number, lsn FROM item NOT INDEXED WHERE number > ?1 AND number <= ?2) AS row "
    "WHERE NOT EXISTS (SELECT 1 FROM item INDEXED BY item_lsn WHERE lsn = row.lsn AND number = row.number) LIMIT 1"
)
_KEYS = "SELECT epk, id, number FROM item INDEXED BY item_key WHERE (epk, id) > (?1, ?2) ORDER BY epk, id LIMIT ?3"
_LSNS = "SELECT lsn, number FROM item INDEXED BY item_lsn WHERE (lsn, number) > (?1, ?2) ORDER BY lsn, number LIMIT ?3"
_ROW_BY_NUMBER = "SELECT epk, id, lsn FROM item NOT INDEXED WHERE number = ?1"
_VERSIONS = f"SELECT {VERSION}, rowid FROM version NOT INDEXED WHERE rowid > ?1 ORDER BY rowid LIMIT ?2"
_UNIQUE = (
    "SELECT number FROM unique_value AS value "
    "WHERE NOT EXISTS (SELECT 1 FROM item WHERE item.number = value.number) LIMIT 1"
)
_TABLES = "SELECT name FROM sqlite_schema WHERE name GLOB 'path_[0-9]*' AND type = 'table'"
_ENTRIES = (
    "SELECT rank, value, number FROM {table} WHERE (rank, value, number) > (?1, ?2, ?3) "
    "ORDER BY rank, value, number LIMIT ?4"
)
_READY = "SELECT id FROM path_index WHERE state = 'ready' AND element = 0"
SLICE_ROWS = 500


@dataclass(slots=True)
class Seen:
    """What a look through a segment has met."""

    items: int = 0
    size_bytes: int = 0
    without_checksum: int = 0
    versions: int = 0


Pause = Callable[[], None]
"""Called between two slices with no snapshot held; may take its time."""


def inspect(
    connection: apsw.Connection, pause: Pause, seen: Seen, slice_rows: int = SLICE_ROWS
) -> Iterator[str]:
    """Looks through a segment of which nothing may be missing; a sentence for each damage, and the end at the first
    that keeps it from going on."""
    for part in (_counters, _items, _keys, _lsns, _versions, _path_indexes):
        try:
            yield from part(connection, pause, seen, slice_rows)
        except READ_FAILURES as error:
            damage = damage_of(error, is_read=True)
            if damage is None:
                raise
            yield damage
            return


def _counters(connection: apsw.Connection, pause: Pause, seen: Seen, slice_rows: int) -> Iterator[str]:
    for row in connection.execute(f"SELECT {STATE} FROM partition").fetchall():
        try:
            checked_state(row)
        except DamagedRowError as error:
            yield str(error)


def _items(connection: apsw.Connection, pause: Pause, seen: Seen, slice_rows: int) -> Iterator[str]:
    after = 0
    while True:
        with connection:
            rows: Any = connection.execute(_ROWS, (after, slice_rows)).fetchall()
            lost: list[Any] = []
            if rows:
                bounds = (after, rows[-1][0])
                lost = [connection.execute(text, bounds).fetchall() for text in (_NOT_BY_KEY, _NOT_BY_LSN)]
        for columns in rows:
            try:
                checked_row(columns)
            except DamagedRowError as error:
                yield str(error)
            seen.items += 1
            seen.without_checksum += columns[10] is None
        for found, name in zip(lost, ("of keys", "of LSNs"), strict=False):
            if found:
                yield f"the index {name} does not lead to the row with number {found[0][0]}"
        if len(rows) < slice_rows:
            return
        after = rows[-1][0]
        pause()


def _keys(connection: apsw.Connection, pause: Pause, seen: Seen, slice_rows: int) -> Iterator[str]:
    place: tuple[bytes, str] = (b"", "")
    while True:
        with connection:
            entries: Any = connection.execute(_KEYS, (*place, slice_rows)).fetchall()
            rows = [connection.execute(_ROW_BY_NUMBER, (number,)).fetchone() for *_, number in entries]
        for (epk, id, number), row in zip(entries, rows, strict=True):
            if row is None or row[:2] != (epk, id) or (epk, id) <= place:
                yield f"the index of keys has an entry that is not that of the row with number {number}"
                return
            place = (epk, id)
        if len(entries) < slice_rows:
            return
        pause()


def _lsns(connection: apsw.Connection, pause: Pause, seen: Seen, slice_rows: int) -> Iterator[str]:
    place = (-1, -1)
    while True:
        with connection:
            entries: Any = connection.execute(_LSNS, (*place, slice_rows)).fetchall()
            rows = [connection.execute(_ROW_BY_NUMBER, (number,)).fetchone() for _, number in entries]
        for (lsn, number), row in zip(entries, rows, strict=True):
            if row is None or row[2] != lsn or (lsn, number) <= place:
                yield f"the index of LSNs has an entry that is not that of the row with number {number}"
                return
            place = (lsn, number)
        if len(entries) < slice_rows:
            return
        pause()


def _versions(connection: apsw.Connection, pause: Pause, seen: Seen, slice_rows: int) -> Iterator[str]:
    after = 0
    while True:
        rows: Any = connection.execute(_VERSIONS, (after, slice_rows)).fetchall()
        for *columns, _ in rows:
            try:
                checked_version(tuple(columns))
            except DamagedRowError as error:
                yield str(error)
            seen.versions += 1
        if len(rows) < slice_rows:
            return
        after = rows[-1][-1]
        pause()


def _path_indexes(connection: apsw.Connection, pause: Pause, seen: Seen, slice_rows: int) -> Iterator[str]:
    for name in [str(name) for (name,) in connection.execute(_TABLES).fetchall()]:
        place: tuple[Any, ...] = FIRST_PLACE
        while True:
            with connection:
                entries: Any = connection.execute(
                    _ENTRIES.format(table=name), (*place, slice_rows)
                ).fetchall()
                rows = [connection.execute(_ROW_BY_NUMBER, (number,)).fetchone() for *_, number in entries]
            if None in rows:
                yield f"the path index {name} has an entry that leads to no row"
            if None in rows or len(entries) < slice_rows:
                break
            place = entries[-1]
            pause()


def inspect_at_rest(connection: apsw.Connection, seen: Seen) -> Iterator[str]:
    """Looks through a segment that nobody writes to: all of the above, SQLite's own check, and what must add up."""
    try:
        faults = list(inspect(connection, lambda: None, seen))
        yield from faults
        if faults:
            return
        for (line,) in connection.execute("PRAGMA integrity_check(3)").fetchall():
            if line != "ok":
                yield f"SQLite finds: {line}"
        if connection.execute(_UNIQUE).fetchall():
            yield "a unique value belongs to no row"
        yield from _counts_of_path_indexes(connection, seen)
    except READ_FAILURES as error:
        yield damage_of(error, is_read=True) or f"it cannot be read ({error})"


def _counts_of_path_indexes(connection: apsw.Connection, seen: Seen) -> Iterator[str]:
    """A ready index on a value has one entry for each row."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'path_index'").fetchall():
        return
    for (id,) in connection.execute(_READY).fetchall():
        count: Any = connection.execute(f"SELECT count(*) FROM path_{id}").fetchone()
        if count[0] != seen.items:
            yield f"the path index path_{id} has {count[0]:,} entries for {seen.items:,} rows"
