"""What the physical partitions of a container hold at this moment."""

from __future__ import annotations

from collections.abc import Sequence

from pleiad.engine.container import Container
from pleiad.engine.steady import over_moves
from pleiad.store.rows import PartitionState


@over_moves
async def states(container: Container) -> Sequence[PartitionState]:
    """The counters of the live partitions, in the order of their ranges."""
    return [await partition.state() for partition in container.map.partitions]
