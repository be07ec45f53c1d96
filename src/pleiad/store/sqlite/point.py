"""One point in time over all files of an account: read snapshots of the catalog and of every segment that has changed.

The snapshots are begun in one go while nothing is acknowledged. So everything that was acknowledged before is in them,
and what was on its way is in them or not, as after a crash at that moment: a write that is in them was begun before any
write that is not was acknowledged. Writers wait for nothing but that moment.

The catalog is first. A segment that it does not know yet has acknowledged nothing.

A file that was not written to since it was last copied needs no snapshot. That is told by its signature: number, size
and time of the file and of its log. A signature whose times lie less than `SETTLED_SECONDS` back tells nothing, since
another write might leave the same one.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import apsw

from pleiad.store.sqlite import directory as files
from pleiad.store.sqlite import schema

SETTLED_SECONDS = 2.0
Signature = tuple[int, ...]
_NO_FILE = (0, 0, 0)
_ACCOUNT = "SELECT id, generation FROM account"
_MADE = "SELECT name FROM segment WHERE state = 'made'"


def signature_of(path: Path) -> Signature:
    """What tells one state of a database file, with its log, from another."""
    numbers: list[int] = []
    for suffix in ("", "-wal"):
        try:
            found = os.stat(f"{path}{suffix}")
        except FileNotFoundError:
            numbers += _NO_FILE
            continue
        # An empty log is made and removed by whoever looks at the file.
        is_there = found.st_size > 0
        numbers += (found.st_ino, found.st_size, found.st_mtime_ns) if is_there else _NO_FILE
    return tuple(numbers)


def is_settled(signature: Signature, now: float) -> bool:
    """Whether a later write would certainly have left another signature."""
    return written_at_ns(signature) < (now - SETTLED_SECONDS) * 1e9


def written_at_ns(signature: Signature) -> int:
    """When the file or its log was last written to."""
    return max(signature[2], signature[5])


def log_bytes(signature: Signature) -> int:
    return signature[4]


class PointInTime:
    """Connections to the files of an account; since `take` each of them sees the same moment."""

    def __init__(self, directory: Path) -> None:
        """Opens the catalog; SchemaError when it is not one that this version has brought up to date."""
        self._directory = directory
        path = directory / files.CATALOG_FILE
        self.catalog = _connect(path)
        try:
            version = self.catalog.pragma("user_version")
            schema.check_version(path, version)
            if version < schema.VERSION:
                raise schema.SchemaError(f"{path} is of an older version: start a server on it once")
            row: Any = self.catalog.execute(_ACCOUNT).fetchone()
        except BaseException:
            self.catalog.close()
            raise
        self.account = str(row[0])
        self.generation = 0
        self.taken_at = 0.0
        self.segments: dict[str, apsw.Connection] = {}
        self.signatures: dict[str, Signature] = {}
        """Of each segment at the point in time."""

    def path_of(self, name: str) -> Path:
        return self._directory / "segments" / f"{name}.sqlite"

    def made(self) -> list[str]:
        """The segments there are, by what the catalog says now or at the point in time."""
        rows: Any = self.catalog.execute(_MADE).fetchall()
        return sorted(name for (name,) in rows)

    def open(self, names: Iterable[str]) -> None:
        """Opens segments whose snapshots will be needed; not at the moment itself, since it takes a while."""
        for name in names:
            if name not in self.segments:
                # One that was dropped meanwhile is not asked for again.
                with contextlib.suppress(apsw.CantOpenError):
                    self.segments[name] = _connect(self.path_of(name))

    def take(self, known: Mapping[str, Signature]) -> list[str]:
        """Begins all snapshots. The segments that are neither open nor as they are known; when there are some, nothing
        was begun. To be called while nothing is acknowledged."""
        self.catalog.execute("BEGIN")
        row: Any = self.catalog.execute(_ACCOUNT).fetchone()
        self.generation = int(row[1])
        self.taken_at = time.time()
        self.signatures = {name: signature_of(self.path_of(name)) for name in self.made()}
        lacking = [
            name
            for name, signature in self.signatures.items()
            if name not in self.segments and known.get(name) != signature
        ]
        if lacking:
            self.catalog.execute("ROLLBACK")
            return lacking
        for name in self.segments:
            self.begin(name)
        return []

    def begin(self, name: str) -> None:
        """Begins the snapshot of one open segment."""
        self.segments[name].execute("BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()

    def end(self, name: str) -> None:
        """Lets go of the snapshot of a segment."""
        connection = self.segments.pop(name, None)
        if connection is not None:
            connection.close(True)

    def close(self) -> None:
        for connection in (*self.segments.values(), self.catalog):
            with contextlib.suppress(apsw.Error):
                connection.close(True)
        self.segments.clear()


def _connect(path: Path) -> apsw.Connection:
    """A connection that leaves the file and its log as they are, also when it is the last one."""
    connection = schema.connect_reader(path)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    return connection
