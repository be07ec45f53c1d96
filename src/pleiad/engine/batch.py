"""Several item operations in one request: a transaction in one logical partition, or bulk.

A transaction is all or nothing. Its operations run in order over one snapshot of the logical partition, each seeing
what the ones before it did; then all changes are committed as one write with one LSN, if the items the batch looked
into are still as it saw them. Otherwise it starts over. So the isolation is that of a snapshot: what a batch reads
is one moment of the logical partition, and no change of an item it reads or patches and then writes is lost.

Bulk is many single operations that share a request and, since they run at once, a group commit. Nothing ties them
together, but that operations on one item are done in the order of the request. Where all of them are writes of whole
items, they go to `bulk_writes`, which costs far less than one by one.

Invariants of a transaction:
- all rows it may look at are read at once, as of one moment, before its first operation;
- a batch without changes never reaches the store's writer;
- exactly one operation of a failed batch has an error of its own, the first in their order that cannot be done, also
  where only the store sees that (a unique value); all others have FAILED_DEPENDENCY.

Limits: the caller counts operations and bytes; the items that a batch reads and patches, and those that bulk reads,
are together no larger than a response may be.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from typing import NamedTuple

from pleiad import charge, errors
from pleiad.engine import items, patching, reading, session
from pleiad.engine.bulk_writes import write_together
from pleiad.engine.container import Container
from pleiad.engine.items import NO_CONDITIONS, ItemAnswer, Key
from pleiad.engine.patch_turns import patch_turns
from pleiad.engine.session import Session
from pleiad.engine.transaction import (
    VERBS,
    AllowedOperation,
    Answer,
    ItemOperation,
    ItemVerb,
    Plan,
    Refusal,
    Transaction,
    charged_ru,
    plan_operation,
)
from pleiad.engine.whole_writes import Write, are_whole_writes, created, planned
from pleiad.errors import PleiadError
from pleiad.partition.governor import NORMAL, Lane
from pleiad.partition.partition import Partition
from pleiad.query.pace import Pace
from pleiad.store.rows import APPLIED, Outcome
from pleiad.store.segments import SegmentDroppedError

__all__ = ["Answer", "BatchAnswer", "ItemOperation", "ItemVerb", "charged_ru", "run_bulk", "run_transaction"]

_ATTEMPTS = 100


class BatchAnswer(NamedTuple):
    """How each operation ended, in order, and the physical partition that speaks for all of them."""

    partition: Partition
    answers: list[Answer]

    @property
    def charge_ru(self) -> float:
        """The sum of what the operations are charged, as clients add it up."""
        return round(sum(map(charged_ru, self.answers)), 2)

    @property
    def has_failure(self) -> bool:
        return any(isinstance(answer, PleiadError) for answer in self.answers)


# -- bulk --------------------------------------------------------------------------------------------


async def run_bulk(
    container: Container,
    operations: Sequence[ItemOperation],
    partition: Partition | None = None,
    seen: Session = (),
    continue_on_error: bool = True,
    multiplier: int = 1,
    lane: Lane = NORMAL,
) -> BatchAnswer:
    """Runs operations independent of each other, each in the logical partition of its own key.

    `partition` is the one the client sent them to; the keys alone decide where they go. Without `continue_on_error`
    they run one after the other, and those behind the first failure do not run. Each is admitted by itself.
    """
    if continue_on_error and are_whole_writes(operations):
        return _bulk_answer(container, partition, await write_together(container, operations, lane))
    with ExitStack() as paces:
        plans: list[Plan] = []
        whole = paces.enter_context(Pace.of_request(container.limits))
        for each in operations:
            # They run side by side, so each has a pace of its own, and all have one deadline.
            pace = paces.enter_context(whole.beside())
            plans.append(await plan_operation(container, each.key, each, pace))
            await pace.rest()
        answers: list[Answer] = []
        if continue_on_error:
            answers = await _in_order_by_item(container, plans, seen, multiplier, lane)
        else:
            for plan in plans:
                if answers and isinstance(answers[-1], PleiadError):
                    answers.append(errors.FAILED_DEPENDENCY())
                else:
                    answers.append(await _single(container, plan, seen, multiplier, lane))
    _refuse_surplus_reads(container, operations, answers)
    return _bulk_answer(container, partition, answers)


def _bulk_answer(container: Container, partition: Partition | None, answers: list[Answer]) -> BatchAnswer:
    """The ends of the operations, told by the partition they were sent to, or by that of the first one done."""
    if partition is None:
        done = (answer.partition for answer in answers if isinstance(answer, ItemAnswer))
        partition = next(done, container.map.partitions[0])
    return BatchAnswer(partition, answers)


def _refuse_surplus_reads(
    container: Container, operations: Sequence[ItemOperation], answers: list[Answer]
) -> None:
    """Reads past the size of a response fail, and clients then send them again in smaller requests."""
    limit = container.limits.response_bytes
    size_bytes = 0
    for index, answer in enumerate(answers):
        if isinstance(answer, PleiadError) or answer.row is None or answer.not_modified:
            continue
        size_bytes += len(answer.row.body)
        if size_bytes > limit and operations[index].kind is ItemVerb.READ:
            too_large = errors.BATCH_RESPONSE_TOO_LARGE(limit=limit)
            answers[index] = items.failed(container, answer.partition, too_large, answer.charge)


async def _in_order_by_item(
    container: Container, plans: Sequence[Plan], seen: Session, multiplier: int, lane: Lane
) -> list[Answer]:
    """Runs operations at once, each after those before it that look at or change the same item."""
    latest: dict[tuple[bytes, str], asyncio.Task[Answer]] = {}

    async def run(plan: Plan, earlier: set[asyncio.Task[Answer]]) -> Answer:
        if earlier:
            await asyncio.wait(earlier)
        return await _single(container, plan, seen, multiplier, lane)

    tasks: list[asyncio.Task[Answer]] = []
    for plan in plans:
        places = _places(container, plan)
        earlier = {latest[place] for place in places if place in latest}
        tasks.append(asyncio.create_task(run(plan, earlier)))
        latest.update(dict.fromkeys(places, tasks[-1]))
    return await asyncio.gather(*tasks)


def _places(container: Container, plan: Plan) -> list[tuple[bytes, str]]:
    """Where an operation of bulk looks: nowhere, when it will fail before it does."""
    if plan.error is not None:
        return []
    try:
        epk = container.epk_of(container.full_key(plan.operation.key))
    except PleiadError:
        return []
    return [(epk, id) for id in plan.ids]


async def _single(container: Container, plan: Plan, seen: Session, multiplier: int, lane: Lane) -> Answer:
    if plan.error is not None:
        return plan.error
    kind, id, _, conditions, key, _ = plan.operation
    try:
        if plan.item is not None:
            renamed = id if kind is ItemVerb.REPLACE else None
            conditions = NO_CONDITIONS if kind is ItemVerb.CREATE else conditions
            return await items.put(container, VERBS[kind], plan.item, key, conditions, lane, renamed)
        if plan.patch is not None:
            return await patching.patch_as_planned(container, id, plan.patch, key, conditions, lane)
        if kind is ItemVerb.DELETE:
            return await items.delete(container, id, key, conditions, lane)
        return await reading.read(container, id, key, conditions, seen, multiplier, lane)
    except PleiadError as error:
        return error


# -- transactions --------------------------------------------------------------------------------------


async def run_transaction(
    container: Container,
    key: Key | None,
    operations: Sequence[ItemOperation],
    seen: Session = (),
    multiplier: int = 1,
    lane: Lane = NORMAL,
) -> BatchAnswer:
    """Runs operations in the logical partition of a key, all or none of them."""
    epk = container.epk_of(container.full_key(key))
    partition = container.map.find(epk)
    if seen and any(each.kind is ItemVerb.READ for each in operations):
        session.check(seen, partition, container.resource.number)
    with Pace.of_request(container.limits) as pace:
        writes = await _unseen_writes(container, key, operations, pace)
        plans = None if writes is not None else await _planned(container, key, operations, pace)
        with partition.turn(lane) as turn:
            answer = None if writes is None else await _write_unseen(container, partition, epk, writes)
            if answer is None:
                is_seen = plans is None
                plans = plans or await _planned(container, key, operations, pace)
                answer = await _transact(container, partition, epk, plans, multiplier, is_seen)
            turn.ru = answer.charge_ru
        return answer


async def _unseen_writes(
    container: Container, key: Key | None, operations: Sequence[ItemOperation], pace: Pace
) -> list[Write] | None:
    """The writes of a batch that only writes whole items, each of them once; None where there is more to tell of it."""
    if not are_whole_writes(operations):
        return None
    wrong: dict[int, PleiadError] = {}
    groups = await planned(container, operations, [key] * len(operations), wrong, pace)
    if wrong or len(groups) != 1:
        return None
    (writes,) = groups.values()
    ids = {write.item.id for write in writes}
    named = len(writes)
    for operation, write in zip(operations, writes, strict=True):
        if operation.kind is ItemVerb.REPLACE and operation.id != write.item.id:
            ids.add(operation.id)
            named += 1
    return writes if len(ids) == named else None


async def _write_unseen(
    container: Container, partition: Partition, epk: bytes, writes: Sequence[Write]
) -> BatchAnswer | None:
    """Commits writes on which the store can decide by itself.

    None where it refused one, and nothing has changed: what is told of that follows from a look.
    """
    if container.map.find(epk) is not partition:
        return None
    mutations = [write.mutation for write in writes]
    try:
        outcomes = await container.commit(partition, mutations, int(time.time()), atomic=True)
    except SegmentDroppedError:
        return None
    answers: list[Answer] = []
    for (_, item, mutation), outcome in zip(writes, outcomes, strict=True):
        if outcome.result not in APPLIED:
            return None
        answers.append(
            created(partition, item, outcome)
            or await items.written(container, partition, item, mutation, outcome)
        )
    return BatchAnswer(partition, answers)


async def _planned(
    container: Container, key: Key | None, operations: Sequence[ItemOperation], pace: Pace
) -> list[Plan]:
    plans = []
    for operation in operations:
        plans.append(await plan_operation(container, key, operation, pace))
        await pace.rest()
    return plans


async def _transact(
    container: Container,
    partition: Partition,
    epk: bytes,
    plans: Sequence[Plan],
    multiplier: int,
    is_seen: bool = False,
) -> BatchAnswer:
    async with AsyncExitStack() as turns:
        # In one order for every batch, so that no two wait for each other.
        for id in sorted(_ids_changed_after_a_look([plan.operation for plan in plans])):
            await turns.enter_async_context(patch_turns.turn(container.resource.rid, epk, id))
        is_seen = is_seen or not _needs_no_look(plans)
        for _ in range(_ATTEMPTS):
            partition = container.map.find(epk)
            attempt = Transaction(
                container,
                partition,
                epk,
                int(time.time()),
                partition.read_many,
                multiplier=multiplier,
                read_bytes_max=container.limits.response_bytes,
            )
            try:
                if is_seen:
                    await attempt.look_up(id for plan in plans for id in plan.ids)
                answers = await _attempt(attempt, plans, is_seen)
            except SegmentDroppedError:
                items.moved(container, partition, epk)
                continue
            if answers is not None:
                return BatchAnswer(partition, answers)
            is_seen = True
    raise items.failed(container, partition, errors.RETRY_WITH(), charge.failed())


def _needs_no_look(plans: Sequence[Plan]) -> bool:
    """Whether a batch only writes, and each item once: then no operation depends on another, and the store can tell by
    itself whether all of them may be."""
    named: set[str] = set()
    for operation, _, item, patch, error in plans:
        if error is not None or patch is not None or operation.kind is ItemVerb.READ:
            return False
        ids = {operation.id} if item is None else {operation.id, item.id}
        if not named.isdisjoint(ids):
            return False
        named |= ids
    return True


async def _attempt(transaction: Transaction, plans: Sequence[Plan], is_seen: bool) -> list[Answer] | None:
    """How each operation ended, or None when the snapshot was overtaken, or when an operation was refused in a batch
    that has not looked at its items: what is told of that follows from a look."""
    steps: list[AllowedOperation] = []
    for index, plan in enumerate(plans):
        try:
            steps.append(await transaction.step(plan) if is_seen else transaction.write_unseen(plan))
        except SegmentDroppedError:
            raise
        except PleiadError as error:
            # The first operation that fails is the one that is told of, also where only the store sees that it does.
            earlier = await transaction.refusal_so_far()
            if earlier is None or isinstance(earlier, Refusal):
                return None if earlier is None else _refused(len(plans), steps, earlier)
            # A batch whose answer has no room fails at its end, as on the service, however early that is seen here.
            is_too_large = error.row is errors.BATCH_RESPONSE_TOO_LARGE
            return _all_but_one_abandoned(len(plans), len(plans) - 1 if is_too_large else index, error)
    outcomes = await transaction.commit()
    if outcomes is None:
        return None
    if isinstance(outcomes, Refusal):
        return _refused(len(plans), steps, outcomes)
    return [_answer(transaction, step, outcomes) for step in steps]


def _refused(count: int, steps: Sequence[AllowedOperation], refusal: Refusal) -> list[Answer]:
    """The ends of a batch of which the store has refused one change."""
    culprit = next(index for index, step in enumerate(steps) if step.mutation == refusal.mutation)
    return _all_but_one_abandoned(count, culprit, refusal.error)


def _answer(transaction: Transaction, step: AllowedOperation, outcomes: Sequence[Outcome]) -> ItemAnswer:
    container, partition = transaction.container, transaction.partition
    outcome = None if step.mutation is None else outcomes[step.mutation]
    if step.row is not None:
        row = step.row if outcome is None else outcome.row
        assert row is not None
        cost = charge.read(row.size_bytes, transaction.multiplier)
        return ItemAnswer(partition, cost, row, not_modified=step.not_modified)
    assert outcome is not None
    if step.item is None:
        assert outcome.old is not None
        return ItemAnswer(
            partition, charge.delete(outcome.old.size_bytes, outcome.old.terms), old=outcome.old
        )
    patched = 0 if step.plan.patch is None else step.plan.patch.patch.properties
    cost = items.write_charge(container, outcome.old, step.item, patched)
    return ItemAnswer(partition, cost, outcome.row, created=outcome.old is None, old=outcome.old)


def _ids_changed_after_a_look(operations: Sequence[ItemOperation]) -> set[str]:
    """The items whose new state depends on the old one: those who change them take turns."""
    patched = {each.id for each in operations if each.kind is ItemVerb.PATCH}
    read = {each.id for each in operations if each.kind is ItemVerb.READ}
    changed = {each.id for each in operations if each.kind is not ItemVerb.READ}
    return patched | read & changed


def _all_but_one_abandoned(count: int, culprit: int, error: PleiadError) -> list[Answer]:
    answers: list[Answer] = [errors.FAILED_DEPENDENCY() for _ in range(count)]
    if error.charge_ru is None:
        # It was refused before it looked at anything, in a batch that was admitted.
        error.charge_ru = charge.failed().ru
    answers[culprit] = error
    return answers
