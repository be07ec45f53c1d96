"""Several item operations in one request: a transaction in one logical partition, or bulk.

A transaction is all or nothing. Its operations run in order over one snapshot of the logical partition, each seeing
what the ones before it did; then all changes are committed as one write with one LSN, if the items the batch looked
into are still as it saw them. Otherwise it starts over. So the isolation is that of a snapshot: what a batch reads
is one moment of the logical partition, and no change of an item it reads or patches and then writes is lost.

Bulk is many single operations that share a request and, since they run at once, a group commit. Nothing ties them
together.

Invariants of a transaction:
- all rows it may look at are read at once, as of one moment, before its first operation;
- a batch without changes never reaches the store's writer;
- exactly one operation of a failed batch has an error of its own, all others have FAILED_DEPENDENCY.

Limits: the caller counts operations and bytes; the items that a batch reads and patches, and those that bulk reads,
are together no larger than a response may be.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from enum import Enum
from typing import NamedTuple

from pleiad import charge, errors
from pleiad.engine import items, session
from pleiad.engine.container import Container
from pleiad.engine.items import NO_CONDITIONS, Conditions, ItemAnswer, Key, NewItem, PlannedPatch
from pleiad.errors import PleiadError
from pleiad.partition.governor import NORMAL, Lane
from pleiad.partition.partition import Partition
from pleiad.store.contract import (
    APPLIED,
    NO_PRECONDITION,
    ItemKey,
    Mutation,
    Outcome,
    Precondition,
    Result,
    Row,
    Verb,
)

_ATTEMPTS = 100
_PENDING_LSN = -2
"""The LSN of a row that the batch itself wrote: no etag names it."""
_STALE = frozenset({Result.EXISTS, Result.MISSING, Result.PRECONDITION_FAILED})
"""Refusals of what the snapshot allowed: somebody else changed the item meanwhile."""


class OperationKind(Enum):
    """What one operation does; the values are the names clients send."""

    CREATE = "Create"
    UPSERT = "Upsert"
    REPLACE = "Replace"
    READ = "Read"
    PATCH = "Patch"
    DELETE = "Delete"


_VERBS = {
    OperationKind.CREATE: Verb.CREATE,
    OperationKind.UPSERT: Verb.UPSERT,
    OperationKind.REPLACE: Verb.REPLACE,
    OperationKind.PATCH: Verb.REPLACE,
    OperationKind.DELETE: Verb.DELETE,
}


class Operation(NamedTuple):
    """One operation: the item it names, the text of its body, and its key where it has one of its own."""

    kind: OperationKind
    id: str = ""
    body: bytes = b""
    conditions: Conditions = NO_CONDITIONS
    key: Key | None = None


Answer = ItemAnswer | PleiadError


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


def charged_ru(answer: Answer) -> float:
    """The request units of one operation, done or failed."""
    return (answer.charge_ru or 0.0) if isinstance(answer, PleiadError) else answer.charge.ru


# -- bulk --------------------------------------------------------------------------------------------


async def run_bulk(
    container: Container,
    operations: Sequence[Operation],
    partition: Partition | None = None,
    session_token: str = "",
    continue_on_error: bool = True,
    multiplier: int = 1,
    lane: Lane = NORMAL,
) -> BatchAnswer:
    """Runs operations independent of each other, each in the logical partition of its own key.

    `partition` is the one the client sent them to; the keys alone decide where they go. Without `continue_on_error`
    they run one after the other, and those behind the first failure do not run. Each is admitted by itself.
    """
    answers: list[Answer] = []
    if continue_on_error:
        answers = await asyncio.gather(
            *(_single(container, each, session_token, multiplier, lane) for each in operations)
        )
    else:
        for operation in operations:
            if answers and isinstance(answers[-1], PleiadError):
                answers.append(errors.FAILED_DEPENDENCY())
            else:
                answers.append(await _single(container, operation, session_token, multiplier, lane))
    if partition is None:
        done = (answer.partition for answer in answers if isinstance(answer, ItemAnswer))
        partition = next(done, container.map.partitions[0])
    _refuse_surplus_reads(container, operations, answers)
    return BatchAnswer(partition, answers)


def _refuse_surplus_reads(
    container: Container, operations: Sequence[Operation], answers: list[Answer]
) -> None:
    """Reads past the size of a response fail, and clients then send them again in smaller requests."""
    limit = container.limits.response_bytes
    size_bytes = 0
    for index, answer in enumerate(answers):
        if isinstance(answer, PleiadError) or answer.row is None or answer.not_modified:
            continue
        size_bytes += len(answer.row.body)
        if size_bytes > limit and operations[index].kind is OperationKind.READ:
            too_large = errors.BATCH_RESPONSE_TOO_LARGE(limit=limit)
            answers[index] = items.failed(container, answer.partition, too_large, answer.charge)


async def _single(
    container: Container, operation: Operation, session_token: str, multiplier: int, lane: Lane
) -> Answer:
    kind, id, body, conditions, key = operation
    try:
        if kind is OperationKind.CREATE:
            return await items.create(container, body, key, lane)
        if kind is OperationKind.UPSERT:
            return await items.upsert(container, body, key, conditions, lane)
        if kind is OperationKind.REPLACE:
            return await items.replace(container, id, body, key, conditions, lane)
        if kind is OperationKind.PATCH:
            return await items.patch(container, id, body, key, conditions, lane)
        if kind is OperationKind.DELETE:
            return await items.delete(container, id, key, conditions, lane)
        return await items.read(container, id, key, conditions, session_token, multiplier, lane)
    except PleiadError as error:
        return error


# -- transactions --------------------------------------------------------------------------------------


async def run_transaction(
    container: Container,
    key: Key | None,
    operations: Sequence[Operation],
    session_token: str = "",
    multiplier: int = 1,
    lane: Lane = NORMAL,
) -> BatchAnswer:
    """Runs operations in the logical partition of a key, all or none of them."""
    epk = container.epk_of(container.full_key(key))
    partition = container.map.find(epk)
    if session_token and any(each.kind is OperationKind.READ for each in operations):
        session.check(session_token, partition, container.resource.number)
    plans = [_plan(container, key, operation) for operation in operations]
    with partition.turn(lane) as turn:
        answer = await _transact(container, partition, epk, plans, multiplier)
        turn.ru = answer.charge_ru
    return answer


async def _transact(
    container: Container, partition: Partition, epk: bytes, plans: Sequence[_Plan], multiplier: int
) -> BatchAnswer:
    async with AsyncExitStack() as turns:
        # In one order for every batch, so that no two wait for each other.
        for id in sorted(_ids_changed_after_a_look([plan.operation for plan in plans])):
            await turns.enter_async_context(items.patch_turn(container.resource.rid, epk, id))
        for _ in range(_ATTEMPTS):
            partition = container.map.find(epk)
            attempt = _Attempt(container, partition, epk, int(time.time()), multiplier)
            answers = await attempt.run(plans)
            if answers is not None:
                return BatchAnswer(partition, answers)
    raise items.failed(container, partition, errors.RETRY_WITH(), charge.failed())


class _Plan(NamedTuple):
    """An operation with all that can be decided before any item is read."""

    operation: Operation
    demanded: Precondition
    item: NewItem | None = None
    patch: PlannedPatch | None = None
    error: PleiadError | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The items the operation looks at."""
        if self.error is not None:
            return ()
        return (self.operation.id,) if self.item is None else (self.operation.id, self.item.id)


