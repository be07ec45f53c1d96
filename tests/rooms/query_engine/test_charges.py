"""What queries cost: by partitions visited and items loaded, the same whatever index happens to exist."""

from __future__ import annotations

from typing import Any

import pytest

from pleiad.limits import Limits

ITEMS = 120
KEYS = 24
EXCLUDED = {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/description/*"}]}
QUERIES = (
    "SELECT * FROM c",
    "SELECT VALUE c.id FROM c WHERE c.n = 2",
    "SELECT c.id, t FROM c JOIN t IN c.tags",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n > 3",
    "SELECT c.n, COUNT(1) AS many FROM c GROUP BY c.n",
    "SELECT DISTINCT VALUE c.n FROM c",
    "SELECT * FROM c ORDER BY c.n",
    "SELECT * FROM c WHERE c.n > 2 ORDER BY c.n DESC",
    "SELECT * FROM c WHERE c.s = 's1' ORDER BY c.n DESC",
    "SELECT TOP 13 * FROM c ORDER BY c.n DESC",
    "SELECT * FROM c OFFSET 5 LIMIT 20",
    "SELECT * FROM c WHERE c.pk = 'p3'",
    "SELECT * FROM c WHERE c.id IN ('i1', 'i2', 'i25', 'i49') AND c.pk = 'p1'",
    "SELECT * FROM c WHERE c.id IN ('i1', 'i2', 'i25', 'i49') AND c.pk = 'p1' ORDER BY c.n",
    "SELECT VALUE 1",
)
MANY = "(SELECT VALUE COUNT(1) FROM a IN c.t JOIN b IN c.t)"
HEAVY = (
    "SELECT VALUE COUNT(1) FROM c JOIN a IN c.t JOIN b IN c.t",
    f"SELECT c.n, SUM({MANY}) AS many FROM c GROUP BY c.n",
    f"SELECT VALUE {MANY} FROM c",
    f"SELECT VALUE {MANY} FROM c WHERE c.pk = 'p1' AND c.id IN ('i1', 'i7')",
    f"SELECT DISTINCT VALUE {MANY} FROM c",
    f"SELECT DISTINCT VALUE {MANY} FROM c ORDER BY c.n",
    f"SELECT VALUE c.id FROM c WHERE {MANY} + c.n < 3",
    "SELECT VALUE [c.id, a, b] FROM c JOIN a IN c.t JOIN b IN c.t WHERE a = b AND a % 20 = 19",
    "SELECT TOP 5 VALUE [c.id, a, b] FROM c JOIN a IN c.t JOIN b IN c.t WHERE a = b AND a % 20 = 19",
    f"SELECT VALUE {MANY} FROM c ORDER BY c.n",
    f"SELECT VALUE c.id FROM c WHERE {MANY} + c.n % 3 = 1602 ORDER BY c.n DESC",
    f"SELECT VALUE c.id FROM c WHERE {MANY} < 3 ORDER BY c.n",
    "SELECT VALUE [c.id, a, b] FROM c JOIN a IN c.t JOIN b IN c.t WHERE a = b AND a % 20 = 19 ORDER BY c.n DESC",
    f"SELECT VALUE {MANY} FROM c WHERE c.pk = 'p1' AND c.id IN ('i1', 'i7') ORDER BY c.n",
)
"""Queries of which an item takes thousands of steps."""
NO_TIME = Limits(operation_seconds=0.0)


def item(number: int) -> dict[str, Any]:
    return {
        "id": f"i{number}",
        "pk": f"p{number % KEYS}",
        "n": number % 7,
        "s": f"s{number % 3}",
        "tags": ["a", "b"][: number % 3],
        "description": f"description {number}",
    }


async def fill(world: Any) -> None:
    for number in range(ITEMS):
        await world.put(item(number))


@pytest.mark.parametrize("page_items", [1, 7, 15])
async def test_the_charges_of_the_pages_add_up_to_the_charge_of_the_query(
    world: Any, page_items: int
) -> None:
    async with world(partitions=3) as w:
        await fill(w)
        for text in QUERIES:
            whole = await w.query(text)
            paged = await w.query(text, page_items=lambda: page_items)
            assert len(whole.pages) == 1
            assert paged.results == whole.results, text
            assert paged.charge_ru == whole.charge_ru, text
            assert min(page.charge_ru for page in paged.pages) >= 1, text
            if page_items > 7:
                assert paged.added_ru == pytest.approx(0), text


async def test_a_page_costs_one_request_unit_however_little_is_on_it(world: Any) -> None:
    """As the service charges no less for any request."""
    async with world() as w:
        for number in range(5):
            await w.put(item(number))
        for text, empty in (("SELECT * FROM c", 1), ("SELECT VALUE c.n FROM c ORDER BY c.n", 0)):
            whole = await w.query(text)
            paged = await w.query(text, page_items=lambda: 1)
            charges = [page.charge_ru for page in paged.pages]
            assert paged.results == whole.results
            assert charges[0] > 1
            assert charges[1:] == [1.0] * (4 + empty)


async def test_a_page_that_ends_by_the_clock_makes_no_query_dearer(world: Any) -> None:
    text = "SELECT c.n, COUNT(1) AS many FROM c GROUP BY c.n"
    async with world() as w:
        await fill(w)
        whole = await w.query(text)
    async with world(limits=NO_TIME) as w:
        cut = await w.query(text, page_items=lambda: 1_000)
    assert len(cut.pages) > ITEMS / 2, "each ends at its first item"
    assert cut.charge_ru == whole.charge_ru
    assert cut.added_ru == pytest.approx(0)


async def test_a_physical_index_changes_neither_the_answer_nor_the_charge(
    world: Any, index_settings: tuple[Any, Any]
) -> None:
    never, at_once = index_settings
    async with world(partitions=2, indexes=never) as w:
        await fill(w)
        before = [await w.query(text) for text in QUERIES]
    async with world(indexes=at_once) as w:
        for text in QUERIES:
            await w.query(text)
        await w.indexes_built()
        after = [await w.query(text) for text in QUERIES]
    assert [answer.results for answer in after] == [answer.results for answer in before]
    assert [answer.charge_ru for answer in after] == [answer.charge_ru for answer in before]


@pytest.mark.parametrize("is_indexed", [False, True], ids=["scanned", "indexed"])
async def test_heavy_evaluation_is_charged_once_whichever_way_the_query_goes(
    world: Any, index_settings: tuple[Any, Any], is_indexed: bool
) -> None:
    numbers = list(range(40))
    charges: dict[str, float] = {}
    async with world(partitions=3, indexes=index_settings[0]) as w:
        for number in range(12):
            await w.put({"id": f"i{number}", "pk": f"p{number % 6}", "n": number % 5, "t": numbers})
        for text in HEAVY:
            whole = await w.query(text)
            assert len(whole.pages) == 1
            assert dict(whole.pages[0].charge.parts)["evaluation"] > 0, text
            charges[text] = whole.charge_ru
    async with world(indexes=index_settings[is_indexed]) as w:
        for text in HEAVY:
            await w.query(text)
        await w.indexes_built()
        for text in HEAVY:
            for page_items in (2, 1_000):
                paged = await w.query(text, page_items=lambda: page_items)  # noqa: B023
                assert paged.charge_ru == charges[text], (text, page_items)
    async with world(indexes=index_settings[is_indexed], limits=NO_TIME) as w:
        w.container.kept.bytes_max = -1
        for text in HEAVY:
            paused = await w.query(text, page_items=lambda: 1_000)
            assert paused.charge_ru == charges[text], text


async def test_the_first_page_pays_for_what_it_evaluates_of_an_item_it_does_not_finish(world: Any) -> None:
    async with world() as w:
        await w.put({"id": "i", "pk": "p", "t": list(range(300))})
        text = "SELECT VALUE 1 FROM c JOIN a IN c.t JOIN b IN c.t WHERE a + b = 0 OR a + b > 590"
        page = await w.page(text, items_max=1)
    assert page.token is not None
    assert page.charge_ru > 50


@pytest.mark.requirement("R88")
async def test_a_lookup_inside_one_partition_costs_one_to_five_request_units(world: Any) -> None:
    async with world(partitions=4) as w:
        await fill(w)
        for text in (
            "SELECT * FROM c WHERE c.pk = 'p3' AND c.id = 'i3'",
            "SELECT * FROM c WHERE c.pk = 'p3' AND c.n = 3",
            "SELECT * FROM c WHERE c.pk = 'p3'",
        ):
            answer = await w.query(text)
            assert answer.results
            assert 1 <= answer.charge_ru <= 5


@pytest.mark.requirement("R89")
async def test_a_fan_out_costs_more_the_more_partitions_there_are(world: Any) -> None:
    charges: dict[int, float] = {}
    for partitions in (1, 2, 4):
        async with world(partitions=partitions, name=str(partitions)) as w:
            await w.put(item(1))
            charges[partitions] = (await w.query("SELECT * FROM c WHERE c.n = 1")).charge_ru
    assert charges[2] - charges[1] == pytest.approx(2.5)
    assert charges[4] - charges[2] == pytest.approx(5.0)


@pytest.mark.requirement("R90", "R121", "R122")
async def test_a_scan_of_an_unindexed_field_costs_more_than_a_look_into_an_index(world: Any) -> None:
    async with world(partitions=2, indexingPolicy=EXCLUDED) as w:
        await fill(w)
        indexed = await w.query("SELECT * FROM c WHERE c.pk = 'p1' AND c.s = 's1' ORDER BY c.n DESC")
        scanned = await w.query("SELECT * FROM c WHERE CONTAINS(c.description, 'description 1')")
        unindexed = await w.query("SELECT * FROM c WHERE c.description = 'description 1'")
        found = await w.query("SELECT * FROM c WHERE c.n = 1 AND c.s = 's1' AND c.pk = 'p1'")
    assert unindexed.pages[0].tally.items_loaded == ITEMS
    assert found.pages[0].tally.items_loaded == len(found.results) < 10
    assert scanned.charge_ru > 2 * indexed.charge_ru
    assert unindexed.charge_ru > found.charge_ru


async def test_a_count_that_predicates_answer_loads_nothing(world: Any) -> None:
    async with world(partitions=2) as w:
        await fill(w)
        page = await w.page("SELECT VALUE COUNT(1) FROM c WHERE c.n >= 5")
    assert page.results == [b"34"]
    assert page.tally.items_loaded == 0


async def test_a_query_that_reads_no_item_is_charged_for_one_partition(world: Any) -> None:
    async with world(partitions=3) as w:
        assert (await w.query("SELECT VALUE 1")).charge_ru == pytest.approx(2.6)
        assert (await w.query("SELECT * FROM c WHERE c.pk = 'a' AND c.pk = 'b'")).charge_ru == 2.5
        assert (await w.query("SELECT TOP 0 * FROM c")).charge_ru == 2.5


async def test_a_key_that_no_item_can_have_finds_nothing(world: Any) -> None:
    async with world(partitions=3) as w:
        assert (await w.query("SELECT * FROM c WHERE c.pk = @pk", {"@pk": "x" * 5000})).results == []
