"""One segment: an SQLite file with one writer, group commit and snapshot reads.

Writes that arrive while a commit waits for the disk share the next one. Statements run on the event loop; COMMIT
runs in a disk thread, during which the writer connection belongs to that thread and reads go on over a second
connection, which sees only what is committed.

Invariants:
- `_busy` is true from BEGIN until the end of COMMIT, and on while the log is truncated; only then is the writer
  connection out of the loop's hands.
- A waiter is answered after COMMIT returned, never before, and exactly once.
- A read never returns a state older than a commit that was answered before it: the snapshot that reads of one turn
  of the loop share ends before a commit is answered.
- The counters in memory equal the partition rows on disk whenever no transaction runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw

from pleiad import errors
from pleiad.keys.range import EpkRange
from pleiad.store.contract import LogicalPartition, Outcome, PartitionState, PartitionWrite, Row
from pleiad.store.selection import IndexedPath, OrderPosition, PathOrder, Selection
from pleiad.store.sqlite import order as ordering
from pleiad.store.sqlite import schema, statements
from pleiad.store.sqlite import select as selecting
from pleiad.store.sqlite.mutate import Applier, Counters
from pleiad.store.sqlite.path_index import IndexSettings, PathIndexes, PathUses, Step
from pleiad.store.sqlite.threads import DiskThreads

_log = logging.getLogger(__name__)

_DROPPED = "The container is being deleted."

_Waiter = tuple[PartitionWrite, "asyncio.Future[Sequence[Outcome]]"]
Opened = Callable[["SqliteSegment"], None]
"""What the store wants to be told when a segment has opened its file."""


@dataclasses.dataclass(slots=True)
class _OpenFile:
    """The connections of an open segment; the checkpointer's is made when first needed."""

    writer: apsw.Connection
    reader: apsw.Connection
    applier: Applier
    counters: dict[int, Counters]
    indexes: PathIndexes
    read: Callable[..., apsw.Cursor]
    """Runs a statement on a cursor kept for point reads; whoever calls it takes all rows at once."""
    checkpointer: apsw.Connection | None = None


