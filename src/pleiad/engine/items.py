"""Writes of one item, create, upsert, replace and delete, and what reads and patches of one share with them.

Each operation finds the one physical partition its key belongs to, is admitted by its governor, changes or reads one
item there, and says what that cost. Failures carry the charge and the session token too, because clients learn from
both. A request that is wrong in itself is refused before it is admitted, and costs nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from pleiad import charge, errors
from pleiad.charge import Charge
from pleiad.engine.beside import LARGE_BYTES, beside
from pleiad.engine.container import Container
from pleiad.engine.steady import over_moves
from pleiad.errors import PleiadError, Reason
from pleiad.item import body as bodies
from pleiad.item.id import check_item_id, is_plain_id
from pleiad.item.numbers import WHOLE_FRACTION, in_shortest_form
from pleiad.item.ttl import check_item_ttl
from pleiad.keys.value import KeyValue
from pleiad.limits import Limits
from pleiad.partition.governor import NORMAL, Lane
from pleiad.partition.partition import Partition, Turn
from pleiad.store.rows import (
    APPLIED,
    NEVER,
    NO_PRECONDITION,
    Mutation,
    Outcome,
    Precondition,
    Result,
    Row,
    Verb,
)
from pleiad.store.segments import SegmentDroppedError

_new = tuple.__new__

Key = tuple[KeyValue, ...]


class Conditions(NamedTuple):
    """What a request demands of the item's version, in the words of its etag."""

    if_match: str | None = None
    if_none_match: str | None = None


NO_CONDITIONS = Conditions()


class ItemAnswer(NamedTuple):
    """The end of an item operation: where it happened, what it cost, and the item as it is now."""

    partition: Partition
    charge: Charge
    row: Row | None = None
    created: bool = False
    not_modified: bool = False
    old: Row | None = None
    """The row that it replaced or deleted."""


Writing = Coroutine[Any, Any, ItemAnswer]


class NewItem(NamedTuple):
    """An item from a client, checked and measured."""

    id: str
    value: dict[str, Any]
    body: bytes
    size_bytes: int
    terms: int
    ttl: int | None
    condition_steps: int = 0
    """What the condition of the patch that made it took."""
    changed: ChangedTerms | None = None
    """What a patch knows of the row that it was made from."""


class ChangedTerms(NamedTuple):
    """How many index terms an item in the place of one with this body removes, and how many it adds."""

    body: bytes
    removed: int
    added: int


def create(container: Container, raw: bytes, key: Key | None, lane: Lane = NORMAL) -> Writing:
    """Creates an item; its id must be new in its logical partition."""
    return _write(container, Verb.CREATE, raw, key, NO_CONDITIONS, lane)


class Begun(NamedTuple):
    """A write of one item that was admitted, and of which little is left but to wait for the store."""

    container: Container
    partition: Partition
    item: NewItem | None
    """What is put there; None where the item is deleted."""
    mutation: Mutation
    commit: Awaitable[Sequence[Outcome]] | None
    """None where it could not be begun."""
    later: Later
    patched: int
    """How many properties a patch names."""


Later = Callable[[Begun], Writing]
"""The end of a write that is more than to wait and to tell."""


def begin_put(
    container: Container, verb: Verb, raw: bytes, key: Key, is_alone: bool, id: str | None = None
) -> Begun | PleiadError:
    """Puts an item that is not large: what `end_write` ends when its commit is done, where it is no more than that.

    `is_alone` says that nobody else asks for anything now, so that the store need not spare others. What is wrong with
    the request itself is raised before anything has happened; gives the error of a partition that lets nobody in.
    """
    item = measure(container, raw, container.limits)
    epk, partition = container.place_of_item(item.value, key)
    mutation = mutation_for(container, verb, item, epk, NO_PRECONDITION, id)
    return begin(container, partition, item, mutation, is_alone, _put_later)


def begin_delete(container: Container, id: str, key: Key, is_alone: bool) -> Begun | PleiadError:
    """The same for the delete of an item."""
    epk, partition = container.place_of(key)
    return begin(container, partition, None, Mutation(Verb.DELETE, epk, id), is_alone, _delete_later)


