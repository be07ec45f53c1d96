"""Several servers on one PostgreSQL database: each sees what the others did, and none undoes it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import orjson
import pytest

from pleiad import errors
from pleiad.catalog.resource import Kind
from pleiad.engine import items, reading
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.feed import changes, listing
from pleiad.engine.feed.changes import Origin
from pleiad.engine.items import NO_CONDITIONS
from pleiad.engine.phase import Phase
from pleiad.engine.reshape.failure import ChangedElsewhereError
from pleiad.engine.session import Seen
from pleiad.errors import PleiadError
from pleiad.keys.range import WHOLE
from pleiad.limits import GB, Limits
from pleiad.node import Node
from pleiad.settings import Settings
from pleiad.store.postgres.store import PostgresStore
from tests.stores import PATIENT
from tests.waiting import SECONDS_MAX, until


async def opened(stack: AsyncExitStack, dsn: str, limits: Limits | None = None) -> Engine:
    engine = Engine(await PostgresStore.open(dsn), limits or PATIENT)
    await engine.open()
    stack.push_async_callback(engine.close)
    return engine


async def made(engine: Engine, id: str = "c") -> Container:
    if engine.catalog.find(Kind.DATABASE, "", "db") is None:
        await engine.create_database({"id": "db"}, None)
    body = {"id": id, "partitionKey": {"paths": ["/pk"], "version": 2}}
    await engine.create_container(engine.database("db"), body, None)
    return await engine.container("db", id)


async def seen(engine: Engine, id: str = "c") -> Container:
    """The container at another server, as soon as it has heard of it."""
    async with asyncio.timeout(SECONDS_MAX):
        while True:
            try:
                return await engine.container("db", id)
            except PleiadError as error:
                await engine.second_look(error)


async def put(container: Container, pk: str, id: str, n: int) -> None:
    raw = orjson.dumps({"id": id, "pk": pk, "n": n})
    await items.upsert(container, raw, (pk,), NO_CONDITIONS)


async def names(container: Container) -> set[str]:
    found: set[str] = set()
    token = ""
    while True:
        page = await listing.page(container, WHOLE, token, 50)
        found |= {row.id for row in page.rows}
        if page.token is None:
            return found
        token = page.token


async def test_what_one_server_creates_changes_and_deletes_the_other_learns(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        one, other = await opened(stack, postgres_database), await opened(stack, postgres_database)
        container = await made(one)
        await put(container, "k", "a", 1)
        twin = await seen(other)
        answer = await reading.read(twin, "a", ("k",))
        assert answer.row is not None
        body = {**container.resource.properties, "id": "c", "defaultTtl": 77}
        await one.replace_container(one.database("db"), "c", body, None)
        assert await until(lambda: twin.default_ttl == 77)
        await one.delete(container.resource)
        assert await until(lambda: not other.containers)
        with pytest.raises(PleiadError) as caught:
            await other.container("db", "c")
        assert caught.value.row is errors.RESOURCE_NOT_FOUND or caught.value.row is errors.OWNER_NOT_FOUND


async def test_what_another_look_has_just_found_is_not_missed(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        one, other = await opened(stack, postgres_database), await opened(stack, postgres_database)
        behind = other.store.is_behind

        async def behind_until_another_looks() -> bool:
            """The answer that comes when the look after a notice has ended."""
            monkeypatch.setattr(other.store, "is_behind", behind)
            await until(lambda: other.catalog.find(Kind.DATABASE, "", "db") is not None)
            await other.openings.look()
            return False

        monkeypatch.setattr(other.store, "is_behind", behind_until_another_looks)
        asked = asyncio.create_task(other.second_look(errors.RESOURCE_NOT_FOUND(kind="database", id="db")))
        await asyncio.sleep(0)
        await one.create_database({"id": "db"}, None)
        assert await asked


async def test_the_token_of_a_page_of_one_server_is_good_at_the_other(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        one, other = await opened(stack, postgres_database), await opened(stack, postgres_database)
        container = await made(one)
        for number in range(6):
            await put(container, f"k{number}", f"i{number}", number)
        first = await listing.page(container, WHOLE, "", 2)
        assert first.token is not None
        rest = await listing.page(await seen(other), WHOLE, first.token, 50)
        assert len({row.id for row in (*first.rows, *rest.rows)}) == 6


async def test_the_same_name_at_the_same_moment_is_one_success_and_no_rid_is_given_twice(
    postgres_database: str,
) -> None:
    async with AsyncExitStack() as stack:
        engines = [await opened(stack, postgres_database) for _ in range(2)]
        calls = [engine.create_database({"id": "same"}, None) for engine in engines]
        calls += [engines[n % 2].create_database({"id": f"db{n}"}, None) for n in range(10)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        failures = [answer for answer in answers if isinstance(answer, BaseException)]
        assert [getattr(failure, "row", None) for failure in failures] == [errors.RESOURCE_EXISTS]
    async with AsyncExitStack() as stack:
        engine = await opened(stack, postgres_database)
        found = engine.catalog.children(Kind.DATABASE, "")
        assert sorted(each.id for each in found) == sorted(["same", *(f"db{n}" for n in range(10))])


async def test_writers_at_two_servers_go_on_through_a_split_and_a_merge_at_one(
    postgres_database: str,
) -> None:
    async with AsyncExitStack() as stack:
        one, other = await opened(stack, postgres_database), await opened(stack, postgres_database)
        container = await made(one)
        twin = await seen(other)
        acknowledged: dict[tuple[str, str], int] = {}
        stop = asyncio.Event()

        async def write(place: Container, worker: int) -> None:
            n = 0
            while not stop.is_set():
                n += 1
                pk, id = f"k{n % 30}", f"w{worker}-{n % 40}"
                await put(place, pk, id, n)
                acknowledged[pk, id] = n
                answer = await reading.read(place, id, (pk,))
                assert answer.row is not None

        workers = [asyncio.create_task(write(place, n)) for n, place in enumerate((container, twin) * 2)]
        assert await until(lambda: len(acknowledged) > 40)
        await one.split(container, container.map.partitions[0].range_id)
        await one.keeper.settled()
        await one.merge(container, [partition.range_id for partition in container.map.partitions])
        before = sum(acknowledged.values())
        assert await until(lambda: sum(acknowledged.values()) > before), "both go on after the changes"
        stop.set()
        await asyncio.gather(*workers)
        for place in (container, twin):
            for (pk, id), n in acknowledged.items():
                answer = await reading.read(place, id, (pk,))
                assert answer.row is not None
                assert orjson.loads(answer.row.body)["n"] == n
        assert await names(container) == await names(twin) == {id for _, id in acknowledged}
        await other.openings.look()
        assert [partition.id for partition in twin.map.partitions] == [
            partition.id for partition in container.map.partitions
        ]


async def test_two_servers_never_change_one_map_at_the_same_time(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        one, other = await opened(stack, postgres_database), await opened(stack, postgres_database)
        container = await made(one)
        for n in range(20):
            await put(container, f"k{n}", "i", n)
        twin = await seen(other)
        held, go_on = asyncio.Event(), asyncio.Event()

        async def hold(_: Container, phase: Phase) -> None:
            if phase is Phase.COMMITTING:
                held.set()
                await go_on.wait()

        one.reshaper.report = hold
        splitting = asyncio.ensure_future(one.split(container, "0"))
        await held.wait()
        with pytest.raises(ChangedElsewhereError):
            await other.split(twin, "0")
        await other.keeper.settled()
        go_on.set()
        await splitting
        assert len(container.map.partitions) == 2


async def test_a_session_and_a_feed_go_on_at_another_server(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        one, other = await opened(stack, postgres_database), await opened(stack, postgres_database)
        container = await made(one)
        twin = await seen(other)
        await put(container, "k", "a", 1)
        token = [Seen("0", container.resource.number, container.map.partitions[0].lsn)]
        with pytest.raises(PleiadError) as caught:
            await reading.read(twin, "a", ("k",), seen=token)
        assert await other.second_look(caught.value)
        answer = await reading.read(twin, "a", ("k",), seen=token)
        assert answer.row is not None
        await put(container, "k", "b", 1)
        page = await changes.page(twin, WHOLE, "", Origin.NOW, 0, 10)
        assert page.rows == []
        await put(container, "k", "c", 1)
        page = await changes.page(twin, WHOLE, page.place, Origin.NOW, 0, 10)
        assert [row.id for row in page.rows] == ["c"]


async def test_a_start_beside_a_server_at_work_removes_nothing(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        one = await opened(stack, postgres_database)
        container = await made(one)
        await put(container, "k", "a", 1)
        copy = one.store.segment("a-copy-being-made")
        await copy.fence(0, 1)
        other = await opened(stack, postgres_database)
        assert (await copy.state(0)).epoch == 2
        assert await names(await seen(other)) == {"a"}
    async with AsyncExitStack() as stack:
        alone = await opened(stack, postgres_database)
        assert (await alone.store.segment("a-copy-being-made").state(0)).epoch == 0


async def test_a_node_serves_from_postgresql(postgres_database: str, tmp_path: Path) -> None:
    counts = []
    for _ in range(2):
        node = Node(Settings(store=postgres_database, data=tmp_path / "data", port=0))
        await node.start()
        try:
            counts.append(await node.load_sample())
        finally:
            await node.stop()
    assert counts[0] > 0
    assert counts[1] == 0


async def test_data_raises_a_throughput_once_however_many_servers_see_it(postgres_database: str) -> None:
    limits = Limits(throughput_ru_per_gb=50 * GB // 1024)
    async with AsyncExitStack() as stack:
        engines = [await opened(stack, postgres_database, limits) for _ in range(3)]
        first = await made(engines[0])
        for engine in engines[1:]:
            await seen(engine)
        for number in range(11):
            body = orjson.dumps({"id": str(number), "pk": "a", "text": "x" * 1_000})
            await items.create(first, body, ("a",))
        for engine in engines[1:]:
            for partition in (await engine.container("db", "c")).map.partitions:
                await partition.load()
        before = engines[0].catalog.offer_of(first.resource.rid)
        await asyncio.gather(*(engine.keeper.settled() for engine in engines))
        for engine in engines:
            await engine.openings.look()
        after = [engine.catalog.offer_of(first.resource.rid) for engine in engines]
        assert before is not None
        assert all(offer is not None for offer in after)
        assert {offer.properties["content"]["offerThroughput"] for offer in after if offer} == {600}
        assert len({offer.etag for offer in after if offer}) == 1
        rates = [(await engine.container("db", "c")).map.partitions[0].governor.rate_ru for engine in engines]
        assert rates == [600] * 3


async def test_the_pause_between_changes_of_buckets_holds_for_all_servers(postgres_database: str) -> None:
    async with AsyncExitStack() as stack:
        one, two = [await opened(stack, postgres_database) for _ in range(2)]
        container = await made(one)
        await seen(two)
        for engine, percent, is_refused in ((one, 30, False), (two, 40, True)):
            offer = engine.catalog.offer_of(container.resource.rid)
            assert offer is not None
            content = {
                **offer.properties["content"],
                "throughputBuckets": [{"id": 1, "maxThroughputPercentage": percent}],
            }
            if not is_refused:
                await engine.replace_offer(offer.rid, {"content": content}, None)
                continue
            with pytest.raises(PleiadError) as caught:
                await engine.replace_offer(offer.rid, {"content": content}, None)
            assert caught.value.row is errors.TOO_MANY_BUCKET_CHANGES
