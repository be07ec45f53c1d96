"""The end of a copy: its target opens, perhaps under the name of its source, or is removed; nothing is left behind.

The end is one commit of the catalog. Before it nothing has changed for anybody, after it the copy is over.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pleiad import errors
from pleiad.catalog.copy_marks import Closed, Closing, closed_of, followed_by, with_closed, with_follower
from pleiad.catalog.resource import Kind, Resource
from pleiad.engine.engine import Engine
from pleiad.job.copy.job import CopyState, CopyStep
from pleiad.job.copy.ledger import Ledger

Change = tuple[Resource, Resource]


class Ending:
    """The last step of one copy."""

    def __init__(self, engine: Engine, ledger: Ledger) -> None:
        self._engine = engine
        self._ledger = ledger

    async def done(self, **fields: Any) -> None:
        """Opens the target, and exchanges the names where that was asked for."""
        job = self._ledger.job
        await self._end(job.plan.is_switch, state=CopyState.DONE, step=CopyStep.ENDING, **fields)

    async def failed(self, problem: str, items: Sequence[str]) -> None:
        """Ends a copy that cannot be made; a target that it made is removed."""
        await self._give_up(state=CopyState.FAILED, problem=problem, items=tuple(items))

    async def cancelled(self) -> None:
        await self._give_up(state=CopyState.CANCELLED)

    async def _give_up(self, **fields: Any) -> None:
        job = self._ledger.job
        target = self._engine.catalog.by_rid(Kind.CONTAINER, job.target_rid) if job.target_rid else None
        if target is not None and job.makes_target:
            mark = closed_of(target.properties)
            if mark is not None and mark.copy_id == job.id:
                await self._engine.delete(target)
        await self._end(is_switch=False, **fields)

    async def _end(self, is_switch: bool, **fields: Any) -> None:
        changes = self._exchange if is_switch else self._release
        # Nobody has to find the places again.
        await self._ledger.note(changes, ended_at=time.time(), places=(), **fields)

    def _found(self, rid: str) -> Resource | None:
        return self._engine.catalog.by_rid(Kind.CONTAINER, rid) if rid else None

    def _release(self) -> list[Change]:
        """Both containers without the marks of the copy."""
        job, changes = self._ledger.job, []
        source, target = self._found(job.source_rid), self._found(job.target_rid)
        if source is not None and followed_by(source.properties) == job.id:
            changes.append((source, source.changed(with_follower(source.properties, None))))
        mark = None if target is None else closed_of(target.properties)
        if target is not None and mark is not None and mark.copy_id == job.id:
            changes.append((target, target.changed(with_closed(target.properties, None))))
        return changes

    def _exchange(self) -> list[Change]:
        """The target under the name of the source and open, the source under that of the target and closed."""
        job = self._ledger.job
        source, target = self._found(job.source_rid), self._found(job.target_rid)
        if source is None or target is None:
            raise errors.UNAVAILABLE(reason="A container of the copy is being deleted.")
        closed = Closed(Closing.REPLACED, job.id, int(time.time()))
        kept = with_closed(with_follower(source.properties, None), closed)
        return [
            (source, source.changed(kept, target.id)),
            (target, target.changed(with_closed(target.properties, None), source.id)),
        ]
