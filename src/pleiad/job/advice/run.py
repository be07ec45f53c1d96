"""One advice at work: the server reads the container, and a process beside it measures, simulates and ranks.

Invariants
- The event loop is never held: pages are read as any client's, resting as copies do and with low priority unless they
  waited for long, and what takes long happens in the process, which runs with the lowest priority that everybody may
  give.
- The process knows no key and no address of the server: it is given frames and gives frames back.
- Time, memory and the size of what comes back have limits; at the end, however it comes, the process is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import orjson

from pleiad.catalog.resource import Kind
from pleiad.catalog.throughput import from_offer_content
from pleiad.engine import counted
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.feed import listing
from pleiad.errors import PleiadError, Reason
from pleiad.job.advice.frames import FrameKind, next_frame, packed, packed_item
from pleiad.job.advice.task import AdviceProgress, AdviceStep, AdviceTask, MadeReport
from pleiad.job.copy.pacer import Pacer
from pleiad.keys.range import WHOLE
from pleiad.partition.governor import NORMAL, Lane
from pleiad.workload.ring import Place

_PROGRAM = "pleiad.advise.process"
"""By name: the room of advising is above this one."""
_SHARE = 0.2
"""Of the time, where others ask for something."""
_LANE = Lane(low_priority=True)
_PAGE_ITEMS = 500
_WAIT_SECONDS_MAX = 1.0
_PATIENCE_SECONDS = 2.0
"""A page that was refused for so long is asked for like any other: what is always busy needs advice most."""
_FRAME_BYTES_MAX = 32 * 1024 * 1024
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_T = TypeVar("_T")


class AdviceError(Exception):
    """Why there is no advice, as a sentence."""


class AdviceRun:
    """The making of one advice."""

    def __init__(self, engine: Engine, container: Container, progress: AdviceProgress) -> None:
        self._engine = engine
        self._container = container
        self._rid = container.resource.rid
        self.progress = progress
        self._pacer = Pacer(_SHARE, engine.traffic)
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="advice")
        """One writes to the process, one reads from it; both end with it."""
        self._process: subprocess.Popen[bytes] | None = None

    async def run(self) -> MadeReport:
        """The report; AdviceError says why there is none. Whoever cancels it ends the process too."""
        limits = self._engine.limits
        starting = asyncio.ensure_future(asyncio.to_thread(_started, limits.advice_memory_bytes))
        try:
            async with asyncio.timeout(limits.advice_seconds):
                self._process = await asyncio.shield(starting)
                listening = asyncio.create_task(self._listen())
                try:
                    await self._feed(listening)
                    return await listening
                finally:
                    listening.cancel()
        except TimeoutError:
            raise AdviceError(
                f"It took more than the {limits.advice_seconds:g} seconds that an advice may take. "
                "`pleiad advise` has no such limit."
            ) from None
        finally:
            ending = asyncio.ensure_future(self._end(starting))
            while not ending.done():
                # Who cancels it once more waits as well: another one begins only when this process is gone.
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.shield(ending)

    async def _end(self, starting: asyncio.Future[subprocess.Popen[bytes]]) -> None:
        """Ends the process, also one that is only being started."""
        with contextlib.suppress(OSError):  # where it could not be started there is nothing to end
            process = await starting
            process.kill()
            await asyncio.to_thread(_reaped, process)
        self._threads.shutdown(wait=False)

    async def _in_thread(self, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    # -- to the process --------------------------------------------------------------------------

    async def _feed(self, listening: asyncio.Task[MadeReport]) -> None:
        """Gives the process all it needs; where it has ended before, what it said last tells why."""
        try:
            await self._send(packed(FrameKind.TASK, self._task().to_json()))
            await self._send_record()
            await self._send_items(listening)
            await self._send(packed(FrameKind.END))
        except BrokenPipeError:
            await listening
            raise AdviceError("The process that works it out has ended.") from None
        except PleiadError as error:
            raise AdviceError(error.message) from None

    def _task(self) -> AdviceTask:
        engine, resource, plan = self._engine, self._container.resource, self.progress.plan
        offer = engine.catalog.offer_of(resource.rid)
        own_ru = None if offer is None else float(from_offer_content(offer.properties["content"]).ru)
        limits = engine.limits
        return AdviceTask(
            source=f"{self.progress.database}/{self.progress.container}",
            plan=plan,
            key_paths=tuple(self._container.key.paths),
            indexing=resource.properties.get("indexingPolicy"),
            throughput_ru=plan.throughput_ru or own_ru,
            rows_max=min(plan.sample or limits.advice_items, limits.advice_items),
            limits=limits,
        )

    async def _send(self, frames: bytes) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        pipe = process.stdin

        def write() -> None:
            pipe.write(frames)
            pipe.flush()

        await self._in_thread(write)

    async def _send_record(self) -> None:
        name, place, is_begun = f"{self.progress.database}/{self.progress.container}", None, False
        while place is not None or not is_begun:
            is_begun = True
            place = await self._send_lines(name, place)

    async def _send_lines(self, name: str, place: Place | None) -> Place | None:
        lines, behind = await self._engine.workload.read(self._rid, name, place, False)
        if lines:
            await self._send(packed(FrameKind.RECORD, lines))
        return behind

    async def _send_items(self, listening: asyncio.Task[MadeReport]) -> None:
        progress, container = self.progress, self._container
        progress.total = sum(state.items for state in await counted.states(container))
        multiplier = self._engine.consistency.read_multiplier
        token = ""
        asked_at = time.monotonic()
        while True:
            if listening.done():
                raise BrokenPipeError
            if self._engine.catalog.by_rid(Kind.CONTAINER, self._rid) is None:
                raise AdviceError("The container was deleted meanwhile.")
            lane = _LANE if time.monotonic() < asked_at + _PATIENCE_SECONDS else NORMAL
            try:
                page = await listing.page(container, WHOLE, token, _PAGE_ITEMS, multiplier, lane)
            except PleiadError as error:
                if error.reason is not Reason.THROTTLED:
                    raise
                await asyncio.sleep(min(_WAIT_SECONDS_MAX, (error.retry_after_ms or 10) / 1000))
                continue
            await self._send(b"".join([packed_item(row.ts, row.body) for row in page.rows]))
            progress.done += len(page.rows)
            progress.total = max(progress.total, progress.done)
            progress.charge_ru += page.charge.ru
            if page.token is None:
                return
            token = page.token
            await self._pacer.rest()
            asked_at = time.monotonic()

    # -- from the process ------------------------------------------------------------------------

    async def _listen(self) -> MadeReport:
        """Hears how far the process is, until it gives the report or ends."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        pipe, report = process.stdout, b""
        while True:
            frame = await self._in_thread(lambda: next_frame(pipe, _FRAME_BYTES_MAX))
            if frame is None:
                raise AdviceError("The process that works it out has ended before it was done.")
            if frame.kind is FrameKind.STEP:
                told = orjson.loads(frame.content)
                self.progress.step = AdviceStep.TRYING
                self.progress.what, self.progress.done, self.progress.total = told
            elif frame.kind is FrameKind.REPORT:
                report = frame.content
            elif frame.kind is FrameKind.PAGE:
                return MadeReport(report, frame.content, time.time())
            elif frame.kind is FrameKind.PROBLEM:
                raise AdviceError(frame.content.decode())


def _started(memory_bytes: int) -> subprocess.Popen[bytes]:
    """The process, which finds neither a key nor the working directory's modules."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLEIAD_")}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", _PROGRAM, str(memory_bytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**environment, **_ONE_THREAD},
    )


def _reaped(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
