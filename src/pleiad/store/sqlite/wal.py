"""Keeping the write-ahead log of a segment short: checkpoints beside the writes, and truncation when those lag.

A checkpoint beside the writes copies all but what is committed meanwhile. A log that is long is gone through once more
while writes wait, which is the few pages that are left; then the next write begins the log anew, over the old one.
Readers hold up neither, but where one reads from the log it goes on growing, up to the length at which it is truncated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw

from pleiad.store.sqlite import schema
from pleiad.store.sqlite.threads import DiskThreads


class Log:
    """The log of one open file, looked after at the end of each group of writes."""

    def __init__(self, path: Path, writer: apsw.Connection, threads: DiskThreads, durable: bool) -> None:
        self._path = path
        self._writer = writer
        self._threads = threads
        self._durable = durable
        self._pages = 0
        self._pages_due = schema.WAL_PAGES_CHECKPOINT
        """The length at which the next checkpoint is due."""
        self._is_rest_due = False
        self.is_long = False
        """Whether `keep_short` has something to do."""
        self._truncate_next: Callable[[], None] | None = None
        self._connection: apsw.Connection | None = None
        self.is_checkpointing = False
        self.is_truncating = False
        writer.set_wal_hook(self._note_pages)

    def _note_pages(self, connection: apsw.Connection, database: str, pages: int) -> int:
        if pages < self._pages:  # it began anew
            self._pages_due = schema.WAL_PAGES_CHECKPOINT
            self._is_rest_due = False
        self._pages = pages
        self.is_long = pages >= self._pages_due or self._is_rest_due
        return apsw.SQLITE_OK

    def keep_short(self, go_on: Callable[[], None], settle: Callable[[], None]) -> bool:
        """Whether writes may go on; where not, `go_on` is called when they may.

        `settle` is called when a checkpoint that runs beside has ended.
        """
        if self._pages >= schema.WAL_PAGES_TRUNCATE:
            # Writes wait: faster than the checkpoints for long enough, they would fill the disk with the log.
            if self.is_checkpointing:
                self._truncate_next = go_on
            else:
                self._truncate(go_on)
            return False
        if self.is_checkpointing:
            return True
        self._pages_due = self._pages + schema.WAL_PAGES_CHECKPOINT
        if self._is_rest_due:
            self._is_rest_due = False
            self._threads.run(self._checkpoint, lambda _: go_on())
            return False
        self.is_checkpointing = True
        self._threads.run(self._checkpoint, lambda _: self._checkpointed(settle))
        return True

    def _truncate(self, go_on: Callable[[], None]) -> None:
        self._pages = 0
        self.is_long = False
        self.is_truncating = True

        def truncated(_: BaseException | None) -> None:
            self.is_truncating = False
            go_on()

        self._threads.run(
            lambda: self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE), truncated
        )

    def _checkpoint(self) -> None:
        if self._connection is None:
            self._connection = schema.connect_reader(self._path)
            self._connection.execute(
                f"PRAGMA query_only=0; PRAGMA synchronous={'FULL' if self._durable else 'OFF'}"
            ).fetchall()
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _checkpointed(self, settle: Callable[[], None]) -> None:
        self.is_checkpointing = False
        self._is_rest_due = self._pages >= 2 * schema.WAL_PAGES_CHECKPOINT
        if self._truncate_next is not None:
            go_on, self._truncate_next = self._truncate_next, None
            self._truncate(go_on)
        else:
            settle()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
