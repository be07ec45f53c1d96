"""Start a coroutine at once, and make a task of it only when it really has to wait.

Most requests are answered without waiting for anything. For those a task is pure cost: an object, a trip
through the ready queue and a wake-up later. So the first step is run inline; a coroutine that finishes in it
never becomes a task, and one that waits goes on in an ordinary `asyncio.Task` from exactly where it stands.

Promises
- The coroutine runs in its own copy of the caller's context, the same one before and after the first wait.
- Exceptions and cancellation reach it as in any task, also when the task is cancelled before its first turn.

Since Python 3.12 tasks can be started so by themselves, and are: there `asyncio.wait_for`, on which much is built,
needs a current task.

Limit: before that, until the first real wait there is no current task, so `asyncio.timeout`, `asyncio.TaskGroup` and
`asyncio.current_task` work only after it (``await asyncio.sleep(0)`` is a wait).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from types import TracebackType
from typing import Any, TypeVar, cast

T = TypeVar("T")


class _Continuation(Coroutine[Any, Any, T]):
    """A started coroutine as a fresh one: hands out what it already yielded, then delegates.

    A class and not a generator, because throwing into a generator that has not started ends it without the
    inner coroutine ever learning of the exception.
    """

    __slots__ = ("_coroutine", "_waiting", "_yielded")

    def __init__(self, coroutine: Coroutine[Any, Any, T], yielded: Any) -> None:
        self._coroutine = coroutine
        self._yielded = yielded
        self._waiting = True

    def send(self, value: Any) -> Any:
        if self._waiting:
            self._waiting = False
            yielded, self._yielded = self._yielded, None
            if isinstance(yielded, asyncio.Future):
                yielded._asyncio_future_blocking = True
            return yielded
        return self._coroutine.send(value)

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        traceback: TracebackType | None = None,
    ) -> Any:
        if self._waiting:
            self._waiting = False
            yielded, self._yielded = self._yielded, None
            if isinstance(yielded, asyncio.Future):
                # A task cancels what it waits for; here the task never got to see it.
                yielded.cancel()
        return self._coroutine.throw(kind if isinstance(kind, BaseException) else kind())

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        try:
            yielded = self.send(None)
            while True:
                try:
                    value = yield yielded
                except BaseException as error:
                    yielded = self.throw(error)
                else:
                    yielded = self.send(value)
        except StopIteration as stop:
            result: T = stop.value
            return result


def _start_by_hand(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T | asyncio.Task[T]:
    context = copy_context()
    try:
        yielded = context.run(coroutine.send, None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    if isinstance(yielded, asyncio.Future):
        # A future says from the await to the turn of a task that it is awaited, and nobody else may await it meanwhile.
        # The turn is not now, so that is taken back, and said again when it comes.
        yielded._asyncio_future_blocking = False
    return loop.create_task(_Continuation(coroutine, yielded), context=context)


def _start_as_task(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T | asyncio.Task[T]:
    task = cast(Any, asyncio.Task)(coroutine, loop=loop, eager_start=True)
    if not task.done():
        return cast("asyncio.Task[T]", task)
    return cast(T, task.result())


start = _start_as_task if sys.version_info >= (3, 12) else _start_by_hand
"""Run the first step of a coroutine now: its result when that was all, else the task that goes on.

An exception of the first step is raised here. The result must not be a task itself.
"""
