"""The desk, seen by a head of another protocol: nothing is done but through it, and it forgets nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from time import perf_counter, time

import pytest

from pleiad import errors
from pleiad.engine.access import IDENTITY, MASTER, NOBODY, READ_ONLY, Caller, Grant, Role, Target
from pleiad.engine.desk import Cut, Desk
from pleiad.engine.engine import Engine
from pleiad.engine.faults import Effect, Rule
from pleiad.engine.items import Key
from pleiad.engine.operation import Operation
from pleiad.engine.visit import Destination, Visit
from pleiad.errors import PleiadError, Reason
from pleiad.limits import Limits
from pleiad.partition.governor import Throttle

Opened = Callable[..., AbstractAsyncContextManager[Engine]]


@dataclass
class Said:
    """An answer of the toy protocol: 1 for done, 0 for failed."""

    status: int
    reason: Reason | None = None


class Knock(Visit):
    """A request of the toy protocol."""

    def __init__(self, operation: Operation, caller: Caller, to: Destination | None = None) -> None:
        super().__init__("toy", perf_counter())
        self.operation = operation
        self._who = caller
        self._to = to or Destination()
        self.done = 0

    async def identify(self, engine: Engine) -> Caller:
        return self._who

    async def target(self, engine: Engine, grant: Grant) -> Target:
        return Target(container_rid="mine")

    def destination(self) -> Destination:
        return self._to

    @property
    def key(self) -> Key | None:
        return None


async def work(visit: Knock) -> Said:
    assert visit.engine is not None
    visit.done += 1
    visit.charge_ru = 2.0
    return Said(1)


def told(error: PleiadError, activity_id: str) -> Said:
    assert activity_id == "toy"
    return Said(0, error.reason)


def counted(engine: Engine) -> dict[tuple[str, int], tuple[int, float]]:
    return {(each.operation, each.status): (each.requests, each.charge_ru) for each in engine.traffic}


def holder(container_rid: str, may_write: bool = True) -> Caller:
    return Caller(Role.RESOURCE, Grant(container_rid, None, None, may_write))


@pytest.mark.parametrize(
    ("operation", "caller", "reason"),
    [
        (Operation.CREATE_DATABASE, MASTER, None),
        (Operation.CREATE_DATABASE, NOBODY, Reason.UNAUTHENTICATED),
        (Operation.READ_ITEM, NOBODY, Reason.UNAUTHENTICATED),
        (Operation.READ_HEALTH, NOBODY, None),
        (Operation.READ_ITEM, READ_ONLY, None),
        (Operation.DELETE_ITEM, READ_ONLY, Reason.FORBIDDEN),
        (Operation.CREATE_DATABASE, IDENTITY, Reason.FORBIDDEN),
        (Operation.UPSERT_ITEM, holder("mine"), None),
        (Operation.UPSERT_ITEM, holder("mine", may_write=False), Reason.FORBIDDEN),
        (Operation.UPSERT_ITEM, holder("another"), Reason.FORBIDDEN),
    ],
)
async def test_work_is_done_only_for_who_may_have_it_done(
    engine: Opened, operation: Operation, caller: Caller, reason: Reason | None
) -> None:
    async with engine() as opened:
        visit = Knock(operation, caller)
        answer = await Desk(opened).serve(visit, work, told)
        assert (answer.reason, visit.done) == (reason, 0 if reason else 1)
        assert counted(opened) == {(operation.kind, answer.status): (1, 0.0 if reason else 2.0)}


async def test_a_visit_that_was_not_admitted_has_no_engine(engine: Opened) -> None:
    async with engine() as opened:
        visit = Knock(Operation.READ_ITEM, NOBODY)
        await Desk(opened).serve(visit, work, told)
        with pytest.raises(AttributeError):
            _ = visit.engine


async def test_requests_on_metadata_have_a_budget_whatever_their_protocol(engine: Opened) -> None:
    limits = Limits(metadata_ru=10)
    async with engine(limits, throttle=Throttle()) as opened:
        desk = Desk(opened)
        answers = [await desk.serve(Knock(Operation.LIST_DATABASES, MASTER), work, told) for _ in range(200)]
        assert answers[0].status == 1
        assert answers[-1].reason is Reason.THROTTLED
        assert (await desk.serve(Knock(Operation.READ_ITEM, MASTER), work, told)).status == 1


@pytest.mark.parametrize(("effect", "done"), [(Effect.CUT_BEFORE, 0), (Effect.CUT_AFTER, 1)])
async def test_faults_meet_requests_of_every_head(engine: Opened, effect: Effect, done: int) -> None:
    async with engine() as opened:
        desk = Desk(opened)
        opened.faults.add(Rule(id="1", effect=effect, count=1, expires_at=time() + 60))
        visit = Knock(Operation.READ_ITEM, MASTER, Destination("db", "c"))
        with pytest.raises(Cut):
            await desk.serve(visit, work, told)
        assert visit.done == done
        opened.faults.add(Rule(id="2", effect=Effect.TOO_MANY_REQUESTS, count=1, expires_at=time() + 60))
        assert (await desk.serve(visit, work, told)).reason is Reason.THROTTLED
        assert (await desk.serve(visit, work, told)).status == 1


async def test_what_nobody_foresaw_is_told_as_a_failure_and_logged(
    engine: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(visit: Knock) -> Said:
        visit.charge_ru = 9.0
        raise ZeroDivisionError

    async with engine() as opened:
        visit = Knock(Operation.READ_ITEM, MASTER)
        with caplog.at_level(logging.ERROR):
            answer = await Desk(opened).serve(visit, broken, told)
        assert answer.reason is Reason.INTERNAL
        assert "activity toy failed" in caplog.text
        assert counted(opened) == {("read", 0): (1, 0.0)}


async def test_a_second_try_asks_for_rights_again(engine: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async with engine() as opened:
        visit = Knock(Operation.READ_ITEM, READ_ONLY)

        async def look(error: PleiadError) -> bool:
            visit._who = NOBODY  # meanwhile the key was taken away
            return error.row is errors.OWNER_NOT_FOUND

        async def missing(visit: Knock) -> Said:
            visit.done += 1
            raise errors.OWNER_NOT_FOUND(kind="database", id="x")

        monkeypatch.setattr(opened, "second_look", look)
        answer = await Desk(opened).serve(visit, missing, told)
        assert (answer.reason, visit.done) == (Reason.UNAUTHENTICATED, 1)


async def test_while_it_is_quiet_visits_wait_and_then_have_the_engine_there_is(engine: Opened) -> None:
    async with engine() as before:
        desk = Desk(before)
    async with engine() as after:
        visits = [Knock(Operation.READ_ITEM, caller) for caller in (MASTER, READ_ONLY)]
        async with desk.quiet(60):
            serving = [asyncio.ensure_future(desk.serve(visit, work, told)) for visit in visits]
            given_up = asyncio.ensure_future(desk.serve(Knock(Operation.READ_ITEM, MASTER), work, told))
            for _ in range(3):
                await asyncio.sleep(0)
            given_up.cancel()
            assert [visit.done for visit in visits] == [0, 0]
            desk.move_to(after)
        assert [(await answer).status for answer in serving] == [1, 1]
        assert [visit.engine for visit in visits] == [after, after]
        assert counted(before) == {}


async def test_it_is_not_quiet_before_the_visits_under_way_have_ended(engine: Opened) -> None:
    may_end = asyncio.Event()

    async def long_work(visit: Knock) -> Said:
        await may_end.wait()
        return Said(1)

    async with engine() as opened:
        desk = Desk(opened)
        serving = asyncio.ensure_future(desk.serve(Knock(Operation.READ_ITEM, MASTER), long_work, told))
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError, match="still under way"):
            async with desk.quiet(0.0):
                pytest.fail("it is not quiet")
        # What was in vain keeps nobody waiting.
        assert (await desk.serve(Knock(Operation.READ_ITEM, MASTER), work, told)).status == 1
        may_end.set()
        async with desk.quiet(60):
            assert serving.done()
