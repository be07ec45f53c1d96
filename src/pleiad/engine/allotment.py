"""What a container may spend, and how its physical partitions divide it.

The one place where shares are computed: a container applies its allotment to its map whenever one of them changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pleiad.catalog.throughput import Throughput, shares
from pleiad.limits import Limits
from pleiad.partition.governor import OBSERVE, Buckets, Governor, Throttle
from pleiad.partition.map import PartitionMap


class Pool:
    """The governors of a database's shared throughput: one for each physical partition that it calls for.

    Containers that share throughput lie on them side by side, in the order of their hash ranges, so what one spends
    the others of that place do not have.
    """

    def __init__(self) -> None:
        self.governors: list[Governor] = []

    def allot(self, throughput: Throughput, places: int, throttle: Throttle, limits: Limits) -> None:
        """Divides the throughput among so many places."""
        rate_ru = min(throughput.ru / places, limits.physical_partition_ru)
        missing = places - len(self.governors)
        self.governors = self.governors[:places]
        self.governors += [Governor(rate_ru, throttle, limits) for _ in range(missing)]
        for governor in self.governors:
            governor.allot(rate_ru, throttle, limits, throughput.autoscale)

    def governor(self, index: int, count: int) -> Governor:
        """The governor of a container's partition: the index-th of count, in the order of ranges."""
        return self.governors[index * len(self.governors) // count]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """The throughput behind a container.

    `pool` where its database shares, `partition_ru` where each physical partition has a figure of its own
    (serverless), else `throughput` divided evenly or by `weights`, RU/s by partition id.
    """

    throttle: Throttle = OBSERVE
    throughput: Throughput | None = None
    weights: Mapping[int, float] = field(default_factory=dict)
    buckets: Buckets | None = None
    pool: Pool | None = None
    partition_ru: float | None = None

    def apply(self, partition_map: PartitionMap, limits: Limits) -> None:
        """Gives each partition of a map its governor and its rate."""
        partitions = partition_map.partitions
        if self.pool is not None:
            for index, partition in enumerate(partitions):
                partition.governor = self.pool.governor(index, len(partitions))
            return
        for partition, rate_ru in zip(partitions, self._rates(partition_map, limits), strict=True):
            autoscale = self.throughput is not None and self.throughput.autoscale
            partition.governor.allot(rate_ru, self.throttle, limits, autoscale, self.buckets)

    def _rates(self, partition_map: PartitionMap, limits: Limits) -> list[float]:
        families = [(partition.id, partition.parents) for partition in partition_map.partitions]
        if self.throughput is not None:
            return shares(self.throughput.ru, families, self.weights, limits)
        return [self.partition_ru or limits.physical_partition_ru] * len(families)
