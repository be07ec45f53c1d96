"""A copy of one moment: what is in the target, by whichever key it is filled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from pleiad.catalog.resource import Kind
from pleiad.engine.sweeper import sweep
from pleiad.errors import PleiadError
from pleiad.job.copy.job import Asked, CopyState, CopyStep
from pleiad.limits import Limits
from tests.waiting import turns, until

from .conftest import Account, OpenAccount, Writers

ITEMS = 700


async def filled(account: Account, count: int = ITEMS, **definition: Any) -> list[dict[str, Any]]:
    """The container `a` with items; what they are with their times."""
    container = await account.container("a", **definition)
    for number in range(count):
        await account.put(
            container,
            id=f"i{number}",
            pk=f"p{number % 11}",
            t=f"t{number % 4}",
            at=f"2024-0{number % 9 + 1}-07T12:00:00Z",
            n=number,
            deep={"list": [number, 1.5, None, "é"]},
        )
    return await account.all_of("a")


@pytest.mark.every_store
@pytest.mark.requirement("R69")
@pytest.mark.requirement("R70")
async def test_every_item_is_in_the_target_under_its_new_key(account: OpenAccount) -> None:
    async with account() as opened:
        items = await filled(opened)
        job = await opened.copied(partitionKey="/t")
        assert await opened.all_of("b") == items  # _ts among the rest
        assert (job.done, job.total, job.verified) == (ITEMS, ITEMS, ITEMS)
        target = await opened.engine.container("db", "b")
        assert target.key.paths == ("/t",)
        source = await opened.engine.container("db", "a")
        assert not source.is_followed
        assert source.closed is target.closed is None
        await opened.put(source, id="later", pk="p")
        await opened.put(target, id="later", t="t")


async def test_a_key_may_have_levels(account: OpenAccount) -> None:
    async with account() as opened:
        items = await filled(opened)
        await opened.copied(partitionKey=["/t", "/pk"])
        assert await opened.all_of("b") == items
        assert (await opened.engine.container("db", "b")).key.levels == 2


@pytest.mark.every_store
async def test_an_expression_fills_the_key(account: OpenAccount) -> None:
    async with account() as opened:
        items = await filled(opened)
        await opened.copied(partitionKey="/month", set={"/month": "CONCAT(c.t, '-', LEFT(c.at, 7))"})
        wanted = [{**item, "month": f"{item['t']}-{item['at'][:7]}"} for item in items]
        assert await opened.all_of("b") == wanted


async def test_several_properties_are_set_and_one_that_is_there_is_replaced(account: OpenAccount) -> None:
    async with account() as opened:
        items = await filled(opened)
        await opened.copied(partitionKey="/k", set={"/k": "c.n % 16", "/pk": "UPPER(c.pk)"})
        assert await opened.all_of("b") == [
            {**item, "k": item["n"] % 16, "pk": item["pk"].upper()} for item in items
        ]


@pytest.mark.every_store
async def test_what_is_copied_is_one_moment_while_writers_go_on(account: OpenAccount) -> None:
    async with account() as opened:
        await filled(opened)
        source = await opened.engine.container("db", "a")
        writers = Writers(opened)
        assert await until(lambda: writers.writes > 200)
        # The second of a pair follows the first: at every moment it is the same round, or one behind.
        stop = asyncio.Event()
        rounds = 0

        async def pairs() -> None:
            nonlocal rounds
            while not stop.is_set():
                rounds += 1
                await opened.put(source, id="first", pk="pair", t="x", round=rounds)
                await opened.put(source, id="second", pk="other", t="x", round=rounds)

        task = asyncio.create_task(pairs())
        assert await until(lambda: rounds > 3)
        job = await opened.copied(partitionKey="/t", share=0.5)
        stop.set()
        await task
        await writers.stop()
        found = {item["id"]: item for item in await opened.all_of("b")}
        assert 0 <= found["first"]["round"] - found["second"]["round"] <= 1
        assert len(found) == job.total
        assert job.followed > 0


@pytest.mark.every_store
async def test_a_copy_goes_on_in_the_next_process(account: OpenAccount) -> None:
    for stop_at in (0, 20, 200):
        name = f"b{stop_at}"
        async with account() as opened:
            items = await filled(opened)
            job = await opened.start(partitionKey="/t", target=f"db/{name}")
            await turns(stop_at)
        async with account() as opened:
            job = await opened.ended(job)
            assert job.state is CopyState.DONE
            assert await opened.all_of(name) == items


async def test_the_same_copy_once_more_is_the_one_under_way(account: OpenAccount) -> None:
    async with account() as opened:
        await filled(opened, 10)
        first = await opened.start(online=True)
        assert (await opened.start(online=True)).id == first.id
        with pytest.raises(PleiadError, match="is under way"):
            await opened.start(online=True, partitionKey="/t")


@pytest.mark.every_store
async def test_items_expire_when_they_would_have_in_the_source(account: OpenAccount) -> None:
    async with account() as opened:
        container = await opened.container("a", defaultTtl=1000)
        await opened.put(container, id="short", pk="p", ttl=2)
        await opened.put(container, id="long", pk="p")
        (long,) = [item for item in await opened.all_of("a") if item["id"] == "long"]
        await opened.copied()
        target = await opened.engine.container("db", "b")
        assert long in await opened.all_of("b")

        async def is_alone() -> bool:
            return await opened.all_of("b") == [long]  # the sweeper takes the other one

        assert await until(is_alone)
        assert await sweep(target, long["_ts"] + 1000) == 1


async def test_what_has_expired_is_not_brought_back(account: OpenAccount) -> None:
    async with account() as opened:
        container = await opened.container("a", defaultTtl=-1)
        await opened.put(container, id="short", pk="p", ttl=1)
        await opened.put(container, id="long", pk="p")
        (row,) = await container.map.partitions[0].scan(container.map.partitions[0].span, 0, 1)
        assert await until(lambda: container.is_expired(row, time.time()))
        await opened.copied(defaultTtl=None)
        assert [item["id"] for item in await opened.all_of("b")] == ["long"]


async def test_policies_and_scripts_come_along_unless_others_are_given(account: OpenAccount) -> None:
    async with account() as opened:
        policy = {"uniqueKeys": [{"paths": ["/n"]}]}
        await filled(opened, 20, uniqueKeyPolicy=policy, defaultTtl=5000)
        source = await opened.engine.container("db", "a")
        script = {"id": "s", "body": "function () {}"}
        await opened.engine.create_child(Kind.STORED_PROCEDURE, source.resource, "s", script)
        await opened.copied()
        target = await opened.engine.container("db", "b")
        assert target.definition.properties == source.definition.properties
        children = opened.engine.catalog.children(Kind.STORED_PROCEDURE, target.resource.rid)
        assert [child.properties["body"] for child in children] == ["function () {}"]
        await opened.copied(
            target="db/c", uniqueKeys=[["/at", "/n"]], defaultTtl=60_000, throughput={"ru": 1000}
        )
        other = await opened.engine.container("db", "c")
        assert [key.paths for key in other.definition.unique_keys] == [("/at", "/n")]
        assert other.default_ttl == 60_000
        offer = opened.engine.catalog.offer_of(other.resource.rid)
        assert offer is not None
        assert offer.properties["content"]["offerThroughput"] == 1000


async def test_an_empty_target_is_taken_as_it_is(account: OpenAccount) -> None:
    async with account() as opened:
        items = await filled(opened, 30)
        await opened.container("b", partitionKey={"paths": ["/t"], "kind": "Hash", "version": 2})
        await opened.copied(partitionKey="/t")
        assert await opened.all_of("b") == items


@pytest.mark.every_store
async def test_nobody_else_writes_to_the_target_meanwhile(account: OpenAccount) -> None:
    async with account() as opened:
        await filled(opened, 10)
        job = await opened.start(online=True)
        assert await until(lambda: opened.look(job).job.is_ready)
        target = await opened.engine.container("db", "b")
        with pytest.raises(PleiadError, match="is being filled by the copy"):
            await opened.put(target, id="mine", pk="p")
        with pytest.raises(PleiadError, match="is being filled by the copy"):
            await opened.delete(target, "i1", "p1")


async def test_a_cancelled_copy_removes_the_target_that_it_made_and_nothing_else(
    account: OpenAccount,
) -> None:
    async with account() as opened:
        items = await filled(opened, 10)
        await opened.container("own")
        for target in ("made", "own"):
            job = await opened.start(online=True, target=f"db/{target}")
            assert await until(lambda job=job: opened.look(job).job.is_ready)
            await opened.copies.ask(job.id, Asked.CANCEL)
            assert (await opened.ended(job)).state is CopyState.CANCELLED
        names = [each.id for each in opened.engine.catalog.all(Kind.CONTAINER)]
        assert sorted(names) == ["a", "own"]
        assert await opened.all_of("a") == items
        source = await opened.engine.container("db", "a")
        assert not source.is_followed
        own = await opened.engine.container("db", "own")
        await opened.put(own, id="mine", pk="p")


@pytest.mark.requirement("R16")
async def test_items_of_a_fixed_container_get_a_key(account: OpenAccount) -> None:
    async with account(Limits(fixed_container_bytes=10_000_000)) as opened:
        container = await opened.container("a", partitionKey=None)
        assert container.key.system_key
        for number in range(40):
            await opened.put(container, id=f"i{number}", city=f"c{number % 3}")
        items = await opened.all_of("a")
        await opened.copied(partitionKey="/city", throughput={"ru": 20_000})
        assert await opened.all_of("b") == items
        target = await opened.engine.container("db", "b")
        assert len(target.map.partitions) > 1


async def test_progress_is_told(account: OpenAccount) -> None:
    async with account() as opened:
        await filled(opened, 300)
        job = await opened.start(online=True)
        assert await until(lambda: opened.look(job).job.is_ready)
        progress = opened.look(job)
        assert progress.done == progress.job.total == progress.verified == 300
        assert progress.rate is not None
        assert progress.left_seconds == 0
        assert progress.job.step is CopyStep.FOLLOWING


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("CONCAT(c.t, '-', c.pk)", lambda item: f"{item['t']}-{item['pk']}"),
        (
            "CONCAT(c.t, '.', RIGHT(CONCAT('0000', ToString(c.n)), 4))",
            lambda item: f"{item['t']}.{item['n']:04}",
        ),
        ("CONCAT(LEFT(c.at, 10), '.', ToString(c.n % 7))", lambda item: f"{item['at'][:10]}.{item['n'] % 7}"),
        ("LEFT(c.at, 7)", lambda item: item["at"][:7]),
        ("RIGHT(c.id, 1)", lambda item: item["id"][-1]),
        ("c.n * 2.5", lambda item: item["n"] * 2.5),
        ("c.n > 10 ? 'many' : 'few'", lambda item: "many" if item["n"] > 10 else "few"),
        ("c.deep.list[3]", lambda item: "é"),
        ("c.n = 3", lambda item: item["n"] == 3),
        ("null", lambda item: None),
        ("c._ts", lambda item: item["_ts"]),
    ],
)
async def test_an_expression_gives_the_key_that_it_says(
    account: OpenAccount, expression: str, expected: Callable[[dict[str, Any]], Any]
) -> None:
    async with account() as opened:
        items = await filled(opened, 40)
        await opened.copied(partitionKey="/k", set={"/k": expression})
        assert await opened.all_of("b") == [{**item, "k": expected(item)} for item in items]
        target = await opened.engine.container("db", "b")
        for item in items:
            key = target.full_key((expected(item),))
            assert await target.map.find(target.epk_of(key)).read(target.epk_of(key), item["id"]) is not None
