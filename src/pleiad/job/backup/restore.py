"""Restoring a backup: copy, check, and put in place, so that a kill at any moment leaves no half of an account.

While `DATA/restoring` is there no server starts on DATA, and the same command starts over. It goes when the catalog,
which is put in place last, is there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from pleiad.job.backup.manifest import BackupError, Manifest, checksum_of, is_in_place, moment, read_manifest
from pleiad.job.backup.shelf import Shelf
from pleiad.job.check import CheckReport, check_directory
from pleiad.store.sqlite import directory as files
from pleiad.store.sqlite import schema

Tell = Callable[[str, int, int, str], None]
"""Learns what is being done, and how much of how much of it is."""

_CHUNK_BYTES = 4 << 20
_NO_DATA = frozenset({"lost+found", "lock", files.RESTORING, "tls.crt", "tls.key"})
"""What may be in a directory that a backup is restored into."""


def find_backup(place: Path) -> tuple[Path, Manifest]:
    """The backup that a path names: a folder of one, or the newest in a folder of backups."""
    if (place / files.BACKUP_FILE).exists():
        return place, read_manifest(place)
    found = Shelf(place).all()
    if not found:
        raise BackupError(f"there is no backup in {place}")
    return place / found[-1].name, found[-1]


def restore(folder: Path, manifest: Manifest, data: Path, tell: Tell) -> CheckReport:
    """Puts a backup in place as a data directory; BackupError says why it is not."""
    for parent in data.resolve().parents:
        if (parent / files.BACKUP_FILE).exists():
            raise BackupError(
                f"{data} is inside the backup {parent}: the data would be removed with that one day"
            )
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = _lock(data)
        try:
            _check_target(data)
            return _restore(folder, manifest, data, tell)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise BackupError(f"{data} cannot be restored: {error}") from error


def _lock(data: Path) -> int:
    try:
        return files.lock(data)
    except files.StoreLockedError as error:
        raise BackupError(
            f"{data} is in use: stop the server there, or restore into a new directory"
        ) from error


def _check_target(data: Path) -> None:
    """Refuses a directory with data, unless an interrupted restore has put it there."""
    if (data / files.RESTORING).exists():
        for path in (data / files.CATALOG_FILE, data / "segments"):
            _remove(path)
        _remove(data / files.RESTORING)
        return
    found = sorted(path.name for path in data.iterdir() if path.name not in _NO_DATA)
    if found:
        raise BackupError(
            f"{data} is not empty (it has {found[0]}): restore into a new directory, or move what is there away first"
        )


def _restore(folder: Path, manifest: Manifest, data: Path, tell: Tell) -> CheckReport:
    work = data / files.RESTORING
    for each in (work, work / "segments"):
        each.mkdir(mode=0o700)
    schema.sync_directory(data)
    try:
        _copy(folder, manifest, work, tell)
        report = check_directory(work, lambda done, total, name: tell("checking", done, total, "segments"))
        if not report.is_whole:
            wrong = next(finding for finding in report.findings if not finding.is_note)
            raise BackupError(
                f"the backup is damaged ({wrong.place}: {wrong.message}), and nothing was restored"
            )
    except BaseException:
        with contextlib.suppress(OSError):
            _remove(work)
        raise
    # In this order: segments without a catalog are refused by every server, in case `restoring` should be lost.
    (work / "segments").rename(data / "segments")
    (work / files.CATALOG_FILE).rename(data / files.CATALOG_FILE)
    schema.sync_directory(data)
    _remove(work)
    schema.sync_directory(data)
    return report


def _copy(folder: Path, manifest: Manifest, work: Path, tell: Tell) -> None:
    """Copies every file, and compares the copy with the checksum of the backup."""
    done = 0
    for file in manifest.files:
        target, source = work / file.path, folder / file.path
        if not source.exists():
            raise BackupError(f"the backup lacks {file.path}, and nothing was restored")
        # Looked at before it is opened: what is no file may have no end.
        is_right = is_in_place(folder, file)
        if is_right:
            with source.open("rb") as origin, _new_file(target) as copy:
                while chunk := origin.read(_CHUNK_BYTES):
                    copy.write(chunk)
                    done += len(chunk)
                    tell("copying", done, manifest.size_bytes, "bytes")
                copy.flush()
                os.fsync(copy.fileno())
        if not is_right or checksum_of(target) != file.sha256:
            raise BackupError(
                f"{file.path} of the backup of {moment(manifest.taken_at)} is not the file that was written, and "
                "nothing was restored"
            )
    for each in (work / "segments", work):
        schema.sync_directory(each)


def _new_file(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, schema.FILE_MODE), "wb")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
