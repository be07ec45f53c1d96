"""The file of one segment: one writer with group commit, snapshots for reads, and steps between the groups.

Writes that arrive while a commit waits for the disk share the next one. Statements run on the event loop; COMMIT runs
in the rounds of the store, during which the writer connection belongs to a disk thread and reads go on over a second
connection, which sees only what is committed.

Invariants:
- `_busy` is true from BEGIN until the end of COMMIT, and on while the log is truncated or a call runs alone on the
  writer connection; only then is that connection out of the loop's hands.
- A waiter is answered after COMMIT returned, never before, and exactly once.
- A read never returns a state older than a commit that was answered before it: the snapshot that reads of one turn
  of the loop share ends before a commit is answered.
- The counters in memory equal the partition rows on disk whenever no transaction runs.
- The registry knows of the segment before its first commit is answered.
- A segment that is found to be damaged closes its file and never opens it again in the life of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import apsw

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.store.commits import NOTED_MAX, CommitCounts
from pleiad.store.index_use import IndexSettings, PathUses
from pleiad.store.rows import Outcome, PartitionWrite
from pleiad.store.segments import SegmentDroppedError, SegmentOutOfServiceError
from pleiad.store.sqlite import schema, statements
from pleiad.store.sqlite.failure import READ_FAILURES
from pleiad.store.sqlite.file_system import UnsyncedError
from pleiad.store.sqlite.kept_rows import KeptBytes
from pleiad.store.sqlite.open_file import OpenFile, open_file
from pleiad.store.sqlite.path_index import PathIndexes, Step
from pleiad.store.sqlite.recovery import SegmentRecovery, Waiter, refuse
from pleiad.store.sqlite.registry import Registry
from pleiad.store.sqlite.rounds import Commit, CommitRounds, Member
from pleiad.store.sqlite.threads import DiskThreads
from pleiad.store.sqlite.wal import PAGES_WRITTEN

_log = logging.getLogger(__name__)

_UNSYNCED = "The disk did not confirm the write: it may have taken place or not."

_Answer = TypeVar("_Answer")
Ended = Callable[[BaseException | None], None]
Opened = Callable[["SegmentFile"], None]
"""What the store wants to be told when a segment has opened its file."""


class SegmentFile(SegmentRecovery, Member):
    """A file that is opened on first use, and the writes that wait for it."""

    def __init__(
        self,
        path: Path,
        threads: DiskThreads,
        rounds: CommitRounds,
        durable: bool,
        opened: Opened,
        index_settings: IndexSettings,
        commits: CommitCounts,
        registry: Registry,
        kept_bytes: KeptBytes,
    ) -> None:
        super().__init__(path.stem, registry, kept_bytes)
        self._path = path
        self._commits = commits
        self._opened = opened
        self._threads = threads
        self._rounds = rounds
        self._durable = durable
        self._scheduled = False
        self._jobs: list[tuple[Step, Ended]] = []
        self._idle: asyncio.Future[None] | None = None
        self._dropped = False
        self._wants_age_index = False
        self._index_settings = index_settings
        self._uses = PathUses()
        self._is_step_turn = False
        self._began_at = 0.0
        self.is_log_held = False
        """While a backup has a snapshot: to empty the log would wait for the end of it, and writes with it."""

    # -- steps between the groups ----------------------------------------------------------------

    @property
    def _has_steps(self) -> bool:
        """Whether steps are to be taken; none on indexes while somebody waits for the segment to come to rest."""
        file = self._file
        return bool(self._jobs) or (
            file is not None and self._idle is None and not self._dropped and file.indexes.has_work
        )

    def _begin_step(self) -> bool:
        """Takes one step if it is its turn: after each group, or when nobody waits."""
        has_turn = self._is_step_turn or not (self._alone or self._waiting)
        self._is_step_turn = not has_turn
        work = self._next_step() if has_turn and self._has_steps else None
        if work is None:
            return False
        self._busy = True
        step, ended = work
        if self._file is not None:
            self._file.sync_by_commit(True)
        self._threads.run(step, lambda error: self._stepped(ended, error))
        return True

    def _next_step(self) -> tuple[Step, Ended] | None:
        if self._jobs:
            self._kept.begin_alone()
            return self._jobs.pop(0)
        file = self._file
        work = file.indexes.next_step() if file is not None else None
        if file is None or work is None:
            return None
        step, done = work

        def ended(error: BaseException | None) -> None:
            if error is None:
                done()
            elif self._file is file:
                file.indexes.fail(error)
                self._examine(error)

        return step, ended

    def _stepped(self, ended: Ended, error: BaseException | None) -> None:
        if error is not None:
            self._recover()
        # What a step made is used from now on only together with a snapshot that has it.
        self._end_snapshot()
        self._kept.end()
        ended(error)
        if self._file is not None and error is None:
            self._continue(self._file)
        else:
            self._next()

    async def _alone_on_writer(
        self, call: Callable[[OpenFile], _Answer], blamed: SegmentFile | None = None
    ) -> _Answer:
        """Runs a call in a disk thread with the writer connection to itself, between two groups of writes.

        Damage that it meets is that of the segment it reads from, where that is another one.
        """
        self._check_usable()
        future: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        answers: list[_Answer] = []

        def ended(error: BaseException | None) -> None:
            if error is None and self._file is not None:
                self._reload_counters(self._file)
            if not future.done():
                if error is None:
                    future.set_result(answers[0])
                else:
                    future.set_exception((blamed or self)._failure(error))

        def work() -> None:
            file = self._open()
            self._note_made(file)
            answers.append(call(file))

        try:
            self._open()
        except Exception as error:
            raise self._failure(error) from error
        self._jobs.append((work, ended))
        self._wake()
        return await future

    async def _beside(self, call: Callable[[apsw.Connection], _Answer]) -> _Answer | None:
        """Runs a long read in a disk thread, on a connection of its own; None when there is no file yet."""
        if (self._file or self._open_existing()) is None:
            return None
        answers: list[_Answer] = []

        def read() -> None:
            with contextlib.closing(schema.connect_reader(self._path)) as reader:
                answers.append(call(reader))

        await self._threads.run_async(read)
        return answers[0]

    def _opened_existing(self) -> OpenFile | None:
        """The file if there is one, for calls that are not guarded."""
        try:
            return self._file or self._open_existing()
        except READ_FAILURES as error:
            raise self._read_failure(error) from error

    # -- writes --------------------------------------------------------------------------------

    def commit(self, write: PartitionWrite) -> Awaitable[Sequence[Outcome]]:
        self._check_usable()
        future: asyncio.Future[Sequence[Outcome]] = asyncio.get_running_loop().create_future()
        self._waiting.append((write, future))
        self._wake(write.is_alone)
        return future

    def _wake(self, is_alone: bool = False) -> None:
        if not self._busy and not self._scheduled:
            self._scheduled = True
            self._rounds.join(self, is_alone)

    def begin_commit(self, may_share: bool) -> Commit | None:
        self._scheduled = False
        if self._begin_step():
            return None
        if not (self._alone or self._waiting):
            self._settle()
            return None
        if self._alone:
            waiters = [self._alone.pop()]
        else:
            waiters, self._waiting = self._waiting, []
        self._busy = True
        self._began_at = perf_counter()
        try:
            file = self._file or self._open()
            # What others copy into their files must not be lost here when it is kept there.
            if may_share or not file.is_synced_by_commit:
                file.sync_by_commit(not may_share or self.is_tracked)
            answers = file.applier.begin(file.counters, [write for write, _ in waiters])
            if self._wants_age_index:
                file.writer.execute(statements.AGE_INDEX)
                self._wants_age_index = False
            if file.generation < self._registry.generation:
                file.note_generation(self._registry.generation)
            if not file.is_synced_by_commit:
                self._hold_snapshot(file)
        except Exception as error:
            self._recover()
            self._fail(waiters, error)
            return None
        return Commit(
            lambda: self._commit(file),
            lambda error: self._committed(file, waiters, answers, error),
            file.is_synced_by_commit,
        )

    def _commit(self, file: OpenFile) -> None:
        if not file.is_noted:
            self._note_made(file)
        file.applier.commit()

    def _note_made(self, file: OpenFile) -> None:
        """Tells the registry of a segment before something in it can be missed."""
        if not file.is_noted:
            self._registry.note_made(self.name)
            file.is_noted = True

    def _committed(
        self,
        file: OpenFile,
        waiters: list[Waiter],
        answers: list[Sequence[Outcome]],
        error: BaseException | None,
    ) -> None:
        # Whoever learns of this commit must see it in the next read.
        if self._in_snapshot:
            self._end_snapshot()
        if isinstance(error, UnsyncedError):
            self._lose_sight(waiters, error)
            return
        if error is not None:
            self._recover()
            self._fail(waiters, error)
            return
        self._commits.noted.append((len(waiters), perf_counter() - self._began_at))
        if len(self._commits.noted) >= NOTED_MAX:
            self._commits.count()
        if self._registry.disk.is_on:
            self._registry.disk.recovered()
        if self._kept.is_changing:
            self._kept.end(answers)
        for (_, future), outcomes in zip(waiters, answers, strict=True):
            if not future.done():
                future.set_result(outcomes)
        self._continue(file)

    def _fail(self, waiters: list[Waiter], error: BaseException) -> None:
        """Answers a group that was rolled back; a group of several is tried again one by one."""
        if len(waiters) > 1:
            self._alone = waiters[::-1]
            self._next()
            return
        failure = self._failure(error)
        if not isinstance(failure, PleiadError):
            _log.error("a write to segment %s was rolled back: %s", self.name, error, exc_info=error)
            failure = errors.UNAVAILABLE(reason="The store could not write; nothing was changed.")
        refuse(waiters, failure)
        self._next()

    def _lose_sight(self, waiters: list[Waiter], error: UnsyncedError) -> None:
        """Answers a group that may be on disk or not; the file is closed, which copies the log into it and syncs it."""
        self._registry.disk.failed(f"the disk does not tell whether it has what was written: {error}")
        refuse(waiters, errors.REQUEST_TIMEOUT(reason=_UNSYNCED))
        self._kept.end()
        try:
            self.close_file()
        except apsw.Error:
            _log.exception("segment %s could not be closed", self.name)
        self._next()

    def _continue(self, file: OpenFile) -> None:
        """After a group: keep the log short, then take the writes that arrived meanwhile."""
        log = file.log
        log.pages_written = file.writer.status(PAGES_WRITTEN)[0]
        if log.pages_written < log.pages_due or self.is_log_held or log.keep_short(self._next, self._settle):
            self._next()

    def _next(self) -> None:
        self._busy = False
        if self._file is not None and self._index_settings.clock() >= self._file.indexes.check_due_at:
            self._file.indexes.check()
        if self._alone or self._waiting or self._has_steps:
            self._wake()
        else:
            self._settle()

    def _settle(self) -> None:
        if self._idle is not None and self.is_idle:
            self._idle.set_result(None)
            self._idle = None

    # -- the file ------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._file is not None

    @property
    def is_idle(self) -> bool:
        busy = self._busy or self._scheduled or self._waiting or self._alone or self._jobs
        return not busy and (self._file is None or not self._file.log.is_checkpointing)

    @property
    def writes_waiting(self) -> int:
        return len(self._waiting) + len(self._alone)

    @property
    def is_emptying_log(self) -> bool:
        """Whether writes wait for the log to be emptied, which a new snapshot would hold up."""
        return self._file is not None and self._file.log.is_truncating

    @property
    def is_tracked(self) -> bool:
        """Whether the open file remembers something that is on no disk: deletes, or a running count."""
        applier = self._file.applier if self._file is not None else None
        return applier is not None and (applier.deleted is not None or applier.watch is not None)

    def _check_usable(self) -> None:
        if self._dropped:
            raise SegmentDroppedError()
        if self._is_out_of_service:
            raise SegmentOutOfServiceError()

    def _open_existing(self) -> OpenFile | None:
        self._check_usable()
        if self._file is None and not self._registry.is_made(self.name) and not self._path.exists():
            return None
        return self._open()

    def _open(self) -> OpenFile:
        if self._file is not None:
            return self._file
        self._check_usable()
        file = open_file(
            self._path, self._registry, self._durable, self._threads, self._indexes_of, self._kept
        )
        self._file = file
        self._opened(self)
        if file.indexes.has_work:
            self._wake()
        return file

    def _indexes_of(self, writer: apsw.Connection) -> PathIndexes:
        return PathIndexes(writer, self._index_settings, self._uses, self._count_items)

    def lsns(self) -> int | None:
        """The sum of the LSNs of its partitions, of an open file."""
        return None if self._file is None else sum(c.lsn for c in self._file.counters.values())

    def _count_items(self) -> int:
        return sum(counters.items for counters in self._file.counters.values()) if self._file else 0

    def close_file(self) -> None:
        """Closes the connections of an idle segment; it opens again on its next use."""
        self._end_snapshot()
        self._kept.clear()
        file, self._file = self._file, None
        if file is None:
            return
        file.log.close()
        for connection in (*file.spare, file.reader, file.writer):
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
