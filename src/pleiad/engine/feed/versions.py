"""The change feed, all versions and deletes: every change of every item, for as long as the container keeps them.

A place carries the time up to which everything before it was read. When that is longer ago than the container keeps
versions, the place is refused: changes might be missing behind it, and nobody would know.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from pleiad import errors
from pleiad.charge import Charge
from pleiad.engine.container import Container
from pleiad.engine.feed import place as places
from pleiad.engine.feed.filter import ChangeFilter
from pleiad.engine.feed.place import Walk
from pleiad.engine.steady import over_moves
from pleiad.keys.range import EpkRange
from pleiad.partition.governor import NORMAL, Lane
from pleiad.partition.partition import Partition
from pleiad.store.rows import Version


@dataclass(frozen=True, slots=True)
class VersionPage:
    """Changes in order, the place behind them, and what reading them cost."""

    versions: list[Version]
    place: str
    partition: Partition
    charge: Charge
    has_more: bool = False


@over_moves
async def page(
    container: Container,
    span: EpkRange,
    place: str,
    items_max: int,
    multiplier: int = 1,
    lane: Lane = NORMAL,
    wanted: ChangeFilter | None = None,
) -> VersionPage:
    """The next changes in a range of hashes after a place, or from now when there is none; all, or those wanted."""
    if container.versions_seconds is None:
        raise errors.VERSIONS_NOT_KEPT(id=container.resource.id)
    moment = int(time.time())
    if place:
        start, read_until = places.versions_from_text(container, span, place)
        if read_until < moment - container.versions_seconds:
            raise errors.VERSIONS_FORGOTTEN(minutes=container.versions_seconds // 60)
    else:
        await container.learn_lsns(span)
        start, read_until = places.now(container, span), moment

    def fetch(partition: Partition, part: EpkRange, after: int, limit: int) -> Awaitable[Sequence[Version]]:
        return partition.versions(part, after, limit)

    walk = Walk(container, fetch, lambda version: True, items_max)
    if wanted is not None:
        walk.choose, walk.is_over, walk.steps = wanted.versions, wanted.is_over, wanted.steps
    walk.admit(start, lane)
    cost = await walk.run(start, multiplier, lane)
    if not walk.is_full:
        read_until = moment
    elif not walk.has_unread_parts and walk.changes:
        read_until = max(read_until, walk.changes[-1].ts)
    text = places.versions_to_text(container, walk.place, read_until)
    return VersionPage(walk.changes, text, walk.polled[-1], cost, walk.is_full)
