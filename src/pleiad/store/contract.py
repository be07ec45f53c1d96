"""What a store promises to the rooms above it.

A store remembers two things: catalog records (few, small, read whole at start) and segments (the items of
physical partitions). It knows neither HTTP nor JSON semantics: bodies are opaque JSON texts, partition keys are
epk bytes, and an item's identity is (epk, id).

Invariants every store keeps:
1. `commit` returns only after its mutations would survive the death of the process and of the machine.
2. The mutations of one `PartitionWrite` are applied in order, each one whole or not at all; when `atomic` is set,
   all of them or none.
3. LSNs of a partition grow by one with every applied write and are never used twice; a row carries the LSN of the
   write that made it. Document numbers of a partition grow with insertion and are never used twice.
4. (epk, id) is unique in a segment, and so is each unique-key value within its epk.
5. A row whose time to live is over counts as absent for every mutation; one that a mutation comes upon is removed,
   whatever becomes of the mutation, unless the whole atomic write is undone.
6. A write is applied only under the epoch its partition has at that moment; otherwise it ends GONE and leaves
   nothing. Epochs only grow, so who knows an old one can never write again.
7. A dropped segment raises SegmentDroppedError on every later call, and a call it interrupts ends the same way:
   never with some of its rows.
8. A write with `keep_versions` leaves, in the same commit, one `Version` for each change of a row: for each applied
   mutation, and for each expired row that was removed on the way. Such a removal is a change with an LSN of its own,
   just below that of the mutation; in an atomic write it has the LSN of the write. Replayed in order, the versions
   of a partition give its rows. Without `keep_versions` no version is left, and removing expired rows takes no LSN.
9. A row is verified when it is read, and never given out when it is not what was written. A segment that is found to
   be damaged, or gone although it held something, raises SegmentOutOfServiceError on every later call; others go on.
10. Nothing is removed but what `drop_segments` or the `drops` of `save_records` name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.keys.range import EpkRange
from pleiad.store.budget import BudgetClaim, BudgetParts
from pleiad.store.commits import CommitCounts
from pleiad.store.moves import CaughtUp, Division, Totals
from pleiad.store.problems import Problems
from pleiad.store.selection import IndexedPath, OrderPosition, PathOrder, Selection


class Row(NamedTuple):
    """One stored item. `body` is the client's JSON text without system properties."""

    number: int
    epk: bytes
    id: str
    lsn: int
    ts: int
    ttl: int | None
    size_bytes: int
    terms: int
    body: bytes


class WholeRow(NamedTuple):
    """A row with what the store keeps beside it: the value of each unique key, in their order."""

    row: Row
    unique_values: tuple[bytes, ...] = ()


class ItemKey(NamedTuple):
    """What names an item in its segment."""

    epk: bytes
    id: str


class Verb(Enum):
    """What a mutation does to the row at (epk, id)."""

    CREATE = "create"
    UPSERT = "upsert"
    REPLACE = "replace"
    DELETE = "delete"


class Precondition(NamedTuple):
    """What must hold of the row before a mutation; the empty precondition always holds."""

    lsn: int | None = None
    """The row's LSN must be this one; NEVER matches no row."""
    not_lsn: int | None = None
    must_exist: bool = False
    must_be_absent: bool = False


NO_PRECONDITION = Precondition()
NEVER = -1


class Mutation(NamedTuple):
    """One change of one item, decided by the store against the row as it is at that moment."""

    verb: Verb
    epk: bytes
    id: str
    body: bytes = b""
    size_bytes: int = 0
    terms: int = 0
    ttl: int | None = None
    unique_values: tuple[bytes, ...] = ()
    precondition: Precondition = NO_PRECONDITION
    new_id: str | None = None
    """REPLACE only: the id the item has afterwards."""


class Result(Enum):
    """How a mutation ended."""

    CREATED = "created"
    REPLACED = "replaced"
    DELETED = "deleted"
    EXISTS = "exists"
    MISSING = "missing"
    PRECONDITION_FAILED = "precondition failed"
    UNIQUE_CONFLICT = "unique conflict"
    LOGICAL_PARTITION_FULL = "logical partition full"
    PARTITION_FULL = "partition full"
    GONE = "gone"
    ABANDONED = "abandoned"
    """Another mutation of the same atomic write failed."""


APPLIED = frozenset({Result.CREATED, Result.REPLACED, Result.DELETED})


