"""The SQL of path indexes: their table of contents, their tables and triggers, and the pieces of a build.

Everything here is called with the writer connection and, where it changes the file, inside a transaction.
"""

from __future__ import annotations

import json
from typing import Any

import apsw

from pleiad.store.predicate import RANK_NUMBER, RANK_STRING, ROW_COLUMNS
from pleiad.store.selection import IndexedPath
from pleiad.store.sqlite.json_sql import (
    ELEMENT_RANK,
    ELEMENT_VALUE,
    elements_of,
    json_path,
    literal,
    rank_of,
    value_of,
)

FIRST_PLACE = (-1, 0, 0)
"""Before every entry."""

_CONTENTS = (
    "CREATE TABLE IF NOT EXISTS path_index(id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, "
    "element INTEGER NOT NULL, state TEXT NOT NULL, built_to INTEGER NOT NULL, build_end INTEGER NOT NULL, "
    "items_done INTEGER NOT NULL, used_at REAL NOT NULL)"
)
_HAS_CONTENTS = "SELECT 1 FROM sqlite_schema WHERE name = 'path_index'"
_LOAD = "SELECT id, path, element, state, built_to, build_end, items_done, used_at FROM path_index"
_ADD = "INSERT INTO path_index VALUES(NULL, ?1, ?2, 'building', 0, ?3, 0, ?4)"
SAVE_STATE = "UPDATE path_index SET state = ?2, built_to = ?3, items_done = ?4 WHERE id = ?1"
SAVE_USE = "UPDATE path_index SET used_at = ?2 WHERE id = ?1"

_RUN = "path_run"
_ENTRY_COLUMNS = "(rank, value, number, PRIMARY KEY (rank, value, number)) WITHOUT ROWID"
_CHUNK_END = (
    "SELECT max(number), count(*) FROM "
    "(SELECT number FROM item WHERE number > ?1 AND number <= ?2 ORDER BY number LIMIT ?3)"
)
_PLACE_AT = (
    f"SELECT rank, value, number FROM {_RUN} WHERE (rank, value, number) > (?1, ?2, ?3) "
    "ORDER BY rank, value, number LIMIT 1 OFFSET ?4"
)


def load(connection: apsw.Connection) -> list[Any]:
    """The rows of the table of contents; none while no index was ever made."""
    if connection.execute(_HAS_CONTENTS).fetchone() is None:
        return []
    return connection.execute(_LOAD).fetchall()


def make(connection: apsw.Connection, path: IndexedPath, used_at: float) -> tuple[int, int]:
    """Makes an empty index that every later write is entered in; its id and the highest number before it."""
    connection.execute(_CONTENTS)
    end: Any = connection.execute("SELECT coalesce(max(number), 0) FROM item").fetchone()
    connection.execute(_ADD, (json.dumps(path.path), path.element, end[0], used_at))
    id = connection.last_insert_rowid()
    table = f"path_{id}"
    connection.execute(f"CREATE TABLE {table}{_ENTRY_COLUMNS}")
    put = f"INSERT OR REPLACE INTO {table} {_entries('NEW', path)}; "
    remove = f"{_removal(table, path)}; "
    connection.execute(f"CREATE TRIGGER {table}_insert AFTER INSERT ON item BEGIN {put}END")
    connection.execute(f"CREATE TRIGGER {table}_delete AFTER DELETE ON item BEGIN {remove}END")
    connection.execute(
        f"CREATE TRIGGER {table}_update AFTER UPDATE OF {_column(path)} ON item {_when_changed(path)} "
        f"BEGIN {remove}{put}END"
    )
    return id, end[0]


def drop(connection: apsw.Connection, id: int) -> None:
    """Removes an index whole."""
    for event in ("insert", "delete", "update"):
        connection.execute(f"DROP TRIGGER IF EXISTS path_{id}_{event}")
    connection.execute(f"DROP TABLE IF EXISTS path_{id}")
    connection.execute("DELETE FROM path_index WHERE id = ?1", (id,))


def make_run(connection: apsw.Connection, path: IndexedPath) -> None:
    """Makes the temporary table of a run; what writes make stale leaves it in their transaction.

    Its triggers fire under the same condition as those of the index, which enter what is new: an entry that left
    the run without one entering the index would be lost.
    """
    drop_run(connection)
    connection.execute(f"CREATE TEMP TABLE {_RUN}{_ENTRY_COLUMNS}")
    remove = _removal(_RUN, path)
    connection.execute(f"CREATE TEMP TRIGGER {_RUN}_delete AFTER DELETE ON main.item BEGIN {remove}; END")
    connection.execute(
        f"CREATE TEMP TRIGGER {_RUN}_update AFTER UPDATE OF {_column(path)} ON main.item {_when_changed(path)} "
        f"BEGIN {remove}; END"
    )


