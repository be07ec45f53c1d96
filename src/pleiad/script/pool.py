"""The script processes of a server: started when scripts are used, lent to one script at a time.

A process that comes back dead is replaced when the next one is needed, so a script that had to be killed costs the
others a start and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from pleiad import errors
from pleiad.limits import Limits
from pleiad.script.process import ScriptProcess

_log = logging.getLogger(__name__)


class ScriptPool:
    """Up to `script_processes` processes; more scripts than that wait for their turn."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._idle: list[ScriptProcess] = []
        self._busy: set[ScriptProcess] = set()
        self._turns = asyncio.Semaphore(limits.script_processes)
        self._is_closed = False
        self.walls: tuple[str, ...] = ()
        """What holds around the processes, by the names of `walls.py`; nothing is known before the first one."""

    @contextlib.asynccontextmanager
    async def lease(self) -> AsyncIterator[ScriptProcess]:
        """A process with a fresh context, for one script."""
        try:
            await asyncio.wait_for(self._turns.acquire(), 2 * self._limits.operation_seconds)
        except TimeoutError:
            raise errors.UNAVAILABLE(reason="All script processes are busy; retry.") from None
        process: ScriptProcess | None = None
        try:
            self._idle = [each for each in self._idle if each.is_alive]
            process = self._idle.pop() if self._idle else await self._started()
            self._busy.add(process)
            yield process
        finally:
            if process is not None:
                self._take_back(process)
            self._turns.release()

    async def _started(self) -> ScriptProcess:
        starting = asyncio.ensure_future(asyncio.to_thread(ScriptProcess, self._limits))
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The thread goes on; what it starts is for the next script.
            starting.add_done_callback(self._keep)
            raise
        if process.walls != self.walls:
            self.walls = process.walls
            _log.info("script processes run behind these walls: %s", ", ".join(self.walls))
        return process

    def _keep(self, starting: asyncio.Future[ScriptProcess]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            self._take_back(starting.result())

    def _take_back(self, process: ScriptProcess) -> None:
        self._busy.discard(process)
        if self._is_closed:
            process.kill()
        elif process.is_alive:
            process.refresh()
        if process.is_alive:
            self._idle.append(process)

    def close(self) -> None:
        """Ends all processes; scripts that still run fail."""
        self._is_closed = True
        processes = (*self._idle, *self._busy)
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
        self._idle.clear()
