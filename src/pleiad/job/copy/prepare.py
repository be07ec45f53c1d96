"""The beginning of a copy: its target, the marks on both containers, and the one moment that is copied.

Each step finds out whether an earlier process has made it, so a copy that was interrupted here begins here again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence

from pleiad import errors
from pleiad.catalog.copy_marks import Closed, Closing, closed_of, followed_by, with_closed, with_follower
from pleiad.catalog.resource import Kind, Resource
from pleiad.engine import counted
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.reshape.failure import ChangedElsewhereError
from pleiad.errors import PleiadError
from pleiad.job.copy.failure import CopyFailedError
from pleiad.job.copy.job import CopyPlace, CopyState, CopyStep
from pleiad.job.copy.ledger import Ledger
from pleiad.partition.partition import Partition
from pleiad.store.rows import PartitionState

SCRIPTS = (Kind.STORED_PROCEDURE, Kind.TRIGGER, Kind.USER_DEFINED_FUNCTION)
_AGAIN_SECONDS = 0.2


async def open_by_rid(engine: Engine, rid: str, what: str) -> Container:
    """The container of a rid at work; CopyFailedError when it was deleted."""
    resource = engine.catalog.by_rid(Kind.CONTAINER, rid)
    if resource is None:
        await engine.looks.look()
        resource = engine.catalog.by_rid(Kind.CONTAINER, rid)
    if resource is None:
        raise CopyFailedError(f"the {what} was deleted meanwhile")
    return await engine.openings.open(resource)


@contextlib.asynccontextmanager
async def held_when_free(
    engine: Engine, ledger: Ledger, container: Container
) -> AsyncIterator[list[tuple[Partition, PartitionState]]]:
    """A time in which nobody writes to a container; waits while another server splits or moves its partitions."""
    while True:
        async with contextlib.AsyncExitStack() as stack:
            try:
                fenced = await stack.enter_async_context(engine.reshaper.held(container))
            except ChangedElsewhereError:
                ledger.check_wanted()
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            yield fenced
            return


class Preparation:
    """The first step of one copy."""

    def __init__(self, engine: Engine, ledger: Ledger) -> None:
        self._engine = engine
        self._ledger = ledger

    async def run(self) -> None:
        """Has target, marks and places ready; CopyFailedError says why the copy cannot begin."""
        ledger = self._ledger
        try:
            if not ledger.job.target_rid:
                await self._make_target()
            if not ledger.job.places:
                await self._check_empty()
                await self._copy_scripts()
                await self._choose_moment()
        except PleiadError as error:
            if error.reason in (errors.Reason.UNAVAILABLE, errors.Reason.TIMED_OUT):
                raise
            raise CopyFailedError(error.message) from error

    async def _make_target(self) -> None:
        """The target, new or empty, closed to all but the copy."""
        engine, job = self._engine, self._ledger.job
        source = await open_by_rid(engine, job.source_rid, "source")
        closed = Closed(Closing.FILLED, job.id, int(time.time()))
        database = engine.database(job.plan.target.database)
        target = engine.catalog.find(Kind.CONTAINER, database.rid, job.plan.target.container)
        if target is None:
            definition = job.plan.target_definition(source.resource)
            throughput = job.plan.target_throughput(engine, source.resource)
            marks = with_closed({}, closed)
            target = await engine.create_container(database, definition, throughput, marks)
            await self._ledger.note(target_rid=target.rid, makes_target=True, state=CopyState.RUNNING)
            return
        mark = closed_of(target.properties)
        if mark is not None and mark.copy_id == job.id:
            await self._ledger.note(target_rid=target.rid, makes_target=True, state=CopyState.RUNNING)
            return
        if mark is not None:
            raise CopyFailedError(f"the target '{job.plan.target}' belongs to the copy {mark.copy_id}")
        await self._take_target(target, closed)

    async def _take_target(self, target: Resource, closed: Closed) -> None:
        """Closes a container that is there."""
        catalog = self._engine.catalog
        container = await self._engine.openings.open(target)
        self._refuse_items(sum(state.items for state in await counted.states(container)))

        def closing() -> Sequence[tuple[Resource, Resource]]:
            current = catalog.by_rid(Kind.CONTAINER, target.rid) or target
            return [(current, current.changed(with_closed(current.properties, closed)))]

        await self._ledger.note(closing, target_rid=target.rid, state=CopyState.RUNNING)

    async def _check_empty(self) -> None:
        """Makes sure that the target holds nothing, before the first item is put there."""
        container = await open_by_rid(self._engine, self._ledger.job.target_rid, "target")
        # A writer that knew the container before it was closed is refused, or its item is seen here.
        async with held_when_free(self._engine, self._ledger, container) as fenced:
            self._refuse_items(sum(state.items for _, state in fenced))

    def _refuse_items(self, count: int) -> None:
        if count:
            raise CopyFailedError(
                f"the target '{self._ledger.job.plan.target}' is not empty: it holds {count:,} items, and a copy never "
                "mixes its items with others"
            )

    async def _copy_scripts(self) -> None:
        engine, job = self._engine, self._ledger.job
        if not job.makes_target:
            return
        target = engine.catalog.by_rid(Kind.CONTAINER, job.target_rid)
        if target is None:
            raise CopyFailedError("the target was deleted meanwhile")
        for kind in SCRIPTS:
            for script in engine.catalog.children(kind, job.source_rid):
                await engine.create_child(kind, target, script.id, dict(script.properties), upsert=True)

    async def _choose_moment(self) -> None:
        """Has the source remember all changes, and then stops its writers for the moment that is copied."""
        engine, ledger = self._engine, self._ledger
        source = await open_by_rid(engine, ledger.job.source_rid, "source")
        if followed_by(source.resource.properties) != ledger.job.id:
            await self._follow(source)
        async with held_when_free(engine, ledger, source) as fenced:
            places = tuple(CopyPlace(partition.span, state.lsn, 0, state.lsn) for partition, state in fenced)
            total = sum(state.items for _, state in fenced)
            await ledger.note(places=places, total=total, step=CopyStep.COPYING)

    async def _follow(self, source: Container) -> None:
        ledger, rid = self._ledger, source.resource.rid

        def following() -> Sequence[tuple[Resource, Resource]]:
            current = self._engine.catalog.by_rid(Kind.CONTAINER, rid)
            if current is None:
                raise CopyFailedError("the source was deleted meanwhile")
            other = followed_by(current.properties)
            if other is not None and other != ledger.job.id:
                raise CopyFailedError(f"the source is being copied by the copy {other}")
            return [(current, current.changed(with_follower(current.properties, ledger.job.id)))]

        await ledger.note(following)
