"""A copy that follows its source, and the exchange of the two."""

from __future__ import annotations

import asyncio

import pytest

from pleiad.errors import PleiadError
from pleiad.job.copy.job import Asked, CopyJob, CopyState
from pleiad.partition.governor import Throttle
from tests.waiting import until

from .conftest import Account, OpenAccount, Writers


async def ready(account: Account, job: CopyJob) -> None:
    """Waits until a copy has nothing left but to be completed."""
    assert await until(lambda: account.look(job).job.is_ready or account.look(job).job.is_over)


async def values(account: Account, name: str) -> dict[str, dict[str, object]]:
    """The items of a container by id, without their times; an id is there once."""
    found = await account.all_of(name)
    for item in found:
        del item["_ts"]
    assert len({item["id"] for item in found}) == len(found)
    return {item["id"]: item for item in found}


@pytest.mark.every_store
@pytest.mark.requirement("R70")
async def test_the_target_holds_every_acknowledged_write_when_the_copy_is_completed(
    account: OpenAccount,
) -> None:
    async with account() as opened:
        source = await opened.container("a")
        for number in range(500):
            await opened.put(source, id=f"i{number}", pk=f"p{number % 5}", t=f"t{number % 3}")
        writers = Writers(opened)
        assert await until(lambda: writers.writes > 200)
        job = await opened.start(partitionKey="/t", online=True)
        await ready(opened, job)
        seen = writers.writes
        assert await until(lambda: writers.writes > seen + 200)
        await writers.stop()
        await opened.copies.ask(job.id, Asked.COMPLETE)
        job = await opened.ended(job)
        assert job.state is CopyState.DONE
        found = await values(opened, "b")
        assert {id: item for id, item in found.items() if id.startswith("w")} == writers.expected()
        assert await opened.all_of("a") == await opened.all_of("b")
        assert job.followed > 0


@pytest.mark.every_store
async def test_writers_go_on_over_an_exchange_and_lose_nothing(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        for number in range(500):
            await opened.put(source, id=f"i{number}", pk=f"p{number % 5}", t=f"t{number % 3}")
        writers = Writers(opened)
        assert await until(lambda: writers.writes > 100)
        job = await opened.copied(partitionKey="/t", switch=True)
        seen = writers.writes
        assert await until(lambda: writers.writes > seen + 200)
        await writers.stop()
        container = await opened.engine.container("db", "a")
        assert container.key.paths == ("/t",)
        assert container.resource.rid == job.target_rid
        found = await values(opened, "a")
        assert {id: item for id, item in found.items() if id.startswith("w")} == writers.expected()
        assert len([id for id in found if id.startswith("i")]) == 500


@pytest.mark.every_store
@pytest.mark.parametrize("is_switch", [True, False])
async def test_writers_that_are_faster_than_the_share_of_a_copy_do_not_keep_it_from_its_end(
    account: OpenAccount, is_switch: bool
) -> None:
    async with account(throttle=Throttle(enforced=True)) as opened:
        source = await opened.container("a", 4000)
        for number in range(20):
            await opened.put(source, id=f"i{number}", pk=f"p{number % 5}", t=f"t{number % 3}")
        writers = Writers(opened, count=2)
        assert await until(lambda: writers.writes > 100)
        job = await opened.copied(partitionKey="/t", switch=is_switch, share=0.1)
        await writers.stop()
        if is_switch:
            found = await values(opened, "a")
            assert {id: item for id, item in found.items() if id.startswith("w")} == writers.expected()
        else:
            assert len(await opened.all_of("b")) == job.total


async def test_the_exchanged_container_is_kept_under_the_other_name_and_takes_no_writes(
    account: OpenAccount,
) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="1", pk="p", t="t")
        await opened.copied(partitionKey="/t", switch=True)
        kept = await opened.engine.container("db", "b")
        assert kept is source
        assert [item["id"] for item in await opened.all_of("b")] == ["1"]
        # Who was on his way to it is told to come again, and finds the new one; others are refused for good.
        with pytest.raises(PleiadError, match="has just been exchanged") as told:
            await opened.put(kept, id="2", pk="p")
        assert told.value.retry_after_ms is not None
        assert kept.closed is not None
        await opened.put(await opened.engine.container("db", "a"), id="2", t="t")
        with pytest.raises(PleiadError, match="was replaced by its copy"):
            await kept.commit(kept.map.partitions[0], (), kept.closed.since + 3600)
        await opened.copied(source="db/b", target="db/c")
        await opened.put(await opened.engine.container("db", "c"), id="2", pk="p")


