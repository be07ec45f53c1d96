"""The pace of evaluation: slices, one deadline, counted steps, held bytes. Time is a clock that the tests turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pleiad.errors import PleiadError
from pleiad.limits import MB, Limits
from pleiad.query import QueryContext, compile_query
from pleiad.query.functions.registry import REGISTRY
from pleiad.query.measure import RESULT_BYTES_MAX, rendered, size_of
from pleiad.query.pace import LARGE_PAGE_BYTES, LARGE_PAGES_MAX, SLICE_SECONDS, HeldBytes, Pace, current
from pleiad.query.sorting import paced_sort
from pleiad.server.http.failures import status_of

LIMITS = Limits()


class Clock:
    """A clock that goes on a little with every look."""

    def __init__(self, step_seconds: float) -> None:
        self.now = 100.0
        self.step_seconds = step_seconds

    def __call__(self) -> float:
        self.now += self.step_seconds
        return self.now


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """Every look at it ends a slice."""
    clock = Clock(2 * SLICE_SECONDS)
    monkeypatch.setattr(time, "perf_counter", clock)
    yield clock
    monkeypatch.undo()


@pytest.fixture
def standing_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock(0.0)
    monkeypatch.setattr(time, "perf_counter", clock)
    yield clock
    monkeypatch.undo()


def count_to(number: int) -> int:
    for _ in range(number):
        current().tick(256)
    return number


async def test_work_within_a_slice_never_pauses(standing_clock: Clock) -> None:
    pace = Pace(LIMITS)
    assert await pace.run(count_to, 1_000) == 1_000
    assert pace.pauses == 0
    assert pace.steps == 256_000


async def test_others_have_their_turn_between_slices(slow_clock: Clock) -> None:
    beats = 0

    async def heart() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    beating = asyncio.create_task(heart())
    pace = Pace(LIMITS)
    await pace.run(count_to, 50)
    beating.cancel()
    assert pace.pauses == 50
    assert beats >= 50


async def test_one_slice_of_all_evaluations_is_done_in_one_turn_of_the_loop(slow_clock: Clock) -> None:
    """However many hostile requests there are, a point read waits for one slice in each turn."""

    loop_turn = 0
    slices: list[int] = []

    async def count_turns() -> None:
        nonlocal loop_turn
        while True:
            loop_turn += 1
            await asyncio.sleep(0)

    def hostile() -> None:
        for _ in range(20):
            current().tick(256)
            slices.append(loop_turn)

    counting = asyncio.create_task(count_turns())
    await asyncio.gather(*(Pace(LIMITS).run(hostile) for _ in range(10)))
    counting.cancel()
    assert len(slices) == 200
    assert max(map(slices.count, set(slices))) == 1


async def test_the_deadline_is_one_for_all_pieces_of_a_request(standing_clock: Clock) -> None:
    pace = Pace(LIMITS, seconds=5.0)
    for _ in range(5):
        standing_clock.now += 0.9
        await pace.run(count_to, 1)
    standing_clock.now += 0.9
    with pytest.raises(PleiadError, match="worked for more than 5 seconds") as stopped:
        await pace.run(count_to, 1)
    assert status_of(stopped.value) == 408


async def test_what_work_raises_comes_out_and_a_worker_is_used_again() -> None:
    pace = Pace(LIMITS)

    def fails() -> None:
        raise ValueError("as it is")

    for _ in range(3):
        with pytest.raises(ValueError, match="as it is"):
            await pace.run(fails)
        assert await pace.run(count_to, 3) == 3


async def test_a_request_that_is_cancelled_ends_its_work(slow_clock: Clock) -> None:
    ended: list[str] = []

    def endless() -> None:
        try:
            while True:
                current().tick(256)
        finally:
            ended.append("ended")

    task = asyncio.create_task(Pace(LIMITS).run(endless))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["ended"]


async def test_work_can_wait_for_something_asynchronous() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    pace = Pace(LIMITS)
    assert await pace.run(lambda: 1 + pace.wait(answer())) == 43


def test_a_request_may_hold_so_much_and_no_more() -> None:
    limits = Limits(query_memory_bytes=2 * MB, queries_memory_bytes=10 * MB)
    with Pace(limits) as pace:
        pace.hold(MB)
        pace.carry(MB // 2)
        with pytest.raises(PleiadError, match="more than 2 MB of memory") as refused:
            pace.hold(MB)
        assert status_of(refused.value) == 400


def test_all_requests_together_have_a_budget_that_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pleiad.query.pace._HELD", HeldBytes())
    limits = Limits(query_memory_bytes=8 * MB, queries_memory_bytes=10 * MB)
    with Pace(limits) as one, Pace(limits) as two:
        one.hold(6 * MB)
        with pytest.raises(PleiadError, match="have together") as refused:
            two.hold(6 * MB)
        assert status_of(refused.value) == 429
    with Pace(limits) as three:
        three.hold(6 * MB)


async def evaluate(text: str, items: list[Any], limits: Limits = LIMITS) -> tuple[list[Any], int]:
    with Pace(limits) as pace:
        query = compile_query(text, limits)
        values = await pace.run(query.run, items, {}, QueryContext(limits=limits, pace=pace))
        return [rendered(value, pace) for value in values], pace.steps


ITEM = {
    "id": "1",
    "s": "x" * 20_000,
    "u": "é" * 400_000,
    "t": list(range(200)),
    "l": list(range(20_000)),
    "o": {f"p{n}": n for n in range(2_000)},
}
STEPPING = {
    "a JOIN": "SELECT VALUE COUNT(1) FROM c JOIN a IN c.t JOIN b IN c.t",
    "short subqueries": "SELECT VALUE ARRAY(SELECT VALUE (SELECT VALUE COUNT(1) FROM x IN c.o) FROM t IN c.t) FROM c",
    "one long expression": "SELECT VALUE [" + ", ".join(["c.a + c.b * c.d"] * 2_000) + "] FROM c",
    "functions over a long string": "SELECT VALUE [" + ", ".join(["LENGTH(LOWER(c.s))"] * 200) + "] FROM c",
    "functions over a large object": "SELECT VALUE ARRAY_LENGTH(OBJECTTOARRAY(c.o)) FROM c JOIN a IN c.t",
    "equality of large values": "SELECT VALUE COUNT(1) FROM c JOIN a IN c.t WHERE c.o = c.o",
    "groups by a large key": "SELECT COUNT(1) AS n, c.o AS o FROM c JOIN a IN c.t GROUP BY c.o",
    "the case of a long text beyond ASCII": "SELECT VALUE LENGTH(LOWER(UPPER(c.u))) FROM c",
    "a long text trimmed of many characters": "SELECT VALUE LENGTH(TRIM(c.u, c.u)) FROM c",
    "distinct arrays of many members": "SELECT DISTINCT VALUE c.l FROM c",
    "a pattern of LIKE": "SELECT VALUE COUNT(1) FROM c JOIN a IN c.t WHERE c.s LIKE '%y%'",
    "an order": "SELECT VALUE a FROM c JOIN a IN c.t JOIN b IN c.t ORDER BY c.id",
}


@pytest.mark.parametrize("name", STEPPING)
async def test_whatever_an_evaluation_is_in_it_pauses(name: str, slow_clock: Clock) -> None:
    """A clock that ends a slice with every look: what does not tick does not pause."""
    limits = Limits(query_memory_bytes=1_000 * MB, queries_memory_bytes=1_000 * MB)

    with Pace(limits) as pace:
        query = compile_query(STEPPING[name], limits)
        await pace.run(query.run, [ITEM], {}, QueryContext(limits=limits, pace=pace))
        assert pace.pauses > 10


async def test_others_have_their_turn_between_the_parts_that_are_looked_for_in_a_text(
    slow_clock: Clock,
) -> None:
    with Pace(LIMITS) as pace:
        assert await pace.run(REGISTRY["CONTAINS_ANY_CI"].call, "x" * 20_000, *["é"] * 50) is False
        assert pace.pauses >= 50


@pytest.mark.parametrize("name", STEPPING)
async def test_steps_depend_on_the_work_and_not_on_the_clock(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(query_memory_bytes=1_000 * MB, queries_memory_bytes=1_000 * MB)
    _, quick = await evaluate(STEPPING[name], [ITEM], limits)
    with monkeypatch.context() as patched:
        patched.setattr(time, "perf_counter", Clock(2 * SLICE_SECONDS))
        _, slow = await evaluate(STEPPING[name], [ITEM], limits)
    assert quick == slow > 1_000


LARGE = {"id": "1", "s": "x" * 1_000_000, "t": list(range(300))}
HUNGRY = {
    "a list of a large string": "SELECT VALUE MAKELIST(c.s) FROM c JOIN a IN c.t JOIN b IN c.t",
    "groups by built strings": "SELECT COUNT(1) AS n FROM c JOIN a IN c.t GROUP BY CONCAT(c.s, TOSTRING(a))",
    "an order over a JOIN": "SELECT VALUE CONCAT(c.s, 'a') FROM c JOIN a IN c.t JOIN b IN c.t ORDER BY c.id",
    "DISTINCT of built strings": "SELECT DISTINCT VALUE CONCAT(c.s, TOSTRING(a)) FROM c JOIN a IN c.t",
    "an array of large values": "SELECT VALUE ARRAY(SELECT VALUE c.s FROM a IN c.t JOIN b IN c.t) FROM c",
    "built values in one expression": "SELECT VALUE [" + ", ".join(["LOWER(c.s)"] * 500) + "] FROM c",
    "strings that grow": "SELECT VALUE [" + ", ".join(["CONCAT(c.s, c.s)"] * 500) + "] FROM c",
    "the item many times": "SELECT VALUE [" + ", ".join(["c"] * 500) + "] FROM c",
    "sets of large strings": "SELECT VALUE MAKESET(CONCAT(c.s, TOSTRING(a))) FROM c JOIN a IN c.t",
    "rounds of a pattern": "SELECT VALUE REGEXMATCH(c.s, '^(x|xx|xxx)*$') FROM c",
    "calls of a pattern": "SELECT VALUE REGEXMATCH(c.s, '^(?<a>x(?&a)|x)$') FROM c",
    "parsed texts": "SELECT VALUE ["
    + ", ".join(["STRINGTOARRAY(CONCAT('[\"', c.s, '\"]'))"] * 300)
    + "] FROM c",
}


@pytest.mark.parametrize("name", HUNGRY)
async def test_a_query_that_takes_too_much_memory_is_refused(name: str) -> None:
    with pytest.raises(PleiadError) as refused:
        await evaluate(HUNGRY[name], [LARGE])
    assert status_of(refused.value) == 400
    assert "memory" in refused.value.message or "larger than" in refused.value.message


def test_a_result_is_measured_before_it_is_rendered() -> None:
    shared = ["x" * 1_000_000] * 100
    assert size_of(shared) > RESULT_BYTES_MAX
    with pytest.raises(PleiadError, match="larger than 16 MB"):
        rendered(shared, Pace())
    assert rendered([1, "a"], Pace()) == b'[1,"a"]'


@pytest.mark.parametrize("reverse", [False, True])
async def test_a_long_sort_is_stable_and_pauses(slow_clock: Clock, reverse: bool) -> None:
    values = [((number * 7_919) % 50, number) for number in range(5_000)]
    key: Callable[[tuple[int, int]], int] = lambda pair: pair[0]  # noqa: E731
    pace = Pace(LIMITS)
    found = await pace.run(paced_sort, values, key, pace, reverse)
    assert found == sorted(values, key=key, reverse=reverse)
    assert pace.pauses > 20


async def test_compiling_a_long_text_pauses(slow_clock: Clock) -> None:
    pace = Pace(LIMITS)
    text = "SELECT VALUE [" + ", ".join(f"c.a{n} + {n}" for n in range(3_000)) + "] FROM c"

    query = await pace.run(compile_query, text, LIMITS)
    before = pace.pauses
    await pace.run(query.execution, {}, QueryContext(limits=LIMITS, pace=pace))
    assert pace.pauses - before > 20
    assert pace.pauses > 100
    assert pace.steps == 0, "compiling is not charged, since a second request finds it done"


async def test_only_a_few_large_pages_are_worked_out_at_a_time_and_the_others_wait_in_order() -> None:
    order: list[int] = []

    async def page(number: int, page_bytes: int) -> None:
        with Pace(seconds=30) as pace:
            await pace.seat(page_bytes)
            order.append(number)
            for _ in range(3):
                await asyncio.sleep(0)

    async def late() -> None:
        with Pace(seconds=0) as pace:
            await pace.seat(LARGE_PAGE_BYTES + 1)

    large = [asyncio.create_task(page(n, LARGE_PAGE_BYTES + 1)) for n in range(LARGE_PAGES_MAX * 3)]
    await asyncio.sleep(0)
    assert order == list(range(LARGE_PAGES_MAX))
    with pytest.raises(PleiadError) as refused:
        await late()
    assert status_of(refused.value) == 408
    await page(-1, LARGE_PAGE_BYTES)
    await asyncio.gather(*large)
    order.remove(-1)
    assert order == list(range(LARGE_PAGES_MAX * 3))
