"""The pace of one request's evaluation: short slices, one deadline, counted steps, held bytes.

Generated code and the functions of the language are plain synchronous Python that calls `tick` as it goes. `Pace.run`
does such work in a greenlet of its own: where a slice is over, `tick` switches back to the event loop, other requests
have their turn, and the work goes on where it was. So nothing in it has to be written twice, no thread is needed, and
work that is done within one slice never switches.

Invariants
- One deadline for the request, however many rows, pages of the store or functions it works through.
- Of all evaluations of a loop one slice is done in one turn of it, so many hostile requests hold up a point read no
  longer than one of them.
- Steps count what was evaluated, never time: a charge may depend on them. Looking at the clock may not change them.
- Bytes held are given back when the request ends, whatever its end.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, ParamSpec, Self, TypeVar

import orjson
from greenlet import GreenletExit, getcurrent, greenlet

from pleiad import errors
from pleiad.limits import MB, Limits, size_text

SLICE_SECONDS: Final = 0.003
BUSY_SLICE_SECONDS: Final = 0.001
"""A slice, and the first slice of a request that comes while others wait for theirs."""
STEPS_OF_A_LOOK: Final = 256
"""Steps between two looks at the clock: well below a millisecond."""
NO_END: Final = 2**62
REQUEST_SECONDS_MIN: Final = 5.0
"""What a request may take even where a page has less time."""
LARGE_PAGE_BYTES: Final = MB
LARGE_PAGES_MAX: Final = 6
"""Pages larger than that which are worked out at a time; each is rows, texts and an answer of some megabytes."""
_QUANTUM_BYTES: Final = MB // 4
_IDLE_WORKERS_MAX: Final = 64

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class TooManyStepsError(Exception):
    """More steps were taken than whoever evaluates has set as the most."""


class HeldBytes:
    """What all evaluations of the process hold together."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = 0

    def grow(self, size_bytes: int, bytes_max: int) -> None:
        """Reserves room for one request, unless the requests hold too much already."""
        if self.held + size_bytes > bytes_max:
            raise errors.QUERIES_OUT_OF_MEMORY(limit=size_text(bytes_max))
        self.held += size_bytes


_HELD: Final = HeldBytes()


