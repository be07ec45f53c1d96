"""The files of the SQLite store: their tables, their settings and their version.

    DATA/catalog.sqlite            record(kind, rid, parent, name, body)
    DATA/segments/<name>.sqlite    item, partition, unique_value, version, path_index, path_<id>

An item is one row keyed by its document number; (epk, id) is a unique index beside it. Integer row ids keep the
secondary indexes small and the inserts of a busy partition next to each other. The versions of a container that
keeps them lie in a table of their own, each with both images of the item and without a reference to any other table.
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from pleiad.store.sqlite.json_sql import register_functions

VERSION = 1

CATALOG = """
CREATE TABLE record(
  kind TEXT NOT NULL, rid TEXT NOT NULL, parent TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (kind, rid)) WITHOUT ROWID;
CREATE UNIQUE INDEX record_name ON record(kind, parent, name);
"""

SEGMENT = """
CREATE TABLE item(
  number INTEGER PRIMARY KEY, epk BLOB NOT NULL, id TEXT NOT NULL, lsn INTEGER NOT NULL, ts INTEGER NOT NULL,
  ttl INTEGER, size_bytes INTEGER NOT NULL, terms INTEGER NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX item_key ON item(epk, id);
CREATE INDEX item_lsn ON item(lsn);
CREATE INDEX item_ttl ON item(ts + ttl) WHERE ttl > 0;
CREATE TABLE partition(
  id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, lsn INTEGER NOT NULL, next_sequence INTEGER NOT NULL,
  items INTEGER NOT NULL, size_bytes INTEGER NOT NULL);
CREATE TABLE unique_value(
  epk BLOB NOT NULL, key INTEGER NOT NULL, value BLOB NOT NULL, number INTEGER NOT NULL,
  PRIMARY KEY (epk, key, value)) WITHOUT ROWID;
CREATE INDEX unique_value_number ON unique_value(number);
"""

VERSIONS = """
CREATE TABLE IF NOT EXISTS version(
  lsn INTEGER NOT NULL, epk BLOB NOT NULL, position INTEGER NOT NULL, verb TEXT NOT NULL, is_expiry INTEGER NOT NULL,
  ts INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, size_bytes INTEGER NOT NULL, body BLOB,
  previous_lsn INTEGER NOT NULL, previous_ts INTEGER NOT NULL, previous_body BLOB);
CREATE UNIQUE INDEX IF NOT EXISTS version_place ON version(lsn, epk, position);
CREATE INDEX IF NOT EXISTS version_ts ON version(ts);
CREATE INDEX IF NOT EXISTS version_number ON version(number);
"""
"""Made when a segment is opened: files of the first days do not have it."""

WAL_PAGES_CHECKPOINT = 1_000
WAL_PAGES_TRUNCATE = 16_000
_MMAP_BYTES = 1 << 30


class SchemaError(Exception):
    """A data file that this version cannot use, with a sentence for the operator."""


def connect(path: Path, tables: str, durable: bool) -> apsw.Connection:
    """Opens a data file for reading and writing, making and stamping it when it is new."""
    connection = apsw.Connection(str(path))
    _prepare(connection)
    try:
        # mmap saves a copy per page read; checkpoints are ours, so that no commit waits for one.
        connection.execute(
            f"PRAGMA journal_mode=WAL; PRAGMA synchronous={'FULL' if durable else 'OFF'}; "
            f"PRAGMA mmap_size={_MMAP_BYTES}; PRAGMA cache_size=-2000; PRAGMA temp_store=MEMORY; "
            "PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=67108864"
        ).fetchall()
    except apsw.NotADBError as error:
        connection.close()
        raise SchemaError(f"{path} is not a data file of Pleiad") from error
    found = connection.pragma("user_version")
    if found > VERSION:
        connection.close()
        raise SchemaError(
            f"{path} was written by a newer Pleiad (format {found}, this one reads up to {VERSION}); upgrade first"
        )
    if found == 0:
        connection.execute(f"BEGIN IMMEDIATE; {tables}; PRAGMA user_version={VERSION}; COMMIT")
    return connection


def connect_reader(path: Path) -> apsw.Connection:
    """Opens a second connection to an existing data file, for reads only."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    _prepare(connection)
    connection.execute(
        f"PRAGMA mmap_size={_MMAP_BYTES}; PRAGMA cache_size=-2000; PRAGMA query_only=1; PRAGMA temp_store=MEMORY"
    ).fetchall()
    return connection


def _prepare(connection: apsw.Connection) -> None:
    """What every connection has: patience, our functions, and plans that last.

    Without the last, SQLite plans a statement anew each time a value is bound to its LIMIT.
    """
    connection.set_busy_timeout(10_000)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    register_functions(connection)


def has_age_index(connection: apsw.Connection) -> bool:
    """Whether the segment has the index that only containers with a default TTL need."""
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'item_age'").fetchone() is not None


def sync_directory(directory: Path) -> None:
    """Makes the entries of new files durable; a file without its name is lost."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
