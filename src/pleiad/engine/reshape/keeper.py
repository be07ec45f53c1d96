"""The keeper: gives containers the physical partitions that their data and their throughput ask for.

It looks at every container at work once a second, and at once when something happened that it must see to: it mends
what a crash interrupted, gives the children of a split their own segments, has the throughput raised that the data has
outgrown, and splits what has grown too large or what must serve more request units than its partitions can. A split for
throughput is announced for a moment first: clients that follow the map see `splitting` before the ranges are gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Protocol

from pleiad import errors
from pleiad.catalog.placement import Cause
from pleiad.engine.at_work import AtWork
from pleiad.engine.container import Container
from pleiad.engine.refusals import Refusals
from pleiad.engine.reshape.failure import ChangedElsewhereError, StoppedError
from pleiad.engine.reshape.reshaper import Reshaper
from pleiad.errors import PleiadError
from pleiad.keys.range import share
from pleiad.limits import Limits
from pleiad.partition.partition import Partition
from pleiad.store.segments import SegmentDroppedError, SegmentOutOfServiceError

_log = logging.getLogger(__name__)
INTERVAL_SECONDS = 1.0


class Demand(Protocol):
    """What the throughput of an account asks of physical partitions."""

    def partitions_needed(self, container: Container) -> int:
        """The physical partitions it takes to serve a container's throughput."""

    def is_splittable(self, container: Container) -> bool:
        """Whether a container may ever have a second physical partition."""

    async def follow_storage(self, container: Container, stored_bytes: int) -> None:
        """Has the throughput behind a container raised when its data has outgrown it."""


class Keeper:
    """Looks after the partition maps of the containers at work."""

    def __init__(
        self,
        reshaper: Reshaper,
        limits: Limits,
        at_work: AtWork,
        demand: Demand,
        refusals: Refusals,
    ) -> None:
        self._reshaper = reshaper
        self._limits = limits
        self._at_work = at_work
        self._demand = demand
        self._refusals = refusals
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._rounds = 0
        self._round_done = asyncio.Condition()
        self._sizes: dict[tuple[str, int], tuple[int, int]] = {}
        self._announced: dict[str, float] = {}

    def to_be_split_for_throughput(self, container: Container) -> list[Partition]:
        """The widest partitions of a container, as many as it lacks to serve its throughput."""
        lacking = self._demand.partitions_needed(container) - len(container.map.partitions)
        if lacking <= 0 or not self._demand.is_splittable(container):
            return []
        widest = sorted(self._willing(container), key=lambda partition: -share(partition.span, container.key))
        return widest[:lacking]

    def wake(self) -> None:
        """Asks for a look at once."""
        self._woken.set()

    async def settled(self) -> None:
        """Waits until a whole look that begins now has ended, and every split that was announced."""
        wanted = self._rounds + 2
        self.wake()
        async with self._round_done:
            while self._rounds < wanted or self._announced:
                await self._round_done.wait()
                self.wake()

    async def splits_for_throughput(self) -> None:
        """Waits until no container is to be split for its throughput; not much longer than that takes."""
        await asyncio.sleep(0)  # a timeout needs a task
        with contextlib.suppress(TimeoutError):
            async with (
                asyncio.timeout(self._limits.split_notice_seconds + INTERVAL_SECONDS),
                self._round_done,
            ):
                while any(self.to_be_split_for_throughput(container) for container in self._at_work):
                    await self._round_done.wait()

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_for_ever())

    async def stop(self) -> None:
        """Ends the work in an orderly way: a change that is under way is undone."""
        self._is_stopping = True
        self.wake()
        await self._reshaper.stop()
        if self._task is not None:
            await self._task

    async def _keep_for_ever(self) -> None:
        while not self._is_stopping:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL_SECONDS):
                    await self._woken.wait()
            self._woken.clear()
            at_work = list(self._at_work)
            for rid in self._announced.keys() - {container.resource.rid for container in at_work}:
                del self._announced[rid]
            for container in at_work:
                try:
                    await self.keep(container)
                except StoppedError:
                    break
                except (ChangedElsewhereError, SegmentDroppedError, SegmentOutOfServiceError):
                    # The server that changes it sees to it, and the next look finds what it made; to what is damaged
                    # the operator sees.
                    continue
                except PleiadError as error:
                    if not self._reshaper.is_troubled:
                        _log.warning(
                            "keeping the partitions of %s is put off: %s", container.path, error.message
                        )
                except Exception:
                    _log.exception("keeping the partitions of %s failed", container.path)
            async with self._round_done:
                self._rounds += 1
                self._round_done.notify_all()

    async def keep(self, container: Container) -> None:
        """Does all that a container needs now."""
        await self._reshaper.mend(container)
        await self._rehome(container)
        sizes = [await self._size_bytes(container, partition) for partition in container.map.partitions]
        await self._demand.follow_storage(container, sum(sizes))
        while (found := await self._to_be_split(container)) is not None:
            partition, cause = found
            try:
                await self._reshaper.split(container, partition.range_id, cause)
            except PleiadError as error:
                if error.row is errors.RANGE_GONE:
                    continue  # somebody else changed it meanwhile
                if error.row is not errors.CANNOT_SPLIT:
                    raise
                self._refusals.note(container.resource.rid, partition.id)
                _log.warning("%s", error.message, extra={"container": container.path})
        if not self.to_be_split_for_throughput(container):
            self._announced.pop(container.resource.rid, None)
        await self._rehome(container)

    async def _rehome(self, container: Container) -> None:
        while homeless := self._reshaper.homeless(container):
            try:
                await self._reshaper.rehome(container, homeless[0].range_id)
            except PleiadError as error:
                if error.row is not errors.RANGE_GONE:
                    raise

    async def _size_bytes(self, container: Container, partition: Partition) -> int:
        """The size of a partition; of one that nobody wrote to since the last look no file is opened."""
        key = container.resource.rid, partition.id
        lsn, size_bytes = self._sizes.get(key, (-1, 0))
        if lsn != partition.lsn:
            lsn = partition.lsn
            size_bytes = (await partition.state()).size_bytes
            self._sizes[key] = lsn, size_bytes
        return size_bytes

    async def _to_be_split(self, container: Container) -> tuple[Partition, Cause] | None:
        """A partition that is too large, or the widest one while there are too few; never one of a fixed container."""
        if not self._demand.is_splittable(container):
            return None
        for partition in self._willing(container):
            if await self._size_bytes(container, partition) > self._limits.physical_partition_bytes:
                return partition, Cause.STORAGE
        widest = self.to_be_split_for_throughput(container)
        return (widest[0], Cause.THROUGHPUT) if widest and self._is_announced(container) else None

    def _willing(self, container: Container) -> list[Partition]:
        rid = container.resource.rid
        return [
            partition
            for partition in container.map.partitions
            if not self._refusals.is_indivisible(rid, partition.id)
        ]

    def _is_announced(self, container: Container) -> bool:
        """Whether clients could see for long enough that a container is to be split; asks for a look when they can."""
        loop = asyncio.get_running_loop()
        since = self._announced.setdefault(container.resource.rid, loop.time())
        rest = since + self._limits.split_notice_seconds - loop.time()
        if rest > 0:
            loop.call_later(rest, self.wake)
        return rest <= 0
