"""One segment of the SQLite store: the contract's reads, selections and moves over one file.

Reads see only what is committed. Statements of reads run on the event loop, long counts and copies in disk threads.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from pleiad import errors
from pleiad.keys.range import EpkRange
from pleiad.store.glances import Glances
from pleiad.store.moves import CaughtUp, Division, Export, ExportMark, Totals, TotalsChange
from pleiad.store.rows import ItemKey, LogicalPartition, PartitionState, Row, Version, WholeRow
from pleiad.store.segments import WAIT, Segment, SegmentDroppedError, Waiting
from pleiad.store.selection import IndexedPath, OrderPosition, PathOrder, Selection
from pleiad.store.sqlite import changes as changing
from pleiad.store.sqlite import exchange, glancing, logical, relocate, schema, statements
from pleiad.store.sqlite import order as ordering
from pleiad.store.sqlite import select as selecting
from pleiad.store.sqlite.failure import READ_FAILURES
from pleiad.store.sqlite.file import SegmentFile
from pleiad.store.sqlite.mutate import Counters
from pleiad.store.sqlite.open_file import OpenFile
from pleiad.store.sqlite.rows import checked_row, checked_state
from pleiad.store.sqlite.snapshot import SqliteSnapshot

_SPARE_CONNECTIONS = 2


_Self = TypeVar("_Self", bound=SegmentFile)
_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


def guarded(
    method: Callable[Concatenate[_Self, _Arguments], Coroutine[Any, Any, _Answer]],
) -> Callable[Concatenate[_Self, _Arguments], Coroutine[Any, Any, _Answer]]:
    """A read that takes the segment out of service when it meets damage."""

    @functools.wraps(method)
    async def whole(self: _Self, /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Answer:
        try:
            return await method(self, *arguments, **named)
        except READ_FAILURES as error:
            raise self._read_failure(error) from error

    return whole


class SqliteSegment(SegmentFile):
    """The contract's Segment over one SQLite file."""

    # -- reads ---------------------------------------------------------------------------------

    @guarded
    async def read_many(self, keys: Sequence[ItemKey]) -> Sequence[Row | None]:
        reading = self._reading()
        if reading is None:
            return [None] * len(keys)
        execute = reading.connection.cursor().execute
        found: list[Any] = [execute(statements.READ, key).fetchone() for key in keys]
        return [None if columns is None else checked_row(columns) for columns in found]

    @guarded
    async def find(self, number: int) -> Row | None:
        file = self._file or self._open_existing()
        found: Any = file.reader.execute(statements.FIND, (number,)).fetchone() if file is not None else None
        return None if found is None else checked_row(found)

    @guarded
    async def find_many(self, numbers: Sequence[int]) -> Sequence[Row]:
        reading = self._reading()
        if reading is None:
            return []
        execute = reading.connection.cursor().execute
        found: list[Any] = [execute(statements.FIND, (number,)).fetchone() for number in numbers]
        return [checked_row(columns) for columns in found if columns is not None]

    @guarded
    async def scan(self, span: EpkRange, after: int, limit: int) -> Sequence[Row]:
        reading = self._reading()
        if reading is None:
            return []
        found = reading.connection.execute(statements.scan(span), (after, span.min, span.max, limit))
        return list(map(checked_row, found))

    @guarded
    async def scan_back(self, span: EpkRange, before: int, limit: int) -> Sequence[Row]:
        reading = self._reading()
        if reading is None:
            return []
        found = reading.connection.execute(statements.scan_back(span), (before, span.min, span.max, limit))
        return list(map(checked_row, found))

    @guarded
    async def changes(
        self, span: EpkRange, after_lsn: int, limit: int, since_ts: int = 0, partition: int | None = None
    ) -> Sequence[Row]:
        return await changing.changes(self._reading, span, after_lsn, limit, since_ts, partition)

    @guarded
    async def versions(
        self, span: EpkRange, after_lsn: int, limit: int, partition: int | None = None
    ) -> Sequence[Version]:
        return await changing.versions(self._reading, span, after_lsn, limit, partition)

    @guarded
    async def forget_versions(self, before_ts: int, limit: int) -> int:
        reading = self._reading()
        if reading is None or not changing.has_versions_before(reading.connection, before_ts):
            return 0
        return await self._alone_on_writer(
            lambda file: changing.forget_versions(file.writer, before_ts, limit)
        )

    @guarded
    async def state(self, partition: int) -> PartitionState:
        file = self._file or self._open_existing()
        # Not from the counters in memory, which run ahead of the disk while a commit waits for it.
        found: Any = (
            file.reader.execute(statements.STATE, (partition,)).fetchone() if file is not None else None
        )
        return Counters(partition, 0).state() if found is None else checked_state(found)

    @guarded
    async def logical_partitions(self, span: EpkRange) -> Sequence[LogicalPartition]:
        file = self._file or self._open_existing()
        if file is None:
            return []
        rows: Any = file.reader.execute(statements.LOGICAL, (span.min, span.max)).fetchall()
        return [LogicalPartition(*row) for row in rows]

    @guarded
    async def largest_logical_partitions(
        self, span: EpkRange, count: int, bytes_min: int = 0
    ) -> Sequence[LogicalPartition]:
        if self._open_existing() is None:
            return []
        return await asyncio.to_thread(logical.largest, self._path, span, count, bytes_min)

    @guarded
    async def expired(self, span: EpkRange, now: int, default_ttl: int | None, limit: int) -> Sequence[Row]:
        file = self._file or self._open_existing()
        if file is None or default_ttl is None:
            return []
        rows: list[Any] = file.reader.execute(
            statements.EXPIRED_OWN, (now, span.min, span.max, limit)
        ).fetchall()
        if default_ttl > 0 and len(rows) < limit:
            # Only a container with a default TTL pays for the index; its next commit makes it.
            self._wants_age_index = not schema.has_age_index(file.reader)
            rows += file.reader.execute(
                statements.EXPIRED_DEFAULT, (now - default_ttl, span.min, span.max, limit - len(rows))
            ).fetchall()
        return list(map(checked_row, rows))

    def snapshot(self) -> SqliteSnapshot:
        file = self._opened_existing()
        if file is None:
            return SqliteSnapshot(None, lambda _: None, self._read_failure)

        def give_back(connection: apsw.Connection) -> None:
            if self._file is file and len(file.spare) < _SPARE_CONNECTIONS:
                file.spare.append(connection)
            else:
                connection.close()

        connection = file.spare.pop() if file.spare else schema.connect_reader(self._path)
        return SqliteSnapshot(connection, give_back, self._read_failure)

    # -- selections ----------------------------------------------------------------------------

    @property
    def ranges_max(self) -> int:
        return 0

    @guarded
    async def select(self, selection: Selection, after: int, limit: int) -> Sequence[Row]:
        return await selecting.select(self._reading, selection, after, limit)

    def select_at_once(self, selection: Selection, limit: int) -> Sequence[Row] | Waiting:
        try:
            rows = selecting.select_at_once(self._reading, selection, limit)
        except READ_FAILURES as error:
            raise self._read_failure(error) from error
        return WAIT if rows is None else rows

    def ordered_at_once(
        self, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
    ) -> Sequence[tuple[Row, OrderPosition]] | Waiting:
        try:
            rows = ordering.ordered_at_once(self._reading, selection, order, after, limit)
        except READ_FAILURES as error:
            raise self._read_failure(error) from error
        return WAIT if rows is None else rows

    @guarded
    async def glance(self, selection: Selection, names: Sequence[str], after: int, limit: int) -> Glances:
        return await glancing.glance(self._reading, selection, names, after, limit)

    @guarded
    async def ordered(
        self, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
    ) -> Sequence[tuple[Row, OrderPosition]] | None:
        return await ordering.ordered(self._reading, selection, order, after, limit)

    @guarded
    async def count(self, selection: Selection, count_only: bool = False) -> tuple[int, int]:
        return await selecting.count(self._reading, selection, count_only)

    # -- path indexes --------------------------------------------------------------------------

    def note_use(self, paths: Iterable[IndexedPath], found: bool = False) -> None:
        file = self._file or self._opened_existing()
        if file is not None and file.indexes.count_use(paths, found):
            self._wake()

    def index_progress(self) -> float:
        file = self._opened_existing()
        return 1.0 if file is None else file.indexes.progress()

    def drop_indexes(self, keep: Callable[[IndexedPath], bool]) -> None:
        file = self._opened_existing()
        if file is not None:
            file.indexes.discard_all_but(keep)
            self._wake()

    # -- split, merge and move -------------------------------------------------------------------

    @guarded
    async def middle(self, span: EpkRange) -> bytes | None:
        return await self._beside(lambda reader: relocate.middle(reader, span))

    @guarded
    async def totals(self, span: EpkRange) -> Totals:
        return await self._beside(lambda reader: relocate.totals(reader, span)) or Totals(0, 0)

    async def fence(self, partition: int, epoch: int) -> PartitionState | None:
        return await self._alone_on_writer(lambda file: relocate.fence(file.writer, partition, epoch))

    async def open_partition(self, state: PartitionState) -> None:
        await self._alone_on_writer(lambda file: relocate.save(file.writer, state))

    async def reopen(self, partition: int, epoch: int) -> PartitionState:
        return await self._alone_on_writer(lambda file: relocate.reopen(file.writer, partition, epoch))

    async def divide(self, division: Division) -> tuple[PartitionState, PartitionState] | None:
        below = EpkRange(division.span.min, division.at)
        halves: tuple[PartitionState, PartitionState] | None = None

        def finish(file: OpenFile) -> bool:
            nonlocal halves
            file.applier.watch = None
            if not count.watch.is_void:
                halves = relocate.divide(file.writer, division, count.now())
            return not count.watch.is_void

        while True:
            count = await self._alone_on_writer(
                lambda file: relocate.HalfCount(self._path, file.applier, below)
            )
            await self._threads.run_async(count.run)
            if await self._alone_on_writer(finish):
                return halves

    async def track_deletes(self, on: bool) -> None:
        def track(file: OpenFile) -> None:
            file.applier.deleted = [] if on else None

        await self._alone_on_writer(track)

    @guarded
    async def export(self, span: EpkRange, after: ExportMark, limit: int) -> Export:
        file = self._file or self._open_existing()
        deleted = None if file is None else file.applier.deleted
        if file is not None and deleted is None and after.delete is not None:
            raise errors.UNAVAILABLE(reason="The deletes of the segment are not tracked.")
        piece = await self._beside(lambda reader: exchange.export(reader, span, after, limit, deleted))
        return piece or Export((), (), (), after)

    async def import_rows(
        self,
        span: EpkRange,
        rows: Sequence[WholeRow],
        deletes: Sequence[int] = (),
        versions: Sequence[Version] = (),
    ) -> TotalsChange:
        return await self._alone_on_writer(
            lambda file: exchange.import_rows(file.writer, span, rows, deletes, versions)
        )

    def can_copy_from(self, source: Segment) -> bool:
        return isinstance(source, SqliteSegment) and source._path.parent == self._path.parent

    async def copy_from(self, source: Segment, span: EpkRange, after: int, limit: int) -> int | None:
        assert isinstance(source, SqliteSegment)
        if source._opened_existing() is None:
            return None
        path = source._path
        return await self._alone_on_writer(
            lambda file: relocate.copy(file.writer, path, span, after, limit), blamed=source
        )

    async def catch_up(self, source: Segment, span: EpkRange, after_lsn: int, after_delete: int) -> CaughtUp:
        assert isinstance(source, SqliteSegment)
        path, file = source._path, source._opened_existing()
        deleted = file.applier.deleted if file is not None else None
        if deleted is None:
            raise SegmentDroppedError()
        return await self._alone_on_writer(
            lambda target: relocate.catch_up(target.writer, path, span, after_lsn, after_delete, deleted),
            blamed=source,
        )
