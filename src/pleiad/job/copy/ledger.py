"""The record of a copy in the hands of the one who works on it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from pleiad import errors
from pleiad.catalog.resource import Resource
from pleiad.engine.engine import Engine
from pleiad.engine.steady import to_the_end
from pleiad.job.copy.failure import CopyCancelledError, CopyTakenError
from pleiad.job.copy.job import Asked, job_from_record
from pleiad.store.catalog import Record

_ATTEMPTS = 20
_AGAIN_SECONDS = 0.05

Changes = Callable[[], Sequence[tuple[Resource, Resource]]]
"""Versions of resources that take the place of others together with the record, as they are at that moment."""


def _none() -> Sequence[tuple[Resource, Resource]]:
    return ()


class Ledger:
    """Writes down how far a copy is; CopyTakenError when that is no longer this server's to do."""

    def __init__(self, engine: Engine, record: Record) -> None:
        self._engine = engine
        self._record = record
        self.job = job_from_record(record)

    async def take(self) -> None:
        """Makes the copy this process's own."""
        resumed = self.job.resumed + bool(self.job.token)
        await self._write(_none, {"token": secrets.token_hex(8), "resumed": resumed}, takes=True)

    def check_ours(self) -> None:
        """Raises when another server works on the copy, as far as this one has learned of it."""
        found = self._found()
        if found is None or found.body["token"] != self.job.token:
            raise CopyTakenError

    def check_wanted(self) -> None:
        """Raises when somebody wants the copy to end."""
        self.check_ours()
        if self.asked is Asked.CANCEL:
            raise CopyCancelledError

    @property
    def asked(self) -> Asked | None:
        """What somebody wants of the copy by now."""
        found = self._found()
        return None if found is None else job_from_record(found).asked

    async def note(self, changes: Changes = _none, **fields: Any) -> None:
        """Writes down what has changed of the copy, and with it resources, in one durable step."""
        await self._write(changes, fields)

    @to_the_end
    async def _write(self, changes: Changes, fields: dict[str, Any], takes: bool = False) -> None:
        for _ in range(_ATTEMPTS):
            async with self._engine.catalog.lock:
                found = self._found()
                if found is None or (not takes and found.body["token"] != self.job.token):
                    raise CopyTakenError
                self._record = found
                self.job = self.job.changed(asked=job_from_record(found).asked)
                job = self.job.changed(**fields)
                record = job.to_record()
                changed = changes()
                if await self._engine.catalog.save_copy(record, found, changed):
                    self.job, self._record = job, record
                    self._show([after for _, after in changed])
                    return
            await self._engine.looks.look()
            await asyncio.sleep(_AGAIN_SECONDS)
        raise errors.UNAVAILABLE(reason="Other servers are changing the catalog; retry.")

    def _show(self, changed: Sequence[Resource]) -> None:
        """Has the containers at work act by what was saved, before anybody is asked for anything else."""
        if changed:
            self._engine.at_work.forget_paths()
        for resource in changed:
            container = self._engine.at_work.get(resource.rid)
            if container is not None:
                container.adopt(resource, container.database)

    def _found(self) -> Record | None:
        return self._engine.catalog.copy_record(self.job.id)
