"""The SQLite store: a data directory that one server owns.

The directory is locked while a server has it open, so that a second one is refused instead of corrupting it.
Segments open on first use; when too many are open, the idle ones that were opened first close, and open again on
their next use.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

import apsw
import orjson

from pleiad import errors
from pleiad.store.budget import ALL_TO_ONE, BudgetClaim, BudgetParts
from pleiad.store.commits import CommitCounts
from pleiad.store.contract import Record
from pleiad.store.index_use import DEFAULT_INDEX_SETTINGS, IndexSettings
from pleiad.store.sqlite import schema
from pleiad.store.sqlite.file import SegmentFile
from pleiad.store.sqlite.segment import SqliteSegment
from pleiad.store.sqlite.threads import DiskThreads

# Seven file descriptors each at most, so all of them fit the common limit of 1,024 with room for connections.
OPEN_SEGMENTS_MAX = 100
_DISK_THREADS = 4

_HAS_RECORD = "SELECT 1 FROM record WHERE kind = ?1 AND rid = ?2 AND parent = ?3 AND name = ?4 AND body = ?5"

_log = logging.getLogger(__name__)


class StoreLockedError(Exception):
    """Another server has the data directory open."""


class SqliteStore:
    """The contract's Store over files in one directory."""

    is_shared = False

    def __init__(
        self,
        directory: Path,
        durable: bool = True,
        index_settings: IndexSettings = DEFAULT_INDEX_SETTINGS,
        threads: DiskThreads | None = None,
    ) -> None:
        self.directory = directory
        self._durable = durable
        self._index_settings = index_settings
        self._segments_directory = directory / "segments"
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._segments_directory.mkdir(exist_ok=True, mode=0o700)
        self._lock = _lock(directory)
        try:
            self._catalog = schema.connect(directory / "catalog.sqlite", schema.CATALOG, durable)
            self._catalog.execute("PRAGMA wal_autocheckpoint=1000").fetchall()
        except BaseException:
            os.close(self._lock)
            raise
        self._catalog_turn = threading.Lock()
        self._threads = threads or DiskThreads(_DISK_THREADS)
        self.commits = CommitCounts()
        self._segments: dict[str, SqliteSegment] = {}
        self._open: list[SegmentFile] = []

    async def load_records(self) -> Sequence[Record]:
        rows: Any = self._catalog.execute("SELECT kind, rid, parent, name, body FROM record").fetchall()
        return [Record(kind, rid, parent, name, orjson.loads(body)) for kind, rid, parent, name, body in rows]

    async def save_records(
        self,
        puts: Iterable[Record],
        deletes: Iterable[Record],
        expected: Iterable[Record] = (),
        unless_behind: bool = False,
    ) -> bool:
        new = [_columns(record) for record in puts]
        gone = [(record.kind, record.rid) for record in deletes]
        demanded = [_columns(record) for record in expected]
        is_saved = True

        def save() -> None:
            nonlocal is_saved
            with self._catalog_turn, self._catalog:
                is_saved = all(self._catalog.execute(_HAS_RECORD, columns).fetchall() for columns in demanded)
                if not is_saved:
                    return
                self._catalog.executemany("DELETE FROM record WHERE kind = ?1 AND rid = ?2", gone)
                self._catalog.executemany("INSERT OR REPLACE INTO record VALUES(?1, ?2, ?3, ?4, ?5)", new)

        try:
            await self._threads.run_async(save)
        except apsw.Error as error:
            _log.error("a change of the catalog was rolled back: %s", error, exc_info=error)
            raise errors.UNAVAILABLE(reason="The store could not write; nothing was changed.") from error
        return is_saved

    async def is_behind(self) -> bool:
        return False

    def watch(self, changed: Callable[[], None]) -> None:
        """Nobody else changes what this server owns."""

    def lease(self, name: str) -> AbstractAsyncContextManager[bool]:
        return nullcontext(True)

    def alone(self) -> AbstractAsyncContextManager[bool]:
        return nullcontext(True)

    async def share_budgets(
        self, claims: Sequence[BudgetClaim], holds_all: bool, seconds: float
    ) -> BudgetParts:
        return ALL_TO_ONE

    def segment(self, name: str) -> SqliteSegment:
        found = self._segments.get(name)
        if found is None:
            path = self._segments_directory / f"{name}.sqlite"
            found = SqliteSegment(
                path, self._threads, self._durable, self._note_opened, self._index_settings, self.commits
            )
            self._segments[name] = found
        return found

    def _note_opened(self, opened: SegmentFile) -> None:
        """Closes the files of idle segments beyond the limit, those opened first before the others."""
        self._open = [segment for segment in self._open if segment.is_open and segment is not opened]
        for segment in self._open[: max(0, len(self._open) + 1 - OPEN_SEGMENTS_MAX)]:
            if segment.is_idle and not segment.is_tracked:
                segment.close_file()
        self._open.append(opened)

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


def _columns(record: Record) -> tuple[str, str, str, str, str]:
    body = orjson.dumps(record.body, option=orjson.OPT_SORT_KEYS).decode()
    return record.kind, record.rid, record.parent, record.name, body


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
