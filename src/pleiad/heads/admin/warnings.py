"""Warnings over the admin API: what an operator should look at."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pleiad.engine.engine import Engine
from pleiad.engine.watch.watch import StandingWarning
from pleiad.heads.admin.answer import json_answer
from pleiad.heads.http.call import HttpCall
from pleiad.server.http.message import Response
from pleiad.store.problems import Problem

LOOK_SECONDS = 5.0
"""How long an answer waits for the look; a large partition may take longer to be summed."""


async def list_all(call: HttpCall) -> Response:
    """The warnings that stand, after a fresh look."""
    await call.engine.watch.look_now(LOOK_SECONDS)
    return json_answer(call, {"warnings": standing(call.engine)})


def standing(engine: Engine) -> list[dict[str, Any]]:
    """Those that the last look found, problems of the store first."""
    of_the_store = [_problem(engine, problem) for problem in engine.store.problems.standing()]
    return [*of_the_store, *(to_json(each) for each in engine.watch.warnings.standing())]


def _problem(engine: Engine, problem: Problem) -> dict[str, Any]:
    """A problem of the store; one of a segment names the container and the physical partition that it is about."""
    place = engine.place_of_segment(problem.subject)
    database, container, partition = place or ("", "", "")
    return {
        "kind": problem.kind,
        "database": database,
        "container": container,
        "partition": partition,
        "message": problem.message,
        "since": datetime.fromtimestamp(problem.since, UTC).isoformat(timespec="seconds"),
        "values": {"subject": problem.subject} if problem.subject else {},
    }


def to_json(warning: StandingWarning) -> dict[str, Any]:
    return {
        "kind": warning.kind,
        "database": warning.database,
        "container": warning.container,
        "partition": warning.partition,
        **({"key": warning.subject} if warning.subject else {}),
        "message": warning.message,
        "since": datetime.fromtimestamp(warning.since, UTC).isoformat(timespec="seconds"),
        "values": warning.values,
    }
