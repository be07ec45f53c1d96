"""The change feed, latest version: every item once, at its last change, in the order of those changes."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from enum import Enum

from pleiad.charge import Charge
from pleiad.engine.container import Container
from pleiad.engine.feed import place as places
from pleiad.engine.feed.filter import ChangeFilter
from pleiad.engine.feed.place import Walk
from pleiad.engine.steady import over_moves
from pleiad.keys.range import EpkRange
from pleiad.partition.governor import NORMAL, Lane
from pleiad.partition.partition import Partition
from pleiad.store.rows import Row


class Origin(Enum):
    """Where a client without a place starts."""

    BEGINNING = "beginning"
    NOW = "now"


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changes in order, the place behind them, and what reading them cost."""

    rows: list[Row]
    place: str
    partition: Partition
    charge: Charge
    has_more: bool = False


@over_moves
async def page(
    container: Container,
    span: EpkRange,
    place: str,
    origin: Origin,
    since: float,
    items_max: int,
    multiplier: int = 1,
    lane: Lane = NORMAL,
    wanted: ChangeFilter | None = None,
) -> ChangePage:
    """The next changes in a range of hashes after a place, or from the origin when there is none.

    Given are all of them, or those wanted. Changes that are not later than `since`, in seconds since the epoch, are
    left out; 0 leaves none out.
    """
    if place:
        start = places.latest_from_text(container, span, place)
    elif origin is Origin.NOW:
        await container.learn_lsns(span)
        start = places.now(container, span)
    else:
        start = places.beginning(span)
    moment = time.time()
    since_ts = math.floor(since) + 1 if since > 0 else 0

    def fetch(partition: Partition, part: EpkRange, after: int, limit: int) -> Awaitable[Sequence[Row]]:
        return partition.changes(part, after, limit, since_ts)

    def is_live(row: Row) -> bool:
        return not container.is_expired(row, moment)

    walk = Walk(container, fetch, is_live, items_max)
    if wanted is not None:
        walk.choose, walk.is_over, walk.steps = wanted.rows, wanted.is_over, wanted.steps
    walk.admit(start, lane)
    cost = await walk.run(start, multiplier, lane)
    text = places.latest_to_text(container, walk.place)
    return ChangePage(walk.changes, text, walk.polled[-1], cost, walk.is_full)
