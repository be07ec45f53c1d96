"""The data directory itself: who holds it, who may read it, which files of segments are in it, and setting some aside.

DATA/lock                          held while a server runs
DATA/segments/<name>.sqlite        with `-wal` and `-shm` beside it
DATA/set-aside/<time>-<reason>/    files that nobody knows; they are moved here and never removed
DATA/restoring/                    what a restore has copied so far; there while it is not whole
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pleiad.store import file_lock
from pleiad.store.sqlite import schema

_log = logging.getLogger(__name__)

CATALOG_FILE = "catalog.sqlite"
SUFFIXES = ("", "-wal", "-shm")
SET_ASIDE = "set-aside"
BACKUP_FILE = "backup.json"
"""Makes a folder a backup, which nobody may work on: its files are those of other backups too."""
RESTORING = "restoring"
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"
_OTHERS = 0o077


class StoreLockedError(Exception):
    """Another server has the data directory open."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the first bytes of a file of SQLite tell of it, and its size."""

    is_database: bool
    version: int = 0
    stamp: int = 0
    """Tells whose segment it is; 0 in files of the first version."""
    bytes_expected: int = 0
    bytes_found: int = 0


def read_header(path: Path) -> Header | None:
    """The header of a file; None when there is no file, or an empty one."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return None
    if not head:
        return None
    if len(head) < _HEADER_BYTES or not head.startswith(_MAGIC):
        return Header(is_database=False, bytes_found=size)
    page_bytes = int.from_bytes(head[16:18], "big")
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    pages = int.from_bytes(head[28:32], "big")
    return Header(
        is_database=True,
        version=int.from_bytes(head[60:64], "big"),
        stamp=int.from_bytes(head[68:72], "big"),
        bytes_expected=page_bytes * pages,
        bytes_found=size,
    )


def lock(directory: Path) -> int:
    """Takes the directory for this process; the descriptor to close at the end."""
    try:
        return take_lock(directory / "lock")
    except StoreLockedError as error:
        raise StoreLockedError(
            f"another Pleiad server (process {error}) has the data directory {directory} open; "
            "stop it, or give this one another directory with --data"
        ) from error


def take_lock(path: Path) -> int:
    """Takes a file for this process; StoreLockedError names the process that has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, schema.FILE_MODE)
    try:
        file_lock.lock(descriptor)
    except OSError as error:
        os.lseek(descriptor, 0, os.SEEK_SET)
        owner = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise StoreLockedError(owner) from error
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


def check_serves(directory: Path) -> None:
    """Refuses a directory that is a backup, or half of what a restore shall put there."""
    if (directory / BACKUP_FILE).exists():
        raise schema.SchemaError(
            f"{directory} is a backup, which no server works on: `pleiad restore {directory} DATA` makes a data "
            "directory of it"
        )
    if (directory / RESTORING).exists():
        raise schema.SchemaError(
            f"a restore into {directory} was not finished: give the same `pleiad restore` again"
        )


def make_private(directory: Path) -> None:
    """Takes the files of Pleiad from everybody but their owner; the directory itself is the operator's."""
    if sys.platform == "win32":  # who may read a file there is a matter of its folder
        return
    segments = directory / "segments"
    mine = [directory / "lock", segments, directory / "tls.key", *segments.glob("*.sqlite*")]
    mine += [directory / f"{CATALOG_FILE}{suffix}" for suffix in SUFFIXES]
    for path in mine:
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & _OTHERS:
                path.chmod(mode & ~_OTHERS)
        except FileNotFoundError:
            continue
        except OSError as error:
            _log.warning("%s can be read by others, and that cannot be changed: %s", path, error.strerror)
    if stat.S_IMODE(directory.stat().st_mode) & _OTHERS:
        _log.warning(
            "others may look into the data directory %s; its files are kept from them: chmod 700 closes it too",
            directory,
        )


def segment_names(segments: Path) -> set[str]:
    """The segments of which there is a file, if only a log."""
    return {_name_of(path) for path in segments.iterdir() if ".sqlite" in path.name}


def _name_of(path: Path) -> str:
    return path.name.rpartition(".sqlite")[0]


def set_aside(directory: Path, names: Iterable[str], reason: str) -> Path:
    """Moves the files of segments out of the way, durably; where they are then."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    parent = directory / SET_ASIDE
    parent.mkdir(mode=0o700, exist_ok=True)
    target = parent / f"{moment}-{reason}"
    turn = 1
    while target.exists():
        turn += 1
        target = parent / f"{moment}-{reason}-{turn}"
    target.mkdir(mode=0o700)
    segments = directory / "segments"
    for name in sorted(names):
        # The log first: a file without its log would look whole.
        for suffix in ("-wal", "-shm", ""):
            path = segments / f"{name}.sqlite{suffix}"
            if path.exists():
                path.rename(target / path.name)
    for each in (target, parent, directory, segments):
        schema.sync_directory(each)
    return target


def is_in_place(directory: Path, descriptor: int) -> bool:
    """Whether the directory that is locked is still the one at its path."""
    try:
        found = (directory / "lock").stat()
    except OSError:
        return False
    held = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)
