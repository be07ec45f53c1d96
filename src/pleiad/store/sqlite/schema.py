"""The files of the SQLite store: their tables, their settings and their version.

    DATA/catalog.sqlite            record(kind, rid, parent, name, body), account, segment
    DATA/segments/<name>.sqlite    item, partition, unique_value, version, identity, path_index, path_<id>

An item is one row keyed by its document number; (epk, id) is a unique index beside it. Integer row ids keep the
secondary indexes small and the inserts of a busy partition next to each other. The versions of a container that
keeps them lie in a table of their own, each with both images of the item and without a reference to any other table.

Items, versions, counters and records carry a checksum; it is NULL in rows of the first version of the files. The
catalog knows which segments were made and which are to go; a segment knows whose it is, and the newest change of the
catalog that there was when it was last written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import apsw

from pleiad.store.sqlite.json_sql import register_functions

VERSION = 2

CATALOG = """
CREATE TABLE record(
  kind TEXT NOT NULL, rid TEXT NOT NULL, parent TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, checksum INTEGER,
  PRIMARY KEY (kind, rid)) WITHOUT ROWID;
CREATE UNIQUE INDEX record_name ON record(kind, parent, name);
"""
_CATALOG_2 = """
CREATE TABLE account(id TEXT NOT NULL, generation INTEGER NOT NULL);
CREATE TABLE segment(
  name TEXT PRIMARY KEY, state TEXT NOT NULL, is_stamped INTEGER NOT NULL, reached INTEGER NOT NULL) WITHOUT ROWID;
"""

SEGMENT = """
CREATE TABLE item(
  number INTEGER PRIMARY KEY, epk BLOB NOT NULL, id TEXT NOT NULL, lsn INTEGER NOT NULL, ts INTEGER NOT NULL,
  ttl INTEGER, size_bytes INTEGER NOT NULL, terms INTEGER NOT NULL, body BLOB NOT NULL, checksum INTEGER);
CREATE UNIQUE INDEX item_key ON item(epk, id);
CREATE INDEX item_lsn ON item(lsn);
CREATE INDEX item_ttl ON item(ts + ttl) WHERE ttl > 0;
CREATE TABLE partition(
  id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, lsn INTEGER NOT NULL, next_sequence INTEGER NOT NULL,
  items INTEGER NOT NULL, size_bytes INTEGER NOT NULL, checksum INTEGER);
CREATE TABLE unique_value(
  epk BLOB NOT NULL, key INTEGER NOT NULL, value BLOB NOT NULL, number INTEGER NOT NULL,
  PRIMARY KEY (epk, key, value)) WITHOUT ROWID;
CREATE INDEX unique_value_number ON unique_value(number);
"""

_VERSIONS = """
CREATE TABLE IF NOT EXISTS version(
  lsn INTEGER NOT NULL, epk BLOB NOT NULL, position INTEGER NOT NULL, verb TEXT NOT NULL, is_expiry INTEGER NOT NULL,
  ts INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, size_bytes INTEGER NOT NULL, body BLOB,
  previous_lsn INTEGER NOT NULL, previous_ts INTEGER NOT NULL, previous_body BLOB);
CREATE UNIQUE INDEX IF NOT EXISTS version_place ON version(lsn, epk, position);
CREATE INDEX IF NOT EXISTS version_ts ON version(ts);
CREATE INDEX IF NOT EXISTS version_number ON version(number);
"""
"""Segments of the first days do not have it."""
_IDENTITY = """
CREATE TABLE identity(account TEXT NOT NULL, segment TEXT NOT NULL, generation INTEGER NOT NULL);
"""
_SEGMENT_2 = "ALTER TABLE version ADD COLUMN checksum INTEGER;" + _IDENTITY
"""What new segments and those of the first version lack alike."""

WAL_PAGES_CHECKPOINT = 2_000
WAL_PAGES_TRUNCATE = 16_000
FILE_MODE = 0o600
_MMAP_BYTES = 1 << 30
_OWN_PROCESS = "unix-excl" if "unix-excl" in apsw.vfs_names() else None
"""What locks a file against other processes once and for all, and not for each transaction: where nothing is kept there
is nobody else to read it. Further connections of this process are led to the same locks by the file."""


class SchemaError(Exception):
    """A data file that this version cannot use, with a sentence for the operator."""


def stamp_of(account: str, segment: str) -> int:
    """The number in the header of a segment's file that tells whose it is without opening it; never 0."""
    return crc32(f"{account}/{segment}".encode()) & 0x7FFFFFFF or 1


