"""Faults on demand of all workers: who is asked for one tells the others, and who starts later finds a file of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from pleiad.engine.engine import Engine
from pleiad.heads.admin import faults
from pleiad.heads.admin.workers.workers import Workers
from pleiad.heads.http.call import HttpCall
from pleiad.server.http.message import Response

_ADDED = "fault set"
_ENDED = "fault ended"
_CLEARED = "faults cleared"
_SECONDS_LEFT_MIN = 0.001


class SharedFaults:
    """Sets and ends faults in all workers; hits are counted together by `engine.faults`."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._directory: Path = workers.place.directory / "faults"
        self._directory.mkdir(exist_ok=True, mode=0o700)

    async def open(self, engine: Callable[[], Engine]) -> None:
        """Listens to the others, and takes the faults that are in force."""
        workers = self._workers
        engine().faults.share(workers.counts)
        workers.listen_for(_ADDED, lambda told: _set(engine(), told))
        workers.listen_for(_ENDED, lambda told: engine().faults.remove(told))
        workers.listen_for(_CLEARED, lambda told: engine().faults.clear())
        for path in sorted(self._directory.glob("*.json"), key=lambda each: int(each.stem)):
            _set(engine(), orjson.loads(path.read_bytes()))

    async def add(self, call: HttpCall) -> Response:
        answer = await faults.add(call)
        id = orjson.loads(answer.body)["id"]
        rule = call.engine.faults.find(id)
        ends_at = 0.0 if rule is None else rule.expires_at
        told = {"id": id, "body": call.json_object(), "endsAt": ends_at}
        (self._directory / f"{id}.json").write_bytes(orjson.dumps(told))
        await self._workers.tell(_ADDED, told)
        return answer

    async def delete(self, call: HttpCall) -> Response:
        id = call.segments[3]
        answer = await faults.delete(call)
        (self._directory / f"{id}.json").unlink(missing_ok=True)
        await self._workers.tell(_ENDED, id)
        return answer

    async def clear(self, call: HttpCall) -> Response:
        answer = await faults.clear(call)
        for path in self._directory.glob("*.json"):
            path.unlink(missing_ok=True)
        await self._workers.tell(_CLEARED, None)
        return answer


def _set(engine: Engine, told: dict[str, Any]) -> None:
    left = told["endsAt"] - time.time()
    if left < _SECONDS_LEFT_MIN or engine.faults.find(told["id"]) is not None:
        return
    rule = faults.rule_of({**told["body"], "seconds": left}, told["id"])
    rule.hits = engine.faults.hits_of(rule.id)
    if not rule.is_over(time.time()):
        engine.faults.add(rule)
