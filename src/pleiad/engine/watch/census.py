"""Items and bytes of physical partitions for whoever shows them often.

The store is asked again only when a partition has been written to: with many containers, asking all of them every few
seconds would open and close their files all the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from pleiad.engine.container import Container
from pleiad.engine.steady import over_moves
from pleiad.partition.partition import Partition
from pleiad.store.rows import PartitionState


class Census:
    """The last known state of each physical partition."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], PartitionState] = {}

    async def state(self, container: Container, partition: Partition) -> PartitionState:
        """The counters of a partition, no older than its last write."""
        place = (container.resource.rid, partition.id)
        known = self._known.get(place)
        # Sweeping expired items changes the counters and no LSN.
        if known is None or known.lsn != partition.lsn or container.default_ttl is not None:
            known = self._known[place] = await partition.state()
        return known

    async def states(self, container: Container) -> Sequence[tuple[Partition, PartitionState]]:
        """The live partitions of a container with their counters, in the order of their ranges."""
        return await _states(container, self)

    def forget_all_but(self, places: set[tuple[str, int]]) -> None:
        """Forgets the partitions that are no more; a place is the container's rid and the partition's id."""
        self._known = {place: state for place, state in self._known.items() if place in places}


@over_moves
async def _states(container: Container, census: Census) -> Sequence[tuple[Partition, PartitionState]]:
    return [(each, await census.state(container, each)) for each in list(container.map.partitions)]
