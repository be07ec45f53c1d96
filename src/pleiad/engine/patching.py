"""Patches of items: operations on some properties of an item, applied as one change."""

from __future__ import annotations

from typing import NamedTuple

from pleiad import charge, errors
from pleiad.engine.beside import beside
from pleiad.engine.container import Container
from pleiad.engine.items import (
    Conditions,
    ItemAnswer,
    Key,
    NewItem,
    committed,
    failed,
    holds,
    is_expired,
    measure,
    moved,
    mutation_of,
    precondition,
    replacing_charge,
)
from pleiad.engine.patch_turns import patch_turn
from pleiad.errors import PleiadError
from pleiad.item import body as bodies
from pleiad.item import patch as patches
from pleiad.partition.governor import NORMAL, Lane
from pleiad.partition.partition import Partition
from pleiad.query import Query, compile_condition, compile_turn
from pleiad.query.pace import Pace
from pleiad.store.rows import Precondition, Row, Verb
from pleiad.store.segments import SegmentDroppedError

_ATTEMPTS = 100


class PlannedPatch(NamedTuple):
    """A patch ready to be applied: its operations, and its condition compiled, with the pace of the request."""

    patch: patches.Patch
    condition: Query | None
    pace: Pace
    size_bytes: int


async def patch(
    container: Container, id: str, raw: bytes, key: Key | None, conditions: Conditions, lane: Lane = NORMAL
) -> ItemAnswer:
    """Applies patch operations to an item as one change."""
    with Pace.of_request(container.limits) as pace:
        planned = await plan_patch(container, raw, pace)
        return await patch_as_planned(container, id, planned, key, conditions, lane)


async def patch_as_planned(
    container: Container,
    id: str,
    planned: PlannedPatch,
    key: Key | None,
    conditions: Conditions,
    lane: Lane = NORMAL,
) -> ItemAnswer:
    """Reads the item, changes it and puts it back only if nobody else changed it meanwhile; then it starts over.

    Patches of one item in this process wait for each other, so a counter under load makes progress on every turn.
    """
    epk = container.epk_of(container.full_key(key))
    demanded = precondition(container, conditions)
    with container.map.find(epk).turn(lane) as turn:
        async with patch_turn(container.resource.rid, epk, id):
            answer = await _patch(container, planned, demanded, epk, id)
        turn.ru = answer.charge.ru
    return answer


async def _patch(
    container: Container, planned: PlannedPatch, demanded: Precondition, epk: bytes, id: str
) -> ItemAnswer:
    """Reads, changes and puts back until nobody came in between."""
    for _ in range(_ATTEMPTS):
        partition = container.map.find(epk)
        try:
            row = await partition.read(epk, id)
        except SegmentDroppedError:
            moved(container, partition, epk)
            continue
        if row is None or is_expired(container, row):
            raise failed(container, partition, errors.ITEM_NOT_FOUND(id=id), charge.failed())
        if not holds(demanded, row):
            raise failed(container, partition, errors.PRECONDITION_FAILED(), charge.failed())
        item = await apply_patch(container, partition, planned, row)
        mutation = mutation_of(container, Verb.REPLACE, item, epk, Precondition(lsn=row.lsn))
        try:
            partition, outcome = await committed(container, mutation)
        except PleiadError as error:
            if error.row in (errors.PRECONDITION_FAILED, errors.ITEM_NOT_FOUND):
                continue
            raise
        cost = await replacing_charge(container, row, item, planned.patch.properties)
        return ItemAnswer(partition, cost, outcome.row, old=row)
    raise failed(container, partition, errors.RETRY_WITH(), charge.failed())


async def plan_patch(container: Container, raw: bytes, pace: Pace) -> PlannedPatch:
    """The patch in a request body, checked before any item is read."""
    parsed = await beside(len(raw), patches.parse_patch, raw, container.limits, container.key.path_steps)
    size_bytes = len(raw)
    if parsed.condition is None:
        return PlannedPatch(parsed, None, pace, size_bytes)
    async with compile_turn(pace, parsed.condition):
        condition = await pace.run(compile_condition, parsed.condition, container.limits)
    return PlannedPatch(parsed, condition, pace, size_bytes)


async def apply_patch(container: Container, partition: Partition, planned: PlannedPatch, row: Row) -> NewItem:
    """The item a patch makes of a row, unless its condition does not hold."""
    before = planned.pace.steps
    if planned.condition is not None:
        seen, context = bodies.load(container.render(row)), container.condition_context(planned.pace)
        if not await planned.pace.run(planned.condition.matches, seen, {}, context):
            cost = charge.failed() + charge.evaluation(planned.pace.steps - before)
            raise failed(container, partition, errors.PATCH_CONDITION_FAILED(), cost)
    steps = planned.pace.steps - before
    item = await beside(len(row.body) + planned.size_bytes, _patched, container, planned, row)
    return item._replace(condition_steps=steps)


def _patched(container: Container, planned: PlannedPatch, row: Row) -> NewItem:
    patched = bodies.parse_exact(row.body)
    patches.change(patched, planned.patch)
    return measure(container, bodies.dump_exact(patched), container.limits)
