"""What a copy does not take, and what it says of it: nothing is left of one that fails."""

from __future__ import annotations

from typing import Any

import pytest

from pleiad.catalog.resource import Kind
from pleiad.errors import PleiadError
from pleiad.job.copy.plan import plan_from_json
from pleiad.limits import Limits

from .conftest import Account, OpenAccount


async def is_as_before(account: Account) -> bool:
    """Whether a failed copy has left the source open and no target."""
    source = await account.engine.container("db", "a")
    await account.put(source, id="afterwards", pk="p", t="afterwards", u=-1)
    names = [each.id for each in account.engine.catalog.all(Kind.CONTAINER)]
    return names == ["a"] and not source.is_followed and source.closed is None


@pytest.mark.every_store
async def test_items_that_would_be_one_are_named(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        for number in range(100):
            await opened.put(source, id=f"i{number}", pk="p", t="t")
        await opened.put(source, id="i7", pk="q", t="t")
        job = await opened.failed(partitionKey="/t")
        assert "two items of the source would be one in the target" in job.problem
        assert job.items == ('i7 of the partition key ["q"] and i7 of the partition key ["p"]',)
        assert await is_as_before(opened)


async def test_items_that_are_equal_but_for_the_old_key_are_found_too(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="1", pk="p")
        await opened.put(source, id="1", pk="q")
        job = await opened.failed(set={"/pk": "'one'"}, partitionKey="/pk")
        assert "two items of the source would be one" in job.problem
        job = await opened.failed(set={"/pk": "'one'"}, partitionKey="/pk", switch=True)
        assert "two items of the source would be one" in job.problem
        assert job.items == ('1 of the partition key ["p"] and 1 of the partition key ["q"]',)


@pytest.mark.parametrize("plan", [{"partitionKey": "/t"}, {"partitionKey": "/k", "set": {"/k": "c.t.u"}}])
async def test_items_without_the_key_are_named(account: OpenAccount, plan: dict[str, Any]) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="has", pk="p", t={"u": 1} if "set" in plan else "t")
        await opened.put(source, id="has not", pk="p")
        job = await opened.failed(**plan)
        assert "it has no value for the partition key" in job.problem
        assert job.items == ('has not of the partition key ["p"]',)
        assert await is_as_before(opened)


async def test_items_without_a_key_may_go_where_the_key_is_the_same(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="1", t="t")
        await opened.copied()
        assert await opened.all_of("b") == await opened.all_of("a")


async def test_keys_that_are_too_long_are_refused(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="1", pk="p", t="x" * 5000)
        job = await opened.failed(partitionKey="/t")
        assert "over the limit of 2048 bytes" in job.problem
        assert job.items == ('1 of the partition key ["p"]',)