class SqliteSegment:
    """The contract's Segment over one SQLite file, opened on first use."""

    def __init__(
        self,
        path: Path,
        threads: DiskThreads,
        durable: bool,
        opened: Opened,
        index_settings: IndexSettings,
    ) -> None:
        self._path = path
        self._opened = opened
        self._threads = threads
        self._durable = durable
        self._file: _OpenFile | None = None
        self._waiting: list[_Waiter] = []
        self._alone: list[_Waiter] = []
        self._busy = False
        self._scheduled = False
        self._wal_pages = 0
        self._checkpointing = False
        self._truncate_next = False
        self._idle: asyncio.Future[None] | None = None
        self._dropped = False
        self._wants_age_index = False
        self._in_snapshot = False
        self._index_settings = index_settings
        self._uses = PathUses()
        self._is_index_turn = False

    # -- reads ---------------------------------------------------------------------------------

    async def read(self, epk: bytes, id: str) -> Row | None:
        file = self._file or self._open_existing()
        if file is None:
            return None
        if not self._in_snapshot:
            self._begin_snapshot(file)
        found: Any = file.read(statements.READ, (epk, id)).fetchall()
        return Row._make(found[0]) if found else None

    def _begin_snapshot(self, file: _OpenFile) -> None:
        """Lets all reads of this turn of the loop share one snapshot: each of its own would lock the file twice."""
        file.reader.execute("BEGIN")
        self._in_snapshot = True
        asyncio.get_running_loop().call_soon(self._end_snapshot)

    def _end_snapshot(self) -> None:
        # After a failed read SQLite may have ended the transaction by itself.
        if self._in_snapshot and self._file is not None and self._file.reader.in_transaction:
            self._file.reader.execute("COMMIT")
        self._in_snapshot = False

    async def find(self, number: int) -> Row | None:
        file = self._file or self._open_existing()
        found: Any = file.reader.execute(statements.FIND, (number,)).fetchone() if file is not None else None
        return None if found is None else Row._make(found)

    async def scan(self, span: EpkRange, after: int, limit: int) -> Sequence[Row]:
        file = self._file or self._open_existing()
        if file is None:
            return []
        # The range of one key, or of one prefix of a key, is narrow: the key index finds its rows, and only their
        # numbers are sorted. A wide range is read in the order of the table.
        statement = statements.SCAN_KEY if span.min and span.max.startswith(span.min) else statements.SCAN
        rows: Any = file.reader.execute(statement, (after, span.min, span.max, limit)).fetchall()
        return [Row._make(row) for row in rows]

    async def changes(self, span: EpkRange, after_lsn: int, limit: int) -> Sequence[Row]:
        file = self._file or self._open_existing()
        if file is None:
            return []
        bounds = (after_lsn, span.min, span.max)
        rows: list[Any] = file.reader.execute(statements.CHANGES, (*bounds, limit)).fetchall()
        if len(rows) == limit:
            last = Row._make(rows[-1])
            rows += file.reader.execute(
                statements.CHANGES_ALONGSIDE, (last.lsn, span.min, span.max, last.number)
            ).fetchall()
        return [Row._make(row) for row in rows]

    async def state(self, partition: int) -> PartitionState:
        file = self._file or self._open_existing()
        # Not from the counters in memory, which run ahead of the disk while a commit waits for it.
        found: Any = (
            file.reader.execute(statements.STATE, (partition,)).fetchone() if file is not None else None
        )
        return Counters(partition, 0).state() if found is None else PartitionState(*found)

    async def logical_partitions(self, span: EpkRange) -> Sequence[LogicalPartition]:
        file = self._file or self._open_existing()
        if file is None:
            return []
        rows: Any = file.reader.execute(statements.LOGICAL, (span.min, span.max)).fetchall()
        return [LogicalPartition(*row) for row in rows]

    async def expired(self, now: int, default_ttl: int | None, limit: int) -> Sequence[Row]:
        file = self._file or self._open_existing()
        if file is None or default_ttl is None:
            return []
        rows: list[Any] = file.reader.execute(statements.EXPIRED_OWN, (now, limit)).fetchall()
        if default_ttl > 0 and len(rows) < limit:
            # Only a container with a default TTL pays for the index; its next commit makes it.
            self._wants_age_index = not schema.has_age_index(file.reader)
            rows += file.reader.execute(
                statements.EXPIRED_DEFAULT, (now - default_ttl, limit - len(rows))
            ).fetchall()
        return [Row._make(row) for row in rows]

    # -- selections ----------------------------------------------------------------------------

    async def select(self, selection: Selection, after: int, limit: int) -> Sequence[Row]:
        return await selecting.select(self._reading, selection, after, limit)

    async def ordered(
        self, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
    ) -> Sequence[tuple[Row, OrderPosition]] | None:
        return await ordering.ordered(self._reading, selection, order, after, limit)

    async def count(self, selection: Selection, count_only: bool = False) -> tuple[int, int]:
        return await selecting.count(self._reading, selection, count_only)

    def _reading(self) -> selecting.Reading | None:
        file = self._file or self._open_existing()
        if file is None:
            return None
        if not self._in_snapshot:
            self._begin_snapshot(file)
        return selecting.Reading(file.reader, file.indexes)

    # -- path indexes --------------------------------------------------------------------------

    def note_use(self, paths: Iterable[IndexedPath]) -> None:
        file = self._file or self._open_existing()
        if file is not None and file.indexes.note_use(paths):
            self._wake()

    def index_progress(self) -> float:
        file = self._file or self._open_existing()
        return 1.0 if file is None else file.indexes.progress()

    def drop_indexes(self, keep: Callable[[IndexedPath], bool]) -> None:
        file = self._file or self._open_existing()
        if file is not None:
            file.indexes.drop(keep)
            self._wake()

    @property
    def _has_index_work(self) -> bool:
        """Whether steps are to be taken; not while somebody waits for the segment to come to rest."""
        file = self._file
        return file is not None and self._idle is None and not self._dropped and file.indexes.has_work

    def _begin_index_step(self) -> bool:
        """Takes one step on the path indexes if it is their turn: after each group, or when nobody waits."""
        has_turn = self._is_index_turn or not (self._alone or self._waiting)
        self._is_index_turn = not has_turn
        file = self._file
        work = file.indexes.next_step() if has_turn and file is not None and self._has_index_work else None
        if file is None or work is None:
            return False
        step, done = work
        self._busy = True
        self._threads.run(step, lambda error: self._stepped(file, done, error))
        return True

    def _stepped(self, file: _OpenFile, done: Step, error: BaseException | None) -> None:
        if error is not None:
            self._recover()
            if self._file is file:
                file.indexes.fail(error)
            self._next()
            return
        # An index is used from now on only together with a snapshot that has it.
        self._end_snapshot()
        done()
        self._continue(file)

    # -- writes --------------------------------------------------------------------------------

    async def commit(self, write: PartitionWrite) -> Sequence[Outcome]:
        if self._dropped:
            raise errors.UNAVAILABLE(reason=_DROPPED)
        future: asyncio.Future[Sequence[Outcome]] = asyncio.get_running_loop().create_future()
        self._waiting.append((write, future))
        self._wake()
        return await future

    def _wake(self) -> None:
        if not self._busy and not self._scheduled:
            # One loop turn later, so that every request read in this turn shares the commit.
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._scheduled = False
        if self._begin_index_step():
            return
        if not (self._alone or self._waiting):
            self._settle()
            return
        if self._alone:
            waiters = [self._alone.pop()]
        else:
            waiters, self._waiting = self._waiting, []
        self._busy = True
        try:
            file = self._open()
            answers = self._apply(file, waiters)
        except Exception as error:
            self._recover()
            self._fail(waiters, error)
            return
        self._threads.run(
            lambda: file.writer.execute("COMMIT"),
            lambda error: self._committed(file, waiters, answers, error),
        )

    def _apply(self, file: _OpenFile, waiters: list[_Waiter]) -> list[list[Outcome]]:
        """Runs the statements of one group in an open transaction; on any surprise the caller rolls it back."""
        file.writer.execute("BEGIN IMMEDIATE")
        if self._wants_age_index:
            file.writer.execute(statements.AGE_INDEX)
            self._wants_age_index = False
        answers = []
        touched: dict[int, Counters] = {}
        for write, _ in waiters:
            counters = file.counters.get(write.partition)
            if counters is None:
                counters = file.counters[write.partition] = Counters(write.partition, write.epoch)
            touched[write.partition] = counters
            answers.append(file.applier.apply(counters, write))
        for counters in touched.values():
            file.writer.execute(
                statements.SAVE_COUNTERS,
                (
                    counters.partition,
                    counters.epoch,
                    counters.lsn,
                    counters.next_sequence,
                    counters.items,
                    counters.size_bytes,
                ),
            )
        return answers

    def _recover(self) -> None:
        """After a failed group: rolls it back; a file that cannot even do that is opened anew on its next use."""
        file = self._file
        if file is None:
            return
        try:
            if file.writer.in_transaction:
                file.writer.execute("ROLLBACK")
            self._reload_counters(file)
        except apsw.Error:
            _log.exception("segment %s could not roll back and is closed", self._path.stem)
            self._file = None
            self._in_snapshot = False
            for connection in (file.reader, file.writer):
                with contextlib.suppress(apsw.Error):
                    connection.close(True)

    def _committed(
        self,
        file: _OpenFile,
        waiters: list[_Waiter],
        answers: list[list[Outcome]],
        error: BaseException | None,
    ) -> None:
        if error is not None:
            self._recover()
            self._fail(waiters, error)
            return
        # Whoever learns of this commit must see it in the next read.
        self._end_snapshot()
        for (_, future), outcomes in zip(waiters, answers, strict=True):
            if not future.done():
                future.set_result(outcomes)
        self._continue(file)

    def _fail(self, waiters: list[_Waiter], error: BaseException) -> None:
        """Answers a group that was rolled back; a group of several is tried again one by one."""
        if len(waiters) > 1:
            self._alone = waiters[::-1]
            self._next()
            return
        _log.error("a write to segment %s was rolled back: %s", self._path.stem, error, exc_info=error)
        for _, future in waiters:
            if not future.done():
                future.set_exception(
                    errors.UNAVAILABLE(reason="The store could not write; nothing was changed.")
                )
        self._next()

    def _continue(self, file: _OpenFile) -> None:
        """After a group: keep the log short, then take the writes that arrived meanwhile."""
        if self._wal_pages >= schema.WAL_PAGES_TRUNCATE:
            # Writes wait: faster than the checkpoints for long enough, they would fill the disk with the log.
            if self._checkpointing:
                self._truncate_next = True
            else:
                self._truncate(file)
            return
        if self._wal_pages >= schema.WAL_PAGES_CHECKPOINT and not self._checkpointing:
            self._checkpointing = True
            self._threads.run(lambda: self._checkpoint(file), lambda _: self._checkpointed(file))
        self._next()

    def _truncate(self, file: _OpenFile) -> None:
        self._wal_pages = 0
        self._threads.run(
            lambda: file.writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE), lambda _: self._next()
        )

    def _next(self) -> None:
        self._busy = False
        if self._file is not None:
            self._file.indexes.check()
        if self._alone or self._waiting or self._has_index_work:
            self._wake()
        else:
            self._settle()

    def _settle(self) -> None:
        if self._idle is not None and self.is_idle:
            self._idle.set_result(None)
            self._idle = None

    def _checkpoint(self, file: _OpenFile) -> None:
        if file.checkpointer is None:
            file.checkpointer = schema.connect_reader(self._path)
            file.checkpointer.execute(
                f"PRAGMA query_only=0; PRAGMA synchronous={'FULL' if self._durable else 'OFF'}"
            ).fetchall()
        file.checkpointer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _checkpointed(self, file: _OpenFile) -> None:
        self._checkpointing = False
        if self._truncate_next:
            self._truncate_next = False
            self._truncate(file)
        else:
            self._settle()

    # -- the file ------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._file is not None

    @property
    def is_idle(self) -> bool:
        return not (self._busy or self._scheduled or self._waiting or self._alone or self._checkpointing)

    def _open_existing(self) -> _OpenFile | None:
        return self._open() if self._file is None and self._path.exists() else self._file

    def _open(self) -> _OpenFile:
        if self._file is not None:
            return self._file
        if self._dropped:
            raise errors.UNAVAILABLE(reason=_DROPPED)
        writer = schema.connect(self._path, schema.SEGMENT, self._durable)
        if self._durable:
            schema.sync_directory(self._path.parent)
        writer.set_wal_hook(self._note_wal_pages)
        indexes = PathIndexes(writer, self._index_settings, self._uses, self._count_items)
        reader = schema.connect_reader(self._path)
        file = _OpenFile(writer, reader, Applier(writer), {}, indexes, reader.cursor().execute)
        self._reload_counters(file)
        self._file = file
        self._opened(self)
        if indexes.has_work:
            self._wake()
        return file

    def _count_items(self) -> int:
        return sum(counters.items for counters in self._file.counters.values()) if self._file else 0

    def _reload_counters(self, file: _OpenFile) -> None:
        rows: Any = file.writer.execute(
            "SELECT id, epoch, lsn, next_sequence, items, size_bytes FROM partition"
        ).fetchall()
        file.counters = {row[0]: Counters(*row) for row in rows}

    def _note_wal_pages(self, connection: apsw.Connection, database: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def close_file(self) -> None:
        """Closes the connections of an idle segment; it opens again on its next use."""
        self._end_snapshot()
        file, self._file = self._file, None
        if file is None:
            return
        for connection in (file.checkpointer, file.reader, file.writer):
            if connection is not None:
                connection.close()

    async def settle(self) -> None:
        """Waits until no write is running or waiting."""
        if self.is_idle:
            return
        if self._idle is None:
            self._idle = asyncio.get_running_loop().create_future()
        await self._idle

    async def drop(self) -> None:
        """Deletes the files of the segment."""
        self._dropped = True
        await self.settle()
        self.close_file()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
