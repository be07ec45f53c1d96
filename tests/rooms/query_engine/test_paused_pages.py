"""Pages that end because their time is over: together they are the answer in one page, whatever happens between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from pleiad.catalog.resource import Kind
from pleiad.engine.kept import KEPT_BYTES_MAX, KeptRoom, KeptWork
from pleiad.engine.query.job import QueryJob
from pleiad.engine.script import definition
from pleiad.limits import Limits

NO_TIME = Limits(operation_seconds=0.0)
EMBEDDINGS = [{"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": "cosine"}]
POLICIES = {
    "vectorEmbeddingPolicy": {"vectorEmbeddings": EMBEDDINGS},
    "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/t", "language": "en-US"}]},
}
WORDS = ("red bicycle", "mountain road", "quiet river", "red wine by the river", "mountain river")
ORDERED = (
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.id FROM c WHERE c.n % 2 = 1 ORDER BY c.n OFFSET 3 LIMIT 9",
    "SELECT TOP 7 c.id, t FROM c JOIN t IN c.tags ORDER BY c.s DESC",
    "SELECT c.n, COUNT(1) AS many, SUM(c.x) AS total FROM c GROUP BY c.n",
    "SELECT c.n, MAKESET(c.pk) AS keys FROM c WHERE c.pk = 'p1' GROUP BY c.n OFFSET 1 LIMIT 3",
    "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n DESC",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE AVG(c.x) FROM c WHERE c.n % 2 = 0",
    "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.n FROM c)",
    "SELECT VALUE c.id FROM c WHERE c.id IN ('i1', 'i7', 'i9') AND c.pk IN ('p1', 'p7', 'p9') ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, [0.5, 1])",
    "SELECT TOP 9 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.t, 'red', 'river')",
    "SELECT VALUE c.id FROM c WHERE c.n > 2 "
    "ORDER BY RANK RRF(FullTextScore(c.t, 'river'), VectorDistance(c.v, [1, 0]), [2, 1]) OFFSET 1 LIMIT 12",
)
UNORDERED = (
    "SELECT VALUE c.id FROM c",
    "SELECT VALUE c.id FROM c WHERE c.n % 5 = 3",
    "SELECT DISTINCT VALUE c.n FROM c",
    "SELECT DISTINCT c.n, t FROM c JOIN t IN c.tags WHERE c.n % 2 = 0",
)
CUT_UNORDERED = (
    "SELECT DISTINCT TOP 4 VALUE c.n FROM c",
    "SELECT DISTINCT VALUE c.n FROM c OFFSET 2 LIMIT 5",
    "SELECT DISTINCT VALUE c.n FROM c WHERE c.pk = 'p1' AND c.id IN ('i1', 'i12', 'i23')",
)
Between = Callable[[Any, int], Awaitable[None]]


async def fill(world: Any, count: int = 24) -> None:
    for number in range(count):
        item = {"id": f"i{number}", "pk": f"p{number % 11}", "n": number % 8, "x": number, "s": f"s{number}"}
        texts = {"t": WORDS[number % 5], "v": [number % 6, number % 4 + 1]} if number % 9 else {}
        await world.put({**item, **texts, "tags": ["a", "b", f"t{number % 3}"]})


async def nothing(world: Any, number: int) -> None:
    """What happens between two pages that are undisturbed."""


async def paged(world: Any, text: str, items_max: int, between: Between = nothing) -> tuple[list[Any], float]:
    """The results and the charge of a query page by page."""
    results: list[Any] = []
    charge_ru, token, number = 0.0, "", 0
    while True:
        page = await world.page(text, items_max=items_max, token=token)
        assert len(page.results) <= items_max
        results += map(orjson.loads, page.results)
        charge_ru += page.own_ru
        if page.token is None:
            return results, round(charge_ru, 2)
        token = page.token
        assert len(token) < 1024
        number += 1
        assert number < 2_000, "the pages do not end"
        await between(world, number)


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "gathered again"])
@pytest.mark.parametrize("is_indexed", [False, True], ids=["scanned", "indexed"])
async def test_small_pages_without_time_are_the_answer(
    world: Any, index_settings: tuple[Any, Any], is_indexed: bool, is_kept: bool
) -> None:
    async with world(partitions=3, indexes=index_settings[is_indexed], **POLICIES) as w:
        await fill(w)
        whole = {text: await w.query(text) for text in (*ORDERED, *UNORDERED, *CUT_UNORDERED)}
        await w.indexes_built()
    async with world(indexes=index_settings[is_indexed], limits=NO_TIME) as w:
        w.container.kept.bytes_max = KEPT_BYTES_MAX if is_kept else -1
        for text, answer in whole.items():
            for items_max in (1, 5, 1_000) if is_kept else (4, 1_000):
                results, charge_ru = await paged(w, text, items_max)
                assert results == answer.results, (text, items_max)
                assert charge_ru == answer.charge_ru, (text, items_max)


@pytest.mark.parametrize("text", [ORDERED[0], ORDERED[4], ORDERED[6], ORDERED[12]])
async def test_a_page_whose_time_is_over_is_empty_and_goes_on(world: Any, text: str) -> None:
    async with world(partitions=2, limits=NO_TIME, **POLICIES) as w:
        await fill(w)
        page = await w.page(text)
        assert page.results == []
        assert page.token is not None


async def test_an_order_read_by_an_index_gives_what_it_has_when_its_time_is_over(
    world: Any, index_settings: tuple[Any, Any]
) -> None:
    async with world(partitions=2, indexes=index_settings[1]) as w:
        await fill(w)
        await w.query("SELECT * FROM c ORDER BY c.n")
        await w.indexes_built()
    async with world(indexes=index_settings[1], limits=NO_TIME) as w:
        answer = await w.query("SELECT VALUE c.n FROM c WHERE c.s != 's3' ORDER BY c.n")
    assert answer.results == sorted(answer.results)
    assert len(answer.pages) > 5
    assert any(page.results for page in answer.pages[:3])


async def test_the_pages_of_a_query_outlive_restarts(world: Any) -> None:
    async with world(partitions=3, **POLICIES) as w:
        await fill(w)
        whole = {text: await w.query(text) for text in (*ORDERED, *UNORDERED, *CUT_UNORDERED)}
    tokens = dict.fromkeys(whole, "")
    found: dict[str, list[Any]] = {text: [] for text in whole}
    charges = dict.fromkeys(whole, 0.0)
    while tokens:
        async with world(limits=NO_TIME) as w:
            for text in list(tokens):
                for _ in range(9):
                    page = await w.page(text, items_max=4, token=tokens[text])
                    found[text] += map(orjson.loads, page.results)
                    charges[text] += page.own_ru
                    if page.token is None:
                        del tokens[text]
                        break
                    tokens[text] = page.token
    for text, answer in whole.items():
        assert found[text] == answer.results, text
        assert round(charges[text], 2) == answer.charge_ru, text


async def reshape(world: Any, number: int) -> None:
    """Splits the partition with most items, or merges the first two, in turn."""
    partitions = world.container.map.partitions
    if number % 3 == 2:
        await world.engine.reshaper.merge(world.container, [each.range_id for each in partitions[:2]])
        return
    counts = [(await each.state()).items for each in partitions]
    largest = partitions[counts.index(max(counts))]
    await world.engine.reshaper.split(world.container, largest.range_id)


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "gathered again"])
@pytest.mark.parametrize("text", [*ORDERED, *UNORDERED])
async def test_the_pages_of_a_query_outlive_splits_and_merges(world: Any, text: str, is_kept: bool) -> None:
    shapes: set[int] = set()

    async def sometimes(world: Any, number: int) -> None:
        if number % 4 == 1 and number < 22:
            await reshape(world, number // 4)
            shapes.add(len(world.container.map.partitions))

    async with world(partitions=2, limits=NO_TIME, **POLICIES) as w:
        await fill(w)
        whole, _ = await paged(w, text, 1_000)
        w.container.kept.bytes_max = KEPT_BYTES_MAX if is_kept else -1
        results, _ = await paged(w, text, 1 if is_kept else 2, sometimes)
        if text in UNORDERED:
            assert sorted(map(repr, results)) == sorted(map(repr, whole))
        else:
            assert results == whole
    assert shapes


@pytest.mark.parametrize("pages", [1, 3, 12, 20])
async def test_both_children_of_a_split_go_on_with_the_token_of_their_parent(world: Any, pages: int) -> None:
    """As clients do that ask each physical partition for its part; nothing is counted twice or left out."""
    texts = (
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE SUM(c.x) FROM c",
        "SELECT VALUE c.x FROM c ORDER BY c.x",
    )
    async with world(partitions=2, limits=NO_TIME) as w:
        await fill(w)
        parent = w.container.map.partitions[0]
        whole = {text: (await w.query(text, span=parent.span)).results for text in texts}
        tokens = {}
        for text in texts:
            token = ""
            for _ in range(pages):
                page = await w.page(text, span=parent.span, token=token)
                if page.token is None:
                    break
                token = page.token
            tokens[text] = token
            assert not page.results or page.token is None
        children = await w.engine.reshaper.split(w.container, parent.range_id)
        for text in texts:
            found: list[Any] = []
            for child in children:
                found += (await w.query(text, span=child.span, token=tokens[text])).results
            assert sorted(found) == whole[text] or sum(found) == sum(whole[text]), text


async def test_the_size_of_a_page_may_change_while_the_answer_is_gathered(world: Any) -> None:
    text = "SELECT VALUE c.id FROM c ORDER BY c.x DESC OFFSET 2 LIMIT 20"
    async with world(partitions=2, limits=NO_TIME) as w:
        await fill(w, 33)
        sizes = iter([1, 2, 30, 4, 500] * 500)
        answer = await w.query(text, page_items=lambda: next(sizes))
    assert answer.results == [f"i{number}" for number in range(30, 10, -1)]


async def test_a_token_may_be_sent_twice(world: Any) -> None:
    async with world(partitions=2, limits=NO_TIME) as w:
        await fill(w)
        for text in ("SELECT c.n, COUNT(1) AS m FROM c GROUP BY c.n", "SELECT DISTINCT VALUE c.n FROM c"):
            whole = await w.query(text)
            token = (await w.page(text, items_max=3)).token
            given: list[Any] = []
            for _ in range(2):
                again = await w.query(text, page_items=lambda: 3, token=token)
                given.append(again.results)
            assert given[0] == given[1] == whole.results[-len(given[0]) :]


async def test_what_is_kept_has_a_limit() -> None:
    kept = KeptWork()
    kept.bytes_max = 100
    names = [kept.keep(1, number, 40) for number in range(4)]
    assert [kept.look(name, 1) for name in names] == [None, None, 2, 3]
    assert kept.look(kept.keep(1, "large", 101), 1) is None
    assert kept.look(names[3], 2) is None
    assert kept.take(names[3], 1) == 3
    assert kept.take(names[3], 1) is None


async def test_what_all_containers_keep_has_a_limit() -> None:
    room = KeptRoom(bytes_max=100)
    keepers = [KeptWork(room) for _ in range(5)]
    names = [keeper.keep(1, "work", 40) for keeper in keepers]
    assert [keeper.look(name, 1) for keeper, name in zip(keepers, names, strict=True)].count("work") == 2
    assert sum(keeper.size_bytes for keeper in keepers) == 80
    for keeper, name in zip(keepers, names, strict=True):
        keeper.forget(name)
    names = [keepers[0].keep(1, "work", 30) for _ in range(3)]
    small = keepers[1].keep(1, "small", 20)
    assert keepers[1].look(small, 1) == "small"
    assert [keepers[0].look(name, 1) for name in names] == [None, "work", "work"]


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "gathered again"])
async def test_functions_are_called_on_every_page(
    world: Any, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    """A function runs in a process that is leased for one page; what is kept of a query must not hold on to it."""
    async with world(partitions=2) as w:
        await fill(w, 13)
        body = {"id": "half", "body": "function (n) { return Math.floor(n / 2); }"}
        await definition.create(w.engine, Kind.USER_DEFINED_FUNCTION, w.container.resource, body)
        texts = (
            "SELECT VALUE c.id FROM c WHERE udf.half(c.n) = 1 ORDER BY c.x DESC",
            "SELECT VALUE SUM(udf.half(c.n)) FROM c",
            "SELECT udf.half(c.n) AS h, COUNT(1) AS m FROM c GROUP BY udf.half(c.n)",
            "SELECT DISTINCT VALUE udf.half(c.n) FROM c",
        )
        whole = {text: await w.query(text) for text in texts}
        monkeypatch.setattr(QueryJob, "is_out_of_time", lambda job: True)
        w.container.kept.bytes_max = KEPT_BYTES_MAX if is_kept else -1
        for text, answer in whole.items():
            results, charge_ru = await paged(w, text, 2)
            assert results == answer.results, text
            assert charge_ru == answer.charge_ru, text
