"""Reading all items in pages: complete, without repeats, over restarts, and safe from forged tokens."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson
import pytest

from pleiad import charge
from pleiad.catalog.throughput import Throughput
from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.feed import listing
from pleiad.engine.items import NO_CONDITIONS
from pleiad.errors import PleiadError
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of

Opened = Callable[..., AbstractAsyncContextManager[Engine]]
SMALL_ANSWERS = Limits(response_bytes=1_000)


async def filled(engine: Engine, ru: int = 30_000, count: int = 60, pad: int = 0) -> Container:
    database = await engine.create_database({"id": "db"}, None)
    body = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}}
    await engine.create_container(database, body, Throughput(ru))
    container = await engine.container("db", "c")
    for number in range(count):
        raw = json.dumps({"id": f"i{number}", "pk": f"k{number % 20}", "pad": "x" * pad}).encode()
        await items.create(container, raw, (f"k{number % 20}",))
    return container


async def ids(
    container: Container, items_max: int, span: EpkRange = WHOLE, is_backward: bool = False
) -> list[str]:
    found: list[str] = []
    token = ""
    for _ in range(1_000):
        page = await listing.page(container, span, token, items_max, is_backward=is_backward)
        assert len(page.rows) <= items_max
        found += [row.id for row in page.rows]
        if page.token is None:
            return found
        token = page.token
    raise AssertionError("the pages never end")


@pytest.mark.parametrize("items_max", [1, 7, 59, 60, 61, 1_000])
async def test_pages_together_give_every_item_once(engine: Opened, items_max: int) -> None:
    async with engine() as opened:
        container = await filled(opened)
        found = await ids(container, items_max)
        assert sorted(found) == sorted(f"i{number}" for number in range(60))


async def test_a_range_or_a_key_gives_only_its_items(engine: Opened) -> None:
    async with engine() as opened:
        container = await filled(opened)
        assert await ids(container, 2, container.span_of(("k3",))) == ["i3", "i23", "i43"]
        by_partition = []
        for partition in container.map.partitions:
            by_partition += await ids(container, 7, partition.span)
        assert sorted(by_partition) == sorted(await ids(container, 100))


@pytest.mark.every_store
@pytest.mark.parametrize("items_max", [1, 7, 60, 1_000])
async def test_backward_pages_give_the_items_of_forward_pages_from_the_last_to_the_first(
    engine: Opened, items_max: int
) -> None:
    async with engine() as opened:
        container = await filled(opened)
        for span in (WHOLE, container.map.partitions[1].span, container.span_of(("k3",))):
            forward = await ids(container, 100, span)
            assert await ids(container, items_max, span, is_backward=True) == forward[::-1]


async def test_a_backward_page_ends_at_the_size_of_an_answer_and_costs_what_a_forward_one_does(
    engine: Opened,
) -> None:
    async with engine(SMALL_ANSWERS) as opened:
        container = await filled(opened, ru=400, count=30, pad=300)
        page = await listing.page(container, WHOLE, "", 100, is_backward=True)
        assert 1 <= len(page.rows) <= 3
        assert page.charge == charge.feed_page([row.size_bytes for row in page.rows], 1)
        assert await ids(container, 100, is_backward=True) == [f"i{number}" for number in range(29, -1, -1)]


async def test_backward_pages_give_every_item_once_while_partitions_are_split_and_merged(
    engine: Opened,
) -> None:
    async with engine() as opened:
        container = await filled(opened, ru=400)
        seen: list[str] = []
        token: str | None = ""
        while token is not None:
            page = await listing.page(container, WHOLE, token, 7, is_backward=True)
            seen += [row.id for row in page.rows]
            token = page.token
            if len(seen) in (7, 14):
                await opened.split(container, container.map.partitions[0].range_id)
            if len(seen) == 28:
                await opened.merge(container, [each.range_id for each in container.map.partitions[:2]])
        assert sorted(seen) == sorted(f"i{number}" for number in range(60))


async def test_a_token_of_one_direction_is_none_of_the_other(engine: Opened) -> None:
    async with engine() as opened:
        container = await filled(opened)
        for is_backward in (False, True):
            page = await listing.page(container, WHOLE, "", 10, is_backward=is_backward)
            assert page.token is not None
            with pytest.raises(PleiadError) as caught:
                await listing.page(container, WHOLE, page.token, 10, is_backward=not is_backward)
            assert status_of(caught.value) == 400


async def test_an_empty_container_has_one_empty_page(engine: Opened) -> None:
    async with engine() as opened:
        container = await filled(opened, count=0)
        for is_backward in (False, True):
            page = await listing.page(container, WHOLE, "", 10, is_backward=is_backward)
            assert (page.rows, page.token) == ([], None)
            assert page.charge == charge.feed_page([], 5)


async def test_a_page_ends_at_the_size_of_an_answer_but_always_moves_on(engine: Opened) -> None:
    async with engine(SMALL_ANSWERS) as opened:
        container = await filled(opened, ru=400, count=30, pad=300)
        first = await listing.page(container, WHOLE, "", 100)
        assert 1 <= len(first.rows) <= 3
        assert await ids(container, 100) == [f"i{number}" for number in range(30)]
        await items.create(
            container, json.dumps({"id": "big", "pk": "b", "pad": "x" * 5_000}).encode(), ("b",)
        )
        assert (await ids(container, 100))[-1] == "big"


async def test_a_token_goes_on_after_a_restart_and_writes_in_between(engine: Opened) -> None:
    async with engine() as opened:
        container = await filled(opened)
        page = await listing.page(container, WHOLE, "", 25)
        assert page.token is not None
        seen = [row.id for row in page.rows]
        token = page.token
    async with engine() as opened:
        container = await opened.container("db", "c")
        unseen = next(number for number in range(60) if f"i{number}" not in seen)
        await items.delete(container, f"i{unseen}", (f"k{unseen % 20}",), NO_CONDITIONS)
        while token:
            page = await listing.page(container, WHOLE, token, 25)
            seen += [row.id for row in page.rows]
            token = page.token or ""
        assert sorted(seen) == sorted(f"i{number}" for number in range(60) if number != unseen)


async def test_the_charge_of_a_page_is_the_formula_of_its_items(engine: Opened) -> None:
    async with engine() as opened:
        container = await filled(opened, ru=400)
        once = await listing.page(container, WHOLE, "", 10)
        again = await listing.page(container, WHOLE, "", 10)
        assert once.charge == again.charge == charge.feed_page([row.size_bytes for row in once.rows], 1)


def forged_tokens(real: str) -> list[str]:
    sealed = base64.urlsafe_b64decode(real)
    begin = sealed.index(b'{"')
    seal, state = sealed[:begin], orjson.loads(sealed[begin:])
    forged = ["", "!", "é", "AAAA", "null", real[:-4], real[1:], real.replace(real[:4], "AAAA", 1)]
    places: list[Any] = [None, 5, [], {}, [[]], [["", "FF"]], [["zz", "FF", 0]], [["FF", "", 0]], [[1, 2, 0]]]
    places += [[["", "FF", after]] for after in (-1, 1.5, "1", None, True, 2**63, 2**64 - 1)]
    for place in places:
        forged.append(base64.urlsafe_b64encode(seal + orjson.dumps({**state, "p": place})).decode())
    forged.append(base64.urlsafe_b64encode(seal + orjson.dumps(state["p"])).decode())
    forged.append(base64.urlsafe_b64encode(seal + b"[" * 2_000).decode())
    return [token for token in forged if token]


async def test_a_forged_or_foreign_token_is_a_bad_request(engine: Opened) -> None:
    async with engine() as opened:
        container = await filled(opened)
        page = await listing.page(container, WHOLE, "", 10)
        assert page.token is not None
        for token in forged_tokens(page.token):
            with pytest.raises(PleiadError) as caught:
                await listing.page(container, WHOLE, token, 10)
            assert status_of(caught.value) == 400, token
        with pytest.raises(PleiadError) as caught:
            await listing.page(container, container.span_of(("k3",)), page.token, 10)
        assert status_of(caught.value) == 400
