"""What goes wrong on the way to a PostgreSQL server: a certain no is UNAVAILABLE, an unknown outcome REQUEST_TIMEOUT,
nothing waits for ever, and work goes on when the cause is gone."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import resource
import time
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from pleiad.errors import REQUEST_TIMEOUT, UNAVAILABLE, PleiadError
from pleiad.keys.range import WHOLE
from pleiad.store.postgres import company
from pleiad.store.postgres.connections import ConnectionSettings
from pleiad.store.postgres.database import StoreUnreachableError
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.rows import ItemKey, Mutation, PartitionWrite, Result, Verb
from pleiad.store.segments import Segment, SegmentDroppedError
from tests.postgres_proxy import proxy_of
from tests.postgres_server import PostgresServer
from tests.postgres_settings import set_for_all, set_standbys
from tests.waiting import SECONDS_MAX, until

EPK = b"\x20" * 16
IMPATIENT = ConnectionSettings(connections_max=4, wait_seconds=2.0, deadline_seconds=2.0)


@contextlib.asynccontextmanager
async def opened(dsn: str, settings: ConnectionSettings | None = None) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(dsn, connection_settings=settings)
    try:
        yield store
    finally:
        await store.close()


def put(id: str, body: bytes = b'{"n":1}') -> PartitionWrite:
    return PartitionWrite(0, 1, 1_000, (Mutation(Verb.CREATE, EPK, id, body, len(body), 1),))


async def ids(segment: Segment) -> list[str]:
    return [row.id for row in await segment.scan(WHOLE, 0, 100_000)]


async def refused(call: Any) -> PleiadError:
    with pytest.raises(PleiadError) as caught:
        await call
    return caught.value


# -- limits that the operator has set ----------------------------------------------------------------


@pytest.mark.parametrize("setting", ["statement_timeout", "lock_timeout"])
async def test_a_time_limit_of_the_database_is_a_certain_no(postgres_database: str, setting: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET {setting} = '300ms'")
    async with opened(postgres_database) as store:
        segment = store.segment("s")
        await segment.commit(put("first"))
        async with await psycopg.AsyncConnection.connect(postgres_database) as other:
            await other.execute('LOCK TABLE "pleiad_s".partition, "pleiad_s".item IN ACCESS EXCLUSIVE MODE')
            calls = [segment.commit(put("a")), segment.commit(put("b")), segment.read(EPK, "first")]
            answers = await asyncio.gather(*calls, return_exceptions=True)
            assert [getattr(answer, "row", answer) for answer in answers] == [UNAVAILABLE] * 3
            await other.rollback()
        assert await ids(segment) == ["first"]
        assert (await segment.commit(put("a")))[0].result is Result.CREATED
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} RESET ALL")


async def test_a_lease_that_cannot_be_taken_is_a_certain_no(postgres_database: str) -> None:
    async with (
        opened(postgres_database) as store,
        await psycopg.AsyncConnection.connect(postgres_database) as other,
    ):
        await other.execute("ALTER TABLE pleiad.lease RENAME TO away")
        await other.commit()
        assert (await refused(store.lease("sweep").__aenter__())).row is UNAVAILABLE
        await other.execute("ALTER TABLE pleiad.away RENAME TO lease")
        await other.commit()
        async with store.lease("sweep") as is_ours:
            assert is_ours


async def test_who_may_have_few_connections_uses_them_in_turn(postgres_server: PostgresServer) -> None:
    dsn = few_connections(postgres_server, 3)
    async with opened(dsn) as store:
        segment = store.segment("s")
        calls = [segment.commit(put(f"i{n}")) for n in range(20)]
        calls += [segment.find(n) for n in range(20)]  # type: ignore[misc]
        began = time.monotonic()
        await asyncio.gather(*calls)
        assert time.monotonic() - began < SECONDS_MAX / 2, "they waited for connections that cannot be made"
        assert len(await ids(segment)) == 20


async def test_a_server_without_room_is_named_at_the_start(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreUnreachableError, match="too many connections"):
        await asyncio.wait_for(PostgresStore.open(few_connections(postgres_server, 1)), SECONDS_MAX)


def few_connections(server: PostgresServer, count: int) -> str:
    """A database whose user may have so many connections."""
    name = f"few{random.getrandbits(40)}"
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT {count}")
        connection.execute(f"CREATE DATABASE {name} OWNER {name} STRATEGY file_copy")
    return server.dsn(name).replace("pleiad@", f"{name}@")


async def test_more_open_files_than_select_can_count_change_nothing(postgres_database: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4_096), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:
        async with opened(postgres_database) as store:
            for id in "ab":
                await store.segment("s").commit(put(id))
            assert await ids(store.segment("s")) == ["a", "b"]
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# -- races ---------------------------------------------------------------------------------------------


async def test_a_write_that_loses_a_deadlock_is_made_once(postgres_database: str) -> None:
    async with (
        opened(postgres_database) as store,
        await psycopg.AsyncConnection.connect(postgres_database) as other,
    ):
        segment = store.segment("s")
        await segment.commit(put("first"))
        await other.execute("SET deadlock_timeout = '20s'")
        await other.commit()
        await other.execute('LOCK TABLE "pleiad_s".item IN SHARE MODE')
        writing = asyncio.ensure_future(segment.commit(put("a")))

        async def is_waiting() -> bool:
            waiting = await other.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
            return bool(await waiting.fetchall())

        assert await until(is_waiting)
        # It holds the row of the partition and waits for the table; now the two wait for each other.
        await other.execute('UPDATE "pleiad_s".partition SET lsn = lsn')
        assert not writing.done()
        await other.commit()
        assert [outcome.result for outcome in await writing] == [Result.CREATED]
        assert await ids(segment) == ["first", "a"]
        assert (await segment.state(0)).items == 2


@pytest.mark.parametrize(("failures", "is_done"), [(2, True), (9, False)])
async def test_a_transaction_that_cannot_be_serialized_is_tried_again_and_not_for_ever(
    postgres_database: str, failures: int, is_done: bool
) -> None:
    text = (
        f"DO $$ BEGIN IF nextval('tries') <= {failures} THEN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; "
        "END IF; CREATE TABLE done(); END $$"
    )
    async with (
        opened(postgres_database) as store,
        await psycopg.AsyncConnection.connect(postgres_database) as other,
    ):
        await other.execute("CREATE SEQUENCE tries")
        await other.commit()
        writing = store.connections.write(lambda connection: connection.execute(text.encode()))
        if is_done:
            await writing
        else:
            assert (await refused(writing)).row is UNAVAILABLE
        found = await (await other.execute("SELECT to_regclass('done') IS NOT NULL")).fetchall()
        assert found == [(is_done,)]
        await other.execute("DROP SEQUENCE tries")
        await other.execute("DROP TABLE IF EXISTS done")


# -- connections that break ------------------------------------------------------------------------------


async def test_connections_that_the_server_ended_while_nobody_used_them_are_no_failure(
    postgres_database: str,
) -> None:
    async with (
        opened(postgres_database) as store,
        await psycopg.AsyncConnection.connect(postgres_database) as other,
    ):
        segment = store.segment("s")
        await asyncio.gather(*(segment.commit(put(f"i{n}")) for n in range(20)))
        for call in (segment.commit(put("a")), segment.read(EPK, "i1"), segment.commit(put("b"))):
            await other.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            await call
        assert len(await ids(segment)) == 22


async def test_a_write_that_took_place_and_was_not_answered_is_unknown_and_is_there_once(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    async with proxy_of(postgres_server) as proxy, opened(proxy.dsn(postgres_database)) as store:
        segment = store.segment("s")
        for id in ("first", "second"):
            await segment.commit(put(id))
        proxy.lose_the_answer_to("unanswered")
        error = await refused(segment.commit(put("unanswered")))
        assert error.row is REQUEST_TIMEOUT
        assert proxy.losses == 1
        assert await ids(segment) == ["first", "second", "unanswered"]
        assert [outcome.result for outcome in await segment.commit(put("unanswered"))] == [Result.EXISTS]
        assert (await segment.state(0)).items == 3


async def test_a_server_that_stands_still_keeps_nobody_longer_than_the_deadline(
    own_server: PostgresServer,
) -> None:
    async with opened(own_server.new_database()) as store:
        segment = store.segment("s")
        await segment.commit(put("first"))
        snapshot = segment.snapshot()
        assert await snapshot.find(2**40) is None
        own_server.freeze()
        for pool in (store.connections, store._snapshots):
            pool._settings = IMPATIENT
        began = time.monotonic()
        try:
            late = segment.snapshot()
            calls = [
                segment.commit(put("a")),
                segment.read(EPK, "first"),
                snapshot.read_many([ItemKey(EPK, "first")]),
                late.read_many([ItemKey(EPK, "first")]),
                store.is_behind(),
            ]
            answers = await asyncio.gather(*calls, return_exceptions=True)
        finally:
            own_server.thaw()
        assert time.monotonic() - began < SECONDS_MAX / 2
        for pool in (store.connections, store._snapshots):
            pool._settings = ConnectionSettings()
        assert {getattr(answer, "row", answer) for answer in answers} <= {REQUEST_TIMEOUT, UNAVAILABLE}
        snapshot.close()
        late.close()
        (outcome,) = await segment.commit(put("b"))
        assert outcome.result is Result.CREATED

        async def agrees() -> bool:
            found = await ids(segment)
            assert {"first", "b"} <= set(found) <= {"first", "a", "b"}
            return (await segment.state(0)).items == len(found)

        assert await until(agrees)  # what was not answered may still take place


# -- the disk ----------------------------------------------------------------------------------------------


async def test_a_full_disk_is_a_certain_no_and_no_longer_than_it_is_full(own_server: PostgresServer) -> None:
    async with opened(own_server.new_database()) as store:
        segment = store.segment("s")
        await segment.commit(put("first"))
        own_server.stop()
        # The log is kept in files of 16 MB, which this does not concern.
        own_server.start(file_bytes_max=(20 << 20) + 4_096)
        written = ["first"]
        try:
            assert (await refused(fill(segment, written))).row is UNAVAILABLE
            assert await segment.read(EPK, "first") is not None
            assert await ids(segment) == written
        finally:
            own_server.stop()
            own_server.start()
        (outcome,) = await segment.commit(put("last"))
        assert outcome.result is Result.CREATED
        assert (await segment.state(0)).items == len(written) + 1


async def fill(segment: Segment, written: list[str]) -> None:
    """Writes 40 MB that cannot be compressed, and notes what was acknowledged."""
    for number in range(40):
        await segment.commit(put(f"i{number}", b'"%s"' % os.urandom(500_000).hex().encode()))
        written.append(f"i{number}")


# -- failover ------------------------------------------------------------------------------------------------


async def test_after_a_failover_work_goes_on_at_the_server_that_takes_writes() -> None:
    primary = PostgresServer()
    standby: PostgresServer | None = None
    try:
        primary.start()
        standby = PostgresServer(primary)
        standby.start()
        await check_failover(primary, standby)
    finally:
        for server in (primary, standby):
            if server is not None:
                server.remove()


async def check_failover(primary: PostgresServer, standby: PostgresServer) -> None:
    standby.freeze()
    await set_standbys(primary.dsn("postgres"), "*")
    standby.thaw()
    direct = primary.new_database()
    hosts = f"{standby.directory},{primary.directory}"
    dsn = direct.replace(str(primary.directory), hosts) + "&target_session_attrs=read-write"
    async with opened(dsn) as store:
        segment = store.segment("s")
        acknowledged = [f"i{n}" for n in range(20)]
        await asyncio.gather(*(segment.commit(put(id)) for id in acknowledged))
        with pytest.raises(StoreUnreachableError):
            await PostgresStore.open(standby.dsn(direct.partition("@/")[2].partition("?")[0]))
        writing = asyncio.ensure_future(segment.commit(put("a")))
        await asyncio.to_thread(primary.kill)
        await asyncio.gather(writing, return_exceptions=True)
        await set_for_all(standby.dsn("postgres"), "synchronous_standby_names", "")
        async with await psycopg.AsyncConnection.connect(standby.dsn("postgres"), autocommit=True) as other:
            await other.execute("SELECT pg_promote()")
        began = time.monotonic()
        (outcome,) = await segment.commit(put("after"))
        assert outcome.result is Result.CREATED
        assert time.monotonic() - began < SECONDS_MAX / 2
        assert set(acknowledged) | {"after"} <= set(await ids(segment)) <= {*acknowledged, "a", "after"}


async def test_a_server_that_takes_no_writes_is_a_certain_no_for_as_long(own_server: PostgresServer) -> None:
    dsn = own_server.new_database()
    async with opened(dsn) as store:
        segment = store.segment("s")
        await segment.commit(put("first"))
        try:
            await set_for_all(dsn, "default_transaction_read_only", "on")
            assert (await refused(segment.commit(put("a")))).row is UNAVAILABLE
            assert (await refused(store.save_records([], []))).row is UNAVAILABLE
            assert await segment.read(EPK, "first") is not None
        finally:
            await set_for_all(dsn, "default_transaction_read_only", "off")
        await segment.commit(put("a"))
        assert await ids(segment) == ["first", "a"]


# -- the other servers -----------------------------------------------------------------------------------------


async def test_the_leases_of_a_dead_server_are_free_at_once_and_those_of_a_living_one_are_not(
    postgres_database: str,
) -> None:
    async with (
        opened(postgres_database) as one,
        opened(postgres_database) as other,
        one.lease("map/x") as is_ours,
    ):
        assert is_ours
        async with other.lease("map/x") as is_theirs:
            assert not is_theirs
        await one._company.leave()
        other._company._here_since -= company._JUDGE_SECONDS  # it has been here for long
        async with other.lease("map/x") as is_theirs:
            assert is_theirs


async def test_a_listener_that_hears_nothing_any_more_is_found_out(
    postgres_server: PostgresServer, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A machine that is busy answers later than a short time, and is no listener that hears nothing.
    monkeypatch.setattr(company, "_CHECK_SECONDS", math.inf)
    monkeypatch.setattr(company, "_ANSWER_SECONDS", SECONDS_MAX)
    notices = 0

    def note() -> None:
        nonlocal notices
        notices += 1

    async with (
        proxy_of(postgres_server) as proxy,
        opened(proxy.dsn(postgres_database)) as store,
        opened(postgres_database) as other,
    ):
        store.watch(note)
        await other.save_records([], [])
        assert await until(lambda: notices == 1)
        proxy.fall_silent()
        with monkeypatch.context() as hasty:
            hasty.setattr(company, "_CHECK_SECONDS", 0.0)
            hasty.setattr(company, "_ANSWER_SECONDS", 0.3)
            assert await until(lambda: store._company._connection is None)
        assert await until(lambda: notices == 2)  # the look that follows a new connection
        await other.save_records([], [])
        assert await until(lambda: notices == 3)


async def test_a_snapshot_of_a_segment_that_another_server_dropped_is_refused_and_not_empty(
    postgres_database: str,
) -> None:
    async with opened(postgres_database) as store, opened(postgres_database) as other:
        segment = store.segment("s")
        await segment.commit(put("first"))
        unused = other.segment("unused")
        await other.drop_segments(["s"])
        for _ in range(2):
            snapshot = segment.snapshot()
            with pytest.raises(SegmentDroppedError):
                await snapshot.read_many([ItemKey(EPK, "first")])
            snapshot.close()
        nothing = unused.snapshot()
        assert await nothing.read_many([ItemKey(EPK, "first")]) == [None]
        nothing.close()