@pytest.mark.every_store
async def test_items_that_break_a_new_unique_key_are_named(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        for number in range(20):
            await opened.put(source, id=f"i{number}", pk="p", t="t", u=number % 19)
        job = await opened.failed(uniqueKeys=[["/u"]])
        assert "would break the unique key /u" in job.problem
        assert job.items == ("i19",)
        assert await is_as_before(opened)


@pytest.mark.every_store
async def test_a_logical_partition_that_grows_too_large_ends_the_copy(account: OpenAccount) -> None:
    async with account(Limits(logical_partition_bytes=20_000)) as opened:
        source = await opened.container("a")
        for number in range(60):
            await opened.put(source, id=f"i{number}", pk=f"p{number}", t="t", text="x" * 500)
        job = await opened.failed(partitionKey="/t")
        assert "a logical partition of the target would be larger than the limit" in job.problem
        assert job.items
        assert await is_as_before(opened)


async def test_items_that_would_get_names_that_no_item_has_end_the_copy(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="1", pk="p", text='{"a\\u0000":1}')
        job = await opened.failed(set={"/more": "StringToObject(c.text)"})
        assert "has the character U+0000" in job.problem
        assert await is_as_before(opened)


async def test_items_that_grow_too_large_end_the_copy(account: OpenAccount) -> None:
    async with account(Limits(item_bytes=2_000)) as opened:
        source = await opened.container("a")
        await opened.put(source, id="1", pk="p", text="x" * 1_800)
        job = await opened.failed(set={"/more": "CONCAT(c.text, c.text)"})
        assert "it is larger than" in job.problem


@pytest.mark.every_store
async def test_a_target_with_items_is_refused_and_left_as_it_is(account: OpenAccount) -> None:
    async with account() as opened:
        await opened.put(await opened.container("a"), id="1", pk="p")
        target = await opened.container("b")
        await opened.put(target, id="own", pk="p")
        before = await opened.all_of("b")
        job = await opened.failed()
        assert "is not empty: it holds 1 items" in job.problem
        assert await opened.all_of("b") == before
        await opened.put(target, id="another", pk="p")


async def test_a_target_that_is_there_keeps_what_it_is(account: OpenAccount) -> None:
    async with account() as opened:
        await opened.container("a")
        await opened.container("b")
        for plan in ({"partitionKey": "/t"}, {"defaultTtl": 7}, {"throughput": {"ru": 400}}):
            with pytest.raises(PleiadError, match="is there already and"):
                await opened.start(**plan)


async def test_a_container_whose_time_to_live_counts_from_a_property_is_not_copied(
    account: OpenAccount,
) -> None:
    async with account() as opened:
        await opened.container("a", defaultTtl=10, ttlPropertyPath="/made")
        with pytest.raises(PleiadError, match="'ttlPropertyPath'"):
            await opened.start(partitionKey="/t")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"source": "db/a"},
        {"source": "db/a", "target": "b"},
        {"source": "db/a", "target": "db/b/c"},
        {"source": 1, "target": "db/b"},
        {"source": "db/a", "target": "db/a"},
        {"partitionKey": "t"},
        {"partitionKey": []},
        {"partitionKey": ["/a", "/b", "/c", "/d"]},
        {"partitionKey": {"paths": ["/a"]}},
        {"set": {}},
        {"set": []},
        {"set": {"/a/b": "1"}},
        {"set": {"/id": "c.n"}},
        {"set": {"/_ts": "1"}},
        {"set": {"/ttl": "1"}},
        {"set": {"/k": ""}},
        {"set": {"/k": 5}},
        {"set": {"/k": "COUNT(1)"}},
        {"set": {"/k": "RAND()"}},
        {"set": {"/k": "udf.f(c)"}},
        {"set": {"/k": "NO_SUCH(c)"}},
        {"set": {"/k": "c.a) FROM c WHERE (true"}},
        {"set": {"/k": "(SELECT VALUE 1)"}},
        {"set": {"/k": "@p"}},
        {"set": {"/k": "GetCurrentTimestamp()"}},
        {"online": "yes"},
        {"switch": 1},
        {"switch": True, "target": "other/b"},
        {"share": 0},
        {"share": 1.5},
        {"share": "half"},
        {"share": True},
        {"throughput": 400},
        {"throughput": {"ru": "400"}},
        {"throughput": {"ru": 400, "autoscaleMaximumRu": 4000}},
        {"uniqueKeys": "/u"},
        {"nonsense": 1},
    ],
)
async def test_a_plan_that_makes_no_sense_is_refused(body: dict[str, Any]) -> None:
    whole = body if "source" in body or not body else {"source": "db/a", "target": "db/b", **body}
    with pytest.raises(PleiadError) as told:
        plan_from_json(whole, Limits())
    assert told.value.reason.value in ("invalid", "unsupported")


async def test_a_definition_that_the_target_cannot_have_is_told_at_its_beginning(
    account: OpenAccount,
) -> None:
    async with account() as opened:
        await opened.container("a")
        for plan in (
            {"defaultTtl": -5},
            {"uniqueKeys": [["no path"]]},
            {"indexingPolicy": {"indexingMode": "nonsense"}},
            {"throughput": {"ru": 401}},
        ):
            with pytest.raises(PleiadError) as told:
                await opened.start(**plan)
            assert told.value.reason.value == "invalid"
        assert await is_as_before(opened)


async def test_containers_that_are_not_there_are_told(account: OpenAccount) -> None:
    async with account() as opened:
        await opened.container("a")
        for plan in ({"source": "db/none"}, {"source": "none/a"}, {"target": "none/b"}):
            with pytest.raises(PleiadError, match="There is no"):
                await opened.start(**plan)
