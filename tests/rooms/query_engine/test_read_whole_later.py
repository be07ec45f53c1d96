"""Items that are found by a few of their properties and read whole afterwards: what happens to them in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pleiad.limits import Limits
from pleiad.partition.partition import Partition
from pleiad.store.rows import Row
from tests.stores import PATIENT

pytestmark = pytest.mark.every_store

COUNT = 40
FILTERED = "SELECT * FROM c WHERE CONTAINS(c.g, 'b')"
ORDERED = "SELECT * FROM c ORDER BY c.n"


def item(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"i{number}", "pk": f"p{number % 5}", "n": number, "g": "ab"[number % 2], **more}


def before_reading(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Awaitable[None]]) -> list[int]:
    """Does something once, before the first rows are read whole; the numbers of rows that were asked for."""
    find_many = Partition.find_many
    asked: list[int] = []

    async def meanwhile(self: Partition, numbers: Sequence[int]) -> Sequence[Row]:
        if not asked:
            asked.extend(numbers)
            await work()
        asked.extend(numbers)
        return await find_many(self, numbers)

    monkeypatch.setattr(Partition, "find_many", meanwhile)
    return asked


async def test_an_item_that_is_changed_or_deleted_meanwhile_passes_the_filter_as_it_is_then(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world() as w:
        for number in range(COUNT):
            await w.put(item(number))

        async def change() -> None:
            await w.put(item(3, g="b", new=True))
            await w.put(item(5, g="a"))
            await w.remove(item(7))

        asked = before_reading(monkeypatch, change)
        found = (await w.query(FILTERED)).results
        assert asked, "items were not read whole after they were sifted"
        assert [each["id"] for each in found] == [f"i{n}" for n in range(1, COUNT, 2) if n not in (5, 7)]
        assert [each["id"] for each in found if "new" in each] == ["i3"]


async def test_no_more_items_are_read_whole_than_have_room_on_the_page(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing() -> None:
        pass

    async with world(limits=replace(PATIENT, response_bytes=4_000)) as w:
        for number in range(COUNT):
            await w.put(item(number, pad="p" * 1_000))
        asked = before_reading(monkeypatch, nothing)
        answer = await w.query(FILTERED)
        assert [each["id"] for each in answer.results] == [f"i{n}" for n in range(1, COUNT, 2)]
        assert {len(page.results) for page in answer.pages[:-1]} == {4}
        # The first are asked for twice, by the test.
        assert len(asked) <= 4 + COUNT // 2


async def test_an_item_that_is_changed_meanwhile_stands_in_its_new_place_on_one_page_or_another(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(partitions=2) as w:
        for number in range(COUNT):
            await w.put(item(number))

        async def change() -> None:
            await w.put(item(2, n=6.5))
            await w.put(item(4, n=20.5))
            await w.remove(item(5))

        before_reading(monkeypatch, change)
        found = await w.query(ORDERED, page_items=lambda: 10)
        expected = sorted([n for n in range(COUNT) if n not in (2, 4, 5)] + [6.5, 20.5])
        assert [each["n"] for each in found.results] == expected
        assert [each["n"] for each in map(dict, found.results)][:3] == [0, 1, 3]


async def test_only_what_a_page_gives_is_read_whole(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as w:
        for number in range(COUNT):
            await w.put(item(number))

        async def nothing() -> None:
            return

        asked = before_reading(monkeypatch, nothing)
        found = await w.page("SELECT * FROM c ORDER BY c.n DESC OFFSET 5 LIMIT 3")
        assert len(found.results) == 3
        assert len(set(asked)) == 3


async def test_an_ordered_page_of_large_items_ends_where_an_answer_is_full(world: Any) -> None:
    limits = Limits(response_bytes=50_000)
    async with world(limits=limits) as w:
        for number in range(COUNT):
            await w.put(item(number, text="x" * 9_000))
        found = await w.query(ORDERED)
        assert [each["n"] for each in found.results] == list(range(COUNT))
        assert all(sum(map(len, page.results)) <= limits.response_bytes for page in found.pages)
        assert len(found.pages) == COUNT // 5


async def test_pages_without_time_find_the_same_order(world: Any) -> None:
    async with world(limits=Limits(operation_seconds=0)) as w:
        for number in range(COUNT):
            await w.put(item(number, n=(number * 7) % COUNT))
        found = await w.query("SELECT TOP 9 * FROM c WHERE CONTAINS(c.g, 'a') ORDER BY c.n DESC")
        expected = sorted(((number * 7) % COUNT for number in range(0, COUNT, 2)), reverse=True)
        assert [each["n"] for each in found.results] == expected[:9]


async def test_an_order_among_few_items_of_a_logical_partition_is_of_one_moment(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world() as w:
        for number in range(0, 30, 5):
            await w.put(item(number))

        async def change() -> None:
            await w.put(item(35))
            await w.put(item(5, new=True))
            await w.remove(item(10))

        asked = before_reading(monkeypatch, change)
        found = (await w.query("SELECT * FROM c WHERE c.pk = 'p0' ORDER BY c.n")).results
        assert asked, "items were not read whole after they were put in order"
        assert [each["n"] for each in found] == [0, 5, 15, 20, 25, 35]
        assert [each["id"] for each in found if "new" in each] == ["i5"]
        assert len((await w.page("SELECT TOP 2 * FROM c WHERE c.pk = 'p0' ORDER BY c.n")).results) == 2
