"""Counts that the worker processes of one server have in common: a small file for each, changed under a lock.

They are for what is counted seldom. A process that dies keeps no lock.
"""

from __future__ import annotations

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # there is none for Windows, and no worker processes
    fcntl = None  # type: ignore[assignment]

_DIGITS_MAX = 32


class SharedCounts:
    """The counts in a directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True, mode=0o700)
        self._directory = directory

    def up(self, name: str, most: int | None = None) -> int | None:
        """Counts one more and returns the number; None, and no change, where it is as high as it may be."""
        descriptor = os.open(self._directory / name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            value = int(os.pread(descriptor, _DIGITS_MAX, 0) or b"0")
            if most is not None and value >= most:
                return None
            os.pwrite(descriptor, b"%d" % (value + 1), 0)
            return value + 1
        finally:
            os.close(descriptor)

    def value(self, name: str) -> int:
        try:
            return int((self._directory / name).read_bytes() or b"0")
        except FileNotFoundError:
            return 0
