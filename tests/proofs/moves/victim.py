"""Processes that carry out a plan and are killed before one of its requests.

    python -m tests.proofs.moves.victim ENDPOINT KEY DATABASE CONTAINER

reads from standard input one case a line, as JSON, carries each out in a process of its own, and writes how that ended:
the signal that killed it, or 0. Forking is much faster than starting Python for each.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from azure.cosmos import CosmosClient
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient

from pleiad.strategy import Plan, move_item, reconcile, run, run_async
from pleiad.strategy.plan import Pause


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a victim does, and before which of its requests it is killed; 0 for none."""

    client: str
    work: str
    id: str = ""
    source: str = ""
    target: str = ""
    kill_before: int = 0


def mortal(plan: Plan[Any], kill_before: int) -> Plan[Any]:
    """The plan, in a process that is killed when it is about to send one of its requests."""
    step, requests = next(plan), 0
    while True:
        requests += not isinstance(step, Pause)
        if requests == kill_before:
            os.kill(os.getpid(), signal.SIGKILL)
        outcome = yield step
        try:
            step = plan.send(outcome)
        except StopIteration as end:
            return end.value


def plan_of(case: Case) -> Plan[Any]:
    plan: Callable[[], Plan[Any]] = {
        "move": lambda: move_item(case.id, case.source, case.target),
        "reconcile": lambda: reconcile(idle_seconds=0),
    }[case.work]
    return mortal(plan(), case.kill_before)


def carry_out(case: Case, endpoint: str, key: str, database: str, container: str) -> None:
    async def asynchronously() -> None:
        async with AsyncCosmosClient(endpoint, key) as client:
            found = client.get_database_client(database).get_container_client(container)
            await run_async(found, plan_of(case))

    if case.client == "async":
        asyncio.run(asynchronously())
    else:
        found = CosmosClient(endpoint, key).get_database_client(database).get_container_client(container)
        run(found, plan_of(case))


def main(arguments: list[str]) -> None:
    endpoint, key, database, container = arguments
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            carry_out(Case(**json.loads(line)), endpoint, key, database, container)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
