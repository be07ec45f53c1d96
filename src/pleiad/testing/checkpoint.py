"""Checkpoints: the whole account of a temporary server remembered, and put back as often as a test likes.

The files of the store are copied while it is closed, which takes as long as a copy of them; requests wait meanwhile and
connections stay open. Nothing is promised for a crash in between: the data is temporary.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from pleiad.node import Node
from pleiad.store.sqlite.directory import CATALOG_FILE

NO_CHECKPOINTS = (
    "there are checkpoints of a server only that `pleiad.start()` runs in this process with temporary data: without "
    "`data`, `store` and `child_process`"
)
_SEGMENTS = "segments"


class Checkpoints:
    """The checkpoint of one node."""

    def __init__(self, node: Node, loop: asyncio.AbstractEventLoop) -> None:
        self._node = node
        self._loop = loop
        self._kept: tempfile.TemporaryDirectory[str] | None = None

    def make(self) -> None:
        """Remembers the account as it is; what was remembered before is forgotten once that is done."""
        kept = tempfile.TemporaryDirectory(prefix="pleiad-checkpoint-")
        try:
            self._reopen(self._node.directory, Path(kept.name), is_rollback=False)
        except BaseException:
            kept.cleanup()
            raise
        self.remove()
        self._kept = kept

    def return_to(self) -> None:
        """Puts the account back."""
        if self._kept is None:
            raise RuntimeError("there is no checkpoint yet: call `checkpoint` first")
        self._reopen(Path(self._kept.name), self._node.directory, is_rollback=True)

    def remove(self) -> None:
        """Forgets what was remembered."""
        if self._kept is not None:
            self._kept.cleanup()
            self._kept = None

    def _reopen(self, source: Path, target: Path, is_rollback: bool) -> None:
        work = self._node.reopen(lambda: _put(source, target), is_rollback)
        asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _put(source: Path, target: Path) -> None:
    """Makes the data of one directory that of another; both are closed."""
    for old in (*target.glob(f"{CATALOG_FILE}*"), *target.glob(f"{_SEGMENTS}/*")):
        old.unlink()
    (target / _SEGMENTS).mkdir(exist_ok=True)
    for file in (*source.glob(f"{CATALOG_FILE}*"), *source.glob(f"{_SEGMENTS}/*")):
        shutil.copy(file, target / file.relative_to(source))
