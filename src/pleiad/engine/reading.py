"""The read of one item by its key and id, at once where the store has it at hand."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from typing import Any

from pleiad import charge, errors
from pleiad.engine import session
from pleiad.engine.container import Container
from pleiad.engine.items import NO_CONDITIONS, Conditions, ItemAnswer, Key, failed, moved
from pleiad.engine.session import Session
from pleiad.partition.governor import NORMAL, Lane
from pleiad.partition.partition import Partition
from pleiad.store.rows import Row
from pleiad.store.segments import WAIT, SegmentDroppedError

_new = tuple.__new__

Reading = ItemAnswer | Coroutine[Any, Any, ItemAnswer]
"""The end of a read, or what has to be waited for."""


async def read(
    container: Container,
    id: str,
    key: Key | None,
    conditions: Conditions = NO_CONDITIONS,
    seen: Session = (),
    multiplier: int = 1,
    lane: Lane = NORMAL,
) -> ItemAnswer:
    """Reads one item by its key and id."""
    answer = read_soon(container, id, key, conditions, seen, multiplier, lane)
    return answer if isinstance(answer, ItemAnswer) else await answer


def read_soon(
    container: Container,
    id: str,
    key: Key | None,
    conditions: Conditions = NO_CONDITIONS,
    seen: Session = (),
    multiplier: int = 1,
    lane: Lane = NORMAL,
) -> Reading:
    """The same, at once where the store has the item at hand."""
    epk, partition = container.place_of(key)
    if seen:
        session.check(seen, partition, container.resource.number)
    row = partition.admit_read(epk, id, lane)
    if row.__class__ is Row and conditions is NO_CONDITIONS and container.default_ttl is None:
        # What nearly every read comes to.
        cost = charge.read(row.size_bytes, multiplier)
        partition.spend(cost.ru, lane)
        return _new(ItemAnswer, (partition, cost, row, False, False, None))
    if row is WAIT:
        return _read_later(container, id, epk, partition, conditions, multiplier, lane)
    return _read_answer(container, id, partition, row, conditions, multiplier, lane)


async def _read_later(
    container: Container,
    id: str,
    epk: bytes,
    partition: Partition,
    conditions: Conditions,
    multiplier: int,
    lane: Lane,
) -> ItemAnswer:
    """The end of a read that was admitted and has to wait for its row, or to look for it where it is now."""
    while True:
        try:
            row = await partition.read(epk, id)
            break
        except SegmentDroppedError:
            partition = moved(container, partition, epk)
    return _read_answer(container, id, partition, row, conditions, multiplier, lane)


def _read_answer(
    container: Container,
    id: str,
    partition: Partition,
    row: Row | None,
    conditions: Conditions,
    multiplier: int,
    lane: Lane,
) -> ItemAnswer:
    if row is None or (container.default_ttl is not None and container.is_expired(row, time.time())):
        cost = charge.read_missing(multiplier)
        partition.spend(cost.ru, lane)
        raise failed(container, partition, errors.ITEM_NOT_FOUND(id=id), cost)
    cost = charge.read(row.size_bytes, multiplier)
    partition.spend(cost.ru, lane)
    unless = conditions.if_none_match
    same_version = unless is not None and unless in ("*", container.etag(row))
    return ItemAnswer(partition, cost, row, False, same_version)
