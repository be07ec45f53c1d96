"""Changes of the partition map whose outcome the server is not told: they took place or not, and nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import orjson
import psycopg
import pytest

from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.feed import listing
from pleiad.engine.items import NO_CONDITIONS
from pleiad.engine.phase import Phase
from pleiad.engine.reshape.failure import ChangedElsewhereError
from pleiad.errors import REQUEST_TIMEOUT, PleiadError
from pleiad.keys.range import WHOLE
from pleiad.store.postgres.connections import ConnectionSettings
from pleiad.store.postgres.store import PostgresStore
from tests.postgres_proxy import proxy_of
from tests.postgres_server import PostgresServer
from tests.postgres_settings import set_standbys
from tests.stores import PATIENT
from tests.waiting import SECONDS_MAX, until

IDS = {f"i{n}" for n in range(40)}
IMPATIENT = ConnectionSettings(connections_max=6, wait_seconds=2.0, deadline_seconds=2.0)
Change = Callable[[Engine, Container], Coroutine[Any, Any, object]]


async def split(engine: Engine, container: Container) -> None:
    await engine.split(container, container.map.partitions[0].range_id)


async def merge(engine: Engine, container: Container) -> None:
    await engine.merge(container, [partition.range_id for partition in container.map.partitions])


async def rehome(engine: Engine, container: Container) -> None:
    await engine.reshaper.rehome(container, container.map.partitions[0].range_id)


async def opened(stack: AsyncExitStack, dsn: str) -> Engine:
    engine = Engine(await PostgresStore.open(dsn), PATIENT)
    await engine.open()
    stack.push_async_callback(engine.close)
    return engine


async def filled(engine: Engine) -> Container:
    """A container of two physical partitions that hold what IDS names."""
    database = await engine.create_database({"id": "db"}, None)
    body = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}}
    await engine.create_container(database, body, None)
    container = await engine.container("db", "c")
    for id in IDS:
        await put(container, id)
    await engine.split(container, "0")
    await engine.keeper.settled()
    return container


async def put(container: Container, id: str) -> None:
    await items.upsert(container, orjson.dumps({"id": id, "pk": id}), (id,), NO_CONDITIONS)


async def check(engine: Engine, container: Container, dsn: str) -> None:
    """All items are there once, every partition takes writes and counts its rows, and no segment belongs to nobody."""
    assert await until(lambda: not engine.catalog.is_unfinished(container.resource.rid))
    await engine.keeper.settled()
    found: list[str] = []
    token: str | None = ""
    while token is not None:
        page = await listing.page(container, WHOLE, token, 50)
        found += [row.id for row in page.rows]
        token = page.token
    assert sorted(found) == sorted(IDS)
    for id in IDS:
        await asyncio.wait_for(put(container, id), SECONDS_MAX)
    for partition in container.map.partitions:
        state, totals = await partition.state(), await partition.segment.totals(partition.span)
        assert (state.items, state.size_bytes) == (totals.items, totals.size_bytes)
        assert state.epoch == partition.epoch

    def is_all_named() -> bool:
        """What a server without its lease has made and dropped is freed a moment later."""
        with psycopg.connect(dsn) as connection:
            made = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pleiad\\_%'")
            segments = {name.removeprefix("pleiad_") for (name,) in made.fetchall()}
        return segments == {partition.segment_name for partition in container.map.partitions}

    assert await until(is_all_named)


@pytest.mark.parametrize("change", [split, merge, rehome])
async def test_a_change_that_was_committed_and_not_confirmed_is_not_undone(
    postgres_server: PostgresServer, change: Change
) -> None:
    direct = postgres_server.new_database()
    async with proxy_of(postgres_server) as proxy, AsyncExitStack() as stack:
        engine = await opened(stack, proxy.dsn(direct))
        container = await filled(engine)

        async def lose(_: Container, phase: Phase) -> None:
            if phase is Phase.COMMITTING:
                proxy.lose_the_answer_to("COMMIT")

        engine.reshaper.report = lose
        before = [(each.id, each.segment_name) for each in container.map.partitions]
        with pytest.raises(PleiadError) as told:
            await change(engine, container)
        assert told.value.row is REQUEST_TIMEOUT
        assert proxy.losses == 1
        assert [(each.id, each.segment_name) for each in container.map.partitions] != before
        await check(engine, container, direct)
    postgres_server.give_back(direct)


@asynccontextmanager
async def without_standbys(dsn: str) -> AsyncIterator[Callable[[], Coroutine[Any, Any, None]]]:
    """Gives a call from which on commits wait for a standby that does not exist; after the block they take place."""
    try:
        yield lambda: set_standbys(dsn, "nobody")
    finally:
        await set_standbys(dsn, "")


@pytest.mark.parametrize(
    ("change", "phase"),
    [
        (split, Phase.DIVIDING),
        (split, Phase.COMMITTING),
        (rehome, Phase.CATCHING_UP),
        (merge, Phase.FENCED),
        (merge, Phase.COMMITTING),
    ],
)
async def test_a_step_of_a_change_that_takes_place_long_after_the_server_gave_up_does_no_harm(
    own_server: PostgresServer, change: Change, phase: Phase
) -> None:
    dsn = own_server.new_database()
    async with AsyncExitStack() as stack:
        engine = await opened(stack, dsn)
        store = engine.store
        assert isinstance(store, PostgresStore)
        container = await filled(engine)
        async with without_standbys(dsn) as begin:

            async def wait_from_here(_: Container, reached: Phase) -> None:
                if reached is phase:
                    engine.reshaper.report = _nothing
                    await begin()
                    store.connections._settings = IMPATIENT

            engine.reshaper.report = wait_from_here
            with pytest.raises(PleiadError) as told:
                await change(engine, container)
            assert told.value.row is REQUEST_TIMEOUT
        store.connections._settings = ConnectionSettings()
        await check(engine, container, dsn)
    own_server.give_back(dsn)


@pytest.mark.parametrize("change", [split, merge, rehome])
@pytest.mark.parametrize("phase", [Phase.PREPARING, Phase.COPYING, Phase.FENCED, Phase.COMMITTING])
async def test_who_goes_on_without_a_lease_while_another_server_changes_the_map_changes_nothing(
    postgres_server: PostgresServer, change: Change, phase: Phase
) -> None:
    dsn = postgres_server.new_database()
    async with AsyncExitStack() as stack:
        engine, other = await opened(stack, dsn), await opened(stack, dsn)
        container = await filled(engine)
        waits, go_on = asyncio.Event(), asyncio.Event()

        async def wait_here(_: Container, reached: Phase) -> None:
            if reached is (Phase.DIVIDING if phase is Phase.COPYING and change is split else phase):
                engine.reshaper.report = _nothing
                waits.set()
                await go_on.wait()

        engine.reshaper.report = wait_here
        changing = asyncio.create_task(change(engine, container))
        if change is split and phase is Phase.FENCED:
            go_on.set()  # a split has no such phase
        else:
            await waits.wait()
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("DELETE FROM pleiad.lease")
        twin = await other.container("db", "c")
        await other.openings.look()
        with contextlib.suppress(ChangedElsewhereError):
            await other.split(twin, twin.map.partitions[-1].range_id)
        go_on.set()
        with contextlib.suppress(PleiadError):
            await changing
        await engine.keeper.settled()  # who has divided a partition moves its halves afterwards
        await other.openings.look()
        await check(other, twin, dsn)

        async def is_the_same() -> bool:
            """What was changed while this server had its own turn is taken over after it."""
            await engine.openings.look()
            return identities(container) == identities(twin)

        assert await until(is_the_same)
        await check(engine, container, dsn)
    postgres_server.give_back(dsn)


def identities(container: Container) -> list[tuple[int, int, str]]:
    return [(each.id, each.epoch, each.segment_name) for each in container.map.partitions]


async def _nothing(_: Container, phase: Phase) -> None:
    """Waits no more."""