class Outcome(NamedTuple):
    """The end of one mutation: its LSN, the row it left, the row it found, the unique key that stood in the way.

    The LSN of a mutation that was not applied is 0, or that of the last expired row it removed with a version.
    """

    result: Result
    lsn: int = 0
    row: Row | None = None
    old: Row | None = None
    unique_key: int = 0


class PartitionWrite(NamedTuple):
    """Mutations of one physical partition, fenced by the epoch its owner knows."""

    partition: int
    epoch: int
    now: int
    mutations: tuple[Mutation, ...]
    default_ttl: int | None = None
    logical_partition_bytes: int = 0
    atomic: bool = False
    keep_versions: bool = False
    """Whether each change is to be remembered as a `Version`."""
    partition_bytes: int = 0
    """What the physical partition may hold where it can never be split; 0 is no limit."""


class Version(NamedTuple):
    """One change of one item, with the item before and after it.

    (lsn, epk, position) names a version in its segment, also when the versions of several partitions meet there; it
    is their order too. Everything about a change is in its version, so versions may be copied between segments as
    they are.
    """

    lsn: int
    epk: bytes
    position: int
    """The place among the changes of one write; those of an atomic write share an LSN."""
    verb: Verb
    """CREATE, REPLACE or DELETE: what happened, not what was asked for."""
    is_expiry: bool
    """A DELETE because the time to live was over."""
    ts: int
    """When it happened: `now` of the write."""
    number: int
    id: str
    """The id after the change; of a DELETE the id the item had."""
    size_bytes: int
    """Of both images together."""
    body: bytes
    """The item after the change; empty for DELETE."""
    previous_lsn: int
    """LSN and time of the version before, both 0 for CREATE."""
    previous_ts: int
    previous_body: bytes
    """The item before the change; empty for CREATE."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The durable counters of one physical partition."""

    partition: int
    epoch: int
    lsn: int
    next_sequence: int
    items: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogicalPartition:
    """Size of one logical partition, and one of its items to name its key by."""

    epk: bytes
    items: int
    size_bytes: int
    sample_body: bytes


@dataclass(frozen=True, slots=True)
class Record:
    """One catalog record: a database, container, offer, user, permission, physical partition or counter.

    `body` is a JSON value; (kind, rid) is its identity and (kind, parent, name) is unique.
    """

    kind: str
    rid: str
    parent: str
    name: str
    body: dict[str, Any] = field(default_factory=dict)


class SegmentDroppedError(PleiadError):
    """The segment is no more: its rows have moved to another one, or the container was deleted."""

    def __init__(self) -> None:
        super().__init__(
            errors.UNAVAILABLE, errors.UNAVAILABLE(reason="The container is being deleted.").message
        )


class SegmentOutOfServiceError(PleiadError):
    """What the segment holds is damaged or gone, so it answers nothing until an operator has put it right."""

    def __init__(self) -> None:
        super().__init__(errors.OUT_OF_SERVICE, errors.OUT_OF_SERVICE().message)


class Snapshot(Protocol):
    """One moment of a segment: what is committed later is not seen. It costs something to keep, so close it soon.

    It outlives its segment: rows that moved away meanwhile are still there as they were.
    """

    def read_many(self, keys: Sequence[ItemKey]) -> Awaitable[Sequence[Row | None]]:
        """The rows of several items in the order of the keys, expired or not."""

    def find(self, number: int) -> Awaitable[Row | None]:
        """The row with a document number."""

    def scan(self, span: EpkRange, after: int, limit: int, bytes_max: int) -> Awaitable[Sequence[Row]]:
        """Up to `limit` rows of the range with a document number above `after`, in the order of their numbers.

        It ends with the row that fills `bytes_max`, so a page is never larger than that and one row.
        """

    def close(self) -> None:
        """Ends the snapshot; closing it again does nothing."""