def begin(
    container: Container,
    partition: Partition,
    item: NewItem | None,
    mutation: Mutation,
    is_alone: bool,
    later: Later,
    patched: int = 0,
) -> Begun | PleiadError:
    """Has a write admitted and its commit begun."""
    try:
        partition.admit()
    except PleiadError as error:
        return error
    try:
        now = int(time.time())
        commit = partition.begin_commit(container.write(partition, (mutation,), now, False, is_alone))
    except Exception:  # which it is again in `later`, where something may be done about it
        commit = None
    return _new(Begun, (container, partition, item, mutation, commit, later, patched))


def end_write(begun: Begun) -> ItemAnswer | None:
    """The end of a write whose commit has ended; None where that is more than to tell, for `Begun.later`."""
    container, partition, item, _, commit, _, patched = begun
    if not isinstance(commit, asyncio.Future) or commit.cancelled() or commit.exception() is not None:
        return None
    (outcome,) = partition.noted(commit.result())
    result, _, row, old, _ = outcome
    if item is None:
        if result is not Result.DELETED or old is None:
            return None
        cost = charge.delete(old.size_bytes, old.terms)
    elif result is Result.CREATED:
        cost = charge.create(item.size_bytes, item.terms)
    elif result is Result.REPLACED and old is not None and len(old.body) + len(item.body) <= LARGE_BYTES:
        cost = write_charge(container, old, item, patched)
    else:
        return None
    partition.spend(cost.ru)
    return _new(ItemAnswer, (partition, cost, row, result is Result.CREATED, False, old))


def _put_later(begun: Begun) -> Writing:
    assert begun.item is not None
    return _put(begun.container, begun.partition, begun.item, begun.mutation, NORMAL, begun.commit)


def _delete_later(begun: Begun) -> Writing:
    return _delete(begun.container, begun.partition, begun.mutation, NORMAL, begun.commit)


def upsert(
    container: Container, raw: bytes, key: Key | None, conditions: Conditions, lane: Lane = NORMAL
) -> Writing:
    """Creates the item, or replaces the one of the same id in the same logical partition."""
    return _write(container, Verb.UPSERT, raw, key, conditions, lane)


async def replace(
    container: Container, id: str, raw: bytes, key: Key | None, conditions: Conditions, lane: Lane = NORMAL
) -> ItemAnswer:
    """Replaces an existing item; a body with another id renames it, its partition key cannot change."""
    try:
        return await _write(container, Verb.REPLACE, raw, key, conditions, lane, id)
    except PleiadError as error:
        if error.reason is Reason.INVALID and key is not None:
            await _check_exists(container, id, key)
        raise


@over_moves
async def _check_exists(container: Container, id: str, key: Key) -> None:
    """Whether there is an item to replace comes before what is wrong with its replacement."""
    epk = container.epk_of(container.full_key(key))
    partition = container.map.find(epk)
    row = await partition.read(epk, id)
    if row is None or is_expired(container, row):
        raise failed(container, partition, errors.ITEM_NOT_FOUND(id=id), charge.failed())


async def delete(
    container: Container, id: str, key: Key | None, conditions: Conditions, lane: Lane = NORMAL
) -> ItemAnswer:
    """Deletes an item."""
    epk, partition = container.place_of(key)
    mutation = Mutation(Verb.DELETE, epk, id, precondition=precondition(container, conditions))
    partition.admit(lane)
    return await _delete(container, partition, mutation, lane)


async def _delete(
    container: Container,
    partition: Partition,
    mutation: Mutation,
    lane: Lane,
    begun: Awaitable[Sequence[Outcome]] | None = None,
) -> ItemAnswer:
    """The rest of it once its partition has admitted it, and perhaps begun to commit it."""
    with Turn(partition.governor, lane) as turn:
        partition, outcome = await committed(container, mutation, partition, begun)
        assert outcome.old is not None
        cost = charge.delete(outcome.old.size_bytes, outcome.old.terms)
        turn.ru = cost.ru
    return ItemAnswer(partition, cost, old=outcome.old)