def connect(path: Path, durable: bool) -> apsw.Connection:
    """Opens a data file for reading and writing; a new one has no tables, and its owner alone may read it."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE))
    connection = apsw.Connection(str(path), vfs=None if durable else _OWN_PROCESS)
    prepare(connection)
    try:
        # mmap saves a copy per page read; checkpoints are ours, so that no commit waits for one.
        connection.execute(
            f"PRAGMA journal_mode=WAL; PRAGMA synchronous={'FULL' if durable else 'OFF'}; "
            f"PRAGMA mmap_size={_MMAP_BYTES}; PRAGMA cache_size=-2000; PRAGMA temp_store=MEMORY; "
            "PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=67108864"
        ).fetchall()
        check_version(path, connection.pragma("user_version"))
    except apsw.NotADBError as error:
        connection.close()
        raise SchemaError(f"{path} is not a data file of Pleiad") from error
    except BaseException:
        connection.close(True)
        raise
    return connection


def check_version(path: Path, found: int) -> None:
    """Refuses what a newer version has written."""
    if found > VERSION:
        raise SchemaError(
            f"{path} was written by a newer Pleiad (format {found}, this one reads up to {VERSION}); upgrade first"
        )


def _change(connection: apsw.Connection, change: Callable[[], None]) -> None:
    """Makes a change of the tables, and the version of the file with it, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        change()
        connection.execute(f"PRAGMA user_version={VERSION}; COMMIT").fetchall()
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def make_catalog(connection: apsw.Connection, account: str, checksum_of: Callable[..., int]) -> None:
    """Makes or brings up to date the tables of the catalog."""
    found = connection.pragma("user_version")

    def change() -> None:
        if found == 0:
            connection.execute(CATALOG).fetchall()
        else:
            connection.execute("ALTER TABLE record ADD COLUMN checksum INTEGER")
            rows = connection.execute("SELECT kind, rid, parent, name, body FROM record").fetchall()
            sums = [(row[0], row[1], checksum_of(*row)) for row in rows]
            connection.executemany("UPDATE record SET checksum = ?3 WHERE kind = ?1 AND rid = ?2", sums)
        connection.execute(_CATALOG_2).fetchall()
        connection.execute("INSERT INTO account VALUES(?1, 0)", (account,))

    if found < VERSION:
        _change(connection, change)


def make_segment(connection: apsw.Connection, account: str, segment: str, generation: int) -> None:
    """Makes or brings up to date the tables of a segment, and writes into it whose it is."""
    found = connection.pragma("user_version")
    if found >= VERSION:
        return

    def change() -> None:
        if found == 0:
            connection.execute(SEGMENT + _VERSIONS + _SEGMENT_2).fetchall()
        else:
            connection.execute(
                f"{_VERSIONS} ALTER TABLE item ADD COLUMN checksum INTEGER; "
                f"ALTER TABLE partition ADD COLUMN checksum INTEGER; {_SEGMENT_2}"
            ).fetchall()
        connection.execute("INSERT INTO identity VALUES(?1, ?2, ?3)", (account, segment, generation))
        connection.execute(f"PRAGMA application_id={stamp_of(account, segment)}").fetchall()

    _change(connection, change)
    # So that the header of the file itself tells what it is: it is looked at before anything is opened.
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def connect_reader(path: Path) -> apsw.Connection:
    """Opens a second connection to an existing data file, for reads only."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    prepare(connection)
    connection.execute(
        f"PRAGMA mmap_size={_MMAP_BYTES}; PRAGMA cache_size=-2000; PRAGMA query_only=1; PRAGMA temp_store=MEMORY"
    ).fetchall()
    return connection


def prepare(connection: apsw.Connection) -> None:
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
    if sys.platform == "win32":  # it opens no directories, and keeps the name of a file with it
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