class Segment(Protocol):
    """Where the rows of one or more physical partitions of one container sit."""

    def read(self, epk: bytes, id: str) -> Awaitable[Row | None]:
        """The row as last committed, expired or not."""

    def read_many(self, keys: Sequence[ItemKey]) -> Awaitable[Sequence[Row | None]]:
        """The rows of several items in the order of the keys, all as of one moment between two commits."""

    def snapshot(self) -> Snapshot:
        """The moment of the last commit that was answered, or a later one, for as long as it is kept."""

    def find(self, number: int) -> Awaitable[Row | None]:
        """The row with a document number."""

    def commit(self, write: PartitionWrite) -> Awaitable[Sequence[Outcome]]:
        """Applies a write durably; one outcome a mutation, in order."""

    def scan(self, span: EpkRange, after: int, limit: int) -> Awaitable[Sequence[Row]]:
        """Up to `limit` rows of the range with a document number above `after`, in the order of their numbers."""

    def changes(
        self, span: EpkRange, after_lsn: int, limit: int, since_ts: int = 0, partition: int | None = None
    ) -> Awaitable[Sequence[Row]]:
        """Rows of the range written after an LSN and not before a time, in the order (LSN, document number).

        Given a partition, none behind its own last LSN: those are of the partitions it was divided into meanwhile,
        which count on from there each for itself, so that no LSN is a place in both.

        At least `limit` of them where there are so many; fewer mean that there are no more. Rows that one write left
        under one LSN stay together.
        """

    def versions(
        self, span: EpkRange, after_lsn: int, limit: int, partition: int | None = None
    ) -> Awaitable[Sequence[Version]]:
        """Versions of the range above an LSN, in the order (LSN, epk, position); a partition limits them as above.

        At least `limit` of them where there are so many; fewer mean that there are no more. Versions with one LSN
        stay together.
        """

    def forget_versions(self, before_ts: int, limit: int) -> Awaitable[int]:
        """Durably removes up to `limit` versions with a `ts` below a time; returns how many that were."""

    def state(self, partition: int) -> Awaitable[PartitionState]:
        """The counters of a partition as last committed."""

    def logical_partitions(self, span: EpkRange) -> Awaitable[Sequence[LogicalPartition]]:
        """Every logical partition that has at least one row in the range, in the order of its epk."""

    def largest_logical_partitions(
        self, span: EpkRange, count: int, bytes_min: int = 0
    ) -> Awaitable[Sequence[LogicalPartition]]:
        """The largest logical partitions of the range that have at least so many bytes, largest first.

        Every item of the range is counted, so it takes its time; it keeps no other read or write waiting, and writes
        meanwhile may or may not be in it.
        """

    def expired(
        self, span: EpkRange, now: int, default_ttl: int | None, limit: int
    ) -> Awaitable[Sequence[Row]]:
        """Up to `limit` rows of the range whose time to live is over at `now`."""

    def select(self, selection: Selection, after: int, limit: int) -> Awaitable[Sequence[Row]]:
        """Up to `limit` rows of a selection with a document number above `after`, in the order of their numbers.

        Fewer than `limit` rows mean that there are no more.
        """

    def ordered(
        self, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
    ) -> Awaitable[Sequence[tuple[Row, OrderPosition]] | None]:
        """Up to `limit` rows of a selection in the order of a path behind a position, each with its own position.

        The order is (type rank, value, document number), reversed whole when descending; rows without the property
        come first in it. None when the path has no index that is ready; it may become None between two calls.
        """

    def count(self, selection: Selection, count_only: bool = False) -> Awaitable[tuple[int, int]]:
        """How many rows a selection has, and the sum of their sizes; with `count_only` 0 instead of the sum."""

    def note_use(self, paths: Iterable[IndexedPath], found: bool = False) -> None:
        """Tells that a query has predicates or an order on these paths; the store decides which of them to index."""

    def index_progress(self) -> float:
        """How much of the indexes under construction is done, between 0 and 1; 1 when there are none."""

    def drop_indexes(self, keep: Callable[[IndexedPath], bool]) -> None:
        """Stops using and then removes the indexes of all paths but those `keep` names."""

    # -- split, merge and move -------------------------------------------------------------------

    def middle(self, span: EpkRange) -> Awaitable[bytes | None]:
        """The epk that halves the logical partitions of a range; None when it holds fewer than two."""

    def fence(self, partition: int, epoch: int) -> Awaitable[PartitionState | None]:
        """Closes a partition durably: its epoch becomes `epoch + 1`, so every write that knows `epoch` ends GONE.

        The counters as they are from then on; None, and no change, when the partition has another epoch.
        """

    def divide(self, division: Division) -> Awaitable[tuple[PartitionState, PartitionState] | None]:
        """Fences a partition and puts two in its place over the same rows, in one durable commit.

        Both start with epoch 1, the LSN of the divided one and the exact counts of their halves. Rows of partitions
        with these ids that a failed attempt left are overwritten. None, and no change, when the epoch is another.
        """

    def open_partition(self, state: PartitionState) -> Awaitable[None]:
        """Sets the counters of a partition durably, and with its epoch who may write."""

    def reopen(self, partition: int, epoch: int) -> Awaitable[PartitionState]:
        """Lets those write who know this epoch, durably, unless the partition has a later one; its counters stay.

        The counters and the epoch as they are then.
        """

    def track_deletes(self, on: bool) -> Awaitable[None]:
        """From now on remembers which rows are deleted, for `catch_up`; off forgets them."""

    def copy_from(self, source: Segment, span: EpkRange, after: int, limit: int) -> Awaitable[int | None]:
        """Copies about `limit` rows of the range with a document number above `after` from another segment.

        The last number it came to, or None at the end. What belongs to the rows comes with them, and they keep
        number, LSN and time; so do versions. A row copied before that stands in the way is replaced: `catch_up`
        brings it back.
        """

    def catch_up(
        self, source: Segment, span: EpkRange, after_lsn: int, after_delete: int
    ) -> Awaitable[CaughtUp]:
        """Repeats here what happened to the rows of a range in another segment since an LSN and a tracked delete,
        and copies the versions of that.

        The other segment tracks deletes since before the first `copy_from`; the first call names the LSN its
        partition had then and delete 0, every later one an LSN read before the last call and that call's end.
        """

    def totals(self, span: EpkRange) -> Awaitable[Totals]:
        """What the range holds now."""

    def restore(self, rows: Sequence[WholeRow], versions: Sequence[Version]) -> Awaitable[None]:
        """Writes rows and versions of another store as they are, in one durable commit.

        Rows replace those with their numbers, and a version that is there stays. No counter changes: `open_partition`
        sets them at the end.
        """


