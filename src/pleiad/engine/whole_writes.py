"""Whole items that one request writes, checked and measured, with the physical partitions they go to.

Batches and bulk begin with it where they have nothing but creates, upserts and replaces.

Invariants:
- nothing has happened when an item is found to be wrong;
- the writes of a partition stand in the order of the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pleiad import charge
from pleiad.engine import items
from pleiad.engine.beside import LARGE_BYTES, beside
from pleiad.engine.container import Container
from pleiad.engine.items import NO_CONDITIONS, ItemAnswer, Key, NewItem
from pleiad.engine.transaction import VERBS, ItemOperation, ItemVerb
from pleiad.errors import PleiadError
from pleiad.partition.partition import Partition
from pleiad.query.pace import Pace
from pleiad.store.rows import NO_PRECONDITION, Mutation, Outcome, Result

_new = tuple.__new__
_KINDS = frozenset({ItemVerb.CREATE, ItemVerb.UPSERT, ItemVerb.REPLACE})


class Write(NamedTuple):
    """The write of one item, and its place in the request."""

    position: int
    item: NewItem
    mutation: Mutation


Groups = dict[Partition, list[Write]]


def are_whole_writes(operations: Sequence[ItemOperation]) -> bool:
    """Whether each of them writes a whole item."""
    return _KINDS.issuperset([each.kind for each in operations])


async def planned(
    container: Container,
    operations: Sequence[ItemOperation],
    keys: Sequence[Key | None],
    wrong: dict[int, PleiadError],
    pace: Pace,
) -> Groups:
    """What is to be written to each physical partition; what is wrong in itself goes to `wrong`, by its position."""
    groups: Groups = {}
    limits = container.limits
    worked_bytes = 0
    group: list[Write] = []
    latest: Partition | None = None
    for index, (operation, key) in enumerate(zip(operations, keys, strict=True)):
        body = operation.body
        try:
            if len(body) > LARGE_BYTES:
                item = await beside(len(body), items.measure, container, body, limits, operation.value)
            else:
                item = items.measure(container, body, limits, operation.value)
                worked_bytes += len(body)
            epk, partition = container.place_of_item(item.value, key)
        except PleiadError as error:
            wrong[index] = error
        else:
            if partition is not latest:
                latest, group = partition, groups.setdefault(partition, [])
            group.append(_new(Write, (index, item, _mutation(container, operation, item, epk))))
        if worked_bytes > LARGE_BYTES:
            worked_bytes = 0
            await pace.rest()
    return groups


def _mutation(container: Container, operation: ItemOperation, item: NewItem, epk: bytes) -> Mutation:
    kind, id, _, conditions, _, _ = operation
    verb = VERBS[kind]
    if kind is ItemVerb.CREATE:
        return items.mutation_of(container, verb, item, epk, NO_PRECONDITION)
    demanded = NO_PRECONDITION if conditions is NO_CONDITIONS else items.precondition(container, conditions)
    return items.mutation_for(container, verb, item, epk, demanded, id if kind is ItemVerb.REPLACE else None)


def created(partition: Partition, item: NewItem, outcome: Outcome | PleiadError | None) -> ItemAnswer | None:
    """The answer of a write that has made a new item; None of any other."""
    if not isinstance(outcome, Outcome) or outcome.result is not Result.CREATED:
        return None
    cost = charge.create(item.size_bytes, item.terms)
    return _new(ItemAnswer, (partition, cost, outcome.row, True, False, None))
