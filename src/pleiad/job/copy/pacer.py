"""The pace of a copy: requests of users go first, and of what throughput there is it takes a share.

Where throughput is enforced a copy spends request units like a request of low priority, and no more than its share of
what its two containers have. Where it is only observed nothing is scarce but the time of the server: then the copy
works for its share of the time whenever somebody else has asked for something meanwhile.

A share that is too small to follow the writers of the source would have no end. So a copy that comes no nearer takes
more than it was given, step by step, gives some of it back where it comes nearer much faster than it has to, and all of
it when it has caught up. No wait for others is without end.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping

from pleiad.engine.container import Container
from pleiad.engine.traffic import AccountTraffic
from pleiad.errors import PleiadError, Reason
from pleiad.partition.governor import Lane
from pleiad.partition.partition import Partition

_LANE = Lane(low_priority=True)
_REST_SECONDS_MAX = 5.0
_HASTE, _EASE = 2.0, 1.25
"""How much more a copy takes with each step, and how much less."""


class Pacer:
    """How fast one copy may go."""

    def __init__(
        self, share: float, traffic: AccountTraffic, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._given = self._share = share
        self._is_free = False
        """Whether nothing is waited for."""
        self._traffic = traffic
        self._clock = clock
        self._debts: dict[str, tuple[float, float]] = {}
        """What was spent beyond the share of a container, and when that was looked at."""
        self._requests = self._requests_now()
        self._began = clock()
        self._waited = 0.0
        """How long it has waited for units since."""

    @property
    def share(self) -> float:
        """What it takes now."""
        return self._share

    def hasten(self) -> bool:
        """Takes more from now on; False when there is nothing more to take."""
        if self._is_free:
            return False
        self._is_free = self._share >= 1
        self._share = min(1.0, _HASTE * self._share)
        return True

    def ease(self) -> None:
        """Takes less from now on, down to the share that was given."""
        self._is_free = False
        self._share = max(self._given, self._share / _EASE)

    def relax(self) -> None:
        """Keeps to the share that was given again."""
        self._share, self._is_free = self._given, False

    @contextlib.asynccontextmanager
    async def free(self) -> AsyncIterator[None]:
        """A time in which the others wait for the copy, so that it waits for nothing."""
        before, self._is_free = self._is_free, True
        try:
            yield
        finally:
            self._is_free = before

    def _requests_now(self) -> int:
        counted = (
            series for part in (self._traffic, *self._traffic.parts) for series in part.series.values()
        )
        return sum(series.requests for series in counted if series.operation != "admin")

    async def pay(self, container: Container, spent: Mapping[Partition, float]) -> None:
        """Takes the charge of a piece of work from partitions, and waits as long as the share asks for."""
        if self._is_free:
            return  # nor is anything spent: its debts would be those of the users of the target
        rate_ru = self._share * sum(partition.governor.rate_ru for partition in container.map.partitions)
        is_enforced = any(partition.governor.is_enforced for partition in spent)
        for partition, ru in spent.items():
            if is_enforced:
                await self._admitted(partition, ru / (self._share * partition.governor.rate_ru))
            partition.spend(ru, _LANE)
        if not is_enforced:
            return
        now = self._clock()
        debt, at = self._debts.get(container.resource.rid, (0.0, now))
        debt = max(0.0, debt - (now - at) * rate_ru) + sum(spent.values())
        self._debts[container.resource.rid] = debt, now
        if debt > rate_ru:
            await self._wait((debt - rate_ru) / rate_ru)

    async def _admitted(self, partition: Partition, seconds_max: float) -> None:
        """Lets requests of users go first; where they always take everything, the copy has its share all the same."""
        left = seconds_max
        while left > 0:
            try:
                partition.admit(_LANE)
                return
            except PleiadError as error:
                if error.reason is not Reason.THROTTLED:
                    raise
                seconds = min(left, (error.retry_after_ms or 10) / 1000)
            left -= seconds
            await self._wait(seconds)

    async def _wait(self, seconds: float) -> None:
        began = self._clock()
        await asyncio.sleep(seconds)
        self._waited += self._clock() - began

    async def rest(self) -> None:
        """Between two pieces of work: lets others have their turn, and their part of the time if there are any."""
        worked = self._clock() - self._began - self._waited
        # Also those that were answered in the last rest: nobody is, while a piece of work waits for nothing.
        before, self._requests = self._requests, self._requests_now()
        if before != self._requests and self._share < 1:
            await asyncio.sleep(min(_REST_SECONDS_MAX, worked * (1 - self._share) / self._share))
        else:
            await asyncio.sleep(0)
        self._began, self._waited = self._clock(), 0.0
