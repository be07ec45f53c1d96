"""Warnings over the admin API: what an operator should look at."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pleiad.engine.watch import StandingWarning
from pleiad.heads.admin.answer import json_answer
from pleiad.heads.nosql.call import Call
from pleiad.server.message import Response

LOOK_SECONDS = 5.0
"""How long an answer waits for the look; a large partition may take longer to be summed."""


async def list_all(call: Call) -> Response:
    """The warnings that stand, after a fresh look."""
    watch = call.engine.watch
    await watch.look_now(LOOK_SECONDS)
    return json_answer(call, {"warnings": [to_json(each) for each in watch.warnings.standing()]})


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
