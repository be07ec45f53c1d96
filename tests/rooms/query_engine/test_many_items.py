"""With more items than one slice or one piece of an index holds, indexes and pages still change no answer."""

from __future__ import annotations

import asyncio
import random
from typing import Any

ITEMS = 2_500
QUERIES = (
    "SELECT VALUE c.id FROM c WHERE c.n = 3",
    "SELECT VALUE c.id FROM c WHERE c.n > 10",
    "SELECT VALUE c.id FROM c WHERE c.half = 1",
    "SELECT VALUE c.id FROM c WHERE c.half = 1 AND c.n < 5",
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c WHERE c.half = 1 ORDER BY c.n DESC",
    "SELECT VALUE c.id FROM c WHERE c.n > 50 ORDER BY c.s",
    "SELECT TOP 100 VALUE c.id FROM c WHERE c.n > 50 AND c.n < 60 ORDER BY c.n",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n > 20",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n > 20 AND c.half = 1",
    "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 't3')",
    "SELECT VALUE c.id FROM c WHERE c.pk IN ('p1', 'p2', 'p30') ORDER BY c.n",
    "SELECT VALUE c.id FROM c WHERE c.n % 7 = 1 ORDER BY c.n DESC",
    "SELECT c.id, t FROM c JOIN t IN c.tags WHERE c.n >= 97 ORDER BY c.n DESC",
)


async def test_indexes_and_pages_change_no_answer_and_no_charge(
    world: Any, index_settings: tuple[Any, Any]
) -> None:
    never, at_once = index_settings
    chosen = random.Random(5)
    async with world(partitions=2, indexes=never) as w:
        made = [
            {
                "id": f"i{number}",
                "pk": f"p{chosen.randrange(40)}",
                "n": chosen.randrange(100),
                "half": chosen.randrange(2),
                "s": f"s{chosen.randrange(10**6)}",
                "tags": [f"t{chosen.randrange(5)}" for _ in range(chosen.randrange(3))],
            }
            for number in range(ITEMS)
        ]
        await asyncio.gather(*map(w.put, made))
        scanned = {text: await w.query(text) for text in QUERIES}
        for text, expected in scanned.items():
            await same(w, text, expected, page_items=700)
    async with world(indexes=at_once) as w:
        for text in QUERIES:
            await w.page(text)
        await w.indexes_built()
        for text, expected in scanned.items():
            await same(w, text, expected, page_items=10**6)
            await same(w, text, expected, page_items=300)


async def same(world: Any, text: str, expected: Any, page_items: int) -> None:
    found = await world.query(text, page_items=lambda: page_items)
    assert found.results == expected.results, text
    assert found.charge_ru == expected.charge_ru, text
