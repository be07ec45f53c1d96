"""What the answers to writes must look like, beside each other and beside the answers before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pleiad.item.ttl import is_expired
from pleiad.store.checked.breach import CALLER, demand
from pleiad.store.refusal import refusal
from pleiad.store.rows import APPLIED, Mutation, Outcome, PartitionState, PartitionWrite, Result, Row, Verb

NUMBER_BITS = 36
_REFUSED_BY_RULE = frozenset({Result.EXISTS, Result.MISSING, Result.PRECONDITION_FAILED})


def check_write(write: PartitionWrite) -> None:
    """What a caller may ask for."""
    for mutation in write.mutations:
        is_renaming = mutation.new_id is not None
        demand(not is_renaming or mutation.verb is Verb.REPLACE, CALLER, f"only REPLACE renames: {mutation}")


@dataclass(slots=True)
class Known:
    """What answers have told of one partition."""

    epoch: int = 0
    """It has this one or a later one."""
    lsn: int = 0
    is_exact: bool = False
    """Whether nobody else can have raised the LSN since."""
    number: int = 0
    lsns: set[int] = field(default_factory=set)
    """Those that answers have given."""

    def adopt(self, state: PartitionState) -> None:
        """The counters were set anew."""
        self.epoch, self.lsn, self.number, self.is_exact = state.epoch, state.lsn, 0, False
        self.lsns = set()

    def check_state(self, state: PartitionState, epoch: int, lsn: int) -> None:
        """Counters beside what was known when they were asked for."""
        demand(state.epoch >= epoch, "6", f"the epoch {state.epoch} behind {epoch}")
        demand(state.lsn >= lsn, "3", f"the LSN {state.lsn} behind {lsn}")
        demand(state.items >= 0 and state.size_bytes >= 0, "3", f"counters below nothing: {state}")
        self.epoch = max(self.epoch, state.epoch)


@dataclass(frozen=True, slots=True)
class Begun:
    """What was known of the partition when a write began."""

    epoch: int
    lsn: int
    number: int
    is_exact: bool


def begin(known: Known) -> Begun:
    return Begun(known.epoch, known.lsn, known.number, known.is_exact)


def check_outcomes(
    write: PartitionWrite, outcomes: Sequence[Outcome], begun: Begun, known: Known, is_alone: bool
) -> None:
    """All that the answer to a write shows; `is_alone` when no other write ran beside it."""
    demand(len(outcomes) == len(write.mutations), "2", f"{len(outcomes)} outcomes of {len(write.mutations)}")
    is_gone = [outcome.result is Result.GONE for outcome in outcomes]
    if any(is_gone):
        empty = all(outcome == Outcome(Result.GONE) for outcome in outcomes)
        demand(all(is_gone) and empty, "6", f"a write that is gone has left something: {outcomes}")
        return
    demand(not outcomes or write.epoch >= begun.epoch, "6", f"applied under {write.epoch}, not {begun.epoch}")
    if any(outcome.result in APPLIED for outcome in outcomes):
        # A partition that nothing was ever applied to need not have an epoch yet.
        known.epoch = max(known.epoch, write.epoch)
    _check_whole(write, outcomes)
    for mutation, outcome in zip(write.mutations, outcomes, strict=True):
        _check_outcome(write, mutation, outcome)
    _check_lsns(write, outcomes, begun, known, is_alone)
    _check_numbers(write, outcomes, begun, known)


def _check_whole(write: PartitionWrite, outcomes: Sequence[Outcome]) -> None:
    abandoned = sum(outcome.result is Result.ABANDONED for outcome in outcomes)
    if not write.atomic:
        demand(not abandoned, "2", "a mutation was abandoned, although each is for itself")
        return
    applied = sum(outcome.result in APPLIED for outcome in outcomes)
    is_whole = applied == len(outcomes) or (not applied and abandoned == len(outcomes) - 1)
    demand(is_whole, "2", f"half of an atomic write was applied: {[each.result for each in outcomes]}")


def _check_outcome(write: PartitionWrite, mutation: Mutation, outcome: Outcome) -> None:
    result, row, old = outcome.result, outcome.row, outcome.old
    if result is Result.ABANDONED:
        demand(outcome == Outcome(Result.ABANDONED), "2", f"something of an abandoned mutation: {outcome}")
        return
    is_dead = old is not None and is_expired(old.ts, old.ttl, write.default_ttl, write.now)
    demand(not is_dead, "5", f"a row whose time is over was found: {old}")
    refused = refusal(mutation, old)
    is_refused = result in _REFUSED_BY_RULE and not (mutation.new_id is not None and result is Result.EXISTS)
    demand(refused is (result if is_refused else None), "12", f"{mutation.verb} of {old} ended {result}")
    leaves_row = result in (Result.CREATED, Result.REPLACED)
    demand((row is not None) is leaves_row, "2", f"{result} left the row {row}")
    demand(result is not Result.CREATED or old is None, "4", f"created beside {old}")
    demand(result not in (Result.REPLACED, Result.DELETED) or old is not None, "2", f"{result} of nothing")
    if row is not None:
        _check_row(write, mutation, outcome, row, old)


def _check_row(
    write: PartitionWrite, mutation: Mutation, outcome: Outcome, row: Row, old: Row | None
) -> None:
    demand(row.lsn == outcome.lsn, "3", f"the row has LSN {row.lsn}, the write {outcome.lsn}")
    expected = mutation.row_after(row.number, outcome.lsn, write.now)
    demand(row == expected, "2", f"the row {row} is not what was written: {expected}")
    if old is not None:
        demand(row.number == old.number, "3", f"the item {old.number} became {row.number}")
        demand(old.lsn < row.lsn + write.atomic, "3", f"the LSN of the item went from {old.lsn} to {row.lsn}")


def _check_lsns(
    write: PartitionWrite, outcomes: Sequence[Outcome], begun: Begun, known: Known, is_alone: bool
) -> None:
    # Where removals of expired rows are remembered, they take LSNs that no outcome may tell.
    may_skip = write.keep_versions and write.default_ttl is not None
    for outcome in outcomes:
        is_applied = outcome.result in APPLIED
        demand(is_applied or may_skip or not outcome.lsn, "3", f"an LSN for nothing: {outcome}")
    lsns = [outcome.lsn for outcome in outcomes if outcome.result in APPLIED]
    if not lsns:
        return
    if write.atomic:
        demand(len(set(lsns)) == 1, "3", f"an atomic write has the LSNs {lsns}")
        lsns = lsns[:1]
    step_max = 1 << 62 if may_skip else 1
    demand(
        all(0 < b - a <= step_max for a, b in pairwise(lsns)), "3", f"LSNs that do not grow by one: {lsns}"
    )
    demand(lsns[0] > begun.lsn, "3", f"LSN {lsns[0]} after {begun.lsn} was answered")
    is_next = lsns[0] <= begun.lsn + step_max
    demand(is_next or not (is_alone and begun.is_exact), "3", f"LSN {lsns[0]} follows {begun.lsn}")
    twice = known.lsns.intersection(lsns)
    demand(not twice, "3", f"LSNs used twice: {twice}")
    known.lsns.update(lsns)
    known.lsn = max(known.lsn, lsns[-1])
    known.is_exact = is_alone and not may_skip


def _check_numbers(write: PartitionWrite, outcomes: Sequence[Outcome], begun: Begun, known: Known) -> None:
    numbers = [
        outcome.row.number
        for outcome in outcomes
        if outcome.result is Result.CREATED and outcome.row is not None
    ]
    if not numbers:
        return
    demand(
        all(number >> NUMBER_BITS == write.partition for number in numbers),
        "3",
        f"numbers that are not those of partition {write.partition}: {numbers}",
    )
    demand(all(a < b for a, b in pairwise(numbers)), "3", f"numbers that do not grow: {numbers}")
    demand(numbers[0] > begun.number, "3", f"number {numbers[0]} after {begun.number} was given")
    known.number = max(known.number, numbers[-1])
