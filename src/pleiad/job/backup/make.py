"""Taking a backup: one point in time, the files that changed since the last one, and a check of each copy.

Invariants:
- what was acknowledged before the point in time is in the backup, whole; see `store/sqlite/point.py`;
- a backup has its name only when every file is on the disk and was found whole;
- a file is shared with the backup before only when it was not written to since;
- writers wait for the point in time and for nothing else; the log of a segment grows while its snapshot is held.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import apsw

from pleiad.job.backup.manifest import (
    BackupError,
    BackupFile,
    Manifest,
    checksum_of,
    is_in_place,
    name_of,
    own_version,
    write_manifest,
)
from pleiad.job.backup.shelf import Shelf
from pleiad.job.backup.source import Source
from pleiad.job.check import opened
from pleiad.store.sqlite import directory as files
from pleiad.store.sqlite import schema
from pleiad.store.sqlite.inspect import Seen, inspect
from pleiad.store.sqlite.point import (
    PointInTime,
    Signature,
    is_settled,
    log_bytes,
    signature_of,
    written_at_ns,
)

SNAPSHOTS_MAX = 100
"""So many segments have a snapshot at a time where that can be: each takes three descriptors, and its log grows."""
_MOMENTS_MAX = 50
_PAGES_AT_ONCE = 256
_CHECK_ROWS = 50
_REST = 4.0
"""How many times as long as a slice of the check took it rests behind it, beside a server."""


class BackupStage(Enum):
    """What a backup is doing."""

    COPYING = "copying"
    FINISHING = "finishing"


@dataclass(frozen=True, slots=True)
class BackupProgress:
    """How far a backup is, in bytes of what has to be copied."""

    stage: BackupStage
    done_bytes: int
    total_bytes: int


Tell = Callable[[BackupProgress], None]


class BackupStoppedError(BackupError):
    """The backup was given up, such as by a server that stops."""


def make_backup(
    source: Source, shelf: Shelf, name: str | None, tell: Tell, stops: Callable[[], bool] = lambda: False
) -> Manifest:
    """Takes one backup of an account; BackupError says why there is none."""
    if shelf.directory.resolve().is_relative_to(source.directory.resolve()):
        raise BackupError(
            f"{shelf.directory} is inside the data directory: a backup there would be lost with the data"
        )
    try:
        with shelf.locked():
            shelf.clear_unfinished()
            chosen = shelf.new_name(name or name_of(time.time()))
            with shelf.unfinished(chosen) as folder:
                with contextlib.closing(PointInTime(source.directory)) as point:
                    manifest = _Making(source, shelf, point, folder, tell, stops).make(chosen)
                shelf.put(folder, chosen)
            return manifest
    except (apsw.Error, schema.SchemaError) as error:
        raise BackupError(f"the backup stopped: {error}") from error
    except OSError as error:
        raise BackupError(f"the backup cannot be written: {error.strerror or error}") from error


class _Making:
    """One backup on its way."""

    def __init__(
        self,
        source: Source,
        shelf: Shelf,
        point: PointInTime,
        folder: Path,
        tell: Tell,
        stops: Callable[[], bool],
    ) -> None:
        self._source = source
        self._point = point
        self._folder = folder
        self._tell = tell
        self._stops = stops
        self._done_bytes = self._total_bytes = 0
        self._held: set[str] = set()
        before = shelf.of(point.account)
        self._before_folder = shelf.folder(before[-1]) if before else folder
        files_before = before[-1].files if before else ()
        self._before = {file.path: file for file in files_before if is_in_place(self._before_folder, file)}
        self._copied: dict[str, BackupFile] = {}
        """Segments that were copied before the point in time."""

    def make(self, name: str) -> Manifest:
        try:
            self._take_point()
            self._total_bytes = self._done_bytes + sum(
                _size_of(each) for each in self._point.segments.values()
            )
            self._copy(self._point.catalog, files.CATALOG_FILE)
            self._point.catalog.execute("COMMIT")
            done = [self._checked(files.CATALOG_FILE, ())]
            for segment in sorted(self._point.signatures, key=self._log_bytes, reverse=True):
                done.append(self._segment(segment))
        finally:
            for segment in list(self._held):
                self._let_go(segment)
        self._tell(BackupProgress(BackupStage.FINISHING, self._done_bytes, self._total_bytes))
        for dropped in self._copied.keys() - self._point.signatures.keys():
            (self._folder / "segments" / f"{dropped}.sqlite").unlink()
        point = self._point
        manifest = Manifest(
            name,
            point.account,
            point.taken_at,
            point.generation,
            own_version(),
            tuple(sorted(done, key=_path)),
        )
        _sync_file(write_manifest(self._folder, manifest))
        for folder in (self._folder / "segments", self._folder):
            schema.sync_directory(folder)
        return manifest

    # -- the point in time ---------------------------------------------------------------------------

    def _take_point(self) -> None:
        """Begins all snapshots; what many quiet segments hold is copied before."""
        point = self._point
        changed = self._changed()
        for name in changed[SNAPSHOTS_MAX:]:
            self._copy_early(name)
        lacking = self._changed()
        for _ in range(_MOMENTS_MAX):
            self._check_going()
            self._open(lacking)
            known = {name: file.signature for name in point.made() if (file := self._known(name)) is not None}
            lacking = self._source.at_one_moment(lambda known=known: point.take(known))  # type: ignore[misc]
            if not lacking:
                return
        raise BackupError(f"the file of segment {lacking[0]} cannot be opened")

    def _changed(self) -> list[str]:
        """The segments that are not as they are known; the ones that were written to last come first."""
        found: list[tuple[Signature, str]] = []
        for name in self._point.made():
            signature = signature_of(self._point.path_of(name))
            file = self._known(name)
            if file is None or file.signature != signature:
                found.append((signature, name))
        found.sort(key=lambda each: -written_at_ns(each[0]))
        return [name for _, name in found]

    def _known(self, name: str) -> BackupFile | None:
        """The copy of a segment there is, if its signature tells whether it is still right."""
        path = f"segments/{name}.sqlite"
        found = self._copied.get(name) or self._before.get(path)
        return found if found is not None and found.signature else None

    def _copy_early(self, name: str) -> None:
        """Copies one segment as it is now; good for the backup if it is the same at the point in time."""
        signature = signature_of(self._point.path_of(name))
        if not is_settled(signature, time.time()):
            return
        self._open([name])
        is_there = name in self._point.segments
        if is_there:
            self._source.at_one_moment(lambda: self._point.begin(name))
            self._copy(self._point.segments[name], f"segments/{name}.sqlite")
        self._let_go(name)
        if is_there:
            self._copied[name] = self._checked(f"segments/{name}.sqlite", signature)

    def _open(self, names: list[str]) -> None:
        """Makes ready for snapshots of segments."""
        self._point.open(names)
        for name in names:
            self._held.add(name)
            self._source.hold_log(name, True)

    # -- files -----------------------------------------------------------------------------------------

    def _segment(self, name: str) -> BackupFile:
        path = f"segments/{name}.sqlite"
        connection = self._point.segments.get(name)
        if connection is None:
            known = self._known(name)
            assert known is not None
            return known if name in self._copied else self._share(known)
        signature = self._point.signatures[name]
        settled = signature if is_settled(signature, self._point.taken_at) else ()
        (self._folder / path).unlink(missing_ok=True)
        self._copy(connection, path)
        self._let_go(name)
        copied = self._checked(path, settled)
        before = self._before.get(path)
        if before is not None and before.sha256 == copied.sha256:
            # The log was put away, or an index came and went: the rows are the same.
            (self._folder / path).unlink()
            return self._share(copied)
        return copied

    def _share(self, known: BackupFile) -> BackupFile:
        """Gives the file of the backup before a second name; a copy where the file system has no such thing."""
        origin, target = self._before_folder / known.path, self._folder / known.path
        try:
            os.link(origin, target)
        except OSError:
            os.close(os.open(target, os.O_RDWR | os.O_CREAT, schema.FILE_MODE))
            shutil.copyfile(origin, target)
            _sync_file(target)
        return replace(known, is_new=False)

    def _copy(self, connection: apsw.Connection, path: str) -> None:
        """Copies what a connection sees."""
        target = self._folder / path
        os.close(os.open(target, os.O_RDWR | os.O_CREAT, schema.FILE_MODE))
        with contextlib.closing(apsw.Connection(str(target))) as copy:
            copy.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF").fetchall()
            size = connection.pragma("page_size")
            with copy.backup("main", connection, "main") as work:
                copied = 0
                while not work.done:
                    self._check_going()
                    work.step(_PAGES_AT_ONCE)
                    now = work.page_count - work.remaining
                    self._count((now - copied) * size)
                    copied = now
        _sync_file(target)

    def _checked(self, path: str, signature: Signature) -> BackupFile:
        """A copy that was looked through."""
        target = self._folder / path
        self._check_copy(target)
        return BackupFile(path, target.stat().st_size, checksum_of(target, self._check_going), signature)

    def _check_copy(self, path: Path) -> None:
        """Compares every row of a copied segment with its checksum, in slices, since it is beside a server."""
        began = time.perf_counter()
        rest = _REST if self._source.is_running else 0.0

        def pause() -> None:
            nonlocal began
            self._check_going()
            time.sleep((time.perf_counter() - began) * rest)
            began = time.perf_counter()

        with opened(path) as connection:
            if path.name == files.CATALOG_FILE or connection.pragma("user_version") < schema.VERSION:
                lines: Any = connection.execute("PRAGMA integrity_check(1)").fetchall()
                faults = iter([line for (line,) in lines if line != "ok"])
            else:
                faults = inspect(connection, pause, Seen(), _CHECK_ROWS)
            for fault in faults:
                raise BackupError(
                    f"{path.name} is damaged ({fault}), and no backup was made: look with `pleiad check`"
                )

    def _count(self, copied_bytes: int) -> None:
        self._done_bytes += copied_bytes
        total = max(self._total_bytes, self._done_bytes)
        self._tell(BackupProgress(BackupStage.COPYING, self._done_bytes, total))

    def _let_go(self, name: str) -> None:
        """Ends a snapshot. What the log has grown by goes into the file beside the writes, before they wait for it."""
        connection = self._point.segments.get(name)
        if connection is not None and self._source.is_running and self._has_grown(name):
            with contextlib.suppress(apsw.Error):
                connection.execute("COMMIT; PRAGMA query_only=0").fetchall()
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        self._point.end(name)
        self._held.discard(name)
        self._source.hold_log(name, False)

    def _has_grown(self, name: str) -> bool:
        now = log_bytes(signature_of(self._point.path_of(name)))
        return name in self._point.signatures and now > self._log_bytes(name)

    def _log_bytes(self, name: str) -> int:
        return log_bytes(self._point.signatures[name])

    def _check_going(self) -> None:
        if self._stops():
            raise BackupStoppedError("the backup was given up, and nothing of it is left")


def _path(file: BackupFile) -> str:
    return file.path


def _size_of(connection: apsw.Connection) -> int:
    return int(connection.pragma("page_count")) * int(connection.pragma("page_size"))


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)  # Windows syncs only what may be written
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
