"""The SQLite store: a data directory that one server owns.

The directory is locked while a server has it open, so that a second one is refused instead of corrupting it.
Segments open on first use and the least recently used idle ones close when too many are open.
"""

from __future__ import annotations

import fcntl
import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from pleiad.store.contract import Record
from pleiad.store.sqlite import schema
from pleiad.store.sqlite.segment import SqliteSegment
from pleiad.store.sqlite.threads import DiskThreads

OPEN_SEGMENTS_MAX = 200
_DISK_THREADS = 4


class StoreLockedError(Exception):
    """Another server has the data directory open."""


class SqliteStore:
    """The contract's Store over files in one directory."""

    def __init__(self, directory: Path, durable: bool = True) -> None:
        self.directory = directory
        self._durable = durable
        self._segments_directory = directory / "segments"
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._segments_directory.mkdir(exist_ok=True, mode=0o700)
        self._lock = _lock(directory)
        self._threads = DiskThreads(_DISK_THREADS)
        self._catalog = schema.connect(directory / "catalog.sqlite", schema.CATALOG, durable)
        self._catalog.execute("PRAGMA wal_autocheckpoint=1000").fetchall()
        self._segments: OrderedDict[str, SqliteSegment] = OrderedDict()

    async def load_records(self) -> Sequence[Record]:
        rows: Any = self._catalog.execute("SELECT kind, rid, parent, name, body FROM record").fetchall()
        return [Record(kind, rid, parent, name, orjson.loads(body)) for kind, rid, parent, name, body in rows]

    async def save_records(self, puts: Iterable[Record], deletes: Iterable[Record]) -> None:
        new = [(r.kind, r.rid, r.parent, r.name, orjson.dumps(r.body).decode()) for r in puts]
        gone = [(record.kind, record.rid) for record in deletes]

        def save() -> None:
            with self._catalog:
                self._catalog.executemany("DELETE FROM record WHERE kind = ?1 AND rid = ?2", gone)
                self._catalog.executemany("INSERT OR REPLACE INTO record VALUES(?1, ?2, ?3, ?4, ?5)", new)

        await self._threads.run_async(save)

    def segment(self, name: str) -> SqliteSegment:
        found = self._segments.get(name)
        if found is not None:
            self._segments.move_to_end(name)
            return found
        segment = SqliteSegment(self._segments_directory / f"{name}.sqlite", self._threads, self._durable)
        self._segments[name] = segment
        self.close_surplus()
        return segment

    def close_surplus(self) -> None:
        """Closes the files of the least recently used idle segments beyond the limit of open files."""
        open_segments = [segment for segment in self._segments.values() if segment.is_open]
        for segment in open_segments[: max(0, len(open_segments) - OPEN_SEGMENTS_MAX)]:
            if segment.is_idle:
                segment.close_file()

    async def drop_segments(self, names: Iterable[str]) -> None:
        for name in names:
            await self.segment(name).drop()
            del self._segments[name]

    async def keep_segments(self, names: Iterable[str]) -> None:
        found = {path.stem for path in self._segments_directory.glob("*.sqlite")}
        await self.drop_segments(sorted(found - set(names)))

    async def close(self) -> None:
        for segment in list(self._segments.values()):
            await segment.settle()
            segment.close_file()
        self._catalog.close()
        self._threads.stop()
        os.close(self._lock)


def _lock(directory: Path) -> int:
    descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise StoreLockedError(
            f"another Pleiad server (process {owner}) has the data directory {directory} open; "
            "stop it, or give this one another directory with --data"
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor
