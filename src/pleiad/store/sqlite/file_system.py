"""A file system that is synced as a whole: one call for all files that were written to.

`syncfs` does for every file what `fsync` does for one, on file systems that are known for it. Others may take it for a
hint, as those that programs serve do, and a kernel before 5.8 tells of no failure. Each file is synced alone there.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

_KNOWN = frozenset({"ext4", "xfs", "f2fs"})
_TELLS_FAILURES = (5, 8)


class UnsyncedError(Exception):
    """A transaction was committed, and nobody knows whether that is on disk."""


class FileSystem:
    """The file system of a directory; failures since it was opened are told by the next sync."""

    def __init__(self, directory: Path, syncfs: Any) -> None:
        self._descriptor = os.open(directory, os.O_RDONLY)
        self._syncfs = syncfs

    def sync(self) -> None:
        """Returns when everything that was written before is on disk; OSError when it may not be."""
        if self._syncfs(self._descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def close(self) -> None:
        os.close(self._descriptor)


def file_system_of(directory: Path) -> FileSystem | None:
    """The file system of a directory, if it can be relied on to be synced as a whole."""
    if sys.platform != "linux" or _kernel() < _TELLS_FAILURES or _kind_of(directory) not in _KNOWN:
        return None
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return None if syncfs is None else FileSystem(directory, syncfs)


def _kernel() -> tuple[int, ...]:
    parts = os.uname().release.split(".")[:2]
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def _kind_of(directory: Path) -> str:
    """The kind of file system that a directory is on, by its name in Linux; empty where that is not told."""
    number = os.stat(directory).st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
    except OSError:
        return ""
    for line in mounts.splitlines():
        mount, _, file_system = line.partition(" - ")
        if mount.split()[2:3] == [device]:
            return file_system.split(" ", 1)[0]
    return ""
