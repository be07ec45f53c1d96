"""Hostile requests beside point reads: none of them keeps the event loop, and each comes to an end.

What is measured is the processor time of the loop's own thread between two beats of a heart in that loop, so a busy
machine does not change the outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from pleiad.engine import items, patching, reading
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import pace
from pleiad.server.http.failures import status_of
from pleiad.server.lifecycle import settle_garbage_collector
from tests.rooms.query_engine.heart import beating
from tests.waiting import SECONDS_MAX

STALL_SECONDS_MAX = 0.25
BRIEF = Limits(operation_seconds=0.5)
WORDS = " ".join(f"word{number % 5_000}" for number in range(60_000))
ITEM: dict[str, Any] = {
    "pk": "p",
    "n": 1,
    "s": "a" * 500_000,
    "u": "ä" * 100_000,
    "words": WORDS,
    "t": list(range(2_000)),
    "deep": [[[number, [number]], {"a": number}] for number in range(20_000)],
}
ALL = {
    "a JOIN of itself": "SELECT VALUE COUNT(1) FROM c JOIN a IN c.t JOIN b IN c.t JOIN d IN c.t",
    "subqueries in subqueries": (
        "SELECT VALUE ARRAY(SELECT VALUE (SELECT VALUE COUNT(1) FROM y IN c.t WHERE y > x) FROM x IN c.t) FROM c"
    ),
    "a pattern that goes back": "SELECT VALUE REGEXMATCH(c.s, '(a+)+b') FROM c JOIN x IN c.t",
    "a long LIKE with wildcards": f"SELECT VALUE c.s LIKE '%{'a' * 2_000}_b%' FROM c JOIN x IN c.t",
    "case of long strings": "SELECT VALUE LENGTH(LOWER(CONCAT(c.u, c.u, c.u))) FROM c JOIN x IN c.t",
    "searches in long strings": f"SELECT VALUE CONTAINS(c.s, '{'a' * 40}b{'a' * 40}') FROM c JOIN x IN c.t",
    "an order over a JOIN": "SELECT VALUE a FROM c JOIN a IN c.t JOIN b IN c.t ORDER BY c.n",
    "DISTINCT over a JOIN": "SELECT DISTINCT VALUE [a, b] FROM c JOIN a IN c.t JOIN b IN c.t",
    "groups over a JOIN": "SELECT a, b, COUNT(1) AS n FROM c JOIN a IN c.t JOIN b IN c.t GROUP BY a, b",
    "equality of deep values": "SELECT VALUE COUNT(1) FROM c JOIN a IN c.t WHERE c.deep = c.deep",
    "DISTINCT of deep values": "SELECT DISTINCT VALUE [c.deep, a] FROM c JOIN a IN c.t",
    "text of deep values": "SELECT VALUE LENGTH(TOSTRING(c.deep)) FROM c JOIN a IN c.t",
    "words": "SELECT VALUE FULLTEXTCONTAINS(c.words, 'word77 word78') FROM c JOIN a IN c.t",
    "sets": "SELECT VALUE ARRAY_LENGTH(SETUNION(c.deep, c.t)) FROM c JOIN a IN c.t",
    "a list without end": "SELECT VALUE MAKELIST(c.s) FROM c JOIN a IN c.t JOIN b IN c.t",
    "the item over and over": f"SELECT VALUE [{', '.join(['c'] * 2_000)}] FROM c",
    "a long text": f"SELECT VALUE [{', '.join(['c.n + c.m'] * 20_000)}] FROM c",
    "a long OR far below": f"SELECT * FROM c WHERE {'NOT (' * 60}{' OR '.join(['c.pk = c.n'] * 1_900)}{')' * 60}",
    "keys far below": "SELECT * FROM c WHERE "
    + "NOT (" * 60
    + " OR ".join(f"c.pk = 'k{number}'" for number in range(1_900))
    + ")" * 60,
    "ranges that do not exclude each other": "SELECT * FROM c WHERE "
    + " AND ".join(f"c.n > {-1 - number} AND c.n < {2 + number}" for number in range(950)),
    "very many keys": f"SELECT * FROM c WHERE c.pk IN ({', '.join(map(repr, range(16_000)))})",
    "a long text of calls": f"SELECT VALUE [{', '.join(['LOWER(c.s)'] * 15_000)}] FROM c",
}


@pytest.fixture(autouse=True)
def _the_garbage_collector_of_a_server() -> Iterator[None]:
    """Leaves what other tests keep out of collections: going through all of it takes longer than a stall may."""
    before = gc.get_threshold()
    settle_garbage_collector()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


async def _run(world: Any, text: str) -> int:
    """The status a hostile query ends with."""
    try:
        await world.page(text)
    except PleiadError as error:
        return status_of(error)
    return 200


async def test_point_reads_go_on_beside_all_hostile_queries(world: Any) -> None:
    async with world(limits=BRIEF) as w:
        for number in range(3):
            await w.put({**ITEM, "id": f"i{number}"})
        await w.put({"id": "small", "pk": "p"})
        reads = 0
        async with asyncio.timeout(SECONDS_MAX), beating() as heart:
            while reads <= 10:
                hostile = [asyncio.create_task(_run(w, text)) for text in ALL.values()]
                while not all(task.done() for task in hostile):
                    answer = await reading.read(w.container, "small", ("p",))
                    assert orjson.loads(w.container.render(answer.row))["id"] == "small"
                    # One that had to wait for the queries ends with them.
                    reads += not all(task.done() for task in hostile)
                    await asyncio.sleep(0)
                statuses = {name: await task for name, task in zip(ALL, hostile, strict=True)}
                assert set(statuses.values()) <= {200, 400, 408, 429}, statuses
    stood_seconds = heart.longest_seconds
    assert stood_seconds < STALL_SECONDS_MAX, f"the loop stood still for {stood_seconds:.3f} s"


@pytest.mark.parametrize("condition", ["FROM c WHERE " + " AND ".join(["c.t = c.t"] * 1_000)])
async def test_the_condition_of_a_patch_gives_way_and_ends(
    world: Any, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "REQUEST_SECONDS_MIN", 1.0)
    async with world(limits=BRIEF) as w:
        await w.put({"id": "i", "pk": "p", "t": list(range(20_000))})
        patch = {"condition": condition, "operations": [{"op": "set", "path": "/x", "value": 1}]}
        async with beating() as heart:
            with contextlib.suppress(PleiadError):
                await patching.patch(w.container, "i", orjson.dumps(patch), ("p",), items.NO_CONDITIONS)
    assert heart.beats > 20
    assert heart.longest_seconds < STALL_SECONDS_MAX


async def test_a_query_that_is_stopped_pays_for_what_it_took(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "REQUEST_SECONDS_MIN", 1.0)
    async with world(limits=BRIEF) as w:
        await w.put({**ITEM, "id": "i"})
        with pytest.raises(PleiadError) as stopped:
            await w.page(ALL["a JOIN of itself"])
        assert status_of(stopped.value) == 408
        assert stopped.value.charge_ru is not None
        assert stopped.value.charge_ru > 10


async def test_evaluation_is_charged_by_its_steps(world: Any) -> None:
    async with world() as w:
        await w.put({"id": "i", "pk": "p", "t": list(range(500))})
        plain = await w.query("SELECT VALUE COUNT(1) FROM c JOIN a IN c.t")
        heavy = await w.query("SELECT VALUE COUNT(1) FROM c JOIN a IN c.t JOIN b IN c.t")
        again = await w.query("SELECT VALUE COUNT(1) FROM c JOIN a IN c.t JOIN b IN c.t")
    assert dict(plain.pages[0].charge.parts)["evaluation"] == 0
    assert heavy.charge_ru > plain.charge_ru + 200
    assert heavy.charge_ru == again.charge_ru


async def test_the_condition_of_a_patch_is_charged_by_its_steps(world: Any) -> None:
    async def patched(condition: str) -> float:
        patch = {"condition": condition, "operations": [{"op": "set", "path": "/x", "value": 1}]}
        try:
            answer = await patching.patch(w.container, "i", orjson.dumps(patch), ("p",), items.NO_CONDITIONS)
        except PleiadError as error:
            return error.charge_ru or 0.0
        return answer.charge.ru

    many = "(SELECT VALUE COUNT(1) FROM a IN c.t JOIN b IN c.t)"
    async with world() as w:
        await w.put({"id": "i", "pk": "p", "t": list(range(300)), "x": 1})
        plain = await patched("FROM c WHERE c.x = 1")
        heavy = [await patched(f"FROM c WHERE {many} > 1") for _ in range(2)]
        refused = await patched("FROM c WHERE c.x = 2")
        refused_heavy = await patched(f"FROM c WHERE {many} = 1")
    assert heavy[0] == heavy[1]
    assert heavy[0] > plain + 50
    assert refused_heavy > refused + 50
