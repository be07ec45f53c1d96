"""One segment: a schema in the database, made on its first write.

A point read and a write are one round trip each, shared by all that wait. The database is asked for the schema until
it is there; from then on its absence means that the segment was dropped, here or by another server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import psycopg

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.keys.range import EpkRange
from pleiad.store.checksum import DamagedRowError
from pleiad.store.commits import CommitCounts
from pleiad.store.glances import Glances
from pleiad.store.index_use import IndexSettings
from pleiad.store.moves import CaughtUp, Division, Export, ExportMark, Totals, TotalsChange
from pleiad.store.postgres import exchange, mutate, rehome, schema, statements
from pleiad.store.postgres.age_index import AgeIndex
from pleiad.store.postgres.arrays import byteas, int8s, texts
from pleiad.store.postgres.connections import Connection, Connections
from pleiad.store.postgres.group import ReadQueue, WriteQueue
from pleiad.store.postgres.json_sql import Sql, to_text
from pleiad.store.postgres.path_index import PathIndexes
from pleiad.store.postgres.schema import schema_name, sql
from pleiad.store.postgres.segment_sql import NOT_READY
from pleiad.store.postgres.select import ROW_COLUMNS_COUNT, Selecting, row_of, version_of
from pleiad.store.postgres.snapshot import PostgresSnapshot
from pleiad.store.predicate import merged_selection
from pleiad.store.problems import OUT_OF_SERVICE
from pleiad.store.rows import (
    ItemKey,
    LogicalPartition,
    Mutation,
    Outcome,
    PartitionState,
    PartitionWrite,
    Result,
    Row,
    Version,
    WholeRow,
)
from pleiad.store.segments import WAIT, Segment, SegmentDroppedError, SegmentOutOfServiceError, Waiting
from pleiad.store.selection import IndexedPath, OrderPosition, PathOrder, Selection

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_SEARCHES_MAX = 3
_RANGES_MAX = 4_000
_INDEX_CHANGED = "The indexes of the container are changing; retry."


class PostgresSegment:
    """The contract's Segment over one schema."""

    def __init__(
        self,
        name: str,
        connections: Connections,
        index_settings: IndexSettings,
        last_drop: int,
        commits: CommitCounts,
        snapshots: Connections,
    ) -> None:
        self._commits = commits
        self._snapshot_connections = snapshots
        self._snapshots: set[PostgresSnapshot] = set()
        self._name = name
        self._schema = schema_name(name)
        self._connections = connections
        self._last_drop = last_drop
        self._is_made = False
        self._is_damaged = False
        self._dropped = False
        self._queues: dict[int, WriteQueue] = {}
        self._reads = ReadQueue(self._read_several)
        self._indexes = PathIndexes(self._schema, connections, index_settings)
        self._selecting = Selecting(self._schema, self._indexes, self._fetch_made)
        self._age_index = AgeIndex(self._schema, self._change)

    # -- the schema ----------------------------------------------------------------------------

    async def _look(self) -> bool:
        """Whether the segment is made; SegmentDroppedError once it is no more."""
        if self._dropped:
            raise SegmentDroppedError()
        if self._is_damaged:
            raise SegmentOutOfServiceError()
        if self._is_made:
            return True

        async def look(connection: Connection) -> bool:
            found = await self._standing(connection)
            if found.is_made:
                await schema.upgrade_segment(connection, self._schema, self._name)
                await self._indexes.load(connection)
                return True
            self._dropped = self._dropped or found.is_dropped
            return False

        is_made = await self._guarded(self._connections.read(look))
        if self._dropped:
            raise SegmentDroppedError()
        if self._is_damaged:
            raise SegmentOutOfServiceError()
        # Another call may have made it meanwhile, and an answer that is older does not undo that.
        self._is_made = self._is_made or is_made
        return self._is_made

    async def _standing(self, connection: Connection) -> schema.Standing:
        """What the database knows of the segment; one that is lost goes out of service."""
        found = await schema.standing(connection, self._name, self._last_drop)
        if found.is_gone:
            # Nobody serves it again before an operator has looked, so it is asked once more, beside nobody.
            found = await schema.settled_standing(connection, self._name, self._last_drop)
            if found.is_gone:
                raise self._out_of_service("its schema is gone, although it held items")
        return found

    def _row(self, found: Sequence[Any]) -> Row:
        """A row as it was written; one that is not puts the segment on the list of what is wrong."""
        try:
            return row_of(found)
        except DamagedRowError as error:
            raise self._out_of_service(str(error)) from error

    def _out_of_service(self, reason: str) -> SegmentOutOfServiceError:
        """Answers nothing from now on, and lets the operator know why."""
        self._is_damaged = True
        self._is_made = False
        self._connections.problems.report(
            OUT_OF_SERVICE, self._name, f"segment {self._name} is out of service: {reason}"
        )
        return SegmentOutOfServiceError()

    async def _make(self) -> None:
        if await self._look():
            return

        async def make(connection: Connection) -> bool:
            return await schema.make_segment(connection, self._schema, self._name, self._last_drop)

        try:
            if not await self._connections.write(make):
                self._dropped = True
        except psycopg.Error as error:
            _log.error("segment %s was not made: %s", self._name, error)
            raise self._failure(error) from error
        await self._look()

    async def _guarded(self, call: Awaitable[_T]) -> _T:
        """What a call gives; SegmentDroppedError when it failed because the segment was dropped meanwhile.

        One that is lost meanwhile goes out of service.
        """
        try:
            return await call
        except psycopg.Error as error:
            if self._dropped or not (await self._connections.read(self._standing)).is_made:
                self._dropped = True
                raise SegmentDroppedError() from error
            raise

    async def _missing(self) -> None:
        """Nothing while the segment is not made; fails as every call does where it is dropped, or lost."""
        if self._is_made:
            await self._connections.read(self._standing)
            raise SegmentDroppedError()
        await self._look()

    async def _fetch(self, text: str, params: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The rows of a statement that changes nothing; none while the segment is not made."""
        if not self._is_made and not await self._look():
            return []
        return await self._fetch_made(Sql(text.format(s=self._schema), params))

    async def _rows(self, text: str, params: tuple[Any, ...]) -> list[Row]:
        return [self._row(row) for row in await self._fetch(text, params)]

    async def _fetch_made(self, statement: Sql) -> list[tuple[Any, ...]]:
        async def fetch(connection: Connection) -> list[tuple[Any, ...]]:
            async with connection.cursor(binary=True) as cursor:
                await cursor.execute(sql(statement.text), statement.params)
                return await cursor.fetchall()

        try:
            return await self._guarded(self._connections.read(fetch))
        except psycopg.InternalError as error:
            _log.error("a read failed: %s", error, exc_info=error)
            raise errors.UNAVAILABLE(reason="The store could not read.") from error

    async def _change(self, work: Callable[[Connection], Awaitable[_T]]) -> _T:
        """Runs a durable change of the segment, which is made if it is not there."""
        await self._make()
        try:
            return await self._guarded(self._connections.write(work))
        except psycopg.Error as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> PleiadError:
        return self._connections.refusal(error)

    # -- reads ---------------------------------------------------------------------------------

    async def read(self, epk: bytes, id: str) -> Row | None:
        if not self._is_made and not await self._look():
            return None
        return await self._reads.read(epk, id)

    def read_at_once(self, epk: bytes, id: str) -> Waiting:
        return WAIT

    def select_at_once(self, selection: Selection, limit: int) -> Waiting:
        return WAIT

    def ordered_at_once(
        self, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
    ) -> Waiting:
        return WAIT

    async def read_many(self, keys: Sequence[ItemKey]) -> Sequence[Row | None]:
        return await self._read_several(keys) if keys else []

    async def _read_several(self, keys: Sequence[tuple[bytes, str]]) -> list[Row | None]:
        if len(keys) == 1:
            epk, id = keys[0]
            rows = await self._fetch(statements.READ, (epk, to_text(id)))
            return [self._row(rows[0]) if rows else None]
        epks, ids = byteas([epk for epk, _ in keys]), texts([to_text(id) for _, id in keys])
        rows = await self._fetch(statements.READ_SEVERAL, (epks, ids))
        by_place = {row[ROW_COLUMNS_COUNT]: self._row(row) for row in rows}
        return [by_place.get(place) for place in range(1, len(keys) + 1)]

    def snapshot(self) -> PostgresSnapshot:
        if self._dropped:
            raise SegmentDroppedError
        snapshot = PostgresSnapshot(self._schema, self._snapshot_connections, self._missing, self._row)
        self._snapshots.add(snapshot)
        return snapshot

    async def snapshots_begun(self) -> None:
        """Waits until the snapshots that were asked for are taken, and forgets those that ended."""
        if self._snapshots:
            await asyncio.wait({snapshot.begun for snapshot in self._snapshots})
            self._snapshots = {s for s in self._snapshots if s.ended is None or not s.ended.done()}

    async def find(self, number: int) -> Row | None:
        rows = await self._fetch(statements.FIND, (number,))
        return self._row(rows[0]) if rows else None

    async def find_many(self, numbers: Sequence[int]) -> Sequence[Row]:
        if not numbers:
            return []
        return await self._rows(statements.FIND_MANY, (int8s(numbers),))

    async def scan(self, span: EpkRange, after: int, limit: int) -> Sequence[Row]:
        return await self._rows(statements.scan(span), (after, span.min, span.max, limit))

    async def scan_back(self, span: EpkRange, before: int, limit: int) -> Sequence[Row]:
        return await self._rows(statements.SCAN_BACK, (before, span.min, span.max, limit))

    async def changes(
        self, span: EpkRange, after_lsn: int, limit: int, since_ts: int = 0, partition: int | None = None
    ) -> Sequence[Row]:
        params = (after_lsn, span.min, span.max, since_ts, partition, limit)
        return await self._rows(statements.CHANGES, params)

    async def versions(
        self, span: EpkRange, after_lsn: int, limit: int, partition: int | None = None
    ) -> Sequence[Version]:
        rows = await self._fetch(statements.VERSIONS, (after_lsn, span.min, span.max, partition, limit))
        return [version_of(row) for row in rows]

    async def forget_versions(self, before_ts: int, limit: int) -> int:
        if not await self._fetch(statements.HAS_OLD_VERSIONS, (before_ts,)):
            return 0
        text = statements.FORGET_VERSIONS.format(s=self._schema)

        async def forget(connection: Connection) -> int:
            rows = await (await connection.execute(sql(text), (before_ts, limit))).fetchall()
            return int(rows[0][0])

        return await self._change(forget)

    async def state(self, partition: int) -> PartitionState:
        rows = await self._fetch(statements.STATE, (partition,))
        return PartitionState(*rows[0]) if rows else PartitionState(partition, 0, 0, 1, 0, 0)

    async def logical_partitions(self, span: EpkRange) -> Sequence[LogicalPartition]:
        rows = await self._fetch(statements.LOGICAL, (span.min, span.max))
        return [LogicalPartition(*row) for row in rows]

    async def largest_logical_partitions(
        self, span: EpkRange, count: int, bytes_min: int = 0
    ) -> Sequence[LogicalPartition]:
        rows = await self._fetch(statements.LARGEST, (span.min, span.max, bytes_min, count))
        return [LogicalPartition(*row) for row in rows]

    async def expired(self, span: EpkRange, now: int, default_ttl: int | None, limit: int) -> Sequence[Row]:
        if default_ttl is None:
            return []
        rows = await self._fetch(statements.EXPIRED_OWN, (span.min, span.max, now, limit))
        if default_ttl > 0 and len(rows) < limit:
            if self._is_made:
                self._age_index.want()
            params = (span.min, span.max, now - default_ttl, limit - len(rows))
            rows += await self._fetch(statements.EXPIRED_DEFAULT, params)
        return [self._row(row) for row in rows]

    # -- selections ----------------------------------------------------------------------------

    @property
    def ranges_max(self) -> int:
        return _RANGES_MAX

    async def select(self, selection: Selection, after: int, limit: int) -> Sequence[Row]:
        selection = merged_selection(selection)
        return await self._search(lambda: self._selecting.select(selection, after, limit), [])

    async def glance(self, selection: Selection, names: Sequence[str], after: int, limit: int) -> Glances:
        selection = merged_selection(selection)
        return await self._search(
            lambda: self._selecting.glance(selection, names, after, limit), Glances.of((), len(names))
        )

    async def ordered(
        self, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
    ) -> Sequence[tuple[Row, OrderPosition]] | None:
        selection = merged_selection(selection)
        nothing: list[tuple[Row, OrderPosition]] | None = []
        return await self._search(lambda: self._selecting.ordered(selection, order, after, limit), nothing)

    async def count(self, selection: Selection, count_only: bool = False) -> tuple[int, int]:
        selection = merged_selection(selection)
        return await self._search(lambda: self._selecting.count(selection, count_only), (0, 0))

    async def _search(self, search: Callable[[], Awaitable[_T]], nothing: _T) -> _T:
        """Runs a search; again, with the indexes as they are now, when another server dropped one it used."""
        if not self._is_made and not await self._look():
            return nothing
        for _ in range(_SEARCHES_MAX):
            try:
                return await search()
            except DamagedRowError as error:
                raise self._out_of_service(str(error)) from error
            except psycopg.Error as error:
                if error.sqlstate != NOT_READY:
                    raise
                await self._connections.read(self._indexes.load)
        raise errors.UNAVAILABLE(reason=_INDEX_CHANGED)

    def note_use(self, paths: Iterable[IndexedPath], found: bool = False) -> None:
        if self._is_made and not self._dropped:
            self._indexes.note_use(paths, found)

    def index_progress(self) -> float:
        return self._indexes.progress()

    def drop_indexes(self, keep: Callable[[IndexedPath], bool]) -> None:
        self._indexes.drop(keep)

    # -- writes --------------------------------------------------------------------------------

    async def commit(self, write: PartitionWrite) -> Sequence[Outcome]:
        if self._dropped:
            raise SegmentDroppedError()
        queue = self._queues.get(write.partition)
        if queue is None:
            queue = self._queues[write.partition] = WriteQueue(self._apply, self._failure, self._commits)
        return await queue.commit(write)

    async def _apply(self, write: PartitionWrite, mutations: Sequence[Mutation]) -> Sequence[Outcome]:
        if not mutations:
            return []
        await self.snapshots_begun()
        if not self._is_made:
            await self._make()
        call = "batch_3" if write.atomic else "write_3"
        text = f"SELECT * FROM {self._schema}.{call}({mutate.CALL})"
        params = mutate.arguments(write, mutations)

        async def apply(connection: Connection) -> list[tuple[Any, ...]]:
            async with connection.cursor(binary=True) as cursor:
                await cursor.execute(sql(text), params, prepare=True)
                return await cursor.fetchall()

        answers = await self._guarded(self._connections.write(apply))
        outcomes = mutate.outcomes(write, mutations, answers)
        for outcome in outcomes:
            self._indexes.items += (outcome.result is Result.CREATED) - (outcome.result is Result.DELETED)
        return outcomes

    # -- split, merge and move -----------------------------------------------------------------

    async def middle(self, span: EpkRange) -> bytes | None:
        rows = await self._fetch(statements.MIDDLE, (span.min, span.max))
        return rows[0][0] if rows else None

    async def fence(self, partition: int, epoch: int) -> PartitionState | None:
        return await self._change(lambda connection: rehome.fence(connection, self._schema, partition, epoch))

    async def divide(self, division: Division) -> tuple[PartitionState, PartitionState] | None:
        return await self._change(lambda connection: rehome.divide(connection, self._schema, division))

    async def open_partition(self, state: PartitionState) -> None:
        await self._change(lambda connection: rehome.save_partition(connection, self._schema, state))

    async def reopen(self, partition: int, epoch: int) -> PartitionState:
        return await self._change(
            lambda connection: rehome.reopen(connection, self._schema, partition, epoch)
        )

    async def track_deletes(self, on: bool) -> None:
        await self._change(lambda connection: rehome.track_deletes(connection, self._schema, on))

    def can_copy_from(self, source: Segment) -> bool:
        return isinstance(source, PostgresSegment) and source._connections is self._connections

    async def copy_from(self, source: Segment, span: EpkRange, after: int, limit: int) -> int | None:
        if not await _beside(source)._look():
            return None
        origin = _beside(source)._schema
        return await self._change(
            lambda connection: rehome.copy_chunk(connection, origin, self._schema, span, after, limit)
        )

    async def catch_up(self, source: Segment, span: EpkRange, after_lsn: int, after_delete: int) -> CaughtUp:
        if not await _beside(source)._look():
            return CaughtUp(0, after_delete, 0, 0)
        origin = _beside(source)._schema
        return await self._change(
            lambda connection: rehome.catch_up(
                connection, origin, self._schema, span, after_lsn, after_delete
            )
        )

    async def totals(self, span: EpkRange) -> Totals:
        rows = await self._fetch(statements.TOTALS, (span.min, span.max))
        return Totals(*rows[0]) if rows else Totals(0, 0)

    async def export(self, span: EpkRange, after: ExportMark, limit: int) -> Export:
        if not await self._look():
            return Export((), (), (), after)
        return await self._guarded(
            self._connections.read(
                lambda connection: exchange.export(connection, self._schema, span, after, limit, self._row)
            )
        )

    async def import_rows(
        self,
        span: EpkRange,
        rows: Sequence[WholeRow],
        deletes: Sequence[int] = (),
        versions: Sequence[Version] = (),
    ) -> TotalsChange:
        return await self._change(
            lambda connection: exchange.import_rows(connection, self._schema, span, rows, deletes, versions)
        )

    # -- the end -------------------------------------------------------------------------------

    @property
    def writes_waiting(self) -> int:
        return sum(queue.waiting for queue in self._queues.values())

    async def settle(self) -> None:
        """Waits until no call is running; work on indexes stops after its step."""
        for queue in list(self._queues.values()):
            await queue.settle()
        await self._reads.settle()
        ending = [snapshot.ended for snapshot in self._snapshots if snapshot.ended is not None]
        if ending:
            await asyncio.wait(ending)
        await self._indexes.close()
        await self._age_index.settle()

    def mark_dropped(self) -> None:
        """Every later call fails, and so do those that run."""
        self._dropped = True


def _beside(segment: Segment) -> PostgresSegment:
    if not isinstance(segment, PostgresSegment):
        raise TypeError("rows are copied between segments of one database")
    return segment
