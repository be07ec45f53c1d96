"""Splits, merges and rehomes of a container at work: nothing is lost, doubled or seen twice, and clients go on."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

import orjson
import pytest

from pleiad import errors
from pleiad.catalog.throughput import Throughput
from pleiad.engine import batch, items, reading, session
from pleiad.engine.batch import ItemOperation, ItemVerb
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.faults import Effect, Rule
from pleiad.engine.feed import changes, listing
from pleiad.engine.items import NO_CONDITIONS
from pleiad.engine.phase import Phase
from pleiad.engine.query import execution
from pleiad.engine.query.request import QueryRequest
from pleiad.engine.session import Seen
from pleiad.engine.sweeper import sweep
from pleiad.errors import PleiadError
from pleiad.keys.hash import HASH_V2_BYTES, hash_of
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from pleiad.partition.partition import Partition
from pleiad.server import eager
from pleiad.store.rows import ItemKey, Row
from tests.waiting import SECONDS_MAX, turns, until

Opened = Callable[..., AbstractAsyncContextManager[Engine]]


async def made(engine: Engine, throughput_ru: int | None = None) -> Container:
    database = await engine.create_database({"id": "db"}, None)
    given = Throughput(throughput_ru) if throughput_ru else None
    body = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}}
    await engine.create_container(database, body, given)
    return await engine.container("db", "c")


async def put(container: Container, pk: str, id: str, **properties: object) -> None:
    raw = orjson.dumps({"id": id, "pk": pk, **properties})
    await items.upsert(container, raw, (pk,), NO_CONDITIONS)


async def fill(container: Container, keys: int, each: int = 1) -> None:
    await asyncio.gather(
        *[put(container, f"k{key}", f"i{n}", n=n) for key in range(keys) for n in range(each)]
    )


async def everything(container: Container) -> list[tuple[str, str, int]]:
    """All items as a client pages through them, with their version."""
    found, token = [], ""
    while True:
        page = await listing.page(container, WHOLE, token, 7)
        found += [(orjson.loads(row.body)["pk"], row.id, row.lsn) for row in page.rows]
        if page.token is None:
            return sorted(found)
        token = page.token


async def counts(container: Container) -> list[int]:
    return [(await partition.state()).items for partition in container.map.partitions]


async def check_sound(container: Container) -> None:
    """Every item is where its hash belongs, once, and the counters tell the truth."""
    for partition in container.map.partitions:
        state = await partition.state()
        totals = await partition.segment.totals(partition.span)
        assert (state.items, state.size_bytes) == (totals.items, totals.size_bytes)
        assert state.epoch in (0, partition.epoch)
        assert partition.lsn == state.lsn
    found = await everything(container)
    assert len({(pk, id) for pk, id, _ in found}) == len(found) == sum(await counts(container))


@pytest.mark.requirement("R49")
async def test_a_split_gives_each_child_half_of_the_keys(engine: Opened) -> None:
    async with engine() as opened:
        container = await made(opened)
        await fill(container, 40, 3)
        before = await everything(container)
        left, right = await opened.split(container, "0")
        assert [p.range_id for p in container.map.partitions] == ["1", "2"]
        assert left.span.max == right.span.min
        assert await counts(container) == [60, 60]
        await opened.keeper.settled()
        assert len({p.segment_name for p in container.map.partitions}) == 2
        assert [p.parents for p in container.map.partitions] == [(0,), (0,)]
        assert await everything(container) == before
        await check_sound(container)
    async with engine() as opened:
        container = await opened.container("db", "c")
        assert await everything(container) == before
        await check_sound(container)
        await put(container, "k1", "after")


@pytest.mark.requirement("R51")
async def test_clients_that_know_only_the_hash_of_a_key_find_its_partition_after_splits(
    engine: Opened,
) -> None:
    async with engine() as opened:
        container = await made(opened)
        await fill(container, 40)
        for _ in range(3):
            for partition in list(container.map.partitions):
                await opened.reshaper.split(container, partition.range_id)
        for key in range(40):
            _, partition = container.place_of((f"k{key}",))
            known = hash_of(container.epk_of((f"k{key}",)), container.key)
            assert len(known) == HASH_V2_BYTES
            assert partition.span.min <= known < partition.span.max


async def test_a_logical_partition_stays_whole_over_splits(engine: Opened) -> None:
    async with engine() as opened:
        container = await made(opened)
        await fill(container, 20, 2)
        for _ in range(3):
            for partition in list(container.map.partitions):
                await opened.split(container, partition.range_id)
        assert len(container.map.partitions) == 8
        for partition in container.map.partitions:
            for logical in await partition.logical_partitions():
                assert logical.items == 2
        await opened.keeper.settled()
        await check_sound(container)


@pytest.mark.requirement("R52")
async def test_a_partition_with_one_key_is_not_split(engine: Opened) -> None:
    async with engine() as opened:
        container = await made(opened)
        await fill(container, 1, 10)
        with pytest.raises(PleiadError, match="single logical partition") as refused:
            await opened.split(container, "0")
        assert refused.value.row is errors.CANNOT_SPLIT
        await put(container, "k0", "more")
        await check_sound(container)


async def test_an_empty_partition_is_cut_in_the_middle_of_its_hashes(engine: Opened) -> None:
    async with engine() as opened:
        container = await made(opened)
        left, _ = await opened.split(container, "0")
        assert left.span.max.hex().startswith("1fffffff")
        await opened.keeper.settled()
        await fill(container, 20)
        await check_sound(container)


@pytest.mark.requirement("R55")
async def test_data_beyond_the_storage_limit_splits_by_itself(engine: Opened) -> None:
    limits = Limits(physical_partition_bytes=20_000, logical_partition_bytes=10_000)
    async with engine(limits) as opened:
        container = await made(opened)
        for key in range(40):
            await put(container, f"k{key}", "i", text="x" * 2_000)
        await opened.keeper.settled()
        assert len(container.map.partitions) >= 4
        for partition in container.map.partitions:
            assert (await partition.state()).size_bytes <= 20_000
        await check_sound(container)


@pytest.mark.requirement("R54")
async def test_throughput_above_what_the_partitions_serve_splits_them(engine: Opened) -> None:
    async with engine() as opened:
        container = await made(opened)
        await fill(container, 40)
        offer = opened.catalog.offer_of(container.resource.rid)
        assert offer is not None
        await opened.replace_offer(offer.rid, {"content": {"offerThroughput": 30_000}}, None)
        await opened.keeper.settled()
        assert len(container.map.partitions) == 3
        await check_sound(container)


async def test_a_merge_makes_one_partition_of_neighbours(engine: Opened) -> None:
    async with engine() as opened:
        container = await made(opened)
        await fill(container, 40, 2)
        before = await everything(container)
        for range_id in ("0", "1", "2"):
            await opened.split(container, range_id)
        await opened.keeper.settled()
        ids = [partition.range_id for partition in container.map.partitions]
        with pytest.raises(PleiadError, match="not neighbours"):
            await opened.merge(container, [ids[0], ids[2]])
        merged = await opened.merge(container, ids[:2])
        assert container.map.partitions[0] is merged
        assert set(merged.parents) >= {0, int(ids[0]), int(ids[1])}
        await opened.merge(container, [partition.range_id for partition in container.map.partitions])
        assert len(container.map.partitions) == 1
        assert await everything(container) == before
        await check_sound(container)
    async with engine() as opened:
        assert await everything(await opened.container("db", "c")) == before


async def test_a_batch_starts_over_when_its_rows_move_while_they_are_read(
    engine: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine() as opened:
        container = await made(opened)
        await put(container, "k", "x", n=1)
        read_many = Partition.read_many
        moves = 0

        async def overtaken(self: Partition, keys: Sequence[ItemKey]) -> Sequence[Row | None]:
            nonlocal moves
            if moves < 2:
                moves += 1
                await opened.reshaper.rehome(container, container.map.partitions[0].range_id)
            return await read_many(self, keys)

        monkeypatch.setattr(Partition, "read_many", overtaken)
        more = orjson.dumps({"operations": [{"op": "incr", "path": "/n", "value": 1}]})
        operations = [
            ItemOperation(ItemVerb.PATCH, "x", more),
            ItemOperation(ItemVerb.READ, "x"),
        ]
        answer = await batch.run_transaction(container, ("k",), operations)
        assert not answer.has_failure
        row = (await reading.read(container, "x", ("k",))).row
        assert row is not None
        assert (orjson.loads(row.body)["n"], moves) == (2, 2)


@pytest.mark.requirement("R50")
async def test_clients_go_on_through_splits_and_merges(engine: Opened) -> None:
    """Writers, batches, readers, queries and feeds run while the map changes again and again."""
    async with engine() as opened:
        container = await made(opened)
        await fill(container, 30)
        acknowledged: dict[tuple[str, str], int] = {}
        counts: Counter[int] = Counter()
        stop = asyncio.Event()

        async def write(worker: int) -> None:
            random_of = random.Random(worker)
            count = 0
            while not stop.is_set():
                count += 1
                counts[worker] = count
                pk, id = f"k{random_of.randrange(30)}", f"w{worker}-{random_of.randrange(2)}"
                if count % 5 == 0:
                    body = orjson.dumps({"id": id, "pk": pk, "n": count})
                    twin = orjson.dumps({"id": id + "t", "pk": pk, "n": count})
                    operations = [
                        ItemOperation(ItemVerb.UPSERT, "", each, NO_CONDITIONS, (pk,))
                        for each in (body, twin)
                    ]
                    answer = await batch.run_transaction(container, (pk,), operations)
                    assert not answer.has_failure
                    acknowledged[pk, id + "t"] = count
                else:
                    await put(container, pk, id, n=count)
                acknowledged[pk, id] = count
                read = await reading.read(container, id, (pk,))
                assert read.row is not None
                assert orjson.loads(read.row.body)["n"] == count

        async def ask() -> None:
            while not stop.is_set():
                text = "SELECT VALUE c.pk FROM c WHERE NOT IS_DEFINED(c.m) ORDER BY c.id"
                known = len(acknowledged)
                found, token = 0, ""
                while True:
                    page = await execution.run(
                        container,
                        QueryRequest(text=text, parameters={}, span=WHOLE, token=token, items_max=50),
                    )
                    found += len(page.results)
                    if page.token is None:
                        break
                    token = page.token
                assert found >= known
                await turns()

        workers = [asyncio.create_task(write(worker)) for worker in range(6)]
        workers += [asyncio.create_task(ask()) for _ in range(2)]
        for _ in range(3):
            for partition in list(container.map.partitions):
                await opened.split(container, partition.range_id)
                wanted = counts.total() + 20
                assert await until(lambda least=wanted: counts.total() >= least)
            await opened.keeper.settled()
            ids = [partition.range_id for partition in container.map.partitions]
            await opened.merge(container, ids[:2])
        stop.set()
        await asyncio.gather(*workers)
        for (pk, id), n in acknowledged.items():
            read = await reading.read(container, id, (pk,))
            assert read.row is not None
            assert orjson.loads(read.row.body)["n"] == n
        await check_sound(container)


async def test_a_failed_change_is_undone_and_writers_go_on(engine: Opened) -> None:
    async with engine() as opened:
        container = await made(opened)
        await fill(container, 20)
        for phase in (Phase.DIVIDING, Phase.COMMITTING, Phase.COPYING, Phase.CATCHING_UP, Phase.FENCED):

            async def fail(_: Container, reached: Phase, at: Phase = phase) -> None:
                if reached is at:
                    raise OSError("the disk is gone")

            reshaper = opened.reshaper
            reshaper.report = fail
            ids = [partition.range_id for partition in container.map.partitions]
            splits = phase in (Phase.DIVIDING, Phase.COMMITTING)
            change: Callable[..., Awaitable[object]] = reshaper.split if splits else reshaper.rehome
            with pytest.raises(OSError, match="the disk is gone"):
                await change(container, ids[0])
            assert [partition.range_id for partition in container.map.partitions] == ids
            await asyncio.wait_for(put(container, "k1", phase.name), SECONDS_MAX)
            await check_sound(container)
        assert not opened.catalog.is_unfinished(container.resource.rid)


async def test_session_tokens_of_a_parent_hold_for_its_children(engine: Opened) -> None:
    async with engine() as opened:
        container = await made(opened)
        await fill(container, 10)
        number = container.resource.number
        seen = Seen("0", number, container.map.partitions[0].lsn)
        await opened.split(container, "0")
        for child in container.map.partitions:
            session.check([seen], child, number)
            with pytest.raises(PleiadError) as refused:
                session.check([Seen("0", number, child.lsn + 1)], child, number)
            assert refused.value.row is errors.SESSION_NOT_AVAILABLE


async def test_a_writer_waits_for_the_end_of_a_split_and_is_told_when_it_takes_too_long(
    engine: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(operation_seconds=0.2)
    async with engine(limits) as opened:
        container = await made(opened)
        await fill(container, 10)
        held, go_on = asyncio.Event(), asyncio.Event()

        async def hold(_: Container, phase: Phase) -> None:
            if phase is Phase.COMMITTING:
                held.set()
                await go_on.wait()

        opened.reshaper.report = hold
        splitting = asyncio.create_task(opened.split(container, "0"))
        await held.wait()
        with pytest.raises(PleiadError) as refused:
            await put(container, "k1", "late")
        assert refused.value.row is errors.COMPLETING_SPLIT
        container.limits = replace(limits, operation_seconds=60)
        waits = asyncio.Event()
        wait = container.successor

        async def noted(gone: Partition, epk: bytes) -> Partition:
            waits.set()
            return await wait(gone, epk)

        monkeypatch.setattr(container, "successor", noted)
        waiting = asyncio.create_task(put(container, "k1", "patient"))
        await waits.wait()
        go_on.set()
        await splitting
        await waiting
        await opened.keeper.settled()
        await check_sound(container)


async def test_a_request_that_has_not_waited_yet_waits_for_the_end_of_a_change_too(engine: Opened) -> None:
    async with engine() as opened:
        container = await made(opened)
        (closed,) = container.map.partitions
        loop = asyncio.get_running_loop()
        begun: list[asyncio.Task[Partition] | Partition] = []
        async with opened.reshaper.held(container):
            # As the server begins with a request: outside of a task until the first wait.
            waiting = container.successor(closed, b"")
            loop.call_soon(lambda: begun.append(eager._start_by_hand(waiting, loop)))
            await asyncio.sleep(0)
            (task,) = begun
            assert isinstance(task, asyncio.Task)
            await asyncio.sleep(0)
            assert not task.done()
        assert await task is container.map.find(b"") is not closed


async def test_the_sweeper_leaves_a_partition_that_is_being_split_for_the_next_round(engine: Opened) -> None:
    async with engine() as opened:
        database = await opened.create_database({"id": "db"}, None)
        body = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}, "defaultTtl": 100}
        await opened.create_container(database, body, None)
        container = await opened.container("db", "c")
        await fill(container, 10)
        later = int(time.time()) + 200
        rule = Rule(id="hold", effect=Effect.HOLD, phase=Phase.COMMITTING, expires_at=math.inf)
        opened.faults.add(rule)
        splitting = asyncio.create_task(opened.split(container, "0"))
        assert await until(lambda: rule.hits > 0)
        assert await asyncio.wait_for(sweep(container, later), SECONDS_MAX) == 0
        opened.faults.clear()
        await splitting
        assert await sweep(container, later) == 10


async def test_the_change_feed_goes_on_at_the_children(engine: Opened) -> None:
    async with engine() as opened:
        container = await made(opened)
        await fill(container, 10)
        first = await changes.page(container, WHOLE, "", changes.Origin.BEGINNING, 0, 100)
        assert len(first.rows) == 10
        await opened.split(container, "0")
        await put(container, "k1", "new")
        second = await changes.page(container, WHOLE, first.place, changes.Origin.BEGINNING, 0, 100)
        assert [row.id for row in second.rows] == ["new"]
