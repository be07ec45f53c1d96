"""The contract of a segment store: the rows of physical partitions, in segments that are known by their names.

It knows neither HTTP nor JSON, nor containers: a segment is where rows sit, and who may write there is decided by the
epochs of the partitions in it. In a cluster every node has one.

Invariants every segment store keeps; `store.checked` tests on each call what a call can show of them:
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
8. A write with `keep_versions` leaves, in the same commit, one `Version` for each applied mutation, and for each row
   that had expired and was removed on the way: a change with an LSN of its own, just below that of the mutation, or
   that of an atomic write. Replayed in order, versions give the rows. Without it such removals take no LSN.
9. A row is verified when it is read, and never given out when it is not what was written. A segment that is found to
   be damaged, or gone although it held something, raises SegmentOutOfServiceError on every later call; others go on.
10. Nothing is removed but what `drop_segments` or the `drops` of the catalog's `save_records` name.
11. A page has rows of its range only, in the order its call names, none before the place that was asked for, and no
    more than its limit; changes and versions go beyond it as far as the last LSN in the page does.
12. Whether a mutation may touch the row it finds is decided by `store.refusal` and nothing else.
13. A read that begins after a write was answered sees it.
14. A snapshot shows one moment, however long it is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from enum import Enum
from typing import Final, Protocol

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.keys.range import EpkRange
from pleiad.store.commits import CommitCounts
from pleiad.store.figures import StoreFigures
from pleiad.store.glances import Glances
from pleiad.store.moves import CaughtUp, Division, Export, ExportMark, Totals, TotalsChange
from pleiad.store.problems import Problems
from pleiad.store.rows import (
    ItemKey,
    LogicalPartition,
    Outcome,
    PartitionState,
    PartitionWrite,
    Row,
    Version,
    WholeRow,
)
from pleiad.store.selection import IndexedPath, OrderPosition, PathOrder, Selection

FIRST_NODE = ""
"""The node that an account begins with; placements of older versions name none, and mean it."""


class Waiting(Enum):
    """What is there instead of an answer that has to be waited for."""

    WAIT = "wait"


WAIT: Final = Waiting.WAIT


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

    @property
    def ranges_max(self) -> int:
        """How many `ranges` a selection may have for `select` and `count`.

        0 where a statement costs so little that one for each range does as well.
        """

    def read(self, epk: bytes, id: str) -> Awaitable[Row | None]:
        """The row as last committed, expired or not."""

    def read_at_once(self, epk: bytes, id: str) -> Row | Waiting | None:
        """The same without a wait, or WAIT where the store has to be waited for; then `read` tells."""

    def read_many(self, keys: Sequence[ItemKey]) -> Awaitable[Sequence[Row | None]]:
        """The rows of several items in the order of the keys, all as of one moment between two commits."""

    def snapshot(self) -> Snapshot:
        """The moment of the last commit that was answered, or a later one, for as long as it is kept."""

    def find(self, number: int) -> Awaitable[Row | None]:
        """The row with a document number."""

    def find_many(self, numbers: Sequence[int]) -> Awaitable[Sequence[Row]]:
        """The rows with some document numbers, as far as they are there, all as of one moment between two commits."""

    def commit(self, write: PartitionWrite) -> Awaitable[Sequence[Outcome]]:
        """Applies a write durably; one outcome a mutation, in order."""

    def scan(self, span: EpkRange, after: int, limit: int) -> Awaitable[Sequence[Row]]:
        """Up to `limit` rows of the range with a document number above `after`, in the order of their numbers."""

    def scan_back(self, span: EpkRange, before: int, limit: int) -> Awaitable[Sequence[Row]]:
        """Up to `limit` rows of the range with a document number below `before`, the highest number first."""

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

    def select_at_once(self, selection: Selection, limit: int) -> Sequence[Row] | Waiting:
        """All rows that `select` gives where they are few and fewer than `limit`, or WAIT where it has to be asked."""

    def ordered_at_once(
        self, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
    ) -> Sequence[tuple[Row, OrderPosition]] | Waiting:
        """What `ordered` gives, or WAIT where it has to be asked.

        Fewer than `limit` rows mean that there are no more.
        """

    def select(self, selection: Selection, after: int, limit: int) -> Awaitable[Sequence[Row]]:
        """Up to `limit` rows of a selection with a document number above `after`, in the order of their numbers.

        Fewer than `limit` rows mean that there are no more.
        """

    def glance(
        self, selection: Selection, names: Sequence[str], after: int, limit: int
    ) -> Awaitable[Glances]:
        """Of the rows that `select` gives, their sizes and some of their properties: at most NAMES_MAX, or none.

        Fewer than `limit` rows mean that there are no more, unless they are cut (`Glances.is_cut`): a store need not
        hold the texts of many rows at once that turn out to be long. It gives one row at least.

        Without their checksums, which are those of whole rows: the values that are in indexes have none either.
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
        """From now on remembers which rows are deleted, for `export` and `catch_up`; off forgets them."""

    def export(self, span: EpkRange, after: ExportMark, limit: int) -> Awaitable[Export]:
        """The next piece of what a range holds, behind a mark: rows as they are now, deletes, and versions.

        At least `limit` rows and as many versions where there are so many; fewer mean that there are no more at that
        moment. Rows and versions with one LSN stay together. Deletes are all those that were tracked behind the mark;
        the segment tracks them since before the first piece, or UNAVAILABLE says that it does not.
        """

    def import_rows(
        self,
        span: EpkRange,
        rows: Sequence[WholeRow],
        deletes: Sequence[int] = (),
        versions: Sequence[Version] = (),
    ) -> Awaitable[TotalsChange]:
        """Writes what another segment exported as it is, in one durable commit; how that changed the range.

        First everything goes that was deleted, or stands in the way of a row by number, id or unique value: of that
        the pieces to come tell. A version that is there stays. No counter changes: `open_partition` sets them at the
        end. The same piece once more changes nothing.
        """

    def can_copy_from(self, source: Segment) -> bool:
        """Whether rows can come from a segment without leaving the database: by `copy_from` and `catch_up`."""

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


class SegmentStore(Protocol):
    """The segments of one node."""

    @property
    def node(self) -> str:
        """The name of the node, as placements name it."""

    @property
    def problems(self) -> Problems:
        """What is wrong at this moment."""

    @property
    def commits(self) -> CommitCounts:
        """How many writes shared each commit of items."""

    def figures(self) -> StoreFigures:
        """What is at hand and what waits, at this moment."""

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

    def is_there(self) -> Awaitable[bool]:
        """Whether the data can be reached at this moment; a short look."""

    def scrub_for_ever(self) -> Coroutine[None, None, None]:
        """Looks for damage that no read has met, again and again beside everything else."""

    def close(self) -> Awaitable[None]:
        """Finishes running writes and releases everything; to close it again does nothing."""
