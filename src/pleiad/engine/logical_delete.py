"""Deleting a whole logical partition."""

from __future__ import annotations

import time

from pleiad import charge
from pleiad.charge import Charge
from pleiad.engine.container import Container
from pleiad.engine.items import ItemAnswer, Key
from pleiad.engine.steady import over_moves
from pleiad.keys.range import prefix_range
from pleiad.partition.governor import NORMAL, Lane
from pleiad.store.rows import Mutation, Result, Verb

_DELETE_CHUNK = 200


@over_moves
async def delete_partition_key(container: Container, key: Key | None, lane: Lane = NORMAL) -> ItemAnswer:
    """Deletes every item of one logical partition; paid from what no request uses, so that none has to wait for it."""
    full = container.full_key(key)
    span = prefix_range(full, container.key)
    partition = container.map.find(span.min)
    partition.admit(lane)
    cost = Charge(())
    while rows := await partition.scan(span, 0, _DELETE_CHUNK):
        mutations = [Mutation(Verb.DELETE, row.epk, row.id) for row in rows]
        outcomes = await container.commit(partition, mutations, int(time.time()))
        if outcomes[0].result is Result.GONE:
            partition = await container.successor(partition, span.min)
            continue
        for row in rows:
            cost += charge.delete(row.size_bytes, row.terms)
    partition.governor.spend_spare(cost.ru)
    return ItemAnswer(partition, cost)