def precondition(container: Container, conditions: Conditions) -> Precondition:
    """The store's form of If-Match and If-None-Match."""
    if conditions.if_match is None and conditions.if_none_match is None:
        return NO_PRECONDITION
    lsn = not_lsn = None
    if conditions.if_match is not None and conditions.if_match != "*":
        found = container.lsn_of(conditions.if_match)
        lsn = NEVER if found is None else found
    if conditions.if_none_match is not None and conditions.if_none_match != "*":
        not_lsn = container.lsn_of(conditions.if_none_match)
    return Precondition(lsn, not_lsn, conditions.if_match == "*", conditions.if_none_match == "*")


def _write(
    container: Container,
    verb: Verb,
    raw: bytes,
    key: Key | None,
    conditions: Conditions,
    lane: Lane,
    id: str | None = None,
) -> Writing:
    if len(raw) > LARGE_BYTES:
        return _write_large(container, verb, raw, key, conditions, lane, id)
    return put(container, verb, measure(container, raw, container.limits), key, conditions, lane, id)


async def _write_large(
    container: Container,
    verb: Verb,
    raw: bytes,
    key: Key | None,
    conditions: Conditions,
    lane: Lane,
    id: str | None,
) -> ItemAnswer:
    """The same, measured beside the loop."""
    item = await beside(len(raw), measure, container, raw, container.limits)
    return await put(container, verb, item, key, conditions, lane, id)


async def put(
    container: Container,
    verb: Verb,
    item: NewItem,
    key: Key | None,
    conditions: Conditions,
    lane: Lane,
    id: str | None = None,
) -> ItemAnswer:
    """Puts a measured item into its logical partition; `id` is the one it replaces, which a body may rename."""
    epk, partition = container.place_of_item(item.value, key)
    mutation = mutation_for(container, verb, item, epk, precondition(container, conditions), id)
    partition.admit(lane)
    return await _put(container, partition, item, mutation, lane)


async def _put(
    container: Container,
    partition: Partition,
    item: NewItem,
    mutation: Mutation,
    lane: Lane,
    begun: Awaitable[Sequence[Outcome]] | None = None,
) -> ItemAnswer:
    """The rest of it once its partition has admitted it, and perhaps begun to commit it."""
    with Turn(partition.governor, lane) as turn:
        partition, outcome = await committed(container, mutation, partition, begun)
        if outcome.old is None:
            answer = ItemAnswer(partition, charge.create(item.size_bytes, item.terms), outcome.row, True)
        else:
            answer = await written(container, partition, item, mutation, outcome)
        turn.ru = answer.charge.ru
    return answer


async def written(
    container: Container, partition: Partition, item: NewItem, mutation: Mutation, outcome: Outcome | None
) -> ItemAnswer:
    """The answer for a write that ended like that; without an outcome it is committed now, alone."""
    if outcome is None:
        partition, outcome = await committed(container, mutation, partition)
    elif outcome.result not in APPLIED:
        raise failed(container, partition, container.refusal_of(mutation, outcome), charge.failed())
    if outcome.old is None:
        cost = charge.create(item.size_bytes, item.terms)
    else:
        cost = await replacing_charge(container, outcome.old, item)
    return ItemAnswer(partition, cost, outcome.row, created=outcome.old is None, old=outcome.old)


def write_charge(container: Container, old: Row | None, item: NewItem, patched: int = 0) -> Charge:
    """What it costs to put an item in the place of a row; `patched` counts the properties a patch names."""
    if old is None:
        return charge.create(item.size_bytes, item.terms)
    removed = added = 0
    if item.changed is not None and item.changed.body == old.body:
        _, removed, added = item.changed
    elif old.body != item.body:
        removed, added = container.terms.changed(bodies.load(old.body), item.value)
    if patched:
        cost = charge.patch(old.size_bytes, item.size_bytes, removed, added, patched)
        return cost + charge.evaluation(item.condition_steps) if item.condition_steps else cost
    return charge.replace(old.size_bytes, item.size_bytes, removed, added)


async def replacing_charge(container: Container, old: Row | None, item: NewItem, patched: int = 0) -> Charge:
    """The same beside the loop where the two are large."""
    if old is None:
        return write_charge(container, old, item, patched)
    return await beside(len(old.body) + len(item.body), write_charge, container, old, item, patched)