def _plan(container: Container, key: Key | None, operation: Operation) -> _Plan:
    demanded = items.precondition(container, operation.conditions)
    kind = operation.kind
    try:
        if kind is OperationKind.PATCH:
            return _Plan(operation, demanded, patch=items.plan_patch(container, operation.body))
        if kind is OperationKind.READ or kind is OperationKind.DELETE:
            return _Plan(operation, demanded)
        item = items.measure(container, operation.body, container.limits)
        container.key_of(item.value, key)
    except PleiadError as error:
        return _Plan(operation, demanded, error=error)
    if kind is not OperationKind.REPLACE:
        operation = operation._replace(id=item.id)
    return _Plan(operation, demanded, item)


def _ids_changed_after_a_look(operations: Sequence[Operation]) -> set[str]:
    """The items whose new state depends on the old one: those who change them take turns."""
    patched = {each.id for each in operations if each.kind is OperationKind.PATCH}
    read = {each.id for each in operations if each.kind is OperationKind.READ}
    changed = {each.id for each in operations if each.kind is not OperationKind.READ}
    return patched | read & changed


class _Step(NamedTuple):
    """An operation the snapshot allows: a row to show, or the mutation (by its index) that will make one."""

    plan: _Plan
    mutation: int | None
    row: Row | None = None
    item: NewItem | None = None
    not_modified: bool = False


