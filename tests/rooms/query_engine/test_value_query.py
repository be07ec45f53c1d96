"""The short way of `path = @value`: the same answer, charge and token as the general way, for every value."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pleiad.engine.query import execution
from pleiad.engine.query.found import FoundQuery, found_query
from pleiad.engine.query.page import QueryPage
from pleiad.engine.query.prepared import learn
from pleiad.engine.query.request import QueryRequest
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits

TEXTS = (
    "SELECT * FROM c WHERE c.v = @v",
    "SELECT VALUE c FROM c WHERE @v = c.nested.v",
    'SELECT * FROM root WHERE root["v"] = @v',
)
GENERAL_TEXTS = (
    "SELECT * FROM c WHERE c.id = @v",
    "SELECT * FROM c WHERE c.pk = @v",
    "SELECT * FROM c WHERE c.hidden = @v",
    "SELECT * FROM c WHERE c._etag = @v",
    "SELECT * FROM c WHERE c.v != @v",
    "SELECT * FROM c WHERE c.v = @v AND c.n = 1",
    "SELECT * FROM c WHERE @v = @v",
    "SELECT c.v FROM c WHERE c.v = @v",
    "SELECT TOP 2 * FROM c WHERE c.v = @v",
    "SELECT * FROM c WHERE c.v = @v OFFSET 1 LIMIT 2",
    "SELECT * FROM c WHERE c.v = @v ORDER BY c.n",
    "SELECT DISTINCT * FROM c WHERE c.v = @v",
    "SELECT VALUE c FROM c JOIN t IN c.tags WHERE t = @v",
    "SELECT VALUE COUNT(1) FROM c WHERE c.v = @v",
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -0.0, 1, 1.0, 1.5, -7, 2**53, 2**53 + 1, 2**60, 1e300, 5e-324),
    *("", "a", "A", "1", "null", "naïve", "日本", "😀", "\ue000", "'\"\\", "x" * 3_000),
    *([], [1], {}, {"a": 1}, float("inf"), float("nan"), "\ud800"),
)
STORED = [value for value in VALUES if value == value and value not in (float("inf"), "\ud800")]
HIDDEN = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/hidden/*"}]}


def item(number: int, source: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {"id": f"i{number}", "pk": f"p{number % 5}", "n": number, "tags": ["a", "b"]}
    for holder in (made, made.setdefault("nested", {})):
        if source.random() < 0.9:
            holder["v"] = source.choice(STORED)
    made["hidden"] = source.choice(STORED)
    if source.random() < 0.1:
        made["ttl"] = -1
    return made


def value_query(w: Any, asked: QueryRequest) -> FoundQuery | None:
    """The query as one for a value that the store finds, once its text is known."""
    learn(w.container, asked.text)
    return found_query(w.container, asked)


def seen(page: QueryPage) -> tuple[Any, ...]:
    """All of a page but how long it took."""
    return page[:-2]


def spent(w: Any) -> list[tuple[int, float]]:
    """The requests and request units that each partition has counted so far."""
    figures = [partition.governor.snapshot() for partition in w.container.map.partitions]
    return [(each.requests, each.ru) for each in figures]


async def asked_for(w: Any, *asked: Any, **more: Any) -> tuple[Any, Any]:
    """The pages of a query, and what they took from each partition's governor."""
    before = spent(w)
    answer = await w.query(*asked, **more)
    taken = [
        (requests - earlier, round(ru - earlier_ru, 6))
        for (requests, ru), (earlier, earlier_ru) in zip(spent(w), before, strict=True)
    ]
    return list(map(seen, answer.pages)), taken


async def both_ways(w: Any, monkeypatch: pytest.MonkeyPatch, *asked: Any, **more: Any) -> None:
    pages, taken = await asked_for(w, *asked, **more)
    with monkeypatch.context() as patched:
        patched.setattr(execution, "found_query", lambda *_: None)
        general_pages, general_taken = await asked_for(w, *asked, **more)
    assert (pages, taken) == (general_pages, general_taken), (asked, more)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("partitions", [1, 3])
async def test_both_ways_give_the_same_pages(
    world: Any, index_settings: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, seed: int, partitions: int
) -> None:
    source = random.Random(seed)
    never, at_once = index_settings
    ttl = {"defaultTtl": 3_600} if seed % 2 else {}
    indexes = never if seed == 3 else at_once
    async with world(partitions=partitions, indexes=indexes, indexingPolicy=HIDDEN, **ttl) as w:
        for number in range(150):
            await w.put(item(number, source))
        for text in (*TEXTS, *GENERAL_TEXTS):
            await w.query(text, {"@v": 1})
        await w.indexes_built()
        spans = [WHOLE, *(partition.span for partition in w.container.map.partitions)]
        spans += [w.container.span_of((f"p{number}",)) for number in range(2)]
        for text in (*TEXTS, *GENERAL_TEXTS):
            for value in source.sample(VALUES, 6):
                count = source.choice((1, 2, 7, 500, 10**6))
                more = {"span": source.choice(spans), "page_items": lambda count=count: count}
                await both_ways(w, monkeypatch, text, {"@v": value, "@unused": [1]}, **more)


async def test_both_ways_end_a_page_at_its_size(
    world: Any, index_settings: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(indexes=index_settings[1], limits=Limits(response_bytes=4_000)) as w:
        for number in range(30):
            await w.put({"id": f"i{number}", "pk": "p", "v": number % 2, "text": "x" * 100 * number})
        await w.query(TEXTS[0], {"@v": 1})
        await w.indexes_built()
        answer = await w.query(TEXTS[0], {"@v": 1})
        assert [each["id"] for each in answer.results] == [f"i{number}" for number in range(1, 30, 2)]
        assert len(answer.pages) > 3
        await both_ways(w, monkeypatch, TEXTS[0], {"@v": 1})


async def test_a_policy_that_no_longer_indexes_the_path_ends_the_short_way(
    world: Any, index_settings: tuple[Any, Any]
) -> None:
    async with world(indexes=index_settings[1]) as w:
        for number in range(10):
            await w.put({"id": f"i{number}", "pk": "p", "v": number % 2})
        cheap = await w.query(TEXTS[0], {"@v": 1})
        without = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/v/*"}]}
        definition = {**w.container.resource.properties, "id": "c", "indexingPolicy": without}
        await w.engine.replace_container(w.engine.database("d"), "c", definition, None)
        dear = await w.query(TEXTS[0], {"@v": 1})
    assert dear.results == cheap.results
    assert dear.charge_ru > cheap.charge_ru


@pytest.mark.parametrize("text", TEXTS)
async def test_the_commonest_queries_go_the_short_way(world: Any, text: str) -> None:
    async with world() as w:
        asked = w.request(text, {"@v": "x"})
        assert value_query(w, asked) is not None
        assert value_query(w, asked._replace(token="t")) is None
        assert value_query(w, asked._replace(parameters={})) is None
        assert value_query(w, asked._replace(is_confined=False, may_fan_out=False)) is None


@pytest.mark.parametrize("text", GENERAL_TEXTS)
async def test_others_go_the_general_way(world: Any, text: str) -> None:
    async with world(indexingPolicy=HIDDEN) as w:
        assert value_query(w, w.request(text, {"@v": "x"})) is None
