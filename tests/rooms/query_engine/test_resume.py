"""Ordered queries that a client resumes by itself: by the place it names, and by a filter it puts into the query.

The rows a client is still to get are always those of the query without a place, from that place on.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import orjson
import pytest

from pleiad.engine.query.resume import resume_point
from pleiad.errors import PleiadError
from pleiad.query.distinct_hash import distinct_hash
from pleiad.server.http.failures import status_of

pytestmark = pytest.mark.every_store

VALUES: tuple[Any, ...] = (
    *(None, False, True, -1.5, 0, 3, 2**53 + 2, 1e300, "", "a", "b", "\uffff", "\U00010000"),
    *([], [1], [1, 2], [[]], {}, {"a": 1}, {"a": [1]}, {"b": None}),
)
COMPOSITES = [
    [{"path": "/v", "order": "ascending"}, {"path": "/w", "order": "ascending"}],
    [{"path": "/v", "order": "ascending"}, {"path": "/w", "order": "descending"}],
]
POLICY = {"includedPaths": [{"path": "/*"}], "compositeIndexes": COMPOSITES}
ORDERS = ("c.v", "c.v DESC", "c.v, c.w", "c.v DESC, c.w DESC", "c.v, c.w DESC", "c.v DESC, c.w")


def rewritten(order: str, filter: str = "true") -> str:
    keys = ", ".join(f'{{"item": {key.split()[0]}}}' for key in order.split(", "))
    return (
        f"SELECT c._rid, [{keys}] AS orderByItems, c.id AS payload FROM c WHERE ({filter}) ORDER BY {order}"
    )


async def fill(w: Any) -> None:
    number = 0
    for turn in range(2):
        for place, value in enumerate(VALUES):
            number += 1
            await w.put({"id": f"i{number}", "pk": f"p{number % 7}", "v": value, "w": VALUES[-place - turn]})
        for missing in ("v", "w"):
            number += 1
            await w.put({"id": f"i{number}", "pk": f"p{number % 7}", missing: turn})


def keys_of(row: dict[str, Any]) -> bytes:
    return orjson.dumps(row["orderByItems"])


def named(row: dict[str, Any], *, rid: bool, exclude: bool) -> Any:
    """The place of a row as a client writes it."""
    values = []
    for each in row["orderByItems"]:
        value = each.get("item", [])
        if "item" in each and isinstance(value, list | dict):
            low, high = distinct_hash(value)
            value = {"type": "array" if isinstance(value, list) else "object"}
            value |= {"low": low - 2**64 if low >> 63 else low, "high": high - 2**64 if high >> 63 else high}
        values.append(value)
    return {"value": values, "exclude": exclude} | ({"rid": row["_rid"]} if rid else {})


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("is_indexed", [False, True])
async def test_a_query_goes_on_from_the_place_a_client_names(
    world: Any, index_settings: Any, order: str, is_indexed: bool
) -> None:
    settings = index_settings[is_indexed]
    async with world(partitions=2, indexes=settings, indexingPolicy=POLICY) as w:
        await fill(w)
        span = w.container.map.partitions[0].span
        text = rewritten(order)
        whole = (await w.query(text, span=span)).results
        await w.indexes_built()
        assert len(whole) > 10
        assert (await w.query(text, span=span)).results == whole
        for number, row in enumerate(whole):
            items_max = 1_000 if number % 5 else 7
            equal = [each for each, other in enumerate(whole) if keys_of(other) == keys_of(row)]
            for rid, exclude, begins in (
                (True, False, number),
                (True, True, number + 1),
                (False, False, equal[0]),
                (False, True, equal[-1] + 1),
            ):
                resume = resume_point(named(row, rid=rid, exclude=exclude))
                found = await w.query(text, span=span, resume=resume, page_items=lambda: items_max)  # noqa: B023
                assert found.results == whole[begins:], (number, rid, exclude)


@pytest.mark.parametrize("order", ORDERS)
async def test_equal_keys_come_by_rid_in_the_direction_of_the_first_key(world: Any, order: str) -> None:
    async with world(partitions=2, indexingPolicy=POLICY) as w:
        for number in range(30):
            await w.put({"id": f"i{number}", "pk": f"p{number % 5}", "v": 1, "w": 2})
        for part in w.container.map.partitions:
            rows = (await w.query(rewritten(order), span=part.span, page_items=lambda: 4)).results
            numbers = [row["_rid"] for row in rows]
            by_rid = sorted(numbers, key=_as_clients_read)
            assert numbers == (by_rid[::-1] if " DESC" in order.split(",")[0] else by_rid)


def _as_clients_read(rid: str) -> int:
    return int.from_bytes(b64decode(rid.replace("-", "/"))[8:], "little")


async def test_the_later_of_the_place_and_the_continuation_counts(world: Any) -> None:
    async with world(indexingPolicy=POLICY) as w:
        await fill(w)
        text = rewritten("c.v")
        whole = (await w.query(text)).results
        page = await w.page(text, items_max=10)
        for number in (3, 10, 15):
            resume = resume_point(named(whole[number], rid=True, exclude=False))
            found = await w.query(text, token=page.token, resume=resume)
            assert found.results == whole[max(number, 10) :]


async def test_a_token_stays_good_when_a_client_puts_its_filter_into_the_query(world: Any) -> None:
    async with world(indexingPolicy=POLICY) as w:
        await fill(w)
        text = rewritten("c.v")
        whole = (await w.query(text)).results
        page = await w.page(text, items_max=12)
        for filter in ("c.v >= 0", "c.v >= 3", "c.v > 1e300", "c.v >= true OR IS_NUMBER(c.v)"):
            text = rewritten("c.v", f"( {filter} OR IS_STRING(c.v) OR IS_ARRAY(c.v) OR IS_OBJECT(c.v) )")
            left = (await w.query(text)).results
            found = await w.query(text, token=page.token)
            assert found.results == [row for row in whole[12:] if row in left], filter
            assert len(found.results) > 20
        falling = rewritten("c.v DESC")
        whole = (await w.query(falling)).results
        page = await w.page(falling, items_max=30)
        filter = "( c.v <= 3 OR NOT IS_DEFINED(c.v) OR IS_NULL(c.v) OR IS_BOOLEAN(c.v) )"
        found = await w.query(rewritten("c.v DESC", filter), token=page.token)
        assert found.results == whole[30:]
        with pytest.raises(PleiadError):
            await w.page(rewritten("c.w", filter), token=page.token)
        with pytest.raises(PleiadError):
            await w.page("SELECT c.id FROM c ORDER BY c.v", token=page.token)


async def test_a_place_beside_a_sort_key_that_is_too_long_for_a_token_is_kept(world: Any) -> None:
    async with world() as w:
        for number in range(12):
            await w.put({"id": f"i{number}", "pk": "p", "v": "x" * 5000 + str(number % 3)})
        text = rewritten("c.v")
        whole = (await w.query(text)).results
        page = await w.page(text, items_max=5)
        assert (await w.query(text, token=page.token)).results == whole[5:]
        resume = resume_point(named(whole[4], rid=True, exclude=False))
        found = await w.query(text, token=page.token, resume=resume, page_items=lambda: 3)
        assert found.results == whole[4:]
        filter = f"c.v >= '{'x' * 5000}1'"
        assert (await w.query(rewritten("c.v", filter), token=page.token)).results == whole[4:]


@pytest.mark.parametrize(
    "given",
    [
        *(7, [], {}, {"value": []}, {"value": 7}, {"value": [[1]]}, {"value": [1], "exclude": 1}),
        *({"value": [1], "rid": 7}, {"value": [1], "rid": "no rid"}, {"value": [{"type": "array"}]}),
        *({"value": [{"type": "array", "low": 2**70, "high": 0}]}, {"value": [{"a": 1}]}),
    ],
)
def test_a_place_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(PleiadError) as refused:
        resume_point(given)
    assert status_of(refused.value) == 400


@pytest.mark.parametrize(
    "text",
    ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.v, c.w", "SELECT DISTINCT c.v FROM c ORDER BY c.v"],
)
async def test_a_query_that_has_no_such_place_refuses_it(world: Any, text: str) -> None:
    async with world(indexingPolicy=POLICY) as w:
        with pytest.raises(PleiadError) as refused:
            await w.page(text, resume=resume_point({"value": [1]}))
        assert status_of(refused.value) == 400