def measure(container: Container, raw: bytes, limits: Limits, value: dict[str, Any] | None = None) -> NewItem:
    """Checks an item from a client and measures what storing it takes.

    `value` is what the text says, where it was read already and `bodies.is_plain` holds.
    """
    if len(raw) > limits.item_bytes:
        raise errors.ITEM_TOO_LARGE(size=len(raw), limit=limits.item_bytes)
    written = raw
    if value is None:
        raw, value, written = bodies.read(raw, limits)
    id = value.get("id")
    if id.__class__ is not str or len(id) > limits.item_id_bytes or is_plain_id(id) is None:
        id = check_item_id(id, limits)
    ttl = check_item_ttl(value, limits) if "ttl" in value else None
    stored = raw if raw is written else raw.strip()
    if not value.keys().isdisjoint(bodies.SYSTEM_PROPERTIES):
        stored = bodies.stored_body(raw, value)
        # A new one, since the value of the caller may be measured again.
        value = {name: each for name, each in value.items() if name not in bodies.SYSTEM_PROPERTIES}
        written = bodies.dump(value)
    if stored != written or (written.find(b".0") >= 0 and WHOLE_FRACTION.search(written) is not None):
        shortest = in_shortest_form(stored, value, container.key)
        if shortest is not stored:
            stored, value = shortest, bodies.load(shortest)
            written = bodies.dump(value)
    return _new(NewItem, (id, value, stored, len(written), container.terms.count(value), ttl, 0, None))


def mutation_of(
    container: Container, verb: Verb, item: NewItem, epk: bytes, demanded: Precondition
) -> Mutation:
    """The change that puts an item into the store."""
    unique = container.unique_values(item.value) if container.definition.unique_keys else ()
    id, _, body, size_bytes, terms, ttl, _, _ = item
    terms += len(unique)
    return _new(Mutation, (verb, epk, id, body, size_bytes, terms, ttl, unique, demanded, None))


def mutation_for(
    container: Container, verb: Verb, item: NewItem, epk: bytes, demanded: Precondition, id: str | None
) -> Mutation:
    """The same where an item may replace one of another id."""
    mutation = mutation_of(container, verb, item, epk, demanded)
    return mutation if id is None or id == item.id else mutation._replace(id=id, new_id=item.id)


async def committed(
    container: Container,
    mutation: Mutation,
    partition: Partition | None = None,
    begun: Awaitable[Sequence[Outcome]] | None = None,
) -> tuple[Partition, Outcome]:
    """Commits one mutation where it belongs; a refusal becomes its row of the error table.

    A partition that closed meanwhile has applied nothing, so the one that took its place gets the mutation.
    """
    now = int(time.time())
    partition = partition or container.map.find(mutation.epk)
    while True:
        try:
            if begun is None:
                begun = partition.begin_commit(container.write(partition, (mutation,), now))
            (outcome,) = partition.noted(await begun)
        except SegmentDroppedError:
            partition = moved(container, partition, mutation.epk)
            begun = None
            continue
        begun = None
        result = outcome.result
        if result is Result.CREATED or result is Result.REPLACED or result is Result.DELETED:
            return partition, outcome
        if result is not Result.GONE:
            break
        partition = await container.successor(partition, mutation.epk)
    raise failed(container, partition, container.refusal_of(mutation, outcome), charge.failed())


def moved(container: Container, partition: Partition, epk: bytes) -> Partition:
    """Where the rows of a dropped segment are now; raises the error being handled when they are nowhere else."""
    successor = container.map.find(epk)
    if successor is partition:
        raise
    return successor


def failed(container: Container, partition: Partition, error: PleiadError, cost: Charge) -> PleiadError:
    """The same error with what clients learn from failures too: the charge and where the partition stands."""
    error.charge_ru = cost.ru
    error.range_id = partition.range_id
    error.container_number = container.resource.number
    error.lsn = partition.lsn
    return error


def is_expired(container: Container, row: Row) -> bool:
    return container.default_ttl is not None and container.is_expired(row, time.time())


def holds(demanded: Precondition, row: Row | None) -> bool:
    """Whether a precondition holds of a row, as the store decides it; without a row only an upsert asks."""
    if row is None:
        return not demanded.must_exist
    if demanded.must_be_absent or (demanded.lsn is not None and demanded.lsn != row.lsn):
        return False
    return demanded.not_lsn is None or demanded.not_lsn != row.lsn