class Store(Protocol):
    """One account's durable state."""

    @property
    def is_shared(self) -> bool:
        """Whether other servers may work on the same data."""

    @property
    def problems(self) -> Problems:
        """What is wrong at this moment."""

    @property
    def commits(self) -> CommitCounts:
        """How many writes shared each commit of items."""

    def load_records(self) -> Awaitable[Sequence[Record]]:
        """Every catalog record."""

    def save_records(
        self,
        puts: Iterable[Record],
        deletes: Iterable[Record],
        expected: Iterable[Record] = (),
        unless_behind: bool = False,
        drops: Iterable[str] = (),
    ) -> Awaitable[bool]:
        """Writes catalog changes in one durable transaction, and which segments nobody needs after it.

        False, and no change, unless each expected record is stored exactly as given; with `unless_behind` also when
        another server changed records since this one last loaded them.
        """

    def is_behind(self) -> Awaitable[bool]:
        """Whether another server changed catalog records since this one last loaded them."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Calls `changed` soon after another server may have changed catalog records: a hint, not the truth."""

    def lease(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Keeps a name from all other servers for the length of a block; inside it, False when one of them has it.

        A server that dies loses its names after a while. They only save work that two would do: whatever must not be
        done twice is guarded by epochs and expected records.
        """

    def alone(self) -> AbstractAsyncContextManager[bool]:
        """Keeps all other servers from the data for the length of a block; inside it, False when one is at work."""

    def share_budgets(
        self, claims: Sequence[BudgetClaim], holds_all: bool, seconds: float
    ) -> Awaitable[BudgetParts]:
        """Tells the other servers which shares of budgets this one uses, and takes what nobody has; for so long.

        What it held of budgets it names no more is free at once. A server that `holds_all` goes on using all of every
        budget; while there is one, no other gets anything.
        """

    def segment(self, name: str) -> Segment:
        """The segment of that name, made on its first write."""

    def drop_segments(self, names: Iterable[str]) -> Awaitable[None]:
        """Frees the space of segments no record names any more."""

    def drop_all_segments(self) -> Awaitable[None]:
        """Frees the space of every segment that this store has made: what a copy left that was given up."""

    def reconcile(self, names: Iterable[str]) -> Awaitable[None]:
        """At the start: frees what is noted as dropped, and sets aside what nobody knows.

        MissingDataError when something is gone that held items, unless the operator has accepted that.
        """

    def agree(self, settings: Mapping[str, str], may_differ: bool) -> Awaitable[None]:
        """SettingsDifferError names settings that other servers here have otherwise; who is alone decides."""

    def is_there(self) -> Awaitable[bool]:
        """Whether the data can be reached at this moment; a short look."""

    def scrub_for_ever(self) -> Coroutine[None, None, None]:
        """Looks for damage that no read has met, again and again beside everything else."""

    def close(self) -> Awaitable[None]:
        """Finishes running writes and releases everything."""
