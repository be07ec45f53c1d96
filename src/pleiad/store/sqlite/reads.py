"""Reads on the event loop, in a snapshot that all reads of a turn of the loop share; one row is one statement.

A row that was read before and not changed since is given out without a statement (`kept_rows`).

Invariants:
- A read sees only what is on disk, and all that was answered before: the snapshot ends before a commit is answered, and
  where a COMMIT itself does not sync, it is held from before that until the sync has ended.
- A row is given out only if it is what was written.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import apsw

from pleiad.store.rows import Row
from pleiad.store.sqlite import statements
from pleiad.store.sqlite.failure import READ_FAILURES
from pleiad.store.sqlite.kept_rows import KeptBytes, KeptRows
from pleiad.store.sqlite.open_file import OpenFile
from pleiad.store.sqlite.path_index import PathIndexes
from pleiad.store.sqlite.rows import checked_row


class Reading(NamedTuple):
    """A connection with a snapshot that lasts for this turn of the loop, the indexes of the file, and its kept rows."""

    connection: apsw.Connection
    indexes: PathIndexes
    execute: Callable[..., apsw.Cursor]
    """Runs a statement on a cursor that is kept; whoever calls it takes all rows at once."""
    kept: KeptRows

    def rows(self, numbers: Iterable[int]) -> list[Row]:
        """The rows with some document numbers that the snapshot has; what is read of them is kept."""
        kept, rows = self.kept.numbered, []
        for number in numbers:
            row = kept.get(number)
            if row is None:
                row = checked_row(self.execute(statements.FIND, (number,)).get)
                self.kept.keep((row.epk, row.id), row)
            rows.append(row)
        return rows


Read = Callable[[], Reading | None]
"""Begins reading; None while the segment has no file."""


class SegmentReads(ABC):
    """A file that is opened on first use, and the reads of its rows."""

    def __init__(self, kept_bytes: KeptBytes) -> None:
        self._kept = KeptRows(kept_bytes)
        self._file: OpenFile | None = None
        self._in_snapshot = False
        self._is_snapshot_held = False

    @abstractmethod
    def _open_existing(self) -> OpenFile | None:
        """The file, opened if there is one."""

    @abstractmethod
    def _read_failure(self, error: BaseException) -> BaseException:
        """What the caller is told of a failure to read."""

    def read_at_once(self, epk: bytes, id: str) -> Row | None:
        key = epk, id
        row = self._kept.found.get(key)
        if row is not None:
            return row
        try:
            file = self._file or self._open_existing()
            if file is None:
                return None
            if not self._in_snapshot:
                self._begin_snapshot(file)
            found: Any = file.read(statements.READ, key).get
            if found is None:
                return None
            row = checked_row(found)
            self._kept.keep(key, row)
            return row
        except READ_FAILURES as error:
            raise self._read_failure(error) from error

    async def read(self, epk: bytes, id: str) -> Row | None:
        return self.read_at_once(epk, id)

    def _reading(self) -> Reading | None:
        file = self._file or self._open_existing()
        if file is None:
            return None
        if not self._in_snapshot:
            self._begin_snapshot(file)
        return Reading(file.reader, file.indexes, file.read, self._kept)

    def _begin_snapshot(self, file: OpenFile) -> None:
        """Lets all reads of this turn of the loop share one snapshot: each of its own would lock the file twice."""
        file.reader.execute("BEGIN")
        self._in_snapshot = True
        asyncio.get_running_loop().call_soon(self._end_turn)

    def _hold_snapshot(self, file: OpenFile) -> None:
        """Has reads see what is committed now until `_end_snapshot`, and nothing that is committed meanwhile."""
        if not self._in_snapshot:
            self._begin_snapshot(file)
        # BEGIN alone waits for the first read to fix the moment.
        file.read(statements.FIX_MOMENT).get  # noqa: B018
        self._is_snapshot_held = True

    def _end_turn(self) -> None:
        if not self._is_snapshot_held:
            self._end_snapshot()

    def _end_snapshot(self) -> None:
        # After a failed read SQLite may have ended the transaction by itself.
        if self._in_snapshot and self._file is not None and self._file.reader.in_transaction:
            self._file.reader.execute("COMMIT")
        self._in_snapshot = self._is_snapshot_held = False
