"""The pace of a copy: requests of users go first, and of what throughput there is it takes a share.

Where throughput is enforced a copy spends request units like a request of low priority, and no more than its share of
what its two containers have. Where it is only observed nothing is scarce but the time of the server: then the copy
works for its share of the time whenever somebody else has asked for something meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from pleiad.engine.container import Container
from pleiad.engine.traffic import AccountTraffic
from pleiad.errors import PleiadError, Reason
from pleiad.partition.governor import Lane
from pleiad.partition.partition import Partition

_LANE = Lane(low_priority=True)
_WAIT_SECONDS_MAX = 1.0
_REST_SECONDS_MAX = 5.0


class Pacer:
    """How fast one copy may go."""

    def __init__(
        self, share: float, traffic: AccountTraffic, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._share = share
        self._traffic = traffic
        self._clock = clock
        self._debts: dict[str, tuple[float, float]] = {}
        """What was spent beyond the share of a container, and when that was looked at."""
        self._requests = self._requests_now()
        self._began = clock()

    def _requests_now(self) -> int:
        counted = (
            series for part in (self._traffic, *self._traffic.parts) for series in part.series.values()
        )
        return sum(series.requests for series in counted if series.operation != "admin")

    async def pay(self, container: Container, spent: Mapping[Partition, float]) -> None:
        """Takes the charge of a piece of work from partitions, and waits as long as the share asks for."""
        rate_ru = self._share * sum(partition.governor.rate_ru for partition in container.map.partitions)
        is_enforced = any(partition.governor.is_enforced for partition in spent)
        for partition, ru in spent.items():
            if is_enforced:
                await self._admitted(partition)
            partition.spend(ru, _LANE)
        if not is_enforced:
            return
        now = self._clock()
        debt, at = self._debts.get(container.resource.rid, (0.0, now))
        debt = max(0.0, debt - (now - at) * rate_ru) + sum(spent.values())
        self._debts[container.resource.rid] = debt, now
        if debt > rate_ru:
            await asyncio.sleep((debt - rate_ru) / rate_ru)

    async def _admitted(self, partition: Partition) -> None:
        while True:
            try:
                partition.admit(_LANE)
                return
            except PleiadError as error:
                if error.reason is not Reason.THROTTLED:
                    raise
                await asyncio.sleep(min(_WAIT_SECONDS_MAX, (error.retry_after_ms or 10) / 1000))

    async def rest(self) -> None:
        """Between two pieces of work: lets others have their turn, and their part of the time if there are any."""
        worked = self._clock() - self._began
        requests = self._requests_now()
        if requests != self._requests and self._share < 1:
            await asyncio.sleep(min(_REST_SECONDS_MAX, worked * (1 - self._share) / self._share))
        else:
            await asyncio.sleep(0)
        self._requests, self._began = self._requests_now(), self._clock()
