"""Stored procedures and triggers: scripts that read and change one logical partition in one transaction.

Everything the scripts of a request do, and the operation that triggers belong to, is one write with one LSN, or
nothing. It is read from one moment of the logical partition. When somebody else changed an item that it changes too,
it starts over; scripts of one logical partition that had to start over take turns.

Invariants:
- nothing is written unless every script of the request has ended well;
- no operation of a script reaches another logical partition than that of the request's key.

Limits: time, memory, stack, request units and the size of the answer, all by `limits.py`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple, TypeVar

from pleiad import charge, errors
from pleiad.catalog.resource import Kind, Resource
from pleiad.charge import Charge
from pleiad.engine import items, session
from pleiad.engine.container import Container
from pleiad.engine.items import ItemAnswer, Key
from pleiad.engine.patch_turns import patch_turns
from pleiad.engine.script.clock import Clock
from pleiad.engine.script.host import ScriptHost
from pleiad.engine.script.run import Ended, Script, run_script
from pleiad.engine.session import Session
from pleiad.engine.transaction import AllowedOperation, ItemOperation, ItemVerb, Refusal
from pleiad.errors import PleiadError
from pleiad.item.body import load
from pleiad.partition.governor import NORMAL, Lane
from pleiad.partition.partition import Partition
from pleiad.script.process import ScriptProcess
from pleiad.store.rows import Outcome
from pleiad.store.segments import SegmentDroppedError

_ATTEMPTS = 20
_SCRIPTS_TURN = ""
"""No item has this id, so the turn of this id is that of the scripts."""
_RUN_FOR: dict[ItemVerb, frozenset[str]] = {
    ItemVerb.CREATE: frozenset({"all", "create"}),
    ItemVerb.UPSERT: frozenset({"all", "upsert"}),
    ItemVerb.REPLACE: frozenset({"all", "replace", "update"}),
    ItemVerb.PATCH: frozenset({"all", "replace", "update"}),
    ItemVerb.DELETE: frozenset({"all", "delete"}),
}

_Answer = TypeVar("_Answer")


class ProcedureAnswer(NamedTuple):
    """The end of a stored procedure: where it ran, what it cost, what it set as its response, and its log."""

    partition: Partition
    charge: Charge
    body: bytes
    log: str
    steps: Sequence[AllowedOperation] = ()
    """The first operations of the procedure."""


class TriggeredAnswer(NamedTuple):
    """The end of an item operation with triggers; `body` is what a post-trigger put in the place of the item."""

    answer: ItemAnswer
    body: bytes | None


# -- stored procedures -----------------------------------------------------------------------------


async def execute(
    container: Container,
    procedure: Resource,
    key: Key | None,
    arguments: str,
    is_logging: bool = False,
    seen: Session = (),
    lane: Lane = NORMAL,
) -> ProcedureAnswer:
    """Runs a stored procedure in the logical partition of a key, with arguments in the text of an array."""
    script = Script(source=procedure.properties["body"], arguments=arguments, is_logging=is_logging)

    async def attempt(process: ScriptProcess, host: ScriptHost, clock: Clock) -> _Attempt[ProcedureAnswer]:
        ended = await run_script(process, container, script, host, clock)

        def answer(outcomes: Sequence[Outcome]) -> ProcedureAnswer:
            body = b"" if ended.response_body is None else host.settled(ended.response_body, outcomes)
            partition = host.transaction.partition
            return ProcedureAnswer(partition, charge.script(host.cost), body, ended.log, host.steps)

        return answer

    with _partition(container, key).turn(lane) as turn:
        done = await _in_transaction(container, key, seen, attempt)
        turn.ru = done.charge.ru
    return done


# -- triggers --------------------------------------------------------------------------------------


async def write_with_triggers(
    container: Container,
    operation: ItemOperation,
    key: Key | None,
    pre: Sequence[str],
    post: Sequence[str],
    lane: Lane = NORMAL,
) -> TriggeredAnswer:
    """Does one item operation with the triggers it names, before and after it, all as one change."""
    kind = operation.kind
    before = [_trigger(container, name, "pre", kind) for name in pre]
    after = [_trigger(container, name, "post", kind) for name in post]
    if operation.body:
        load(operation.body)

    async def attempt(process: ScriptProcess, host: ScriptHost, clock: Clock) -> _Attempt[TriggeredAnswer]:
        triggers_cost = Charge()
        body = operation.body

        async def run(trigger: Resource, response: bytes | None) -> Ended:
            nonlocal triggers_cost
            script = Script(
                source=trigger.properties["body"],
                operation=kind.value,
                request_body=body or None,
                is_request_writable=response is None,
                has_response=response is not None,
                response_body=response or None,
            )
            ended = await run_script(process, container, script, host, clock)
            process.refresh()
            triggers_cost += charge.script(host.cost)
            return ended

        for trigger in before:
            body = (await run(trigger, None)).request_body or body
        host.begin()
        step = await host.write(operation._replace(body=body))
        cost = host.cost
        seen = b"" if step.item is None else host.last_written()
        override: bytes | None = None
        for trigger in after:
            override = (await run(trigger, override or seen)).response_body or override

        def answer(outcomes: Sequence[Outcome]) -> TriggeredAnswer:
            assert step.mutation is not None
            outcome = outcomes[step.mutation]
            row = None if step.item is None else outcome.row
            partition = host.transaction.partition
            is_new = outcome.old is None
            done = ItemAnswer(partition, cost + triggers_cost, row, created=is_new, old=outcome.old)
            return TriggeredAnswer(done, None if override is None else host.settled(override, outcomes))

        return answer

    with _partition(container, key).turn(lane) as turn:
        done = await _in_transaction(container, key, (), attempt)
        turn.ru = done.answer.charge.ru
    return done


def _partition(container: Container, key: Key | None) -> Partition:
    return container.map.find(container.epk_of(container.full_key(key)))


def _trigger(container: Container, name: str, type: str, kind: ItemVerb) -> Resource:
    trigger = container.scripts.find(Kind.TRIGGER, name)
    if trigger is None:
        raise errors.TRIGGER_NOT_FOUND(id=name)
    wanted_type, wanted = trigger.properties["triggerType"], trigger.properties["triggerOperation"]
    if wanted_type.lower() != type or wanted.lower() not in _RUN_FOR[kind]:
        raise errors.TRIGGER_MISMATCH(id=name, type=wanted_type, operation=wanted)
    return trigger


# -- transactions ----------------------------------------------------------------------------------

_Attempt = Callable[[Sequence[Outcome]], _Answer]
"""What an attempt will answer once it is committed."""


async def _in_transaction(
    container: Container,
    key: Key | None,
    seen: Session,
    attempt: Callable[[ScriptProcess, ScriptHost, Clock], Awaitable[_Attempt[_Answer]]],
) -> _Answer:
    """Runs an attempt and commits it; starts over when somebody else was faster, as long as there is time."""
    full = container.full_key(key)
    epk = container.epk_of(full)
    partition = container.map.find(epk)
    if seen:
        session.check(seen, partition, container.resource.number)
    async with AsyncExitStack() as turn:
        process = await turn.enter_async_context(container.scripts.pool.lease())
        clock = Clock(container.limits)
        for number in range(_ATTEMPTS):
            if number == 1:
                await turn.enter_async_context(patch_turns.turn(container.resource.rid, epk, _SCRIPTS_TURN))
            if number:
                process.refresh()
            partition = container.map.find(epk)
            host = ScriptHost(container, partition, full, int(time.time()), process, clock)
            try:
                answer = await attempt(process, host, clock)
                host.close()
                outcomes = await host.transaction.commit()
            except SegmentDroppedError:
                if container.map.find(epk) is partition:
                    raise
                continue  # the rows have moved
            except PleiadError as error:
                raise items.failed(container, partition, error, charge.script(host.cost)) from None
            finally:
                host.close()
            if isinstance(outcomes, Refusal):
                raise items.failed(container, partition, outcomes.error, charge.script(host.cost))
            if outcomes is not None:
                return answer(outcomes)
            if clock.seconds_left <= 0:
                break
    raise items.failed(container, partition, errors.RETRY_WITH(), charge.failed())
