"""Locks on open files, which the system takes back when their process ends, however it ends."""

from __future__ import annotations

import importlib
import os
from typing import Any

try:
    import fcntl
except ImportError:  # Windows has another module
    fcntl = None  # type: ignore[assignment]

_LOCKED_AT = 1 << 30
"""Where Windows locks a byte: it keeps others from reading what is locked, so that is beyond the end of the file."""


def lock(descriptor: int, shared: bool = False) -> None:
    """Locks an open file, against those who want it alone or, unless shared, against all; OSError when it is locked.

    Where the system knows no shared locks, one is a lock against all.
    """
    if fcntl is not None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return
    msvcrt: Any = importlib.import_module("msvcrt")
    os.lseek(descriptor, _LOCKED_AT, os.SEEK_SET)
    msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
