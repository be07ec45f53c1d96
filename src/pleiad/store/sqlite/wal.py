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

PAGES_WRITTEN = apsw.SQLITE_DBSTATUS_CACHE_WRITE
"""What a connection tells of itself: how many pages it has written to the log so far."""


class Log:
    """The log of one open file, looked after at the end of each group of writes.

    How long it is follows from what the last checkpoint told and from the pages that were written since. SQLite would
    tell it at each commit, but to a call in the disk thread, for which the commit has to wait for the loop.
    """

    def __init__(self, path: Path, writer: apsw.Connection, threads: DiskThreads, durable: bool) -> None:
        self._path = path
        self._writer = writer
        self._threads = threads
        self._durable = durable
        self.pages_written = writer.status(PAGES_WRITTEN)[0]
        """How many pages the writer had written at the end of the last group."""
        self.pages_due = self.pages_written + schema.WAL_PAGES_CHECKPOINT
        """How many there are when `keep_short` has something to do."""
        self._begun_at = self.pages_written
        """How many there were when the log began; less than that where it was not empty."""
        self._is_rest_due = False
        self._truncate_next: Callable[[], None] | None = None
        self._connection: apsw.Connection | None = None
        self.is_checkpointing = False
        self.is_truncating = False

    @property
    def _pages(self) -> int:
        return self.pages_written - self._begun_at

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
        self.pages_due = self.pages_written + schema.WAL_PAGES_CHECKPOINT
        if self._is_rest_due:
            self._is_rest_due = False
            self._checkpoint(go_on)
            return False
        self.is_checkpointing = True
        self._checkpoint(lambda: self._checkpointed(settle))
        return True

    def _truncate(self, go_on: Callable[[], None]) -> None:
        self._begun_at = self.pages_written
        self.pages_due = self.pages_written + schema.WAL_PAGES_CHECKPOINT
        self._is_rest_due = False
        self.is_truncating = True

        def truncated(_: BaseException | None) -> None:
            self.is_truncating = False
            go_on()

        self._threads.run(
            lambda: self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE), truncated
        )

    def _checkpoint(self, ended: Callable[[], None]) -> None:
        """Copies what can be copied beside readers and writers, and learns how long the log is."""
        pages_before = self.pages_written
        told: list[tuple[int, int]] = []

        def run() -> None:
            if self._connection is None:
                self._connection = schema.connect_reader(self._path)
                self._connection.execute(
                    f"PRAGMA query_only=0; PRAGMA synchronous={'FULL' if self._durable else 'OFF'}"
                ).fetchall()
            told.append(self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE))

        def done(_: BaseException | None) -> None:
            for pages, copied_pages in told:
                begins_anew = copied_pages >= pages and self.pages_written == pages_before
                self._begun_at = pages_before if begins_anew else pages_before - pages
            ended()

        self._threads.run(run, done)

    def _checkpointed(self, settle: Callable[[], None]) -> None:
        self.is_checkpointing = False
        if self._pages >= 2 * schema.WAL_PAGES_CHECKPOINT:
            self._is_rest_due = True
            self.pages_due = self.pages_written
        if self._truncate_next is not None:
            go_on, self._truncate_next = self._truncate_next, None
            self._truncate(go_on)
        else:
            settle()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
