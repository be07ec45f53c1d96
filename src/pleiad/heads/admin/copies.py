"""Copies of containers over the admin API: beginning, watching, completing and cancelling them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pleiad.heads.admin.answer import json_answer
from pleiad.heads.http.call import HttpCall
from pleiad.job.backup.manifest import moment
from pleiad.job.copy.copies import Copies, CopyProgress
from pleiad.job.copy.job import Asked, CopyState
from pleiad.job.copy.plan import plan_from_json
from pleiad.server.http.message import Response


class CopyOperations:
    """What can be asked of copies; the server that works on them is there as long as the account is open."""

    def __init__(self, copies: Callable[[], Copies]) -> None:
        self._copies = copies

    async def create(self, call: HttpCall) -> Response:
        """Begins a copy, which goes on behind the answer; the same one that is under way is told of instead."""
        plan = plan_from_json(call.json_object(), call.limits)
        progress, is_new = await self._copies().start(plan)
        return json_answer(call, copy_json(progress), 202 if is_new else 200)

    async def list_all(self, call: HttpCall) -> Response:
        """The copies under way and those that ended last, the oldest first."""
        return json_answer(call, {"copies": [copy_json(each) for each in self._copies().all()]})

    async def read(self, call: HttpCall) -> Response:
        return json_answer(call, copy_json(self._copies().find(call.segments[3])))

    async def complete(self, call: HttpCall) -> Response:
        """Has an online copy end as soon as it has caught up."""
        return json_answer(call, copy_json(await self._copies().ask(call.segments[3], Asked.COMPLETE)), 202)

    async def cancel(self, call: HttpCall) -> Response:
        """Has a copy end without a result; a target that it made is removed."""
        return json_answer(call, copy_json(await self._copies().ask(call.segments[3], Asked.CANCEL)), 202)


def copy_json(progress: CopyProgress) -> dict[str, Any]:
    """A copy as the admin API shows it."""
    job = progress.job
    answer: dict[str, Any] = {
        "id": job.id,
        **job.plan.to_json(),
        "state": job.state.value,
        "step": job.step.value,
        "ready": job.is_ready,
        "done": progress.done,
        "total": job.total,
        "followed": progress.followed,
        "verified": progress.verified,
        "ratePerSecond": None if progress.rate is None else round(progress.rate, 1),
        "secondsLeft": None if progress.left_seconds is None else round(progress.left_seconds, 1),
        "beganAt": moment(job.began_at),
        "endedAt": moment(job.ended_at) if job.ended_at else None,
        "resumed": job.resumed,
    }
    if job.state is CopyState.DONE:
        answer |= {"checksum": job.checksum, "heldMs": job.held_ms}
        if job.plan.is_switch:
            answer["sourceKeptAs"] = str(job.plan.target)
    if job.problem:
        answer |= {"problem": job.problem, "items": list(job.items)}
    return answer
