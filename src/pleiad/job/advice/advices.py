"""The advices of a server: one is made at a time, and of the last ones the reports are kept, in memory only."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import time

from pleiad import errors
from pleiad.catalog.resource import Kind
from pleiad.engine.engine import Engine
from pleiad.job.advice.run import AdviceError, AdviceRun
from pleiad.job.advice.task import AdvicePlan, AdviceProgress, AdviceState, MadeReport

_log = logging.getLogger(__name__)
KEPT_MAX = 8
"""So many containers have what was advised kept; the one that was asked for longest ago goes first."""
_LIBRARY = "numpy"
MISSING = "Advice needs more libraries on the server: pip install numpy msgspec datasketches"


def what_is_missing() -> str:
    """What has to be installed before there can be advice; empty when nothing has."""
    return "" if importlib.util.find_spec(_LIBRARY) is not None else MISSING


class Advices:
    """Begins, cancels and remembers advices."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._told: dict[str, AdviceProgress] = {}
        """By the rid of the container, the one asked for last at the end."""
        self._reports: dict[str, MadeReport] = {}
        self._task: asyncio.Task[None] | None = None
        self._running: str | None = None

    @property
    def running(self) -> AdviceProgress | None:
        """The advice that is being made."""
        return None if self._running is None else self._told[self._running]

    def told(self, rid: str) -> AdviceProgress | None:
        """The advice on a container that was asked for last."""
        return self._told.get(rid)

    def report(self, rid: str) -> MadeReport | None:
        """The newest report on a container; it stays while another advice is made or fails."""
        return self._reports.get(rid)

    async def start(self, database: str, container: str, plan: AdvicePlan) -> AdviceProgress:
        """Begins an advice, which goes on behind the answer."""
        missing = what_is_missing()
        if missing:
            raise errors.BAD_REQUEST(reason=missing)
        found = await self._engine.container(database, container)
        if self._task is not None and self._is_of_deleted():
            await self._stop(self._task)
        running = self.running
        if running is not None:
            raise errors.ADVICE_UNDER_WAY(container=f"{running.database}/{running.container}")
        rid = found.resource.rid
        progress = AdviceProgress(
            database=self._engine.database(database).id,
            container=found.resource.id,
            plan=plan,
            began_at=time.time(),
        )
        self._told.pop(rid, None)
        self._told[rid] = progress
        for old in list(self._told)[:-KEPT_MAX]:
            del self._told[old]
            self._reports.pop(old, None)
        self._running = rid
        self._task = asyncio.create_task(self._make(rid, AdviceRun(self._engine, found, progress)))
        self._task.add_done_callback(self._ended)
        return progress

    def _is_of_deleted(self) -> bool:
        """Whether the container of what is being made is gone, so that nobody can cancel it."""
        return (
            self._running is not None and self._engine.catalog.by_rid(Kind.CONTAINER, self._running) is None
        )

    async def cancel(self, rid: str) -> AdviceProgress:
        """Ends the making of an advice; a report of before stays."""
        progress = self._told.get(rid)
        if progress is None or self._running != rid or self._task is None:
            raise errors.BAD_REQUEST(reason="No advice on this container is being made.")
        await self._stop(self._task)
        return progress

    async def close(self) -> None:
        """Ends what is being made."""
        if self._task is not None:
            await self._stop(self._task)

    async def _stop(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)  # lets the callback of its end have its turn

    async def _make(self, rid: str, run: AdviceRun) -> None:
        progress = run.progress
        try:
            self._reports[rid] = await run.run()
            progress.state = AdviceState.DONE
        except AdviceError as error:
            progress.state, progress.problem = AdviceState.FAILED, str(error)
        except Exception:
            _log.exception("the advice on %s/%s failed", progress.database, progress.container)
            progress.state, progress.problem = (
                AdviceState.FAILED,
                "It failed; the log of the server has more.",
            )

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Not in the task itself: one that is cancelled at once never begins."""
        progress = self.running
        self._running = None
        if progress is not None:
            progress.ended_at = time.time()
            if progress.state is AdviceState.RUNNING:
                progress.state = AdviceState.CANCELLED
