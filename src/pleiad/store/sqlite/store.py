"""The SQLite store: a data directory that one server owns.

The directory is locked while a server has it open, so that a second one is refused instead of corrupting it.
Segments open on first use; when too many are open, the idle ones that were opened first close, and open again on
their next use.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

import apsw
import orjson

from pleiad import errors
from pleiad.store.budget import ALL_TO_ONE, BudgetClaim, BudgetParts
from pleiad.store.catalog import Record
from pleiad.store.checksum import fields_checksum
from pleiad.store.commits import CommitCounts
from pleiad.store.figures import StoreFigures
from pleiad.store.index_use import DEFAULT_INDEX_SETTINGS, IndexSettings
from pleiad.store.problems import OUT_OF_SERVICE, Problems
from pleiad.store.segments import FIRST_NODE
from pleiad.store.sqlite import directory as files
from pleiad.store.sqlite import reconcile, schema
from pleiad.store.sqlite.failure import is_disk
from pleiad.store.sqlite.file import SegmentFile
from pleiad.store.sqlite.file_system import file_system_of
from pleiad.store.sqlite.kept_rows import KeptBytes
from pleiad.store.sqlite.registry import Registry
from pleiad.store.sqlite.rounds import CommitRounds
from pleiad.store.sqlite.schema import SchemaError
from pleiad.store.sqlite.scrub import Scrub
from pleiad.store.sqlite.segment import SqliteSegment
from pleiad.store.sqlite.threads import DiskThreads

OPEN_SEGMENTS_MAX = 100
DESCRIPTORS_OF_SEGMENT = 7
"""How many descriptors an open segment has at most."""
_DISK_THREADS = 4

_DAMAGED = (
    "{path} is damaged ({reason}): put the one of a backup in its place, together with the segments of that backup; "
    "`pleiad check` tells more"
)
_HAS_RECORD = "SELECT 1 FROM record WHERE kind = ?1 AND rid = ?2 AND parent = ?3 AND name = ?4 AND body = ?5"

_log = logging.getLogger(__name__)


class SqliteStore:
    """Both contracts over files in one directory."""

    is_shared = False
    node = FIRST_NODE

    def __init__(
        self,
        directory: Path,
        durable: bool = True,
        index_settings: IndexSettings = DEFAULT_INDEX_SETTINGS,
        threads: DiskThreads | None = None,
        allow_missing: bool = False,
        open_segments_max: int = OPEN_SEGMENTS_MAX,
    ) -> None:
        """Opens a directory; with `allow_missing` also one that lacks something it held.

        At most so many segments are open at once, but for those at work.

        StoreLockedError, SchemaError and MissingDataError say why it cannot be.
        """
        files.check_serves(directory)
        self.directory = directory
        self._durable = durable
        self._index_settings = index_settings
        self._segments_directory = directory / "segments"
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._segments_directory.mkdir(exist_ok=True, mode=0o700)
        self._lock = files.lock(directory)
        self.problems = Problems()
        self._allow_missing = allow_missing
        self._catalog_turn = threading.Lock()
        try:
            files.make_private(directory)
            reconcile.check_catalog_file(directory, allow_missing)
            self._catalog, self.registry = self._open_catalog(directory / files.CATALOG_FILE)
        except BaseException:
            os.close(self._lock)
            raise
        self._threads = threads or DiskThreads(_DISK_THREADS)
        self._file_system = file_system_of(self._segments_directory) if durable else None
        self._rounds = CommitRounds(self._threads, durable, self._file_system)
        self.commits = CommitCounts()
        self._kept_bytes = KeptBytes()
        self._segments: dict[str, SqliteSegment] = {}
        self._open: list[SegmentFile] = []
        self._open_max = open_segments_max
        self._is_closed = False

    def _open_catalog(self, path: Path) -> tuple[apsw.Connection, Registry]:
        """The catalog, looked through whole: it is small, and everything hangs on it."""
        try:
            connection = schema.connect(path, self._durable)
            connection.execute("PRAGMA wal_autocheckpoint=1000").fetchall()
            found: Any = connection.execute("PRAGMA integrity_check(1)").fetchall()
            if found != [("ok",)]:
                raise SchemaError(_DAMAGED.format(path=path, reason=found[0][0]))
            registry = Registry(connection, self._catalog_turn, self.problems)
            if self._durable:
                schema.sync_directory(path.parent)
        except apsw.Error as error:
            raise SchemaError(_opening_failure(path, error)) from error
        return connection, registry

    async def load_records(self) -> Sequence[Record]:
        rows: Any = self._catalog.execute(
            "SELECT kind, rid, parent, name, body, checksum FROM record"
        ).fetchall()
        for *fields, checksum in rows:
            if checksum != fields_checksum(*fields):
                path = self.directory / files.CATALOG_FILE
                reason = f"the record {fields[0]}/{fields[1]} is not what was written"
                raise SchemaError(_DAMAGED.format(path=path, reason=reason))
        return [
            Record(kind, rid, parent, name, orjson.loads(body)) for kind, rid, parent, name, body, _ in rows
        ]

    async def save_records(
        self,
        puts: Iterable[Record],
        deletes: Iterable[Record],
        expected: Iterable[Record] = (),
        unless_behind: bool = False,
        drops: Iterable[str] = (),
    ) -> bool:
        dropped = list(drops)
        new = [_columns(record) for record in puts]
        gone = [(record.kind, record.rid) for record in deletes]
        demanded = [_columns(record) for record in expected]
        is_saved = True

        def save() -> None:
            nonlocal is_saved
            with self._catalog_turn, self._catalog:
                is_saved = all(
                    self._catalog.execute(_HAS_RECORD, columns[:5]).fetchall() for columns in demanded
                )
                if not is_saved:
                    return
                self._catalog.executemany("DELETE FROM record WHERE kind = ?1 AND rid = ?2", gone)
                self._catalog.executemany("INSERT OR REPLACE INTO record VALUES(?1, ?2, ?3, ?4, ?5, ?6)", new)
                self.registry.save_dropping(dropped)
                self._catalog.execute("UPDATE account SET generation = generation + 1")

        await self._change_catalog(save)
        if is_saved:
            self.registry.generation += 1
            self.registry.dropping_saved(dropped)
        return is_saved

    async def _change_catalog(self, change: Callable[[], None]) -> None:
        try:
            await self._threads.run_async(change)
        except apsw.Error as error:
            if is_disk(error):
                self.registry.disk.failed(f"the disk takes no writes: {error}")
                raise errors.STORE_FULL() from error
            _log.error("a change of the catalog was rolled back: %s", error, exc_info=error)
            raise errors.UNAVAILABLE(reason="The store could not write; nothing was changed.") from error
        self.registry.disk.recovered()

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

    def figures(self) -> StoreFigures:
        return StoreFigures(
            segments_open=sum(segment.is_open for segment in self._segments.values()),
            writes_waiting=sum(segment.writes_waiting for segment in self._segments.values()),
            disk_calls_waiting=self._threads.waiting,
        )

    def segment(self, name: str) -> SqliteSegment:
        found = self._segments.get(name)
        if found is None:
            path = self._segments_directory / f"{name}.sqlite"
            found = SqliteSegment(
                path,
                self._threads,
                self._rounds,
                self._durable,
                self._note_opened,
                self._index_settings,
                self.commits,
                self.registry,
                self._kept_bytes,
            )
            self._segments[name] = found
        return found

    def _note_opened(self, opened: SegmentFile) -> None:
        """Closes the files of idle segments beyond the limit, those opened first before the others."""
        self._open = [segment for segment in self._open if segment.is_open and segment is not opened]
        for segment in self._open[: max(0, len(self._open) + 1 - self._open_max)]:
            if segment.is_idle and not segment.is_tracked:
                segment.close_file()
        self._open.append(opened)

    async def drop_segments(self, names: Iterable[str]) -> None:
        doomed = list(names)
        await self._change_catalog(lambda: self.registry.note_dropping(doomed))
        for name in doomed:
            await self.segment(name).drop()
            del self._segments[name]
        await self._change_catalog(lambda: self.registry.forget(doomed))

    async def drop_all_segments(self) -> None:
        await self.drop_segments(sorted(self.registry.known()))

    async def reconcile(self, names: Iterable[str]) -> None:
        named = set(names)
        rows: Any = self._catalog.execute("SELECT 1 FROM record LIMIT 1").fetchall()
        findings = reconcile.look(self.directory, self.registry, named)
        if not self._allow_missing:
            reconcile.check(self.directory, findings, self.registry, bool(rows))
        reconcile.settle(self.directory, findings, self.registry, named, self._remove_files)
        for name, fault in findings.broken.items():
            self.segment(name).take_out_of_service(fault)

    def _remove_files(self, name: str) -> None:
        for suffix in files.SUFFIXES:
            Path(f"{self._segments_directory / name}.sqlite{suffix}").unlink(missing_ok=True)

    async def agree(self, settings: Mapping[str, str], may_differ: bool) -> None:
        """Nobody else is here."""

    async def is_there(self) -> bool:
        return files.is_in_place(self.directory, self._lock)

    def hold_log(self, name: str, is_held: bool) -> None:
        """Lets the log of a segment grow while a long snapshot keeps it from being emptied."""
        if self.registry.is_made(name):
            self.segment(name).is_log_held = is_held

    @property
    def is_emptying_log(self) -> bool:
        return any(segment.is_emptying_log for segment in self._segments.values())

    async def scrub_for_ever(self) -> None:
        await Scrub(self._files_of_segments, self._found_damage).for_ever()

    def _files_of_segments(self) -> list[tuple[str, Path]]:
        """The segments that are in service, as files that are as new as this version makes them."""
        out = {problem.subject for problem in self.problems.standing() if problem.kind == OUT_OF_SERVICE}
        names = sorted(self.registry.made() - out)
        return [
            (name, self._segments_directory / f"{name}.sqlite")
            for name in names
            if self.registry.is_stamped(name)
        ]

    def _found_damage(self, name: str, fault: str) -> None:
        if self.registry.is_made(name):
            self.segment(name).take_out_of_service(fault)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        reached: dict[str, int] = {}
        for name, segment in list(self._segments.items()):
            await segment.settle()
            if (lsns := segment.lsns()) is not None:
                reached[name] = lsns
            segment.close_file()
        try:
            self.registry.note_reached(reached)
        except apsw.Error as error:
            _log.warning("how far the segments came was not noted: %s", error)
        self._catalog.close()
        self._threads.stop()
        if self._file_system is not None:
            self._file_system.close()
        os.close(self._lock)


def _columns(record: Record) -> tuple[str | int, ...]:
    body = orjson.dumps(record.body, option=orjson.OPT_SORT_KEYS).decode()
    fields = (record.kind, record.rid, record.parent, record.name, body)
    return (*fields, fields_checksum(*fields))


def _opening_failure(path: Path, error: apsw.Error) -> str:
    """Why the catalog cannot be opened, as a sentence for the operator."""
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return _DAMAGED.format(path=path, reason=error)
    if isinstance(error, (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError)):
        return f"{path} cannot be opened for writing ({error}): the file system or its permissions forbid it"
    return f"{path} cannot be opened: {error}"
