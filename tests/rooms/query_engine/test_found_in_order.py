"""Pages in the order of an index of which nothing is evaluated: the answers and charges are those of evaluated ones."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pleiad.engine.query import prepared
from pleiad.engine.query.found import page_at_once
from pleiad.engine.query.page import QueryPage
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits

TEXTS = (
    "SELECT * FROM c ORDER BY c.v",
    "SELECT * FROM c ORDER BY c.v DESC",
    "SELECT VALUE c FROM c ORDER BY c.nested.v",
    "SELECT TOP 5 * FROM c ORDER BY c.v DESC",
    "SELECT * FROM c ORDER BY c.v OFFSET 3 LIMIT 9",
    "SELECT * FROM c ORDER BY c.v DESC OFFSET 40 LIMIT 0",
    "SELECT * FROM c WHERE c.v > 1 ORDER BY c.v",
    "SELECT * FROM c WHERE c.v >= @v AND c.v < @w ORDER BY c.v DESC",
    "SELECT * FROM c WHERE c.v = @v ORDER BY c.v",
    "SELECT * FROM c ORDER BY c._ts",
)
EVALUATED_TEXTS = (
    "SELECT c.v FROM c ORDER BY c.v",
    "SELECT DISTINCT * FROM c ORDER BY c.v",
    "SELECT TOP @n * FROM c ORDER BY c.v",
    "SELECT * FROM c ORDER BY c.v, c.n",
    "SELECT * FROM c WHERE c.n = 1 ORDER BY c.v",
    "SELECT * FROM c WHERE c.pk = 'p1' ORDER BY c.v",
    "SELECT * FROM c WHERE c.id = 'i1' ORDER BY c.v",
    "SELECT * FROM c WHERE c.v > LENGTH(REPLICATE('a', 5000)) ORDER BY c.v",
    "SELECT VALUE c FROM c JOIN t IN c.tags ORDER BY c.v",
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -0.0, 1, 1.0, 1.5, -7, 2**53, 2**53 + 1, 2**60, 1e300, 5e-324),
    *("", "a", "A", "naïve", "日本", "x" * 3_000),
)
UNORDERED: tuple[Any, ...] = ([], [1], {"a": 1}, "\ue000", "😀")
"""What an index orders otherwise than the language, or not at all."""
POLICY = {
    "includedPaths": [{"path": "/*"}],
    "excludedPaths": [],
    "compositeIndexes": [[{"path": "/v", "order": "ascending"}, {"path": "/n", "order": "ascending"}]],
}
PARAMETERS = {"@v": 1, "@w": 100, "@n": 3}


def item(number: int, source: random.Random, values: tuple[Any, ...]) -> dict[str, Any]:
    made: dict[str, Any] = {"id": f"i{number}", "pk": f"p{number % 5}", "n": number, "tags": ["a", "b"]}
    for holder in (made, made.setdefault("nested", {})):
        if source.random() < 0.9:
            holder["v"] = source.choice(values)
    return made


def told(w: Any, page: QueryPage) -> tuple[Any, ...]:
    """All of a page but how long it took; a token by what it says, since 1 and 1.0 are one place."""
    results, charge, charge_ru, token, *rest = page[:-2]
    return results, charge, charge_ru, token is None, *rest


def spent(w: Any) -> list[tuple[int, float]]:
    figures = [partition.governor.snapshot() for partition in w.container.map.partitions]
    return [(each.requests, each.ru) for each in figures]


async def asked(w: Any, *query: Any, **more: Any) -> tuple[Any, ...]:
    before = spent(w)
    answer = await w.query(*query, **more)
    taken = [
        (requests - earlier, round(ru - earlier_ru, 3))
        for (requests, ru), (earlier, earlier_ru) in zip(spent(w), before, strict=True)
    ]
    return answer.results, [told(w, page) for page in answer.pages], taken


async def both_ways(w: Any, monkeypatch: pytest.MonkeyPatch, *query: Any, **more: Any) -> None:
    w.container.prepared.clear()
    await w.query(*query, **more)  # from now on it is known
    found = await asked(w, *query, **more)
    with monkeypatch.context() as patched:
        patched.setattr(prepared, "_found_rows", lambda *_: None)
        w.container.prepared.clear()
        evaluated = await asked(w, *query, **more)
    w.container.prepared.clear()
    assert found == evaluated, (query, more)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("partitions", [1, 3])
async def test_both_ways_give_the_same_pages(
    world: Any, index_settings: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, seed: int, partitions: int
) -> None:
    source = random.Random(seed)
    never, at_once = index_settings
    ttl = {"defaultTtl": 3_600} if seed % 2 else {}
    values = (*VALUES, *UNORDERED) if seed == 2 else VALUES
    indexes = never if seed == 3 else at_once
    async with world(partitions=partitions, indexes=indexes, indexingPolicy=POLICY, **ttl) as w:
        for number in range(120):
            await w.put(item(number, source, values))
        for text in (*TEXTS, *EVALUATED_TEXTS):
            await w.query(text, PARAMETERS)
        await w.indexes_built()
        spans = [WHOLE, *(partition.span for partition in w.container.map.partitions)]
        spans += [w.container.span_of((f"p{number}",)) for number in range(2)]
        for text in (*TEXTS, *EVALUATED_TEXTS):
            for _ in range(3):
                count = source.choice((1, 2, 7, 500, 10**6))
                more = {"span": source.choice(spans), "page_items": lambda count=count: count}
                await both_ways(w, monkeypatch, text, PARAMETERS, **more)


async def test_both_ways_end_a_page_at_its_size(
    world: Any, index_settings: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(indexes=index_settings[1], limits=Limits(response_bytes=4_000)) as w:
        for number in range(30):
            await w.put({"id": f"i{number}", "pk": "p", "v": -number, "text": "x" * 100 * number})
        await w.query(TEXTS[0])
        await w.indexes_built()
        answer = await w.query(TEXTS[0])
        assert [each["id"] for each in answer.results] == [f"i{number}" for number in reversed(range(30))]
        assert len(answer.pages) > 3
        await both_ways(w, monkeypatch, TEXTS[0])


@pytest.mark.parametrize("text", TEXTS[:-1])
async def test_a_query_that_was_asked_before_is_known_as_one_that_the_store_answers(
    world: Any, text: str
) -> None:
    async with world() as w:
        await w.query(text, PARAMETERS)
        (known,) = w.container.prepared.values()
        assert known.found_rows is not None


@pytest.mark.parametrize("text", EVALUATED_TEXTS)
async def test_others_are_evaluated(world: Any, text: str) -> None:
    async with world(indexingPolicy=POLICY) as w:
        await w.put({"id": "i1", "pk": "p1", "v": 1})
        await w.query(text, PARAMETERS)
        assert page_at_once(w.container, w.request(text, PARAMETERS, items_max=10), 0.0) is None


async def test_a_page_is_there_at_once_where_its_index_is(
    world: Any, index_settings: tuple[Any, Any], request: pytest.FixtureRequest
) -> None:
    async with world(indexes=index_settings[1]) as w:
        for number in range(20):
            await w.put({"id": f"i{number}", "pk": "p", "v": number})
        first = w.request(TEXTS[0], items_max=5)
        assert page_at_once(w.container, first, 0.0) is None  # nobody has asked for it
        await w.query(TEXTS[0])
        await w.indexes_built()
        page = page_at_once(w.container, first, 0.0)
        if page is None:
            assert "postgres" in request.node.name  # which is always waited for
            return
        assert len(page.results) == 5
        rest = await w.query(TEXTS[0], token=page.token)
        assert [each["v"] for each in rest.results] == list(range(5, 20))


async def test_what_is_prepared_ends_with_the_indexing_policy(
    world: Any, index_settings: tuple[Any, Any]
) -> None:
    async with world(indexes=index_settings[1]) as w:
        for number in range(10):
            await w.put({"id": f"i{number}", "pk": "p", "v": number})
        await w.query("SELECT * FROM c ORDER BY c.v")
        without = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/v/*"}]}
        definition = {**w.container.resource.properties, "id": "c", "indexingPolicy": without}
        await w.engine.replace_container(w.engine.database("d"), "c", definition, None)
        assert w.container.prepared == {}
        with pytest.raises(Exception, match="range index"):
            await w.query("SELECT * FROM c ORDER BY c.v")
