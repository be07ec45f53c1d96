"""A segment that is tested: every call, by what was asked, what was answered, and what was answered before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from pleiad.errors import PleiadError
from pleiad.keys.range import EpkRange
from pleiad.store.checked import pages, writes
from pleiad.store.checked.breach import CALLER, demand
from pleiad.store.checked.live import LiveRows
from pleiad.store.checked.snapshot import CheckedSnapshot
from pleiad.store.checked.writes import Known
from pleiad.store.glances import Glances
from pleiad.store.moves import CaughtUp, Division, Export, ExportMark, Totals, TotalsChange
from pleiad.store.rows import (
    APPLIED,
    ItemKey,
    LogicalPartition,
    Mutation,
    Outcome,
    PartitionState,
    PartitionWrite,
    Result,
    Row,
    Verb,
    Version,
    WholeRow,
)
from pleiad.store.segments import WAIT, Segment, SegmentDroppedError, SegmentOutOfServiceError, Waiting
from pleiad.store.selection import IndexedPath, OrderPosition, PathOrder, Selection

_T = TypeVar("_T")
_VERBS = {Result.CREATED: Verb.CREATE, Result.REPLACED: Verb.REPLACE, Result.DELETED: Verb.DELETE}


class CheckedSegment:
    """The contract's Segment over another one."""

    def __init__(self, inner: Segment, is_shared: bool) -> None:
        self.inner = inner
        self._partitions: dict[int, Known] = {}
        self._live = LiveRows(is_shared)
        self._is_shared = is_shared
        self._is_being_dropped = self._is_dropped = False
        self._is_out_of_service = False
        self._forgets = False
        self._running = 0
        self._begun = 0

    def expect_drop(self) -> None:
        """The segment is about to be dropped: from now on calls may fail."""
        self._is_being_dropped = True

    def mark_dropped(self) -> None:
        """The segment is dropped: from now on every call must fail."""
        self._is_dropped = True

    def _known(self, partition: int) -> Known:
        return self._partitions.setdefault(partition, Known())

    async def _asked(self, call: Awaitable[_T], is_own: bool = True) -> _T:
        """What a call gives; what was dropped or out of service when it began gives nothing."""
        was_dropped, was_out = self._is_dropped, self._is_out_of_service
        try:
            answer = await call
        except SegmentOutOfServiceError:
            self._is_out_of_service = self._is_out_of_service or is_own
            raise
        except SegmentDroppedError:
            may_be = self._is_being_dropped or self._is_shared or not is_own
            demand(may_be, "10", "a segment is gone that nobody dropped")
            raise
        demand(not was_dropped, "7", "a dropped segment answers")
        demand(not was_out, "9", "a segment that is out of service answers")
        return answer

    # -- reads -----------------------------------------------------------------------------------

    async def read(self, epk: bytes, id: str) -> Row | None:
        newest, begun = self._live.newest((epk, id)), self._begun
        is_quiet = not self._running
        row = await self._asked(self.inner.read(epk, id))
        pages.check_found([row], [ItemKey(epk, id)])
        self._live.check_read(row, newest, is_quiet and begun == self._begun)
        return row

    def read_at_once(self, epk: bytes, id: str) -> Waiting:
        return WAIT  # so that every read is checked

    def select_at_once(self, selection: Selection, limit: int) -> Sequence[Row] | Waiting:
        pages.check_limit(limit)
        pages.check_ranges(selection, self.ranges_max)
        rows = self.inner.select_at_once(selection, limit)
        if not isinstance(rows, Waiting):
            pages.check_rows(rows, selection.span, 0, limit - 1)
            pages.check_selected(rows, selection)
        return rows

    def ordered_at_once(
        self, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
    ) -> Sequence[tuple[Row, OrderPosition]] | Waiting:
        found = self.inner.ordered_at_once(selection, order, after, limit)
        if not isinstance(found, Waiting):
            pages.check_ordered(found, order, after, limit)
            pages.check_selected([row for row, _ in found], selection)
        return found

    async def read_many(self, keys: Sequence[ItemKey]) -> Sequence[Row | None]:
        newest, begun = [self._live.newest((key.epk, key.id)) for key in keys], self._begun
        is_quiet = not self._running
        rows = await self._asked(self.inner.read_many(keys))
        pages.check_found(rows, keys)
        for row, known in zip(rows, newest, strict=True):
            self._live.check_read(row, known, is_quiet and begun == self._begun)
        return rows

    def snapshot(self) -> CheckedSnapshot:
        return CheckedSnapshot(self.inner.snapshot())

    async def find(self, number: int) -> Row | None:
        row = await self._asked(self.inner.find(number))
        pages.check_number(row, number)
        return row

    async def find_many(self, numbers: Sequence[int]) -> Sequence[Row]:
        rows = await self._asked(self.inner.find_many(numbers))
        pages.check_numbers(rows, numbers)
        pages.check_unique_keys(rows)
        return rows

    async def scan(self, span: EpkRange, after: int, limit: int) -> Sequence[Row]:
        pages.check_limit(limit)
        rows = await self._asked(self.inner.scan(span, after, limit))
        pages.check_rows(rows, span, after, limit)
        pages.check_unique_keys(rows)
        return rows

    async def scan_back(self, span: EpkRange, before: int, limit: int) -> Sequence[Row]:
        pages.check_limit(limit)
        rows = await self._asked(self.inner.scan_back(span, before, limit))
        pages.check_rows_back(rows, span, before, limit)
        pages.check_unique_keys(rows)
        return rows

    async def changes(
        self, span: EpkRange, after_lsn: int, limit: int, since_ts: int = 0, partition: int | None = None
    ) -> Sequence[Row]:
        pages.check_limit(limit)
        rows = await self._asked(self.inner.changes(span, after_lsn, limit, since_ts, partition))
        pages.check_changes(rows, span, after_lsn, limit, since_ts)
        return rows

    async def versions(
        self, span: EpkRange, after_lsn: int, limit: int, partition: int | None = None
    ) -> Sequence[Version]:
        pages.check_limit(limit)
        versions = await self._asked(self.inner.versions(span, after_lsn, limit, partition))
        pages.check_versions(versions, span, after_lsn, limit)
        return versions

    async def forget_versions(self, before_ts: int, limit: int) -> int:
        self._forgets = True
        forgotten = await self._asked(self.inner.forget_versions(before_ts, limit))
        demand(0 <= forgotten <= limit, pages.PAGES, f"{forgotten} versions forgotten of at most {limit}")
        return forgotten

    async def state(self, partition: int) -> PartitionState:
        known = self._known(partition)
        epoch, lsn = known.epoch, known.lsn
        state = await self._asked(self.inner.state(partition))
        known.check_state(state, epoch, lsn)
        return state

    async def logical_partitions(self, span: EpkRange) -> Sequence[LogicalPartition]:
        found = await self._asked(self.inner.logical_partitions(span))
        pages.check_logical(found, span)
        return found

    async def largest_logical_partitions(
        self, span: EpkRange, count: int, bytes_min: int = 0
    ) -> Sequence[LogicalPartition]:
        found = await self._asked(self.inner.largest_logical_partitions(span, count, bytes_min))
        pages.check_largest(found, span, count, bytes_min)
        return found

    async def expired(self, span: EpkRange, now: int, default_ttl: int | None, limit: int) -> Sequence[Row]:
        rows = await self._asked(self.inner.expired(span, now, default_ttl, limit))
        pages.check_expired(rows, span, now, default_ttl, limit)
        return rows

    # -- selections --------------------------------------------------------------------------------

    @property
    def ranges_max(self) -> int:
        return self.inner.ranges_max

    async def select(self, selection: Selection, after: int, limit: int) -> Sequence[Row]:
        pages.check_limit(limit)
        pages.check_ranges(selection, self.ranges_max)
        rows = await self._asked(self.inner.select(selection, after, limit))
        pages.check_rows(rows, selection.span, after, limit)
        pages.check_selected(rows, selection)
        return rows

    async def glance(self, selection: Selection, names: Sequence[str], after: int, limit: int) -> Glances:
        pages.check_limit(limit)
        pages.check_ranges(selection, self.ranges_max)
        found = await self._asked(self.inner.glance(selection, names, after, limit))
        pages.check_glances(found, names, after, limit)
        return found

    async def ordered(
        self, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
    ) -> Sequence[tuple[Row, OrderPosition]] | None:
        pages.check_limit(limit)
        found = await self._asked(self.inner.ordered(selection, order, after, limit))
        if found is not None:
            pages.check_selected([row for row, _ in found], selection)
            pages.check_ordered(found, order, after, limit)
        return found

    async def count(self, selection: Selection, count_only: bool = False) -> tuple[int, int]:
        pages.check_ranges(selection, self.ranges_max)
        items, size_bytes = await self._asked(self.inner.count(selection, count_only))
        is_right = items >= 0 and size_bytes >= 0 and not (count_only and size_bytes)
        demand(is_right, pages.PAGES, f"a count of {items} items and {size_bytes} bytes")
        return items, size_bytes

    def note_use(self, paths: Iterable[IndexedPath], found: bool = False) -> None:
        self.inner.note_use(paths, found)

    def index_progress(self) -> float:
        progress = self.inner.index_progress()
        demand(0 <= progress <= 1, pages.PAGES, f"a progress of {progress}")
        return progress

    def drop_indexes(self, keep: Callable[[IndexedPath], bool]) -> None:
        self.inner.drop_indexes(keep)

    # -- writes ------------------------------------------------------------------------------------

    async def commit(self, write: PartitionWrite) -> Sequence[Outcome]:
        writes.check_write(write)
        known = self._known(write.partition)
        begun, was_alone = writes.begin(known), not self._running
        self._begun += 1
        mine, self._running = self._begun, self._running + 1
        try:
            outcomes = await self._asked(self.inner.commit(write))
        except BaseException:
            # Whether it was applied, nobody knows.
            known.is_exact = False
            self._live.forget()
            raise
        finally:
            self._running -= 1
        is_alone = was_alone and mine == self._begun and not self._is_shared
        writes.check_outcomes(write, outcomes, begun, known, is_alone)
        self._live.note(write, outcomes, is_alone)
        if write.keep_versions:
            await self._check_versions(write, outcomes)
        return outcomes

    async def _check_versions(self, write: PartitionWrite, outcomes: Sequence[Outcome]) -> None:
        """Each applied mutation has left its version."""
        for mutation, outcome in zip(write.mutations, outcomes, strict=True):
            if outcome.result not in APPLIED:
                continue
            span = EpkRange(mutation.epk, mutation.epk + b"\0")
            try:
                found = await self.inner.versions(span, outcome.lsn - 1, 1)
            except PleiadError:
                return  # it was dropped meanwhile, or cannot be reached
            is_there = any(_tells(version, write, mutation, outcome) for version in found)
            demand(is_there or self._forgets, "8", f"no version of {outcome}")

    # -- split, merge and move -----------------------------------------------------------------------

    async def middle(self, span: EpkRange) -> bytes | None:
        middle = await self._asked(self.inner.middle(span))
        is_inside = middle is None or (span.contains(middle) and middle > span.min)
        demand(is_inside, pages.PAGES, f"the middle {middle!r} of {span}")
        return middle

    async def fence(self, partition: int, epoch: int) -> PartitionState | None:
        known = self._known(partition)
        before, lsn = known.epoch, known.lsn
        fenced = await self._asked(self.inner.fence(partition, epoch))
        if fenced is not None:
            demand(before <= epoch, "6", f"a fence of epoch {epoch}, although it is {before}")
            is_next = (fenced.partition, fenced.epoch) == (partition, epoch + 1)
            demand(is_next, "6", f"a fence of epoch {epoch} made {fenced}")
            known.check_state(fenced, before, lsn)
        return fenced

    async def divide(self, division: Division) -> tuple[PartitionState, PartitionState] | None:
        known = self._known(division.partition)
        before, lsn = known.epoch, known.lsn
        halves = await self._asked(self.inner.divide(division))
        if halves is not None:
            demand(before <= division.epoch, "6", f"{division} although the epoch is {before}")
            ids = [half.partition for half in halves]
            demand(ids == [division.left, division.right], "6", f"{division} made {halves}")
            demand({half.epoch for half in halves} == {1}, "6", f"halves with other epochs: {halves}")
            left, right = halves
            demand(left.lsn == right.lsn >= lsn, "3", f"halves that do not count on from {lsn}: {halves}")
            known.epoch = division.epoch + 1
            for half in halves:
                self._known(half.partition).adopt(half)
        return halves

    async def open_partition(self, state: PartitionState) -> None:
        await self._asked(self.inner.open_partition(state))
        self._known(state.partition).adopt(state)
        self._live.forget()

    async def reopen(self, partition: int, epoch: int) -> PartitionState:
        known = self._known(partition)
        before, lsn = known.epoch, known.lsn
        state = await self._asked(self.inner.reopen(partition, epoch))
        demand(state.epoch >= epoch, "6", f"opened again under {epoch}, it has {state.epoch}")
        known.check_state(state, before, lsn)
        return state

    async def track_deletes(self, on: bool) -> None:
        await self._asked(self.inner.track_deletes(on))

    async def export(self, span: EpkRange, after: ExportMark, limit: int) -> Export:
        pages.check_limit(limit)
        piece = await self._asked(self.inner.export(span, after, limit))
        pages.check_export(piece, span, after, limit)
        return piece

    async def import_rows(
        self,
        span: EpkRange,
        rows: Sequence[WholeRow],
        deletes: Sequence[int] = (),
        versions: Sequence[Version] = (),
    ) -> TotalsChange:
        stray = [row for row, _ in rows if not span.contains(row.epk)]
        demand(not stray, CALLER, f"rows outside of {span}: {stray}")
        self._live.forget()
        change = await self._asked(self.inner.import_rows(span, rows, deletes, versions))
        demand(change.items <= len(rows), pages.PAGES, f"{change} by {len(rows)} rows")
        return change

    def can_copy_from(self, source: Segment) -> bool:
        return self.inner.can_copy_from(_inner(source))

    async def copy_from(self, source: Segment, span: EpkRange, after: int, limit: int) -> int | None:
        self._live.forget()
        number = await self._asked(self.inner.copy_from(_inner(source), span, after, limit), is_own=False)
        demand(number is None or number > after, pages.PAGES, f"a copy went from {after} to {number}")
        return number

    async def catch_up(self, source: Segment, span: EpkRange, after_lsn: int, after_delete: int) -> CaughtUp:
        self._live.forget()
        call = self.inner.catch_up(_inner(source), span, after_lsn, after_delete)
        done = await self._asked(call, is_own=False)
        is_right = done.last_delete >= after_delete and done.rows >= done.items_change
        demand(is_right, pages.PAGES, f"caught up from delete {after_delete} with {done}")
        return done

    async def totals(self, span: EpkRange) -> Totals:
        totals = await self._asked(self.inner.totals(span))
        demand(totals.items >= 0 and totals.size_bytes >= 0, pages.PAGES, f"totals of {totals}")
        return totals


def _inner(segment: Segment) -> Segment:
    return segment.inner if isinstance(segment, CheckedSegment) else segment


def _tells(version: Version, write: PartitionWrite, mutation: Mutation, outcome: Outcome) -> bool:
    """Whether a version is that of an outcome."""
    row = outcome.row or outcome.old
    assert row is not None
    previous_lsn = 0 if outcome.old is None else outcome.old.lsn
    told = (version.lsn, version.number, version.verb, version.id, version.ts, version.previous_lsn)
    id = mutation.id if outcome.row is None else mutation.id_after
    return told == (outcome.lsn, row.number, _VERBS[outcome.result], id, write.now, previous_lsn)
