"""The order of results that no ORDER BY asks for: items by their _rid within a range, groups by their first item."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

pytestmark = pytest.mark.every_store

KEYS = ", ".join(f"'p{number}'" for number in range(9))
IN_KEYS = f"SELECT VALUE c.n FROM c WHERE c.pk IN ({KEYS})"


async def fill(w: Any, count: int = 150) -> None:
    for number in range(count):
        await w.put({"id": f"i{number}", "pk": f"p{number * 7 % 11}", "n": number, "g": number * 5 % 7})


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_the_items_of_several_keys_come_by_rid_within_a_range(world: Any, size: int) -> None:
    async with world(partitions=2) as w:
        await fill(w)
        rows = await w.rows()
        expected = [
            item["n"]
            for part in w.container.map.partitions
            for item in map(w.item_of, rows)
            if item["pk"] in KEYS and part.span.contains(w.container.epk_of((item["pk"],)))
        ]
        assert len(expected) > 100
        assert (await w.query(IN_KEYS, page_items=lambda: size)).results == expected
        for part in w.container.map.partitions:
            numbers = (await w.query(IN_KEYS, span=part.span, page_items=lambda: size)).results
            assert numbers == sorted(numbers)
            assert len(numbers) > 30


async def test_a_page_ends_with_its_physical_partition(world: Any) -> None:
    async with world(partitions=3) as w:
        await fill(w)
        answer = await w.query("SELECT VALUE c.pk FROM c", ends_with_partition=True)
        parts = [part.span for part in w.container.map.partitions]
        pages = [[orjson.loads(result) for result in page.results] for page in answer.pages]
        assert len(pages) == 3
        for keys, span in zip(pages, parts, strict=True):
            assert keys
            assert all(span.contains(w.container.epk_of((key,))) for key in keys)
        assert len((await w.query("SELECT VALUE c.pk FROM c")).pages) == 1


@pytest.mark.parametrize("count", [0, 150])
async def test_a_partition_without_results_is_a_page_where_the_size_is_the_servers(
    world: Any, count: int
) -> None:
    async with world(partitions=3) as w:
        await fill(w, count)
        last = w.container.map.partitions[-1].span
        key = next(f"p{n}" for n in range(11) if last.contains(w.container.epk_of((f"p{n}",))))
        text = f"SELECT VALUE c.pk FROM c WHERE CONCAT(c.pk, '') = '{key}'"
        answer = await w.query(text, ends_with_partition=True)
        assert [len(page.results) for page in answer.pages] == [0, 0, len(answer.results)]
        assert set(answer.results) == ({key} if count else set())
        sized = await w.query(text, ends_with_partition=True, is_sized=True)
        assert [len(page.results) for page in sized.pages] == [len(answer.results)]


async def test_a_token_over_many_keys_is_short(world: Any) -> None:
    async with world() as w:
        await fill(w)
        page = await w.page(IN_KEYS, items_max=20)
        assert page.token is not None
        assert len(page.token) < 400


@pytest.mark.parametrize("size", [2, 1000])
async def test_groups_come_by_their_first_item(world: Any, size: int) -> None:
    async with world() as w:
        await fill(w)
        found = await w.query("SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g", page_items=lambda: size)
        assert [group["g"] for group in found.results] == [number * 5 % 7 for number in range(7)]
        last = await w.query(
            "SELECT VALUE c.pk FROM c WHERE c.n >= 50 GROUP BY c.pk", page_items=lambda: size
        )
        assert last.results == [f"p{number * 7 % 11}" for number in range(50, 61)]
