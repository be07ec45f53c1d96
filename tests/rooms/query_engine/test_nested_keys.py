"""A filter that names a prefix of a hierarchical key and keys beneath it: their ranges lie in each other."""

from __future__ import annotations

from typing import Any

import pytest

from pleiad.limits import Limits

NESTED = "(c.a = 'x' AND c.n >= 0) OR (c.a = 'x' AND c.b = 'y1') OR (c.a = 'x' AND c.b = 'y2' AND c.n < 99)"
TEXTS = (
    f"SELECT VALUE c.n FROM c WHERE {NESTED}",
    f"SELECT VALUE c.n FROM c WHERE {NESTED} ORDER BY c.n DESC",
    f"SELECT VALUE COUNT(1) FROM c WHERE {NESTED}",
    f"SELECT c.b, COUNT(1) AS m FROM c WHERE {NESTED} GROUP BY c.b",
)


@pytest.mark.parametrize("is_indexed", [False, True], ids=["scanned", "indexed"])
async def test_an_item_beneath_two_keys_of_the_filter_is_read_once(
    world: Any, index_settings: tuple[Any, Any], is_indexed: bool
) -> None:
    indexes = index_settings[is_indexed]
    async with world(key_paths=("/a", "/b"), indexes=indexes) as w:
        for number in range(12):
            await w.put({"id": f"i{number}", "a": "x", "b": f"y{number % 4}", "n": number})
            await w.put({"id": f"i{number}", "a": "z", "b": f"y{number % 4}", "n": number})
        whole = {text: await w.query(text) for text in TEXTS}
        await w.indexes_built()
    assert sorted(whole[TEXTS[0]].results) == list(range(12))
    assert whole[TEXTS[1]].results == list(range(11, -1, -1))
    assert whole[TEXTS[2]].results == [12]
    assert [group["m"] for group in whole[TEXTS[3]].results] == [3, 3, 3, 3]
    async with world(indexes=indexes, limits=Limits(operation_seconds=0.0)) as w:
        for text, answer in whole.items():
            hurried = await w.query(text, page_items=lambda: 2)
            assert hurried.results == answer.results, text
            assert hurried.charge_ru == answer.charge_ru, text
