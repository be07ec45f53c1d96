"""Workload records of all workers: they write to one room, and tell each other of switches and of readers."""

from __future__ import annotations

from collections.abc import Callable

from pleiad.engine.engine import Engine
from pleiad.heads.admin.workers.workers import Workers

_SWITCHED = "workload switched"
_FORGOTTEN = "workload forgotten"
_WRITTEN = "workload written"


class SharedWorkload:
    """The other workers, as the recorder of this one sees them."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    async def open(self, engine: Callable[[], Engine]) -> None:
        """Does what the others ask for, and goes by what they have switched since this one looked."""
        workers = self._workers
        engine().workload.others = self
        workers.do(_SWITCHED, lambda rid: engine().workload.look_at(rid))
        workers.do(_FORGOTTEN, lambda rid: engine().workload.let_go(rid))
        workers.do(_WRITTEN, lambda rid: engine().workload.write_out(rid))
        await engine().workload.look_at_all()

    async def switched(self, rid: str) -> None:
        await self._workers.have_done(_SWITCHED, rid)

    async def forgotten(self, rid: str) -> None:
        await self._workers.have_done(_FORGOTTEN, rid)

    async def written(self, rid: str) -> int:
        return sum(await self._workers.have_done(_WRITTEN, rid))