class Pace:
    """One request at work."""

    __slots__ = (
        "_busy_until",
        "_ends_at",
        "_has_begun",
        "_limits",
        "_look_at",
        "_reserved",
        "_seat",
        "_seconds",
        "_shared",
        "_worker",
        "kept_bytes",
        "passing_bytes",
        "pauses",
        "steps",
        "steps_max",
    )

    def __init__(self, limits: Limits | None = None, seconds: float | None = None) -> None:
        """Without limits nothing is refused; `seconds` from now on the request is stopped."""
        now = time.perf_counter()
        self._limits = limits
        self._seconds = seconds
        self._ends_at = float("inf") if seconds is None else now + seconds
        self._busy_until = now + (BUSY_SLICE_SECONDS if _HERE.is_busy else SLICE_SECONDS)
        self._look_at = STEPS_OF_A_LOOK
        self._has_begun = False
        self._worker: greenlet | None = None
        self._reserved = 0
        self._shared = 0
        self._seat: asyncio.Semaphore | None = None
        self.steps = 0
        """What was evaluated so far: rows, elements, parts of long strings."""
        self.steps_max = NO_END
        """Where evaluation is broken off by TooManyStepsError: whoever sets it goes on in another way."""
        self.pauses = 0
        """How often other requests had their turn."""
        self.kept_bytes = 0
        """What is gathered for the result: rows to sort, groups, lists, what DISTINCT has met."""
        self.passing_bytes = 0
        """Large values on the way to it, as far as they may still be in use."""

    @classmethod
    def of_request(cls, limits: Limits) -> Self:
        """The pace of a request: as long as a page may take, and as long again for what it began in time."""
        return cls(limits, limits.operation_seconds + max(limits.operation_seconds, REQUEST_SECONDS_MIN))

    def beside(self) -> Pace:
        """The pace of another part of the request, which is worked on at the same time: its end is the same."""
        pace = Pace(self._limits, self._seconds)
        pace._ends_at = self._ends_at
        return pace

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._limits is not None:
            _HELD.held -= self._reserved + self._shared
        self._reserved = self._shared = 0
        if self._seat is not None:
            self._seat.release()
            self._seat = None

    @property
    def seconds_left(self) -> float:
        return self._ends_at - time.perf_counter()

    # -- time ------------------------------------------------------------------------------------

    def tick(self, steps: int = 64) -> None:
        """Counts steps; lets others have their turn when the slice is over, raises when the deadline has passed."""
        self.steps += steps
        if self.steps >= self._look_at:
            self.look()

    def worked(self, steps: int) -> None:
        """The same for work that a charge counts otherwise, or not at all: decoding, compiling."""
        self._look_at -= steps
        if self.steps >= self._look_at:
            self.look()

    def look(self) -> None:
        """Looks at the clock."""
        self._look_at = self.steps + STEPS_OF_A_LOOK
        if self.steps > self.steps_max:
            raise TooManyStepsError
        now = time.perf_counter()
        if now > self._ends_at:
            raise self._out_of_time()
        if now > self._busy_until and self._worker is not None:
            self.wait(None)

    def wait(self, awaited: Awaitable[_Answer] | None) -> Any:
        """From within `run`: what an awaitable gives, or nothing when the next slice begins."""
        assert self._worker is not None, "only work that is run by a pace can wait"
        return self._worker.parent.switch(_Waiting(awaited))

    def may_wait(self) -> bool:
        """Whether the caller is within `run`."""
        return self._worker is not None and getcurrent() is self._worker

    async def run(
        self, work: Callable[_Arguments, _Answer], *arguments: _Arguments.args, **named: _Arguments.kwargs
    ) -> _Answer:
        """Does a piece of synchronous work in slices."""
        here = _HERE
        if not self._has_begun:
            self._has_begun = True
            if here.is_busy:
                await self._turn(is_first=True)
        worker = here.idle.pop() if here.idle else _new_worker()
        self._worker = worker
        is_over = False
        try:
            said = worker.switch((self, work, arguments, named))
            while isinstance(said, _Waiting):
                try:
                    answer = await (self._turn() if said.awaited is None else said.awaited)
                except BaseException as error:
                    said = worker.throw(error)
                else:
                    said = worker.switch(answer)
            is_over = True
        finally:
            self._worker = None
            if is_over and len(here.idle) < _IDLE_WORKERS_MAX:
                here.idle.append(worker)
        if said.error is not None:
            try:
                raise said.error
            finally:
                said = None  # the traceback refers to this frame
        answer_of_work: _Answer = said.answer
        return answer_of_work

    def one_at_a_time(self) -> asyncio.Lock:
        """What requests hold whose work takes so much memory that only one at a time may do it."""
        return _HERE.turns().large

    async def seat(self, page_bytes: int) -> None:
        """Waits for a seat if the page may be large; whoever has one keeps it until the request ends."""
        if page_bytes <= LARGE_PAGE_BYTES or self._seat is not None:
            return
        seats = _HERE.turns().seats
        if seats.locked():
            await asyncio.sleep(0)  # a request that has not waited yet is no task, and has no time-out
            try:
                async with asyncio.timeout(max(self.seconds_left, 0)):
                    await seats.acquire()
            except TimeoutError:
                raise self._out_of_time() from None
        else:
            await seats.acquire()
        self._seat = seats

    async def rest(self) -> None:
        """Lets others have their turn if the slice is over; for work that is no generated code."""
        if time.perf_counter() > self._busy_until:
            await self._turn()
        if time.perf_counter() > self._ends_at:
            raise self._out_of_time()

    async def _turn(self, is_first: bool = False) -> None:
        self.pauses += not is_first
        await _HERE.turns().wait(is_first)
        self._busy_until = time.perf_counter() + SLICE_SECONDS

    def _out_of_time(self) -> errors.PleiadError:
        return errors.REQUEST_TIMEOUT(
            reason=f"The query was stopped: it worked for more than {self._seconds:g} seconds."
        )

    # -- memory ----------------------------------------------------------------------------------

    def hold(self, size_bytes: int) -> None:
        """Counts bytes that stay until the request ends or `release` is called; 400 when they are too many."""
        self.kept_bytes += size_bytes
        if self.kept_bytes + self.passing_bytes > self._reserved:
            self._reserve()

    def share(self, size_bytes: int) -> None:
        """Counts bytes that all requests have room for, and this one alone may take: the code of a long text."""
        if self._limits is not None:
            _HELD.grow(size_bytes, self._limits.queries_memory_bytes)
            self._shared += size_bytes

    def release(self, size_bytes: int) -> None:
        self.kept_bytes -= size_bytes

    def carry(self, size_bytes: int) -> None:
        """Counts a large value that is built on the way; the row it was built for gives it back."""
        self.passing_bytes += size_bytes
        if self.kept_bytes + self.passing_bytes > self._reserved:
            self._reserve()

    def _reserve(self) -> None:
        if self._limits is None:
            self._reserved = 2**62
            return
        held = self.kept_bytes + self.passing_bytes
        if held > self._limits.query_memory_bytes:
            raise errors.QUERY_OUT_OF_MEMORY(limit=size_text(self._limits.query_memory_bytes))
        more = -(-held // _QUANTUM_BYTES) * _QUANTUM_BYTES - self._reserved
        _HELD.grow(more, self._limits.queries_memory_bytes)
        self._reserved += more


class _Waiting(NamedTuple):
    """What a worker says when it has to wait: for an awaitable, or for its next slice."""

    awaited: Awaitable[Any] | None


class _Said(NamedTuple):
    """What a worker says when its work is over."""

    answer: Any
    error: BaseException | None


def _serve(job: Any) -> None:
    """The life of a worker: one piece of work after the other. A greenlet costs far more to make than to switch to."""
    while True:
        pace, work, arguments, named = job
        _CURRENT.set(pace)
        try:
            said = _Said(work(*arguments, **named), None)
        except GreenletExit:
            raise
        except (RecursionError, orjson.JSONEncodeError) as error:
            # What a query builds may nest deeper than anything a client sends.
            said = _Said(None, errors.QUERY_TOO_DEEP().with_traceback(error.__traceback__))
        except BaseException as error:
            said = _Said(None, error)
        pace = work = arguments = named = job = None
        _CURRENT.set(_FREE)
        parent = getcurrent().parent
        assert parent is not None
        job = parent.switch(said)
        said = None  # type: ignore[assignment]


def _new_worker() -> greenlet:
    return greenlet(_serve)


class _Turns:
    """The queue for slices: one of them begins in each turn of the loop."""

    __slots__ = ("_is_scheduled", "_loop", "_waiting", "large", "seats")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False
        self.large = asyncio.Lock()
        self.seats = asyncio.Semaphore(LARGE_PAGES_MAX)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    async def wait(self, is_first: bool) -> None:
        """The turn of a request; its first comes before those of requests that have had some."""
        turn = self._loop.create_future()
        (self._waiting.appendleft if is_first else self._waiting.append)(turn)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._next)
        await turn

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            self._loop.call_soon(self._next)


