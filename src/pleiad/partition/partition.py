"""One physical partition: a range of hashes, the segment its rows sit in, and its LSN.

Invariants:
- every row it accepts has an epk inside its range;
- `lsn` is never ahead of what is durable, and never behind a write this process acknowledged;
- its governor knows every request unit that was charged for work here, unless the system itself did the work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from pleiad.errors import PleiadError
from pleiad.keys.range import EpkRange
from pleiad.limits import Limits
from pleiad.partition.governor import NORMAL, Governor, Lane
from pleiad.partition.latency import CLASSES
from pleiad.store.glances import Glances
from pleiad.store.rows import (
    ItemKey,
    LogicalPartition,
    Outcome,
    PartitionState,
    PartitionWrite,
    Row,
    Version,
)
from pleiad.store.segments import WAIT, Segment, SegmentDroppedError, Snapshot, Waiting
from pleiad.store.selection import IndexedPath, OrderPosition, PathOrder, Selection


class Partition:
    """A live physical partition of one container."""

    __slots__ = (
        "epoch",
        "governor",
        "id",
        "items_seen",
        "kept_by_head",
        "latencies",
        "lineage",
        "lsn",
        "parents",
        "range_id",
        "refused",
        "segment",
        "segment_name",
        "size_bytes_seen",
        "span",
    )

    def __init__(
        self,
        id: int,
        span: EpkRange,
        epoch: int,
        parents: tuple[int, ...],
        segment_name: str,
        segment: Segment,
        lsn: int = 0,
    ) -> None:
        self.id = id
        self.range_id = str(id)
        self.span = span
        self.epoch = epoch
        self.parents = parents
        self.lineage = frozenset([self.range_id, *map(str, parents)])
        """The range ids under which clients know this partition: its own and those of all its ancestors."""
        self.segment_name = segment_name
        self.lsn = lsn
        self.segment = segment
        self.governor = Governor(Limits().physical_partition_ru)
        """Only counts until the container gives it a rate; see `Container.adopt_map`."""
        self.latencies = [0] * CLASSES
        """How many requests took how long, in the classes of `latency`; the desk counts."""
        self.refused = 0
        """Requests that were answered with 429 since the start."""
        self.items_seen = self.size_bytes_seen = 0
        """Its counters when `state` was last asked for."""
        self.kept_by_head: tuple[int, int, str] | None = None
        """What a head has written of these counters, with both of them, so that it goes when the partition does."""

    def admit(self, lane: Lane = NORMAL) -> None:
        """Lets a request in, or raises 429 with the range it was refused by."""
        try:
            self.governor.admit(lane)
        except PleiadError as error:
            raise self._refusal(error) from None

    def is_open(self, lane: Lane = NORMAL) -> bool:
        """Whether a request would be let in now; nothing is counted."""
        return self.governor.is_open(lane)

    def _refusal(self, error: PleiadError) -> PleiadError:
        """What a client is told that the governor has refused."""
        error.range_id = self.range_id
        self.refused += 1
        return error

    def spend(self, ru: float, lane: Lane = NORMAL) -> None:
        """Takes the charge of an admitted request, done or failed."""
        self.governor.spend(ru, lane)

    def turn(self, lane: Lane = NORMAL) -> Turn:
        """Admits a request and spends its charge when the with-block ends."""
        self.admit(lane)
        return Turn(self.governor, lane)

    async def load(self) -> None:
        """Learns the LSN the partition has reached through others: servers, or this one before its start."""
        self.lsn = max(self.lsn, (await self.state()).lsn)

    def read(self, epk: bytes, id: str) -> Awaitable[Row | None]:
        """The row of an item as last committed, expired or not."""
        return self.segment.read(epk, id)

    def admit_read(self, epk: bytes, id: str, lane: Lane = NORMAL) -> Row | Waiting | None:
        """Lets a read in as `admit` does; the row, or WAIT where the store has to be waited for."""
        try:
            self.governor.admit(lane)
        except PleiadError as error:
            raise self._refusal(error) from None
        return self.read_at_once(epk, id)

    def read_at_once(self, epk: bytes, id: str) -> Row | Waiting | None:
        """The row of an item where the store has it at hand, or WAIT where it has to be waited for."""
        try:
            return self.segment.read_at_once(epk, id)
        except SegmentDroppedError:
            return WAIT

    def read_many(self, keys: Sequence[ItemKey]) -> Awaitable[Sequence[Row | None]]:
        """The rows of several items as of one moment, expired or not."""
        return self.segment.read_many(keys)

    def snapshot(self) -> Snapshot:
        """The rows of one moment; whoever takes it closes it."""
        return self.segment.snapshot()

    async def find(self, number: int) -> Row | None:
        """The row with a document number, if it lies in this partition."""
        row = await self.segment.find(number)
        return row if row is not None and self.span.contains(row.epk) else None

    async def find_many(self, numbers: Sequence[int]) -> Sequence[Row]:
        """The rows with some document numbers, as far as they lie in this partition, all as of one moment."""
        return [row for row in await self.segment.find_many(numbers) if self.span.contains(row.epk)]

    async def commit(self, write: PartitionWrite) -> Sequence[Outcome]:
        """Applies mutations durably; each is whole or not at all, and all or none when atomic."""
        return self.noted(await self.segment.commit(write))

    def begin_commit(self, write: PartitionWrite) -> Awaitable[Sequence[Outcome]]:
        """The same, up to where the store has it; whoever waits for the outcomes has them `noted`."""
        return self.segment.commit(write)

    def noted(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """What a commit has come to, from which the partition learns its LSN."""
        for outcome in outcomes:
            if outcome.lsn > self.lsn:
                self.lsn = outcome.lsn
        return outcomes

    async def scan(self, span: EpkRange, after: int, limit: int) -> Sequence[Row]:
        """Rows of a part of this partition's range, expired or not, in the order they were inserted."""
        part = self.span.intersect(span)
        return await self.segment.scan(part, after, limit) if part is not None else ()

    def scan_back(self, span: EpkRange, before: int, limit: int) -> Awaitable[Sequence[Row]]:
        """The same of a range inside this partition's, the row that was inserted last first."""
        return self.segment.scan_back(span, before, limit)

    @property
    def ranges_max(self) -> int:
        """How many ranges may be asked for together, by `select` and `count`."""
        return self.segment.ranges_max

    def select(self, selection: Selection, after: int, limit: int) -> Awaitable[Sequence[Row]]:
        """Live rows that satisfy the predicates, in the order they were inserted."""
        if not (selection.predicates or selection.ranges) and selection.default_ttl is None:
            return self.segment.scan(selection.span, after, limit)
        return self.segment.select(selection, after, limit)

    def select_at_once(self, selection: Selection, limit: int) -> Sequence[Row] | Waiting:
        """All rows that `select` gives where they are few and fewer than `limit`, or WAIT where it has to be asked."""
        return self.segment.select_at_once(selection, limit)

    def ordered_at_once(
        self, selection: Selection, order: PathOrder, limit: int
    ) -> Sequence[tuple[Row, OrderPosition]] | Waiting:
        """The first rows that `ordered` gives, or WAIT where the store has to be waited for."""
        return self.segment.ordered_at_once(selection, order, None, limit)

    def glance(
        self, selection: Selection, names: Sequence[str], after: int, limit: int
    ) -> Awaitable[Glances]:
        """Some properties of the rows that `select` gives."""
        return self.segment.glance(selection, names, after, limit)

    async def ordered(
        self, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
    ) -> Sequence[tuple[Row, OrderPosition]] | None:
        """Live rows in the order of a property, or None when no index has that order."""
        return await self.segment.ordered(selection, order, after, limit)

    async def count(self, selection: Selection, count_only: bool = False) -> tuple[int, int]:
        """How many live rows satisfy the predicates, and their bytes unless only the count is asked for."""
        return await self.segment.count(selection, count_only)

    def index_progress(self) -> float:
        """How much of the indexes under construction is built, from 0 to 1."""
        return self.segment.index_progress()

    def drop_indexes(self, keep: Callable[[IndexedPath], bool]) -> None:
        """Drops the physical indexes a new indexing policy does not allow."""
        self.segment.drop_indexes(keep)

    def note_use(self, paths: Iterable[IndexedPath], found: bool = False) -> None:
        """Tells the store which paths a query asked for, so that its indexes follow."""
        self.segment.note_use(paths, found)

    async def changes(self, span: EpkRange, after_lsn: int, limit: int, since_ts: int = 0) -> Sequence[Row]:
        """Rows of a part of this partition written after an LSN and not before a time, oldest change first."""
        part = self.span.intersect(span)
        return (
            await self.segment.changes(part, after_lsn, limit, since_ts, self.id) if part is not None else ()
        )

    async def versions(self, span: EpkRange, after_lsn: int, limit: int) -> Sequence[Version]:
        """Every change of a part of this partition after an LSN, oldest first."""
        part = self.span.intersect(span)
        return await self.segment.versions(part, after_lsn, limit, self.id) if part is not None else ()

    async def forget_versions(self, before_ts: int, limit: int) -> int:
        """Removes versions from before a time; how many."""
        return await self.segment.forget_versions(before_ts, limit)

    async def expired(self, now: int, default_ttl: int | None, limit: int) -> Sequence[Row]:
        """Rows whose time to live is over."""
        return await self.segment.expired(self.span, now, default_ttl, limit)

    async def state(self) -> PartitionState:
        """Items, bytes and LSN of this partition."""
        state = await self.segment.state(self.id)
        self.items_seen, self.size_bytes_seen = state.items, state.size_bytes
        return state

    async def logical_partitions(self) -> Sequence[LogicalPartition]:
        """The logical partitions that live here now."""
        return await self.segment.logical_partitions(self.span)

    async def largest_logical_partitions(self, count: int, bytes_min: int = 0) -> Sequence[LogicalPartition]:
        """The largest of them with at least so many bytes, largest first."""
        return await self.segment.largest_logical_partitions(self.span, count, bytes_min)


class Turn:
    """An admitted request: `with partition.turn(lane) as turn`, and `turn.ru` is set to its charge.

    A failure from the error table that leaves the block is charged with what it says it cost.
    """

    __slots__ = ("_governor", "_lane", "ru")

    def __init__(self, governor: Governor, lane: Lane) -> None:
        self._governor = governor
        self._lane = lane
        self.ru = 0.0

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PleiadError):
            self.ru += error.charge_ru or 0.0
        self._governor.spend(self.ru, self._lane)
