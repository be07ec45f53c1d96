"""The places for indexes are earned: paths that find nothing cannot keep out those that queries live on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pleiad.keys.range import WHOLE
from pleiad.store.index_use import IndexSettings, PathUses, Score
from pleiad.store.segments import Segment
from pleiad.store.selection import IndexedPath, PathOrder, Selection
from tests.rooms.store_index.test_building import item, put
from tests.stores import OpenStore, built
from tests.waiting import until

DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def has_index(segment: Segment, name: str) -> bool:
    return await segment.ordered(Selection(WHOLE), PathOrder((name,)), None, 1) is not None


async def until_index(segment: Segment, name: str, found: bool) -> None:
    """Asks for a path again and again: a store may learn only after a while how many items it has."""

    async def is_there() -> bool:
        segment.note_use([IndexedPath((name,))], found)
        return await has_index(segment, name)

    assert await until(is_there), f"{name} has no index"


@pytest.mark.every_store
async def test_junk_paths_do_not_keep_a_real_path_from_its_index(data: Path, open_store: OpenStore) -> None:
    clock = Clock()
    settings = IndexSettings(items_min=0, uses_min=2, indexes_max=3, clock=clock)
    store = await open_store(data, settings)
    segment = store.segment("s")
    await put(segment, [item(number, real=number) for number in range(20)])
    for name in ("junk1", "junk2", "junk3"):
        await until_index(segment, name, found=False)
    clock.now += 120
    await until_index(segment, "real", found=True)
    await built(segment)
    assert await has_index(segment, "real")
    assert [await has_index(segment, name) for name in ("junk1", "junk2", "junk3")].count(True) == 2
    await store.close()


@pytest.mark.every_store
async def test_an_index_that_is_used_keeps_its_place(data: Path, open_store: OpenStore) -> None:
    clock = Clock()
    settings = IndexSettings(items_min=0, uses_min=2, indexes_max=2, clock=clock)
    store = await open_store(data, settings)
    segment = store.segment("s")
    await put(segment, [item(number, a=number, b=number) for number in range(20)])
    for _ in range(10):
        segment.note_use([IndexedPath(("a",)), IndexedPath(("b",))], found=True)
        await asyncio.sleep(0)
    await built(segment)
    await until_index(segment, "a", found=True)
    await until_index(segment, "b", found=True)
    for number in range(200):
        clock.now += 61
        segment.note_use([IndexedPath((f"junk{number % 20}",))])
    await built(segment)
    assert await has_index(segment, "a")
    assert await has_index(segment, "b")
    await store.close()


def test_a_score_halves_in_a_day() -> None:
    score = Score()
    score.add(found=True, now=0.0)
    assert score.now(DAY) == pytest.approx(score.now(0.0) / 2)


def test_a_place_changes_hands_once_in_a_while() -> None:
    clock = Clock()
    settings = IndexSettings(clock=clock, replace_seconds=60)
    uses = PathUses()
    scores = {IndexedPath(("weak",)): Score(1.0, clock.now), IndexedPath(("strong",)): Score(50.0, clock.now)}
    for name in ("one", "two"):
        uses.add(IndexedPath((name,)), True, clock.now)
    assert uses.replaced_by(IndexedPath(("one",)), scores, settings) == IndexedPath(("weak",))
    assert uses.replaced_by(IndexedPath(("two",)), scores, settings) is None
    clock.now += 61
    assert uses.replaced_by(IndexedPath(("two",)), scores, settings) == IndexedPath(("weak",))
    clock.now += 61
    assert uses.replaced_by(IndexedPath(("unknown",)), scores, settings) is None