class _Here(threading.local):
    """What the evaluations of one thread share: greenlets belong to their thread, turns to its loop."""

    def __init__(self) -> None:
        self.idle: list[greenlet] = []
        self._turns: _Turns | None = None

    @property
    def is_busy(self) -> bool:
        return self._turns is not None and self._turns.is_busy

    def turns(self) -> _Turns:
        loop = asyncio.get_running_loop()
        if self._turns is None or self._turns.loop is not loop:
            self._turns = _Turns(loop)
        return self._turns


_HERE: Final = _Here()
_FREE: Final = Pace()
_CURRENT: Final[ContextVar[Pace]] = ContextVar("pleiad_query_pace", default=_FREE)


def current() -> Pace:
    """The pace of the work that calls; one without an end outside `run`."""
    return _CURRENT.get()


def paced(values: Sequence[_Answer]) -> Iterable[_Answer]:
    """The values of a sequence one by one, with a tick now and then where it is long."""
    return values if len(values) < STEPS_OF_A_LOOK else _ticked(values)


def _ticked(values: Sequence[_Answer]) -> Iterator[_Answer]:
    pace = _CURRENT.get()
    for start in range(0, len(values), STEPS_OF_A_LOOK):
        pace.tick(STEPS_OF_A_LOOK)
        yield from values[start : start + STEPS_OF_A_LOOK]


def in_turns(values: Collection[_Answer]) -> Iterable[_Answer]:
    """The values one by one, with turns for others where there are many, in work that no charge counts."""
    return values if len(values) < STEPS_OF_A_LOOK else _worked(values)


def _worked(values: Iterable[_Answer]) -> Iterator[_Answer]:
    pace = _CURRENT.get()
    for number, value in enumerate(values):
        if not number % STEPS_OF_A_LOOK:
            pace.worked(STEPS_OF_A_LOOK)
        yield value


def tick(steps: int) -> None:
    """Counts steps of the work that calls, for functions that have no context at hand."""
    _CURRENT.get().tick(steps)


def worked(steps: int) -> None:
    """Lets others have their turn in work that no charge counts, such as compiling."""
    _CURRENT.get().worked(steps)


def carry(size_bytes: int) -> None:
    """Counts a large value that the work which calls has built."""
    _CURRENT.get().carry(size_bytes)