@pytest.mark.every_store
async def test_an_exchange_is_there_after_a_restart(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="1", pk="p", t="t")
        await opened.copied(partitionKey="/t", switch=True)
    async with account() as opened:
        assert (await opened.engine.container("db", "a")).key.paths == ("/t",)
        kept = await opened.engine.container("db", "b")
        assert kept.closed is not None


@pytest.mark.every_store
async def test_a_key_that_changes_moves_its_item(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        for number in range(20):
            await opened.put(source, id=f"i{number}", pk="p", t=f"t{number}")
        job = await opened.start(partitionKey="/t", online=True)
        await ready(opened, job)
        for number in range(20):
            # Each item takes the key that its neighbour has at that time.
            await opened.put(source, id=f"i{number}", pk="p", t=f"t{number + 1}")
        for number in range(0, 20, 4):
            await opened.delete(source, f"i{number}", "p")
        await opened.copies.ask(job.id, Asked.COMPLETE)
        assert (await opened.ended(job)).state is CopyState.DONE
        assert await opened.all_of("b") == await opened.all_of("a")


async def test_unique_values_that_items_exchange_do_not_stop_the_copy(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="x", pk="p", u=1)
        await opened.put(source, id="y", pk="p", u=2)
        job = await opened.start(uniqueKeys=[["/u"]], online=True)
        await ready(opened, job)
        async with opened.engine.reshaper.held(await opened.engine.container("db", "b")):
            await opened.put(source, id="x", pk="p", u=3)
            await opened.put(source, id="y", pk="p", u=1)
            await opened.put(source, id="x", pk="p", u=2)
        await opened.copies.ask(job.id, Asked.COMPLETE)
        job = await opened.ended(job)
        assert job.state is CopyState.DONE, job.problem
        assert await opened.all_of("b") == await opened.all_of("a")


async def test_an_item_that_comes_without_the_key_ends_the_copy_and_nothing_is_exchanged(
    account: OpenAccount,
) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="1", pk="p", t="t")
        job = await opened.start(partitionKey="/t", online=True)
        await ready(opened, job)
        await opened.put(source, id="bad", pk="p")
        job = await opened.ended(job)
        assert job.state is CopyState.FAILED
        assert "no value for the partition key /t" in job.problem
        assert job.items == ('bad of the partition key ["p"]',)
        await opened.put(source, id="good", pk="p", t="t")


@pytest.mark.every_store
async def test_two_items_that_become_one_while_it_follows_end_the_copy(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="1", pk="p", t="t", text="p")
        job = await opened.start(partitionKey="/t", online=True)
        await ready(opened, job)
        await opened.put(source, id="1", pk="q", t="t", text="q")
        await opened.copies.ask(job.id, Asked.COMPLETE)
        job = await opened.ended(job)
        assert job.state is CopyState.FAILED
        assert "the same id in one logical partition" in job.problem
        assert job.items == ('1 of the partition key ["p"] and 1 of the partition key ["q"]',)


