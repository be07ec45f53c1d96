"""One transaction in one logical partition: what it sees, and what it will change.

Operations run in order over one moment of the logical partition, each seeing what the ones before it did. Nothing is
written until the commit, which applies all changes with one LSN if the items the transaction knows are still as it
knew them. A transaction that finds itself overtaken is run again from the start by whoever began it.

Invariants:
- all rows come from one moment: the reader it is given sees to that;
- the first change of an item binds the commit to what the transaction knows of the item;
- a transaction without changes never reaches the store's writer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from pleiad import charge, errors
from pleiad.charge import Charge
from pleiad.engine import items, patching
from pleiad.engine.beside import beside
from pleiad.engine.container import Container
from pleiad.engine.items import NO_CONDITIONS, Conditions, ItemAnswer, Key, NewItem
from pleiad.engine.patching import PlannedPatch
from pleiad.errors import PleiadError
from pleiad.partition.partition import Partition
from pleiad.query.pace import Pace
from pleiad.store.rows import (
    APPLIED,
    NEVER,
    NO_PRECONDITION,
    ItemKey,
    Mutation,
    Outcome,
    Precondition,
    Result,
    Row,
    Verb,
)

PENDING_LSN = -2
"""The LSN of a row that the transaction itself wrote, where no etag may name it."""
_STALE = frozenset({Result.EXISTS, Result.MISSING, Result.PRECONDITION_FAILED})
"""Refusals of what the transaction was allowed: somebody else changed the item meanwhile."""

ReadRows = Callable[[Sequence[ItemKey]], Awaitable[Sequence[Row | None]]]


class ItemVerb(Enum):
    """What one operation does; the values are the names clients send."""

    CREATE = "Create"
    UPSERT = "Upsert"
    REPLACE = "Replace"
    READ = "Read"
    PATCH = "Patch"
    DELETE = "Delete"

    # That of an enum is Python, and sets and dicts ask for it many times an operation.
    __hash__ = object.__hash__


VERBS = {
    ItemVerb.CREATE: Verb.CREATE,
    ItemVerb.UPSERT: Verb.UPSERT,
    ItemVerb.REPLACE: Verb.REPLACE,
    ItemVerb.PATCH: Verb.REPLACE,
    ItemVerb.DELETE: Verb.DELETE,
}


class ItemOperation(NamedTuple):
    """One operation: the item it names, the text of its body, and its key where it has one of its own."""

    kind: ItemVerb
    id: str = ""
    body: bytes = b""
    conditions: Conditions = NO_CONDITIONS
    key: Key | None = None
    value: dict[str, Any] | None = None
    """What the body of a write says, where it was read already and is plain (`item.body.is_plain`)."""


Answer = ItemAnswer | PleiadError
"""How one of several operations ended."""


def charged_ru(answer: Answer) -> float:
    """The request units of one operation, done or failed."""
    return (answer.charge_ru or 0.0) if isinstance(answer, PleiadError) else answer.charge.ru


class Plan(NamedTuple):
    """An operation with all that can be decided before any item is read."""

    operation: ItemOperation
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


async def plan_operation(container: Container, key: Key | None, operation: ItemOperation, pace: Pace) -> Plan:
    """Checks and measures an operation; what is wrong with it is kept in the plan until its turn."""
    demanded = items.precondition(container, operation.conditions)
    kind = operation.kind
    try:
        if kind is ItemVerb.PATCH:
            return Plan(operation, demanded, patch=await patching.plan_patch(container, operation.body, pace))
        if kind is ItemVerb.READ or kind is ItemVerb.DELETE:
            return Plan(operation, demanded)
        body, limits = operation.body, container.limits
        item = await beside(len(body), items.measure, container, body, limits, operation.value)
        container.key_of(item.value, key)
        if kind is not ItemVerb.REPLACE:
            operation = operation._replace(id=item.id)
        return Plan(operation, demanded, item)
    except PleiadError as error:
        return Plan(operation, demanded, error=error)


class AllowedOperation(NamedTuple):
    """An operation that the moment allows: a row to show, or the mutation (by its index) that will make one."""

    plan: Plan
    mutation: int | None
    row: Row | None = None
    item: NewItem | None = None
    not_modified: bool = False
    old: Row | None = None
    """The row that the operation replaces or deletes, as the transaction saw it."""


class Identity(NamedTuple):
    """Document number and LSN that a row goes by until the commit gives it its own."""

    number: int
    lsn: int


def _nameless() -> Identity:
    return Identity(0, PENDING_LSN)


class Refusal(NamedTuple):
    """A commit that the store refused for a reason that another attempt would meet again."""

    mutation: int
    error: PleiadError


class Transaction:
    """What one attempt sees of a logical partition and wants to change in it."""

    def __init__(
        self,
        container: Container,
        partition: Partition,
        epk: bytes,
        now: int,
        read_many: ReadRows,
        *,
        multiplier: int = 1,
        binds_every_write: bool = False,
        read_bytes_max: int | None = None,
        new_identity: Callable[[], Identity] = _nameless,
    ) -> None:
        self.container = container
        self.partition = partition
        self.epk = epk
        self.now = now
        self.multiplier = multiplier
        """What reads are multiplied by at the consistency level of the request."""
        self.mutations: list[Mutation] = []
        self.changed: dict[str, Row | None] = {}
        """The items this transaction changed, as it left them; None where it left none."""
        self.new_numbers: set[int] = set()
        """The document numbers that rows it created go by."""
        self._read_many = read_many
        self._rows: dict[str, Row | None] = {}
        self._writer_of: dict[str, int] = {}
        self._looked_into: set[str] = set()
        self._binds_every_write = binds_every_write
        self._read_bytes = 0
        self._read_bytes_max = read_bytes_max
        self._new_identity = new_identity

    async def commit(self) -> Sequence[Outcome] | Refusal | None:
        """Applies the changes: an outcome for each, or the one that was refused, or None when overtaken."""
        return await self._commit(self.mutations) if self.mutations else ()

    async def refusal_so_far(self) -> Sequence[Outcome] | Refusal | None:
        """The change that the store would refuse, if any, and nothing is applied; None when overtaken.

        Unique values are known to the store alone.
        """
        if not any(mutation.unique_values for mutation in self.mutations):
            return ()
        refused = Mutation(Verb.DELETE, self.epk, "", precondition=Precondition(lsn=NEVER))
        return await self._commit([*self.mutations, refused])

    async def _commit(self, mutations: Sequence[Mutation]) -> Sequence[Outcome] | Refusal | None:
        container = self.container
        if container.map.find(self.epk) is not self.partition:
            return None  # the rows have moved since they were read
        outcomes = await container.commit(self.partition, mutations, self.now, atomic=True)
        for index, outcome in enumerate(outcomes[: len(self.mutations)]):
            result = outcome.result
            if result in APPLIED or result is Result.ABANDONED:
                continue
            if result in _STALE:
                return None
            if result is Result.GONE:
                await container.successor(self.partition, self.epk)
                return None
            refusal = container.refusal_of(self.mutations[index], outcome)
            return Refusal(index, self._failed(refusal))
        return outcomes

    async def step(self, plan: Plan) -> AllowedOperation:
        """Does one operation as far as the transaction sees it; raises what the store would answer."""
        if plan.error is not None:
            raise plan.error
        operation = plan.operation
        row = await self.row(operation.id)
        if operation.kind is ItemVerb.READ:
            return self._read(plan, row)
        self._refuse(plan, row)
        if operation.kind is ItemVerb.DELETE:
            mutation = Mutation(Verb.DELETE, self.epk, operation.id)
            return AllowedOperation(plan, self._write(mutation, plan, row), old=row)
        item = plan.item
        if plan.patch is not None:
            assert row is not None
            self._looked_into.add(operation.id)
            item = await patching.apply_patch(self.container, self.partition, plan.patch, row)
            self._count(len(item.body))
        assert item is not None
        verb = VERBS[operation.kind]
        mutation = items.mutation_of(self.container, verb, item, self.epk, NO_PRECONDITION)
        if item.id != operation.id:
            if await self.row(item.id) is not None:
                raise self._failed(errors.ITEM_EXISTS(id=item.id))
            mutation = mutation._replace(id=operation.id, new_id=item.id)
        return AllowedOperation(plan, self._write(mutation, plan, row), item=item, old=row)

    def write_unseen(self, plan: Plan) -> AllowedOperation:
        """A write of an item that nothing else in the transaction names: the store alone decides on it."""
        operation, item = plan.operation, plan.item
        if item is None:
            mutation = Mutation(Verb.DELETE, self.epk, operation.id, precondition=plan.demanded)
        else:
            verb, renamed = VERBS[operation.kind], operation.id
            mutation = items.mutation_for(self.container, verb, item, self.epk, plan.demanded, renamed)
        self.mutations.append(mutation)
        return AllowedOperation(plan, len(self.mutations) - 1, item=item)

    def _read(self, plan: Plan, row: Row | None) -> AllowedOperation:
        operation = plan.operation
        if row is None:
            raise items.failed(
                self.container,
                self.partition,
                errors.ITEM_NOT_FOUND(id=operation.id),
                charge.read_missing(self.multiplier),
            )
        self._looked_into.add(operation.id)
        self._count(len(row.body))
        # The service takes the one condition of a read in a batch for the other: an item that matches is known already.
        unless = operation.conditions.if_none_match or operation.conditions.if_match
        not_modified = unless is not None and unless in ("*", self.container.etag(row))
        return AllowedOperation(plan, self._writer_of.get(operation.id), row, not_modified=not_modified)

    def _refuse(self, plan: Plan, row: Row | None) -> None:
        """Raises what the store would answer, were the row as the transaction sees it now."""
        kind, id = plan.operation.kind, plan.operation.id
        if kind is ItemVerb.CREATE:
            if row is not None:
                raise self._failed(errors.ITEM_EXISTS(id=id))
            return
        if row is None and kind is not ItemVerb.UPSERT:
            raise self._failed(errors.ITEM_NOT_FOUND(id=id))
        if not items.holds(plan.demanded, row):
            raise self._failed(errors.PRECONDITION_FAILED())

    def _write(self, mutation: Mutation, plan: Plan, row: Row | None) -> int:
        """Notes a change; the first one of an item binds the commit to what the transaction knows of it."""
        id = mutation.id
        if id not in self._writer_of:
            mutation = mutation._replace(precondition=self._known(id, plan, row))
        index = len(self.mutations)
        self.mutations.append(mutation)
        self._rows[id] = self.changed[id] = None
        self._writer_of[id] = index
        if mutation.verb is not Verb.DELETE:
            new_id = mutation.new_id if mutation.new_id is not None else id
            self._writer_of[new_id] = index
            identity = self._new_identity()
            if row is None:
                self.new_numbers.add(identity.number)
            self._rows[new_id] = self.changed[new_id] = Row(
                identity.number if row is None else row.number,
                self.epk,
                new_id,
                identity.lsn,
                self.now,
                mutation.ttl,
                mutation.size_bytes,
                mutation.terms,
                mutation.body,
            )
        return index

    def _known(self, id: str, plan: Plan, row: Row | None) -> Precondition:
        if row is None:
            is_bound = self._binds_every_write and plan.operation.kind is ItemVerb.UPSERT
            return Precondition(must_be_absent=True) if is_bound else plan.demanded
        is_bound = self._binds_every_write or id in self._looked_into
        return Precondition(lsn=row.lsn) if is_bound else plan.demanded

    async def look_up(self, ids: Iterable[str]) -> None:
        """Reads the rows of several items at once; those it changed already stay as it left them."""
        wanted = [id for id in dict.fromkeys(ids) if id not in self._rows]
        rows = await self._read_many([ItemKey(self.epk, id) for id in wanted])
        for id, row in zip(wanted, rows, strict=True):
            is_live = row is not None and not self.container.is_expired(row, self.now)
            self._rows[id] = row if is_live else None

    async def row(self, id: str) -> Row | None:
        """The row as the transaction sees it: as it was at its moment, or as its own operations left it."""
        if id not in self._rows:
            await self.look_up((id,))
        return self._rows[id]

    def _count(self, size_bytes: int) -> None:
        self._read_bytes += size_bytes
        limit = self._read_bytes_max
        if limit is not None and self._read_bytes > limit:
            raise self._failed(errors.BATCH_RESPONSE_TOO_LARGE(limit=limit))

    def _failed(self, error: PleiadError) -> PleiadError:
        return items.failed(self.container, self.partition, error, charge.failed())


def step_charge(container: Container, step: AllowedOperation) -> Charge:
    """What one operation costs, by the rows the transaction knows."""
    if step.row is not None:
        return charge.read(step.row.size_bytes)
    if step.item is None:
        assert step.old is not None
        return charge.delete(step.old.size_bytes, step.old.terms)
    patched = 0 if step.plan.patch is None else step.plan.patch.patch.properties
    return items.write_charge(container, step.old, step.item, patched)
