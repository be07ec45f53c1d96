"""The copies of an account: beginning them, what is known of them, and the ones that this server works on.

Copies run in the background, side by side, each on one of the servers of the account. Which one that is decides a
lease; that it is alone, the record of the copy. The records of the last copies are kept to be looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from dataclasses import dataclass

from pleiad import errors
from pleiad.catalog.catalog import StaleCatalogError
from pleiad.catalog.copy_marks import Closing, closed_of, followed_by
from pleiad.catalog.resource import Kind
from pleiad.engine.engine import Engine
from pleiad.engine.fresh import on_a_fresh_catalog
from pleiad.engine.steady import to_the_end
from pleiad.errors import PleiadError
from pleiad.job.copy.failure import CopyTakenError
from pleiad.job.copy.job import Asked, CopyJob, CopyState, job_from_record
from pleiad.job.copy.plan import CopyPlan, check_plan, find_container
from pleiad.job.copy.run import CopyRun

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.5
_AGAIN_SECONDS = 1.0
RUNNING_MAX = 8
"""So many copies may be under way in an account."""
KEPT_MAX = 100
"""So many that are over are remembered."""


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """A copy as it is at this moment: what is written down of it, and what this server knows beyond that."""

    job: CopyJob
    done: int
    followed: int
    verified: int
    rate: float | None
    """Items per second; None where this server does not work on it."""

    @property
    def left_seconds(self) -> float | None:
        """How long copying will take at this rate."""
        if not self.rate or self.job.is_over:
            return None
        return max(0, self.job.total - self.done) / self.rate


class Copies:
    """Begins copies, works on them, and tells of them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.looks = engine.looks
        self._runs: dict[str, tuple[CopyRun, float, int]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._woken = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Goes on with the copies that are under way."""
        self._watch = asyncio.create_task(self._for_ever())

    async def close(self) -> None:
        """Stops working; the next server goes on where this one was."""
        tasks = [*self._tasks.values(), *([] if self._watch is None else [self._watch])]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()

    # -- asking ----------------------------------------------------------------------------------

    def all(self) -> list[CopyProgress]:
        """The copies under way and those that ended last, the oldest first."""
        jobs = [job_from_record(record) for record in self._engine.catalog.copies()]
        return [self._progress(job) for job in sorted(jobs, key=lambda job: job.began_at)]

    def find(self, id: str) -> CopyProgress:
        """One copy."""
        record = self._engine.catalog.copy_record(id)
        if record is None:
            raise errors.RESOURCE_NOT_FOUND(kind="copy", id=id[:100])
        return self._progress(job_from_record(record))

    def _progress(self, job: CopyJob) -> CopyProgress:
        found = self._runs.get(job.id)
        if found is None or job.is_over:
            return CopyProgress(job, job.done, job.followed, job.verified, None)
        run, began, done_before = found
        seconds = time.monotonic() - began
        rate = (run.done - done_before) / seconds if seconds > 0 else None
        return CopyProgress(job, run.done, run.followed, run.verified, rate)

    @to_the_end
    @on_a_fresh_catalog
    async def start(self, plan: CopyPlan) -> tuple[CopyProgress, bool]:
        """Begins a copy, and says whether it is a new one: the same one that is under way goes on."""
        engine = self._engine
        async with engine.catalog.lock:
            jobs = [job_from_record(record) for record in engine.catalog.copies()]
            under_way = [job for job in jobs if not job.is_over]
            for job in under_way:
                if job.plan == plan:
                    return self._progress(job), False
            self._check_free(plan, under_way)
            check_plan(plan, engine)
            source = find_container(engine, plan.source)
            job = CopyJob(id=uuid.uuid4().hex[:12], plan=plan, source_rid=source.rid, began_at=time.time())
            if not await engine.catalog.save_copy(job.to_record(), None):
                raise StaleCatalogError
            over = sorted((job for job in jobs if job.is_over), key=lambda job: job.ended_at)
            for old in over[: max(0, len(over) - KEPT_MAX)]:
                await engine.catalog.save_copy(None, engine.catalog.copy_record(old.id))
        self._woken.set()
        return self._progress(job), True

    def _check_free(self, plan: CopyPlan, under_way: list[CopyJob]) -> None:
        """Refuses a copy that another one stands in the way of."""
        if len(under_way) >= RUNNING_MAX:
            raise errors.COPY_UNDER_WAY(
                reason=f"There are {len(under_way)} copies under way; wait for one of them, or cancel it."
            )
        names = {plan.source, plan.target}
        for job in under_way:
            if names & {job.plan.source, job.plan.target}:
                raise errors.COPY_UNDER_WAY(
                    reason=f"The copy {job.id} from {job.plan.source} to {job.plan.target} is under way: wait for it, "
                    "or cancel it."
                )
        engine = self._engine
        source = find_container(engine, plan.source)
        other = followed_by(source.properties)
        if other is not None:
            raise errors.COPY_UNDER_WAY(reason=f"The source is being copied by the copy {other}.")
        database = engine.database(plan.target.database)
        target = engine.catalog.find(Kind.CONTAINER, database.rid, plan.target.container)
        mark = None if target is None else closed_of(target.properties)
        if mark is not None and mark.why is Closing.REPLACED:
            raise errors.BAD_REQUEST(
                reason=f"The copy cannot be made: '{plan.target}' is what the copy {mark.copy_id} has left of its "
                "source, and takes no writes."
            )

    @to_the_end
    @on_a_fresh_catalog
    async def ask(self, id: str, asked: Asked) -> CopyProgress:
        """Has a copy completed or cancelled by the server that works on it."""
        catalog = self._engine.catalog
        async with catalog.lock:
            job = self.find(id).job
            if job.is_over:
                raise errors.BAD_REQUEST(reason=f"The copy {id} is over: it is {job.state.value}.")
            if asked is Asked.COMPLETE and not job.plan.is_online:
                raise errors.BAD_REQUEST(
                    reason=f"The copy {id} is not an online one: it completes by itself."
                )
            wanted = job.changed(asked=asked)
            if not await catalog.save_copy(wanted.to_record(), catalog.copy_record(id)):
                raise StaleCatalogError
        self._woken.set()
        return self._progress(wanted)

    # -- working ---------------------------------------------------------------------------------

    async def _for_ever(self) -> None:
        while True:
            for id, task in list(self._tasks.items()):
                if task.done():
                    del self._tasks[id]
            for record in self._engine.catalog.copies():
                if record.rid not in self._tasks and not job_from_record(record).is_over:
                    self._tasks[record.rid] = asyncio.create_task(self._work(record.rid))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._woken.wait()
            self._woken.clear()

    async def _work(self, id: str) -> None:
        """Works on a copy, unless another server does; what fails for want of the store is tried again."""
        try:
            async with self._engine.store.lease(f"copy/{id}") as is_ours:
                if not is_ours:
                    await asyncio.sleep(_AGAIN_SECONDS)
                    return
                await self._engine.looks.look()
                record = self._engine.catalog.copy_record(id)
                if record is None or job_from_record(record).is_over:
                    return
                run = CopyRun(self._engine, record)
                self._runs[id] = run, time.monotonic(), run.done
                await run.run()
                _tell(run.ledger.job)
        except CopyTakenError:
            await asyncio.sleep(_AGAIN_SECONDS)
        except PleiadError as error:
            if not self._engine.store.problems.is_troubled:
                _log.warning("the copy %s is put off: %s", id, error.message)
            await asyncio.sleep(_AGAIN_SECONDS)
        except Exception:
            _log.exception("the copy %s failed, and is tried again", id)
            await asyncio.sleep(_AGAIN_SECONDS)
        finally:
            self._runs.pop(id, None)


def _tell(job: CopyJob) -> None:
    if job.state is CopyState.FAILED:
        _log.warning("the copy %s of %s failed: %s", job.id, job.plan.source, job.problem)
    else:
        _log.info(
            "the copy %s from %s to %s is %s", job.id, job.plan.source, job.plan.target, job.state.value
        )