@pytest.mark.every_store
async def test_partitions_of_both_containers_may_be_split_and_merged_meanwhile(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        for number in range(400):
            await opened.put(source, id=f"i{number}", pk=f"p{number % 40}", t=f"t{number % 30}")
        writers = Writers(opened)
        job = await opened.start(partitionKey="/t", online=True, share=0.3)
        assert await until(lambda: opened.look(job).job.target_rid)
        await opened.engine.split(source, source.map.partitions[0].range_id)
        assert await until(lambda: opened.look(job).done > 100)
        target = await opened.engine.container("db", "b")
        await opened.engine.split(target, target.map.partitions[0].range_id)
        await opened.engine.split(source, source.map.partitions[0].range_id)
        await ready(opened, job)
        await opened.engine.keeper.settled()
        await opened.engine.merge(target, [each.range_id for each in target.map.partitions])
        seen = writers.writes
        assert await until(lambda: writers.writes > seen + 100)
        await writers.stop()
        await opened.copies.ask(job.id, Asked.COMPLETE)
        job = await opened.ended(job)
        assert job.state is CopyState.DONE, (job.problem, job.items)
        assert await opened.all_of("b") == await opened.all_of("a")


@pytest.mark.every_store
async def test_a_followed_copy_goes_on_in_the_next_process(account: OpenAccount) -> None:
    expected: dict[str, dict[str, object]] = {}
    async with account() as opened:
        source = await opened.container("a")
        for number in range(300):
            await opened.put(source, id=f"i{number}", pk=f"p{number % 5}", t=f"t{number % 3}")
        job = await opened.start(partitionKey="/t", online=True)
    for _ in range(4):
        async with account() as opened:
            writers = Writers(opened)
            writers.written.update(expected)
            assert await until(lambda opened=opened: opened.look(job).rate is not None)
            assert await until(lambda writers=writers: writers.writes > 150)
            await writers.stop()
            expected = writers.expected()
    async with account() as opened:
        await ready(opened, job)
        await opened.copies.ask(job.id, Asked.COMPLETE)
        job = await opened.ended(job)
        assert job.state is CopyState.DONE, (job.problem, job.items)
        assert job.resumed >= 4
        found = await values(opened, "b")
        assert {id: item for id, item in found.items() if id.startswith("w")} == expected
        assert await opened.all_of("b") == await opened.all_of("a")


async def test_replacing_the_policies_of_the_source_does_not_end_the_following(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="1", pk="p")
        job = await opened.start(online=True)
        await ready(opened, job)
        body = {"id": "a", "partitionKey": source.key.to_json(), "defaultTtl": 1000}
        await opened.engine.replace_container(source.database, "a", body, None)
        await opened.put(source, id="2", pk="p")
        await opened.delete(source, "1", "p")
        await opened.copies.ask(job.id, Asked.COMPLETE)
        assert (await opened.ended(job)).state is CopyState.DONE
        assert [item["id"] for item in await opened.all_of("b")] == ["2"]


@pytest.mark.parametrize("doomed", ["a", "b"])
async def test_a_copy_whose_container_is_deleted_fails(account: OpenAccount, doomed: str) -> None:
    async with account() as opened:
        await opened.put(await opened.container("a"), id="1", pk="p")
        job = await opened.start(online=True)
        await ready(opened, job)
        await opened.engine.delete((await opened.engine.container("db", doomed)).resource)
        await asyncio.sleep(0)
        job = await opened.ended(job)
        assert job.state is CopyState.FAILED
        assert "was deleted meanwhile" in job.problem


async def test_the_policies_of_the_target_are_not_changed_while_it_is_filled(account: OpenAccount) -> None:
    async with account() as opened:
        source = await opened.container("a")
        await opened.put(source, id="1", pk="p", t="t")
        job = await opened.start(partitionKey="/t", online=True)
        await ready(opened, job)
        engine = opened.engine
        target = await engine.container("db", "b")
        body = {"id": "b", "partitionKey": target.key.to_json(), "defaultTtl": 1}
        with pytest.raises(PleiadError, match="fills this container"):
            await engine.replace_container(engine.database("db"), "b", body, None)
        await opened.copies.ask(job.id, Asked.COMPLETE)
        assert (await opened.ended(job)).state is CopyState.DONE
        await engine.replace_container(engine.database("db"), "b", body, None)
        assert (await engine.container("db", "b")).default_ttl == 1
