"""Group commit and shared reads: what arrives while the database works goes together in the next round trip.

Invariants:
- the writes of one partition go one group at a time, in the order they came;
- a waiter is answered once, after its group's transaction ended;
- a group that was rolled back is tried again one write at a time; one whose outcome is unknown is not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter

from pleiad.errors import UNAVAILABLE, PleiadError
from pleiad.store.commits import CommitCounts
from pleiad.store.rows import Mutation, Outcome, PartitionWrite, Row

_log = logging.getLogger(__name__)

_GROUP_MUTATIONS_MAX = 256
_GROUP_BYTES_MAX = 8 << 20
_READS_TOGETHER_MAX = 32
_ROUND_TRIPS_MAX = 4
_MUTATIONS_AT = PartitionWrite._fields.index("mutations")

_Waiter = tuple[PartitionWrite, "asyncio.Future[Sequence[Outcome]]"]
_Reader = tuple[tuple[bytes, str], "asyncio.Future[Row | None]"]
Apply = Callable[[PartitionWrite, Sequence[Mutation]], Awaitable[Sequence[Outcome]]]
ReadSeveral = Callable[[Sequence[tuple[bytes, str]]], Awaitable[Sequence[Row | None]]]


class WriteQueue:
    """The writes of one partition."""

    def __init__(
        self, apply: Apply, failure: Callable[[Exception], PleiadError], commits: CommitCounts
    ) -> None:
        self._commits = commits
        self._apply = apply
        self._failure = failure
        self._waiting: list[_Waiter] = []
        self._task: asyncio.Task[None] | None = None

    def commit(self, write: PartitionWrite) -> asyncio.Future[Sequence[Outcome]]:
        """Enqueues a write; a group that starts in this turn of the loop includes it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence[Outcome]] = loop.create_future()
        self._waiting.append((write, future))
        if self._task is None:
            self._task = loop.create_task(self._drain())
        return future

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def settle(self) -> None:
        """Waits until no write is running or waiting."""
        while self._task is not None:
            await asyncio.wait({self._task})

    async def _drain(self) -> None:
        try:
            while self._waiting:
                group = _next_group(self._waiting)
                del self._waiting[: len(group)]
                if len(group) > 1 and not await self._run(group):
                    for waiter in group:
                        await self._run([waiter])
                elif len(group) == 1:
                    await self._run(group)
        finally:
            self._task = None

    async def _run(self, group: list[_Waiter]) -> bool:
        """Applies a group and answers it; False when it was rolled back and may be tried in parts."""
        mutations = [mutation for write, _ in group for mutation in write.mutations]
        began_at = perf_counter()
        try:
            outcomes = await self._apply(group[0][0], mutations)
        except PleiadError as error:
            _fail(group, error)
            return True
        except Exception as error:
            if len(group) > 1:
                return False
            failure = self._failure(error)
            if failure.row is UNAVAILABLE:
                _log.error("a write was rolled back: %s", error, exc_info=error)
            _fail(group, failure)
            return True
        self._commits.note(len(group), perf_counter() - began_at)
        first = 0
        for write, future in group:
            last = first + len(write.mutations)
            if not future.done():
                future.set_result(outcomes[first:last])
            first = last
        return True


def _fail(group: list[_Waiter], error: Exception) -> None:
    for _, future in group:
        if not future.done():
            future.set_exception(error)


def _next_group(waiting: list[_Waiter]) -> list[_Waiter]:
    """The first writes that one call can apply: equal terms, none of them atomic unless alone."""
    first = waiting[0][0]
    group = [waiting[0]]
    if first.atomic:
        return group
    mutations = len(first.mutations)
    size_bytes = sum(len(mutation.body) for mutation in first.mutations)
    terms = _terms(first)
    for waiter in waiting[1:]:
        write = waiter[0]
        mutations += len(write.mutations)
        size_bytes += sum(len(mutation.body) for mutation in write.mutations)
        if _terms(write) != terms or mutations > _GROUP_MUTATIONS_MAX or size_bytes > _GROUP_BYTES_MAX:
            break
        group.append(waiter)
    return group


def _terms(write: PartitionWrite) -> tuple[object, ...]:
    """Everything of a write but its mutations."""
    return write[:_MUTATIONS_AT] + write[_MUTATIONS_AT + 1 :]


class ReadQueue:
    """Point reads of one segment: a few round trips at a time, each for all who wait."""

    def __init__(self, read: ReadSeveral) -> None:
        self._read = read
        self._waiting: list[_Reader] = []
        self._running: set[asyncio.Task[None]] = set()
        self._scheduled = False

    def read(self, epk: bytes, id: str) -> asyncio.Future[Row | None]:
        """Enqueues a read; it begins after this call, so it sees every write answered before."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Row | None] = loop.create_future()
        self._waiting.append(((epk, id), future))
        if not self._scheduled and len(self._running) < _ROUND_TRIPS_MAX:
            self._scheduled = True
            loop.call_soon(self._begin)
        return future

    def _begin(self) -> None:
        self._scheduled = False
        while self._waiting and len(self._running) < _ROUND_TRIPS_MAX:
            together = self._waiting[:_READS_TOGETHER_MAX]
            del self._waiting[:_READS_TOGETHER_MAX]
            task = asyncio.get_running_loop().create_task(self._run(together))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._begin()

    async def _run(self, together: list[_Reader]) -> None:
        try:
            rows = await self._read([key for key, _ in together])
        except Exception as error:
            for _, future in together:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), row in zip(together, rows, strict=True):
            if not future.done():
                future.set_result(row)

    async def settle(self) -> None:
        """Waits until no read is running or waiting."""
        while self._running:
            await asyncio.wait(set(self._running))
