"""When the file of a segment fails: its group is rolled back, it is let go of, or the segment goes out of service."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence

import apsw

from pleiad import errors
from pleiad.store.problems import OUT_OF_SERVICE
from pleiad.store.rows import Outcome, PartitionWrite
from pleiad.store.segments import SegmentOutOfServiceError
from pleiad.store.sqlite.failure import damage_of, is_disk
from pleiad.store.sqlite.kept_rows import KeptBytes
from pleiad.store.sqlite.open_file import OpenFile, load_counters
from pleiad.store.sqlite.reads import SegmentReads
from pleiad.store.sqlite.registry import Registry

_log = logging.getLogger(__name__)

Waiter = tuple[PartitionWrite, "asyncio.Future[Sequence[Outcome]]"]
"""A write, and what is told of its end."""


class SegmentRecovery(SegmentReads):
    """A file and the writes that wait for it, when something fails."""

    def __init__(self, name: str, registry: Registry, kept_bytes: KeptBytes) -> None:
        super().__init__(kept_bytes)
        self.name = name
        self._registry = registry
        self._is_out_of_service = False
        self._waiting: list[Waiter] = []
        self._alone: list[Waiter] = []
        self._busy = False

    def _recover(self) -> None:
        """After a failed group: rolls it back; a file that cannot even do that is opened anew on its next use."""
        self._kept.end()
        self._kept.clear()
        file = self._file
        if file is None:
            return
        try:
            if file.writer.in_transaction:
                file.writer.execute("ROLLBACK")
            file.applier.rolled_back()
            file.generation = 0
            self._reload_counters(file)
        except Exception as error:
            if not self._examine(error):
                _log.exception("segment %s could not roll back and is closed", self.name)
            self._abandon(file)

    def _abandon(self, file: OpenFile) -> None:
        """Lets go of a file that cannot be closed in an orderly way."""
        self._file = None
        self._kept.clear()
        self._in_snapshot = False
        for connection in (*file.spare, file.reader, file.writer):
            with contextlib.suppress(apsw.Error):
                connection.close(True)

    def _examine(self, error: BaseException, is_read: bool = False) -> bool:
        """Takes the segment out of service if a failure tells of damage; whether it does."""
        damage = damage_of(error, is_read)
        if damage is not None:
            self.take_out_of_service(damage)
        return damage is not None

    def _failure(self, error: BaseException, is_read: bool = False) -> BaseException:
        """What the caller is told of a failure."""
        if self._examine(error, is_read):
            return SegmentOutOfServiceError()
        if is_disk(error) and not is_read:
            self._registry.disk.failed(f"the disk takes no writes: {error}")
            return errors.STORE_FULL()
        return error

    def _read_failure(self, error: BaseException) -> BaseException:
        """What the caller is told of a failure to read."""
        failure = self._failure(error, is_read=True)
        if isinstance(failure, apsw.Error) and not isinstance(failure, apsw.SQLError):
            _log.error("segment %s could not be read: %s", self.name, error)
            return errors.UNAVAILABLE(reason="The store could not read; nothing was changed.")
        return failure

    def take_out_of_service(self, reason: str) -> None:
        """Answers nothing from now on, and lets the operator know why."""
        if self._is_out_of_service:
            return
        self._is_out_of_service = True
        self._registry.problems.report(
            OUT_OF_SERVICE,
            self.name,
            f"segment {self.name} is out of service: {reason}. Stop the server, look with `pleiad check`, and put the "
            "file of a backup in its place",
        )
        refuse([*self._waiting, *self._alone], SegmentOutOfServiceError())
        self._waiting, self._alone = [], []
        file, self._file = self._file, None
        self._in_snapshot = False
        self._kept.clear()
        if file is not None and not self._busy:
            self._abandon(file)

    def _reload_counters(self, file: OpenFile) -> None:
        file.counters = load_counters(file.writer)


def refuse(waiters: list[Waiter], failure: BaseException) -> None:
    """Answers writes that did not take place, or that nobody knows of."""
    for _, future in waiters:
        if not future.done():
            future.set_exception(failure)
