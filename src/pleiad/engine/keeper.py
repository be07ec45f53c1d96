"""The keeper: gives containers the physical partitions that their data and their throughput ask for.

It looks at every container at work once a second, and at once when something happened that it must see to: it mends
what a crash interrupted, gives the children of a split their own segments, and splits what has grown too large or what
must serve more request units than its partitions can.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable

from pleiad import errors
from pleiad.engine.container import Container
from pleiad.engine.reshape import ChangedElsewhereError, Reshaper, StoppedError
from pleiad.errors import PleiadError
from pleiad.keys.range import share
from pleiad.limits import Limits
from pleiad.partition.partition import Partition
from pleiad.store.contract import SegmentDroppedError

_log = logging.getLogger(__name__)
INTERVAL_SECONDS = 1.0
REFUSAL_SECONDS = 60.0
"""How long a partition that could not be split is left alone; to find that out reads all its keys."""


class Keeper:
    """Looks after the partition maps of the containers at work."""

    def __init__(
        self,
        reshaper: Reshaper,
        limits: Limits,
        containers: Callable[[], Iterable[Container]],
        partitions_needed: Callable[[Container], int],
        is_splittable: Callable[[Container], bool],
    ) -> None:
        self._reshaper = reshaper
        self._limits = limits
        self._containers = containers
        self._partitions_needed = partitions_needed
        self._is_splittable = is_splittable
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._rounds = 0
        self._round_done = asyncio.Condition()
        self._sizes: dict[tuple[str, int], tuple[int, int]] = {}
        self._refused: dict[tuple[str, int], float] = {}

    def is_refused(self, container: Container, partition: Partition) -> bool:
        """Whether a partition should be split and could not be when it was last tried."""
        until = self._refused.get((container.resource.rid, partition.id))
        return until is not None and time.monotonic() < until + 2 * INTERVAL_SECONDS

    def wake(self) -> None:
        """Asks for a look at once."""
        self._woken.set()

    async def settled(self) -> None:
        """Waits until a whole look that begins now has ended."""
        wanted = self._rounds + 2
        self.wake()
        async with self._round_done:
            while self._rounds < wanted:
                await self._round_done.wait()
                self.wake()

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
            for container in list(self._containers()):
                try:
                    await self.keep(container)
                except StoppedError:
                    break
                except (ChangedElsewhereError, SegmentDroppedError):
                    continue  # the server that changes it sees to it, and the next look finds what it made
                except Exception:
                    _log.exception("keeping the partitions of %s failed", container.path)
            async with self._round_done:
                self._rounds += 1
                self._round_done.notify_all()

    async def keep(self, container: Container) -> None:
        """Does all that a container needs now."""
        await self._reshaper.mend(container)
        await self._rehome(container)
        while (partition := await self._to_be_split(container)) is not None:
            try:
                await self._reshaper.split(container, partition.range_id)
            except PleiadError as error:
                if error.row is errors.RANGE_GONE:
                    continue  # somebody else changed it meanwhile
                if error.row is not errors.CANNOT_SPLIT:
                    raise
                self._refused[container.resource.rid, partition.id] = time.monotonic() + REFUSAL_SECONDS
                _log.warning("%s", error.message, extra={"container": container.path})
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

    async def _to_be_split(self, container: Container) -> Partition | None:
        """A partition that is too large, or the widest one while there are too few; never one of a fixed container."""
        if not self._is_splittable(container):
            return None
        partitions = [
            partition
            for partition in container.map.partitions
            if self._refused.get((container.resource.rid, partition.id), 0.0) < time.monotonic()
        ]
        for partition in partitions:
            if await self._size_bytes(container, partition) > self._limits.physical_partition_bytes:
                return partition
        if len(container.map.partitions) >= self._partitions_needed(container):
            return None
        return max(partitions, key=lambda partition: share(partition.span, container.key), default=None)
