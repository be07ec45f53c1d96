"""Filters that name very many partition keys: the work grows with their number, not with its square, and ends."""

from __future__ import annotations

from typing import Any

import pytest

from pleiad.engine import batch
from pleiad.engine.batch import ItemOperation, ItemVerb
from pleiad.engine.feed import changes
from pleiad.engine.feed.changes import Origin
from pleiad.engine.feed.filter import ChangeFilter
from pleiad.errors import PleiadError
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from pleiad.partition.partition import Partition
from pleiad.query import pace as paces
from pleiad.query.pace import Pace
from pleiad.server.http.failures import status_of
from pleiad.store.index_use import IndexSettings
from pleiad.store.selection import Selection

INDEXES_AT_ONCE = IndexSettings(items_min=0, uses_min=1, indexes_max=1_000)
KEYS = ("a", "b", "c", 1, True, None, 2.5)
LITERALS = "'a', 'b', 'c', 1, true, null, 2.5"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Selection]:
    """Everything that partitions are asked for."""
    found: list[Selection] = []
    for name in ("select", "glance", "count", "ordered"):
        original = getattr(Partition, name)

        def noted(self: Any, selection: Selection, *rest: Any, _original: Any = original, **more: Any) -> Any:
            found.append(selection)
            return _original(self, selection, *rest, **more)

        monkeypatch.setattr(Partition, name, noted)
    return found


async def _filled(world: Any) -> None:
    for number, key in enumerate(KEYS):
        await world.put({"id": f"i{number}", "pk": key, "n": number})
    await world.put({"id": "other", "pk": "z", "n": 9})


@pytest.mark.every_store
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"SELECT VALUE c.id FROM c WHERE c.pk IN ({LITERALS})", {f"i{n}" for n in range(7)}),
        ("SELECT VALUE c.id FROM c WHERE c.pk IN ('a', 'b', 1, 'nobody')", {"i0", "i1", "i3"}),
        (
            "SELECT VALUE c.id FROM c WHERE c.pk IN (1, 'a', 'b') AND c.pk IN (true, 'b', 'c', 'a')",
            {"i0", "i1"},
        ),
        (f"SELECT VALUE COUNT(1) FROM c WHERE c.pk IN ({LITERALS})", {7}),
        (f"SELECT VALUE c.id FROM c WHERE c.pk IN ({LITERALS}) ORDER BY c.n", {f"i{n}" for n in range(7)}),
    ],
)
async def test_a_store_is_asked_for_the_keys_of_a_range_alone(
    world: Any, asked: list[Selection], text: str, wanted: set[Any]
) -> None:
    async with world() as w:
        await _filled(w)
        asked.clear()
        found = (await w.query(text)).results
        assert set(found) == wanted
        assert len(found) == len(wanted)
        named = [
            (one.ranges, each.one_of) for one in asked for each in one.predicates if each.path == ("pk",)
        ]
        assert named
        assert all(len(values or ()) <= max(1, len(ranges)) for ranges, values in named)


@pytest.mark.every_store
async def test_thousands_of_keys_take_a_distant_store_few_questions(
    world: Any, asked: list[Selection]
) -> None:
    keys = [f"p{number}" if number % 3 else number for number in range(2_500)]
    parameters = {"@keys": keys}
    several = "ARRAY_CONTAINS(@keys, c.pk)"
    async with world(partitions=2, indexes=INDEXES_AT_ONCE) as w:
        for number in range(0, 3_000, 12):
            await w.put({"id": f"i{number}", "pk": f"p{number}" if number % 3 else number, "n": -number})
        for number in range(30):
            await w.put({"id": f"same{number}", "pk": "p1", "n": number})
        held = [w.item_of(row) for row in await w.rows()]
        wanted = [item for item in held if item["pk"] in keys]
        assert 200 < len(wanted) < len(held)
        questions_max = 20 if w.container.map.partitions[0].ranges_max else 10**6
        for _ in range(2):
            for text, size, results in (
                ("SELECT VALUE c.n FROM c WHERE {}", 10**6, [item["n"] for item in wanted]),
                ("SELECT VALUE c.n FROM c WHERE {}", 150, [item["n"] for item in wanted]),
                ("SELECT VALUE c.n FROM c WHERE {} AND c.n > 5", 20, list(range(6, 30))),
                ("SELECT VALUE COUNT(1) FROM c WHERE {}", 10, [len(wanted)]),
                (
                    "SELECT VALUE c.n FROM c WHERE {} ORDER BY c.n",
                    150,
                    sorted(item["n"] for item in wanted),
                ),
            ):
                asked.clear()
                answer = await w.query(text.format(several), parameters, lambda size=size: size)
                assert answer.results == results
                assert len(asked) <= questions_max * len(answer.pages)
            await w.indexes_built()


async def test_a_walk_over_many_keys_ends_with_its_deadline(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paces, "REQUEST_SECONDS_MIN", 0.0)
    async with world(limits=Limits(operation_seconds=0.0)) as w:
        await _filled(w)
        with pytest.raises(PleiadError) as stopped:
            await w.page(f"SELECT * FROM c WHERE c.pk IN ({LITERALS})")
        assert status_of(stopped.value) == 408


async def test_many_keys_cost_an_index_look_up_each(world: Any) -> None:
    async with world() as w:
        few = await w.page("SELECT * FROM c WHERE c.pk IN (0, 1)")
        many = await w.page(f"SELECT * FROM c WHERE c.pk IN ({', '.join(map(repr, range(1_002)))})")
        assert many.charge_ru == pytest.approx(few.charge_ru + 10.0, abs=0.02)


async def test_bulk_has_one_deadline_however_many_operations_it_has(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Pace] = []
    original = Pace.of_request

    def noted(limits: Limits) -> Pace:
        made.append(original(limits))
        return made[-1]

    monkeypatch.setattr(Pace, "of_request", noted)
    body = b'{"condition":"from c where c.n >= 0","operations":[{"op":"incr","path":"/n","value":1}]}'
    async with world() as w:
        await w.put({"id": "i", "pk": "a", "n": 0})
        made.clear()
        patch = ItemOperation(ItemVerb.PATCH, "i", body, key=("a",))
        answer = await batch.run_bulk(w.container, [patch] * 20)
        assert not answer.has_failure
    assert len(made) == 1
    assert made[0].beside().seconds_left == pytest.approx(made[0].seconds_left, abs=1.0)


async def test_what_a_filter_of_changes_takes_is_charged_also_when_it_is_stopped(world: Any) -> None:
    dear = (
        "SELECT * FROM c WHERE EXISTS(SELECT VALUE 1 FROM x IN c.t JOIN y IN c.t JOIN z IN c.t WHERE z < 0)"
    )
    cheap = "SELECT * FROM c WHERE c.n >= 0"
    async with world() as w:
        await w.put({"id": "i", "pk": "a", "n": 0, "t": list(range(40))})

        async def page(text: str, pace: Pace) -> float:
            wanted = await pace.run(ChangeFilter, w.container, text, {}, False, pace)
            found = await changes.page(w.container, WHOLE, "", Origin.BEGINNING, 0, 10, wanted=wanted)
            return found.charge.ru

        assert await page(dear, Pace(w.container.limits)) > await page(cheap, Pace(w.container.limits)) + 10
        with pytest.raises(PleiadError) as stopped:
            await page(dear, Pace(w.container.limits, 0.0))
        assert status_of(stopped.value) == 408
        assert (stopped.value.charge_ru or 0) > 0