class _Attempt:
    """One run of a batch over one snapshot; what it changes is kept aside until the commit."""

    def __init__(
        self, container: Container, partition: Partition, epk: bytes, now: int, multiplier: int
    ) -> None:
        self._container = container
        self._partition = partition
        self._epk = epk
        self._now = now
        self._multiplier = multiplier
        self._rows: dict[str, Row | None] = {}
        """The rows as the batch sees them: of the snapshot, or as its own operations left them."""
        self._writer_of: dict[str, int] = {}
        self._looked_into: set[str] = set()
        self._mutations: list[Mutation] = []
        self._answer_bytes = 0

    async def run(self, plans: Sequence[_Plan]) -> list[Answer] | None:
        """How each operation ended, or None when the snapshot was overtaken."""
        await self._take_snapshot(plans)
        steps: list[_Step] = []
        for index, plan in enumerate(plans):
            try:
                steps.append(self._step(plan))
            except PleiadError as error:
                return _all_but_one_abandoned(len(plans), index, error)
        if not self._mutations:
            return [self._answer(step, ()) for step in steps]
        container, partition = self._container, self._partition
        outcomes = await container.commit(partition, self._mutations, self._now, atomic=True)
        for mutation, outcome in enumerate(outcomes):
            result = outcome.result
            if result in APPLIED or result is Result.ABANDONED:
                continue
            if result in _STALE:
                return None
            if result is Result.GONE:
                await container.successor(partition, self._epk)
                return None
            refusal = self._failed(items.refusal_of(container, self._mutations[mutation], outcome))
            culprit = next(index for index, step in enumerate(steps) if step.mutation == mutation)
            return _all_but_one_abandoned(len(plans), culprit, refusal)
        return [self._answer(step, outcomes) for step in steps]

    async def _take_snapshot(self, plans: Sequence[_Plan]) -> None:
        """Reads every row the operations name: the ids they are about, and those they rename an item to."""
        ids = dict.fromkeys(id for plan in plans for id in plan.ids)
        rows = await self._partition.read_many([ItemKey(self._epk, id) for id in ids])
        for id, row in zip(ids, rows, strict=True):
            is_live = row is not None and not self._container.is_expired(row, self._now)
            self._rows[id] = row if is_live else None

    # -- one operation ---------------------------------------------------------------------------------

    def _step(self, plan: _Plan) -> _Step:
        if plan.error is not None:
            raise plan.error
        operation = plan.operation
        row = self._rows[operation.id]
        if operation.kind is OperationKind.READ:
            return self._read(plan, row)
        self._refuse(plan, row)
        if operation.kind is OperationKind.DELETE:
            mutation = Mutation(Verb.DELETE, self._epk, operation.id)
            return _Step(plan, self._write(mutation, plan, row))
        item = plan.item
        if plan.patch is not None:
            assert row is not None
            self._looked_into.add(operation.id)
            item = items.apply_patch(self._container, self._partition, plan.patch, row)
            self._count(len(item.body))
        assert item is not None
        verb = _VERBS[operation.kind]
        mutation = items.mutation_of(self._container, verb, item, self._epk, NO_PRECONDITION)
        if item.id != operation.id:
            if self._rows[item.id] is not None:
                raise self._failed(errors.ITEM_EXISTS(id=item.id))
            mutation = mutation._replace(id=operation.id, new_id=item.id)
        return _Step(plan, self._write(mutation, plan, row), item=item)

    def _read(self, plan: _Plan, row: Row | None) -> _Step:
        operation = plan.operation
        if row is None:
            raise items.failed(
                self._container,
                self._partition,
                errors.ITEM_NOT_FOUND(id=operation.id),
                charge.read_missing(self._multiplier),
            )
        self._looked_into.add(operation.id)
        self._count(len(row.body))
        unless = operation.conditions.if_none_match
        not_modified = unless is not None and unless in ("*", self._container.etag(row))
        return _Step(plan, self._writer_of.get(operation.id), row, not_modified=not_modified)

    def _refuse(self, plan: _Plan, row: Row | None) -> None:
        """Raises what the store would answer, were the row as the batch sees it now."""
        kind, id = plan.operation.kind, plan.operation.id
        if kind is OperationKind.CREATE:
            if row is not None:
                raise self._failed(errors.ITEM_EXISTS(id=id))
            return
        if row is None and kind is not OperationKind.UPSERT:
            raise self._failed(errors.ITEM_NOT_FOUND(id=id))
        if not items.holds(plan.demanded, row):
            raise self._failed(errors.PRECONDITION_FAILED())

    def _write(self, mutation: Mutation, plan: _Plan, row: Row | None) -> int:
        """Notes a change; the first one of an item binds the commit to what the batch knows of it."""
        id = mutation.id
        if id not in self._writer_of:
            known = (
                Precondition(lsn=row.lsn) if row is not None and id in self._looked_into else plan.demanded
            )
            mutation = mutation._replace(precondition=known)
        index = len(self._mutations)
        self._mutations.append(mutation)
        self._rows[id] = None
        self._writer_of[id] = index
        if mutation.verb is not Verb.DELETE:
            new_id = mutation.new_id if mutation.new_id is not None else id
            self._writer_of[new_id] = index
            self._rows[new_id] = Row(
                0 if row is None else row.number,
                self._epk,
                new_id,
                _PENDING_LSN,
                self._now,
                mutation.ttl,
                mutation.size_bytes,
                mutation.terms,
                mutation.body,
            )
        return index

    def _count(self, size_bytes: int) -> None:
        self._answer_bytes += size_bytes
        limit = self._container.limits.response_bytes
        if self._answer_bytes > limit:
            raise self._failed(errors.BATCH_RESPONSE_TOO_LARGE(limit=limit))

    def _failed(self, error: PleiadError) -> PleiadError:
        return items.failed(self._container, self._partition, error, charge.failed())

    # -- answers ---------------------------------------------------------------------------------------

    def _answer(self, step: _Step, outcomes: Sequence[Outcome]) -> ItemAnswer:
        partition = self._partition
        outcome = None if step.mutation is None else outcomes[step.mutation]
        if step.row is not None:
            row = step.row if outcome is None else outcome.row
            assert row is not None
            return ItemAnswer(
                partition, charge.read(row.size_bytes, self._multiplier), row, not_modified=step.not_modified
            )
        assert outcome is not None
        if step.item is None:
            assert outcome.old is not None
            return ItemAnswer(partition, charge.delete(outcome.old.size_bytes, outcome.old.terms))
        patched = 0 if step.plan.patch is None else step.plan.patch.patch.properties
        cost = items.write_charge(self._container, outcome.old, step.item, patched)
        return ItemAnswer(partition, cost, outcome.row, created=outcome.old is None)


def _all_but_one_abandoned(count: int, culprit: int, error: PleiadError) -> list[Answer]:
    answers: list[Answer] = [errors.FAILED_DEPENDENCY() for _ in range(count)]
    answers[culprit] = error
    return answers
