"""Copying a whole account from one store into another, empty one.

Rows keep number, LSN and time, partitions their counters, and records everything, so that ETags, session tokens,
continuation tokens and places in change feeds go on to hold.

Invariants:
- until the copy is whole and verified, the target has no account, only records of how far the copy is, under which no
  server starts; the account appears in one commit, which also removes those records;
- a copy that was interrupted goes on behind the last row it noted; rows it wrote and did not note are written again;
- what the source holds at the end is what it held at the beginning, or nothing appears.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from pleiad.catalog.catalog import UNFINISHED_COPY
from pleiad.catalog.container import unique_values_of
from pleiad.catalog.placement import Placement, segment_of
from pleiad.job.account import Account, read_account
from pleiad.job.digest import digest_range
from pleiad.job.place import CopyError
from pleiad.job.progress_record import CopyRecords, PartitionProgress
from pleiad.store.move import MoveAcross
from pleiad.store.segments import SegmentOutOfServiceError
from pleiad.store.store import Store


class CopyStage(Enum):
    """What a copy is doing."""

    COPYING = "copying"
    VERIFYING = "verifying"


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """How far a phase is, in items."""

    phase: CopyStage
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Copied:
    """What a finished copy has put into its target."""

    records: int
    partitions: int
    items: int
    versions: int
    resumed_items: int
    """Items that an earlier, interrupted run had copied."""


Tell = Callable[[CopyProgress], None]


async def copy_account(source: Store, target: Store, tell: Tell) -> Copied:
    """Copies the account of one store into another; CopyError says why it cannot."""
    try:
        return await _copy_account(source, target, tell)
    except SegmentOutOfServiceError as error:
        problems = [*source.problems.standing(), *target.problems.standing()]
        raise CopyError("; ".join(problem.message for problem in problems)) from error


async def _copy_account(source: Store, target: Store, tell: Tell) -> Copied:
    account = await _read_source(source)
    progress = await _begin(account, target)
    resumed = sum(progress.of(placement).items for placement in account.live)
    done = resumed
    tell(CopyProgress(CopyStage.COPYING, done, account.items))

    def count(items: int) -> None:
        nonlocal done
        done += items
        tell(CopyProgress(CopyStage.COPYING, done, account.items))

    for placement in account.live:
        await _copy_partition(source, target, placement, account, progress, count)
    for segment, state in account.states:
        await target.segment(segment).open_partition(state)
    items, versions = await _verify(source, target, account, progress, tell)
    await _finish(source, target, account, progress)
    return Copied(len(account.records), len(account.live), items, versions, resumed)


async def _read_source(source: Store) -> Account:
    records = await source.load_records()
    if any(record.kind == UNFINISHED_COPY for record in records):
        raise CopyError("the source is itself an unfinished copy: finish that one first")
    if not records:
        raise CopyError("the source holds no account: nothing was ever created in it")
    return await read_account(source, records)


async def _begin(account: Account, target: Store) -> CopyRecords:
    """How far an earlier run of this copy came; a target that is new, or half of another copy, is cleared first."""
    records = await target.load_records()
    if any(record.kind != UNFINISHED_COPY for record in records):
        raise CopyError("the target is not empty: it already holds an account, which a copy never overwrites")
    progress = CopyRecords(target, records)
    if progress.fingerprint != account.fingerprint:
        await progress.restart("")
        await target.drop_all_segments()
        await progress.restart(account.fingerprint)
    return progress


async def _copy_partition(
    source: Store,
    target: Store,
    placement: Placement,
    account: Account,
    progress: CopyRecords,
    count: Callable[[int], None],
) -> None:
    so_far = progress.of(placement)
    values_of = unique_values_of(account.unique_keys[placement.container_rid])
    origin, copy = segment_of(placement, source), segment_of(placement, target)
    move = MoveAcross(origin, copy, placement.id, placement.span, values_of, so_far.mark)
    has_more = True
    while has_more:
        mark, rows = move.mark, move.rows
        has_more = await move.copy_some()
        if move.mark != mark:
            await progress.note(placement, PartitionProgress(move.mark, so_far.items + move.rows))
        if move.rows > rows:
            count(move.rows - rows)


async def _verify(
    source: Store, target: Store, account: Account, progress: CopyRecords, tell: Tell
) -> tuple[int, int]:
    """Compares both stores partition by partition; how many items and versions there are."""
    items = versions = read = 0
    total = account.items
    tell(CopyProgress(CopyStage.VERIFYING, 0, total))

    def count(rows: int) -> None:
        nonlocal read
        read += rows
        tell(CopyProgress(CopyStage.VERIFYING, read // 2, total))

    for placement in account.live:
        expected = await digest_range(segment_of(placement, source), placement.span, count)
        found = await digest_range(segment_of(placement, target), placement.span, count)
        if found != expected:
            await progress.restart("")
            raise CopyError(
                f"physical partition {placement.id} of container {placement.container_rid} differs: the source has "
                f"{expected.items:,} items, {expected.versions:,} versions and checksum {expected.checksum}, the "
                f"target {found.items:,}, {found.versions:,} and {found.checksum}; the next run starts over"
            )
        items += expected.items
        versions += expected.versions
    return items, versions


async def _finish(source: Store, target: Store, account: Account, progress: CopyRecords) -> None:
    """Lets the account appear, if the source is still what was copied and the counters are there."""
    now = await read_account(source, await source.load_records())
    copied = await read_account(target, account.records)
    if now.fingerprint != account.fingerprint or copied.fingerprint != account.fingerprint:
        await progress.restart("")
        raise CopyError(
            "the source changed while it was copied; stop its servers, and the next run starts over"
        )
    if not await target.save_records(account.records, progress.all(), unless_behind=True):
        raise CopyError("another server wrote to the target meanwhile; nothing was made visible")
