"""Patches of items: operations on some properties of an item, applied as one change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import NamedTuple

from pleiad import charge, errors
from pleiad.engine.beside import LARGE_BYTES, beside
from pleiad.engine.container import Container
from pleiad.engine.items import (
    Begun,
    ChangedTerms,
    Conditions,
    ItemAnswer,
    Key,
    NewItem,
    begin,
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
from pleiad.engine.patch_turns import patch_turns
from pleiad.errors import PleiadError
from pleiad.item import body as bodies
from pleiad.item import patch as patches
from pleiad.partition.governor import NORMAL, Lane
from pleiad.partition.partition import Partition, Turn
from pleiad.query import Query, compile_condition, compile_turn
from pleiad.query.pace import Pace
from pleiad.store.rows import NO_PRECONDITION, Mutation, Outcome, Precondition, Row, Verb
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
    partition = container.map.find(epk)
    partition.admit(lane)
    return await _in_turn(container, partition, planned, demanded, epk, id, lane)


async def _in_turn(
    container: Container,
    partition: Partition,
    planned: PlannedPatch,
    demanded: Precondition,
    epk: bytes,
    id: str,
    lane: Lane,
    first: _Attempt | None = None,
) -> ItemAnswer:
    """The rest of it once its partition has admitted it, and perhaps begun to commit a first attempt."""
    with Turn(partition.governor, lane) as turn:
        async with patch_turns.turn(container.resource.rid, epk, id):
            answer = await _patch(container, planned, demanded, epk, id, first)
        turn.ru = answer.charge.ru
    return answer


class _Attempt(NamedTuple):
    """What a patch makes of a row, to be committed unless somebody has changed the row meanwhile."""

    partition: Partition
    row: Row
    item: NewItem
    mutation: Mutation
    commit: Awaitable[Sequence[Outcome]] | None = None


def begin_patch(
    container: Container, id: str, raw: bytes, key: Key, is_alone: bool
) -> Begun | PleiadError | None:
    """The patch of an item that is at hand and not large, as `items.begin_put` begins a put.

    None, and nothing has happened, where the patch has a condition, where it has to wait for its turn, or where there
    is no such item.
    """
    parsed = patches.parse_patch(raw, container.limits, container.key.path_steps)
    epk, partition = container.place_of(key)
    row = None if parsed.condition is not None else partition.read_at_once(epk, id)
    if not isinstance(row, Row) or is_expired(container, row) or len(row.body) + len(raw) > LARGE_BYTES:
        return None
    item = _patched(container, parsed, row)
    mutation = mutation_of(container, Verb.REPLACE, item, epk, Precondition(lsn=row.lsn))
    place = container.resource.rid, epk, id
    if not patch_turns.take(place):
        return None
    later = partial(_patch_later, parsed, row, len(raw))
    begun = begin(container, partition, item, mutation, is_alone, later, parsed.properties)
    commit = None if isinstance(begun, PleiadError) else begun.commit
    if isinstance(commit, asyncio.Future) and not commit.done():
        commit.add_done_callback(lambda _: patch_turns.leave(place))
    else:
        patch_turns.leave(place)
    return begun


async def _patch_later(parsed: patches.Patch, row: Row, size_bytes: int, begun: Begun) -> ItemAnswer:
    """The end of a patch that is more than to wait and to tell."""
    container, partition, item, mutation, commit, _, _ = begun
    assert item is not None
    first = _Attempt(partition, row, item, mutation, commit)
    epk, id = mutation.epk, mutation.id
    with Pace.of_request(container.limits) as pace:
        planned = PlannedPatch(parsed, None, pace, size_bytes)
        return await _in_turn(container, partition, planned, NO_PRECONDITION, epk, id, NORMAL, first)


async def _patch(
    container: Container,
    planned: PlannedPatch,
    demanded: Precondition,
    epk: bytes,
    id: str,
    first: _Attempt | None,
) -> ItemAnswer:
    """Reads, changes and puts back until nobody came in between."""
    for number in range(_ATTEMPTS):
        attempt = first if number == 0 and first else await _attempt(container, planned, demanded, epk, id)
        if attempt is None:
            continue
        partition, row, item, mutation, commit = attempt
        try:
            partition, outcome = await committed(container, mutation, partition, commit)
        except PleiadError as error:
            if error.row in (errors.PRECONDITION_FAILED, errors.ITEM_NOT_FOUND):
                continue
            raise
        cost = await replacing_charge(container, row, item, planned.patch.properties)
        return ItemAnswer(partition, cost, outcome.row, old=row)
    raise failed(container, container.map.find(epk), errors.RETRY_WITH(), charge.failed())


async def _attempt(
    container: Container, planned: PlannedPatch, demanded: Precondition, epk: bytes, id: str
) -> _Attempt | None:
    """An attempt at the row as it is now; None where its partition has just moved."""
    partition = container.map.find(epk)
    try:
        row = await partition.read(epk, id)
    except SegmentDroppedError:
        moved(container, partition, epk)
        return None
    if row is None or is_expired(container, row):
        raise failed(container, partition, errors.ITEM_NOT_FOUND(id=id), charge.failed())
    if not holds(demanded, row):
        raise failed(container, partition, errors.PRECONDITION_FAILED(), charge.failed())
    item = await apply_patch(container, partition, planned, row)
    mutation = mutation_of(container, Verb.REPLACE, item, epk, Precondition(lsn=row.lsn))
    return _Attempt(partition, row, item, mutation)


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
    item = await beside(len(row.body) + planned.size_bytes, _patched, container, planned.patch, row)
    return item._replace(condition_steps=steps)


def _patched(container: Container, patch: patches.Patch, row: Row) -> NewItem:
    value = bodies.load(row.body)
    patched = bodies.exact(row.body, value)
    if patched is not value:
        patches.change(patched, patch)
        return measure(container, bodies.dump_exact(patched), container.limits)
    names = {operation.steps[0] for operation in patch.operations}
    names.update([operation.source[0] for operation in patch.operations if operation.source is not None])
    before = patches.members(patched, names)
    patches.change(patched, patch)
    text = bodies.dump_if_plain(patched, container.limits)
    if text is None:
        return measure(container, bodies.dump_exact(patched), container.limits)
    item = measure(container, text, container.limits, patched)
    removed, added = container.terms.changed(before, patches.members(patched, names))
    return item._replace(changed=ChangedTerms(row.body, removed, added))
