"""Starting a coroutine at once, and going on in a task when it waits."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from pleiad.server import eager
from tests.waiting import SECONDS_MAX

mark: ContextVar[str] = ContextVar("mark", default="unset")


async def start_and_wait(coroutine: Any) -> Any:
    started = eager.start(coroutine, asyncio.get_running_loop())
    return await started if isinstance(started, asyncio.Task) else started


async def test_a_coroutine_that_never_waits_makes_no_task() -> None:
    async def answer() -> int:
        return 42

    assert eager.start(answer(), asyncio.get_running_loop()) == 42
    assert len(asyncio.all_tasks()) == 1


async def test_an_exception_of_the_first_step_is_raised_at_once() -> None:
    async def fail() -> None:
        raise LookupError("first")

    with pytest.raises(LookupError, match="first"):
        eager.start(fail(), asyncio.get_running_loop())


async def test_a_coroutine_goes_on_through_several_waits() -> None:
    async def wander() -> list[str]:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        loop.call_later(0.01, future.set_result, "future")
        seen = [await future]
        await asyncio.sleep(0)
        seen.append("bare yield")
        await asyncio.sleep(0.001)  # a timer, one of the kinds of waits
        seen.append("timer")
        async with asyncio.timeout(SECONDS_MAX):
            await asyncio.sleep(0)
        return seen

    assert await start_and_wait(wander()) == ["future", "bare yield", "timer"]


async def test_a_bare_yield_first_is_a_wait() -> None:
    async def nap() -> str:
        await asyncio.sleep(0)
        return "rested"

    assert await start_and_wait(nap()) == "rested"


async def test_a_future_that_is_done_before_the_first_turn_of_the_task_is_still_seen() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def wait() -> str:
        return await future

    started = eager.start(wait(), asyncio.get_running_loop())
    future.set_result("early")
    assert isinstance(started, asyncio.Task)
    assert await started == "early"


async def test_an_exception_after_a_wait_is_the_exception_of_the_task() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise LookupError("later")

    with pytest.raises(LookupError, match="later"):
        await start_and_wait(fail())


async def test_an_exception_of_the_future_can_be_caught_inside() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.get_loop().call_soon(future.set_exception, LookupError("inner"))

    async def guard() -> str:
        try:
            await future
        except LookupError as error:
            return f"caught {error}"
        return "nothing"

    assert await start_and_wait(guard()) == "caught inner"


@pytest.mark.parametrize("turns_before", [0, 1, 3])
async def test_cancellation_reaches_the_coroutine_at_any_time(turns_before: int) -> None:
    seen: list[str] = []

    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        try:
            await future
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            seen.append("cleaned")

    started = eager.start(wait(), asyncio.get_running_loop())
    assert isinstance(started, asyncio.Task)
    for _ in range(turns_before):
        await asyncio.sleep(0)
    started.cancel()
    with pytest.raises(asyncio.CancelledError):
        await started
    assert future.cancelled()
    assert seen == ["cancelled", "cleaned"]


async def test_a_coroutine_may_survive_its_cancellation() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "done all the same"

    started = eager.start(stubborn(), asyncio.get_running_loop())
    assert isinstance(started, asyncio.Task)
    started.cancel()
    assert await started == "done all the same"


async def test_context_variables_stay_inside_and_last_over_waits() -> None:
    async def remember() -> str:
        mark.set("inside")
        await asyncio.sleep(0)
        return mark.get()

    assert await start_and_wait(remember()) == "inside"
    assert mark.get() == "unset"


async def test_two_may_wait_for_one_future() -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[str] = loop.create_future()

    async def wait() -> str:
        return await future

    started = [eager.start(wait(), loop) for _ in range(3)]
    await asyncio.sleep(0)
    future.set_result("here")
    assert [await each for each in started if isinstance(each, asyncio.Task)] == ["here"] * 3


async def test_what_is_waited_for_first_may_have_a_time_limit() -> None:
    """On each version of Python: from 3.12 on it takes a current task."""

    async def wait(seconds: float) -> str:
        # A timer within a timer is what is waited for.
        return await asyncio.wait_for(asyncio.sleep(seconds, "rested"), SECONDS_MAX)

    loop = asyncio.get_running_loop()
    started: list[Any] = []
    # Called by the loop, as by a connection: this test is a task itself.
    loop.call_soon(lambda: started.append(eager.start(wait(0.001), loop)))
    await asyncio.sleep(0)
    assert await started[0] == "rested"