def drop_run(connection: apsw.Connection) -> None:
    """Removes the temporary table of a run, if there is one."""
    connection.execute(
        f"DROP TRIGGER IF EXISTS temp.{_RUN}_delete; DROP TRIGGER IF EXISTS temp.{_RUN}_update"
    )
    connection.execute(f"DROP TABLE IF EXISTS temp.{_RUN}")


def gather(
    connection: apsw.Connection, path: IndexedPath, after: int, end: int, items: int
) -> tuple[int, int, int]:
    """Puts the entries of the next items into the run.

    Gives the number the run now reaches to, how many items were added, and the size of the run in bytes.
    """
    found: Any = connection.execute(_CHUNK_END, (after, end, items)).fetchone()
    if found[1] == 0:
        return end, 0, 0
    upto = found[0] if found[1] == items else end
    connection.execute(
        f"INSERT OR IGNORE INTO temp.{_RUN} {_entries('item', path, 'item.number > ?1 AND item.number <= ?2')}",
        (after, upto),
    )
    pages = connection.pragma("page_count", schema="temp")
    return upto, found[1], pages * connection.pragma("page_size", schema="temp")


def enter(
    connection: apsw.Connection, table: str, place: tuple[Any, ...], entries: int
) -> tuple[int, str | int | float, int] | None:
    """Moves the next entries of the run behind a place into the index; the place reached, None at the end."""
    last: Any = connection.execute(_PLACE_AT, (*place, entries - 1)).fetchone()
    copy = (
        f"INSERT OR IGNORE INTO {table} SELECT rank, value, number FROM {_RUN} "
        "WHERE (rank, value, number) > (?1, ?2, ?3)"
    )
    order = "ORDER BY rank, value, number"
    if last is None:
        connection.execute(f"{copy} {order}", place)
        return None
    connection.execute(f"{copy} AND (rank, value, number) <= (?4, ?5, ?6) {order}", (*place, *last))
    rank, value, number = last
    return rank, value, number


def _column(path: IndexedPath) -> str:
    return ROW_COLUMNS.get(path.path, "body")


def _rank_and_value(row: str, path: tuple[str, ...]) -> tuple[str, str]:
    """SQL for what a value index holds of a row."""
    if path == ("id",):
        return str(RANK_STRING), f"{row}.id"
    if path == ("_ts",):
        return str(RANK_NUMBER), f"CAST({row}.ts AS REAL)"
    where = literal(json_path(path))
    return rank_of(f"{row}.body", where), value_of(f"{row}.body", where)


def _entries(row: str, path: IndexedPath, where: str = "") -> str:
    """SQL for the entries of a row of a trigger, or of the items that satisfy a condition."""
    items = f"FROM item WHERE {where}" if where else ""
    if not path.element:
        rank, value = _rank_and_value(row, path.path)
        return f"SELECT {rank}, {value}, {row}.number {items}"
    address = literal(json_path(path.path))
    source = f"json_each({elements_of(f'{row}.body', address)})"
    is_array = f"json_type({row}.body, {address}) = 'array' AND type NOT IN ('array', 'object')"
    tables = f"item CROSS JOIN {source} WHERE {where} AND" if where else f"{source} WHERE"
    return f"SELECT {ELEMENT_RANK}, {ELEMENT_VALUE}, {row}.number FROM {tables} {is_array}"


def _removal(table: str, path: IndexedPath) -> str:
    if path.element:
        return f"DELETE FROM {table} WHERE (rank, value, number) IN ({_entries('OLD', path)})"
    rank, value = _rank_and_value("OLD", path.path)
    return f"DELETE FROM {table} WHERE rank = {rank} AND value = {value} AND number = OLD.number"


def _when_changed(path: IndexedPath) -> str:
    """The condition of update triggers: what the index holds may change. Equal JSON texts are equal values."""
    column = ROW_COLUMNS.get(path.path)
    if column:
        return f"WHEN OLD.{column} IS NOT NEW.{column}"
    where = literal(json_path(path.path))
    return f"WHEN (OLD.body -> {where}) IS NOT (NEW.body -> {where})"
