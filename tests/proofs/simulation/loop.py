"""An event loop whose order and time follow from a seed, and threads that are jobs on it.

In every turn some of the callbacks that are ready run, in an order drawn from the seed; the others wait. Time passes
only when nothing is ready: then it jumps to the next timer. So a run depends on nothing but its seed and the code.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import selectors
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from pleiad.store.sqlite.threads import DiskThreads, Done

_monotonic = time.monotonic  # the clock of the world outside
EPOCH_SECONDS = 1_700_000_000.0
_DISK_SECONDS_MAX = 0.004
_LIFE_SECONDS_MAX = 600.0


class CrashError(BaseException):
    """The process died. Nothing in the code under test may catch it."""


class StuckError(AssertionError):
    """Nothing can happen any more, and somebody still waits; or it takes for ever."""


class _NoSockets(selectors.SelectSelector):
    """Never waits for the outside; without a timer to wait for there is nothing to come."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise StuckError("nothing is ready, no timer is set, and the scenario has not ended")
        return []


class SeededLoop(asyncio.SelectorEventLoop):
    """Runs ready callbacks in seeded order on a clock of its own."""

    # What asyncio's loops keep inside, and what their types do not tell.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(
        self, random_of: random.Random, started_at: float, selector: selectors.BaseSelector | None = None
    ) -> None:
        super().__init__(selector or _NoSockets())
        self._random = random_of
        self._now = started_at
        self._ends_at = started_at + _LIFE_SECONDS_MAX
        self._delayed: list[asyncio.Handle] = []
        self.turns = 0
        self.crash_at_turn: int | None = None

    def time(self) -> float:
        return self._now

    def crash_soon(self, turns: int) -> None:
        """Lets the process die in so many turns, unless it dies earlier."""
        at = self.turns + turns
        self.crash_at_turn = at if self.crash_at_turn is None else min(at, self.crash_at_turn)

    def _run_once(self) -> None:
        self.turns += 1
        if self.crash_at_turn is not None and self.turns >= self.crash_at_turn:
            raise CrashError
        ready = [*self._ready, *self._delayed]
        if not ready and self._scheduled and self._may_jump():
            self._now = max(self._now, self._scheduled[0].when())
            if self._now > self._ends_at:
                raise StuckError(f"the scenario has not ended after {_LIFE_SECONDS_MAX} seconds")
        self._random.shuffle(ready)
        count = self._random.randint(1, len(ready)) if ready else 0
        self._ready.clear()
        self._ready.extend(ready[:count])
        self._delayed = ready[count:]
        super()._run_once()  # type: ignore[misc]  # inside asyncio, so not in its types

    def _may_jump(self) -> bool:
        """Whether nothing but a timer can come next."""
        return True

    def run_in_executor(  # type: ignore[override]
        self, executor: object, call: Callable[..., object], *arguments: object
    ) -> asyncio.Future[object]:
        """Work for a thread is a job of the loop: it takes a seeded while, as on `SeededThreads`."""
        answer = self.create_future()

        def do() -> None:
            if answer.cancelled():
                return
            try:
                answer.set_result(call(*arguments))
            except Exception as error:
                answer.set_exception(error)

        self.call_later(self._random.uniform(0, _DISK_SECONDS_MAX), do)
        return answer

    def bury(self) -> None:
        """Ends the tasks of a process that died, as far as they can be: nothing they do has an effect."""
        self.set_exception_handler(lambda loop, context: None)
        tasks: set[Any] = asyncio.all_tasks(self)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for task in tasks:
                task._log_destroy_pending = False
                with contextlib.suppress(BaseException):
                    task.get_coro().close()
        self._ready.clear()
        self._delayed.clear()
        self._scheduled.clear()
        self.close()


class SocketLoop(SeededLoop):
    """The same with sockets: while an answer is awaited from outside, time passes as it does there."""

    def __init__(self, random_of: random.Random, started_at: float, is_quiet: Callable[[], bool]) -> None:
        super().__init__(random_of, started_at, selectors.DefaultSelector())
        self._is_quiet = is_quiet

    def _may_jump(self) -> bool:
        return self._is_quiet()

    def _run_once(self) -> None:
        is_waiting = not self._ready and not self._delayed and not self._is_quiet()
        began = _monotonic()
        super()._run_once()
        if is_waiting:
            self._now += _monotonic() - began


class SeededThreads(DiskThreads):
    """Disk threads without threads: a job takes a seeded while, and so does the news of its end."""

    def __init__(self, loop: SeededLoop, random_of: random.Random) -> None:
        super().__init__(0)
        self._loop = loop
        self._random = random_of

    def run(self, call: Callable[[], object], done: Done) -> None:
        self._loop.call_later(self._random.uniform(0, _DISK_SECONDS_MAX), self._do, call, done)

    def _do(self, call: Callable[[], object], done: Done) -> None:
        error: BaseException | None = None
        try:
            call()
        except BaseException as caught:
            error = caught
        self._loop.call_later(self._random.choice((0, 0, 0.001)), done, error)


@contextlib.contextmanager
def one_world(loop: SeededLoop, random_of: random.Random) -> Iterator[None]:
    """Makes the loop's clock the clock of the code under test, and its random names seeded ones."""

    def clock() -> float:
        return EPOCH_SECONDS + loop.time()

    with (
        mock.patch("time.time", clock),
        mock.patch("time.monotonic", loop.time),
        mock.patch("time.perf_counter", loop.time),
        mock.patch("psycopg.waiting.monotonic", loop.time),
        mock.patch("psycopg.connection_async.monotonic", loop.time),
        mock.patch("secrets.token_hex", lambda count: random_of.randbytes(count).hex()),
    ):
        yield
