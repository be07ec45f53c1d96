"""The change feed, latest version: every item once, at its last change, in the order of those changes.

A place in the feed is an LSN for each physical partition that is read. One partition's place is its LSN alone, so a
client that follows one range of a container sends plain LSNs; for several it is a list. A place below the changes of
a partition's parent is good for the partition itself, since LSNs go on over a split.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum

from pleiad import charge, errors
from pleiad.charge import Charge
from pleiad.engine.container import Container, over_moves
from pleiad.keys.range import EpkRange
from pleiad.partition.partition import Partition
from pleiad.store.contract import Row


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


@over_moves
async def page(
    container: Container,
    span: EpkRange,
    place: str,
    origin: Origin,
    since: float,
    items_max: int,
    multiplier: int = 1,
) -> ChangePage:
    """The next changes in a range of hashes after a place, or from the origin when there is none."""
    partitions = container.map.overlapping(span)
    lsns = _places(place, partitions) if place else [_start(partition, origin) for partition in partitions]
    rows: list[Row] = []
    now = time.time()
    partition = partitions[0]
    for index, each in enumerate(partitions):
        if len(rows) >= items_max:
            break
        partition = each
        upto = each.lsn
        found = await each.changes(span, lsns[index], items_max - len(rows))
        if found:
            lsns[index] = found[-1].lsn
        else:
            lsns[index] = max(lsns[index], upto)
        rows.extend(row for row in found if row.ts >= since and not container.is_expired(row, now))
    cost = charge.feed_page([row.size_bytes for row in rows], len(partitions), multiplier)
    return ChangePage(rows, ",".join(map(str, lsns)), partition, cost)


def _start(partition: Partition, origin: Origin) -> int:
    return partition.lsn if origin is Origin.NOW else 0


def _places(place: str, partitions: list[Partition]) -> list[int]:
    """The LSNs of a place; one LSN stands for every partition, as after a split."""
    fields = place.split(",")
    if not all(field.isascii() and field.isdigit() and len(field) < 19 for field in fields):
        raise errors.BAD_HEADER(
            name="If-None-Match", value=place[:100], hint=" It is not a place in the change feed."
        )
    lsns = [int(field) for field in fields]
    if len(lsns) == 1:
        return lsns * len(partitions)
    if len(lsns) != len(partitions):
        raise errors.BAD_HEADER(
            name="If-None-Match", value=place[:100], hint=" It belongs to another range of the container."
        )
    return lsns
