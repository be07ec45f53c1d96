"""A folder of backups: one folder each, complete in itself.

    BACKUPS/<time>/backup.json               what is in it; see `manifest.py`
    BACKUPS/<time>/catalog.sqlite
    BACKUPS/<time>/segments/<name>.sqlite    one file with the backup before where nothing changed (hard links)
    BACKUPS/.unfinished-<time>/              being made; removed by the next backup when it was left behind
    BACKUPS/.lock                            held while a backup is made

A backup gets its name in one step when it is whole and on the disk, and loses it in one step when it goes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pleiad.job.backup.manifest import BackupError, Manifest, read_manifest
from pleiad.store.sqlite import schema
from pleiad.store.sqlite.directory import StoreLockedError, take_lock

_log = logging.getLogger(__name__)

UNFINISHED = ".unfinished-"
_LOCK = ".lock"


class Shelf:
    """The backups in one folder."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def all(self) -> list[Manifest]:
        """The whole backups, the oldest first; what cannot be read is left out."""
        found = []
        if self.directory.is_dir():
            for folder in sorted(self.directory.iterdir()):
                with contextlib.suppress(BackupError):
                    if folder.is_dir() and not folder.name.startswith("."):
                        found.append(self._read(folder))
        return sorted(found, key=lambda each: (each.taken_at, each.name))

    def _read(self, folder: Path) -> Manifest:
        manifest = read_manifest(folder)
        if manifest.name != folder.name:
            raise BackupError(f"{folder} is the backup {manifest.name} under another name")
        return manifest

    def of(self, account: str) -> list[Manifest]:
        """The backups of one account, the oldest first."""
        return [each for each in self.all() if each.account == account]

    def folder(self, manifest: Manifest) -> Path:
        return self.directory / manifest.name

    def prepare(self) -> None:
        """Makes the folder, if there is none; OSError when backups cannot be put there."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(self.directory / _LOCK, os.O_RDWR | os.O_CREAT, schema.FILE_MODE))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps others from making or removing backups here for the length of a block."""
        self.prepare()
        try:
            descriptor = take_lock(self.directory / _LOCK)
        except StoreLockedError:
            raise BackupError(f"another backup into {self.directory} is under way") from None
        try:
            yield
        finally:
            os.close(descriptor)

    def clear_unfinished(self) -> None:
        """Removes what interrupted backups have left; only with the lock."""
        for folder in self.directory.glob(f"{UNFINISHED}*"):
            _remove(folder)

    @contextlib.contextmanager
    def unfinished(self, name: str) -> Iterator[Path]:
        """A folder for a backup that is being made; whatever is still in it at the end of the block goes."""
        folder = self.directory / f"{UNFINISHED}{name}"
        for each in (folder, folder / "segments"):
            each.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            _remove(folder)

    def new_name(self, wanted: str) -> str:
        """A name that no backup has."""
        name, turn = wanted, 1
        while (self.directory / name).exists():
            turn += 1
            name = f"{wanted}-{turn}"
        return name

    def put(self, folder: Path, name: str) -> None:
        """Lets a backup that is on the disk appear."""
        folder.rename(self.directory / name)
        schema.sync_directory(self.directory)

    def keep(self, newest: Manifest, count: int) -> list[str]:
        """Removes the oldest backups of an account beyond a number, and never the one just made; their names."""
        # Not by time alone: the clock may have been set back.
        others = [each.name for each in self.of(newest.account) if each.name != newest.name]
        gone = others[: max(0, len(others) + 1 - count)]
        for name in gone:
            doomed = self.directory / f"{UNFINISHED}{name}"
            (self.directory / name).rename(doomed)
            _remove(doomed)
        return gone

    def thin_out(self, newest: Manifest, count: int) -> list[str]:
        """The same where others may be at work; what cannot be removed now stays, and the log says so."""
        try:
            with self.locked():
                return self.keep(newest, count)
        except (BackupError, OSError) as error:
            _log.warning("older backups were not removed: %s", error)
            return []


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
