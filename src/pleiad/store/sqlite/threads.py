"""Threads for the long C calls of SQLite: COMMIT, which waits for the disk, and checkpoints.

Statements run on the event loop; only what waits for the disk leaves it. The GIL is free during these calls.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue

Done = Callable[[BaseException | None], None]
_Job = tuple[Callable[[], object], Done, asyncio.AbstractEventLoop]


class DiskThreads:
    """A few daemon threads that run a call and report its end to the event loop that asked."""

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"pleiad-disk-{index}", daemon=True)
            for index in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, call: Callable[[], object], done: Done) -> None:
        """Runs `call` in a thread, then `done` with its exception or None on the calling event loop."""
        self._jobs.put((call, done, asyncio.get_running_loop()))

    @property
    def waiting(self) -> int:
        """How many calls no thread has taken yet."""
        return self._jobs.qsize()

    async def run_async(self, call: Callable[[], object]) -> None:
        """Runs `call` in a thread and waits for its end."""
        future = asyncio.get_running_loop().create_future()

        def done(error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self.run(call, done)
        await future

    def stop(self) -> None:
        """Ends the threads after the jobs already given."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            call, done, loop = job
            error: BaseException | None = None
            try:
                call()
            except BaseException as caught:
                error = caught
            try:
                loop.call_soon_threadsafe(done, error)
            except RuntimeError:
                # The loop is closed: nobody waits for this answer any more.
                continue
