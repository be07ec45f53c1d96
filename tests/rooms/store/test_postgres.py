"""What only the PostgreSQL store promises: no false yes, short failures, several servers on one database."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from pleiad.errors import REQUEST_TIMEOUT, UNAVAILABLE, ErrorRow, PleiadError
from pleiad.keys.range import WHOLE
from pleiad.server import eager
from pleiad.server.http.failures import status_of
from pleiad.store.index_use import IndexSettings
from pleiad.store.postgres import schema
from pleiad.store.postgres.connections import ConnectionSettings
from pleiad.store.postgres.database import SchemaError, StoreUnreachableError
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.rows import Mutation, PartitionWrite, Result, Verb
from pleiad.store.segments import Segment, SegmentDroppedError
from pleiad.store.selection import Bound, IndexedPath, PathOrder, Predicate, Selection
from tests.postgres_server import PostgresServer
from tests.postgres_settings import set_standbys
from tests.stores import built
from tests.waiting import SECONDS_MAX, turns, until

EPK = b"\x20" * 16
EAGER = IndexSettings(items_min=0, uses_min=1, chunk_items=3)
IMPATIENT = ConnectionSettings(connections_max=2, wait_seconds=2.0, deadline_seconds=2.0)


@contextlib.asynccontextmanager
async def opened(dsn: str, settings: ConnectionSettings | None = None) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(dsn, EAGER, settings)
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def held(dsn: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """Keeps every write of the segment waiting."""
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        await connection.execute('LOCK TABLE "pleiad_s".partition IN EXCLUSIVE MODE')
        yield connection
        await connection.rollback()


async def waiting_writes(connection: psycopg.AsyncConnection[Any]) -> list[int]:
    """The processes of the writes that wait for who holds the partitions."""
    # What a transaction has seen of them once it would see again.
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    found = await connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
        "AND query LIKE '%write_3%' AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()"
    )
    return [process_id for (process_id,) in await found.fetchall()]


def put(id: str, body: bytes = b'{"n":1}', verb: Verb = Verb.CREATE) -> PartitionWrite:
    return PartitionWrite(0, 1, 1_000, (Mutation(verb, EPK, id, body, len(body), 1),))


async def ids(segment: Segment) -> list[str]:
    return [row.id for row in await segment.scan(WHOLE, 0, 100_000)]


async def refused(call: Any) -> PleiadError:
    with pytest.raises(PleiadError) as caught:
        await call
    return caught.value


# -- never a false yes ---------------------------------------------------------------------------


async def test_a_write_whose_connection_is_lost_has_an_unknown_outcome_and_is_not_sent_again(
    postgres_database: str,
) -> None:
    async with opened(postgres_database) as store:
        segment = store.segment("s")
        await segment.commit(put("first"))
        async with held(postgres_database) as other:
            writing = asyncio.ensure_future(segment.commit(put("a")))

            async def is_ended() -> bool:
                waiting = await waiting_writes(other)
                for process_id in waiting:
                    await other.execute("SELECT pg_terminate_backend(%s)", (process_id,))
                return bool(waiting)

            assert await until(is_ended)
            error = await refused(writing)
        assert error.row is REQUEST_TIMEOUT
        assert await ids(segment) == ["first"]
        (again,) = await segment.commit(put("a"))
        assert again.result is Result.CREATED


async def test_a_write_that_is_not_answered_in_time_ends_unknown_and_the_next_one_works(
    postgres_database: str,
) -> None:
    async with opened(postgres_database) as store:
        segment = store.segment("s")
        await segment.commit(put("first"))
        async with held(postgres_database):
            store.connections._settings = IMPATIENT
            began = time.monotonic()
            error = await refused(segment.commit(put("a")))
            assert error.row is REQUEST_TIMEOUT
            assert time.monotonic() - began < SECONDS_MAX / 2
        store.connections._settings = ConnectionSettings()
        (outcome,) = await segment.commit(put("b"))
        assert outcome.result is Result.CREATED


async def test_a_wait_for_standbys_that_was_cancelled_is_no_success(own_server: PostgresServer) -> None:
    dsn = own_server.new_database()
    async with opened(dsn) as store, await psycopg.AsyncConnection.connect(dsn, autocommit=True) as other:
        segment = store.segment("s")
        await segment.commit(put("first"))
        try:
            # No standby of this name exists, so every commit waits for ever.
            await set_standbys(dsn, "nobody")
            writing = asyncio.ensure_future(segment.commit(put("a")))

            async def is_cancelled() -> bool:
                cancelled = await other.execute(
                    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                )
                return bool(await cancelled.fetchall())

            assert await until(is_cancelled)
            error = await refused(writing)
        finally:
            await set_standbys(dsn, "")
        assert error.row is REQUEST_TIMEOUT


async def test_commits_wait_for_the_disk_whatever_the_default_of_the_database_is(
    postgres_database: str,
) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    async with opened(postgres_database) as store:

        async def show(connection: psycopg.AsyncConnection[Any]) -> list[Any]:
            text = "SELECT current_setting('synchronous_commit'), current_setting('transaction_isolation')"
            return await (await connection.execute(text)).fetchall()

        assert await store.connections.read(show) == [("on", "read committed")]
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} RESET ALL")


# -- failures are short --------------------------------------------------------------------------


async def test_who_gets_no_connection_is_told_in_time(postgres_database: str) -> None:
    settings = ConnectionSettings(connections_max=1, wait_seconds=SECONDS_MAX, deadline_seconds=SECONDS_MAX)
    async with opened(postgres_database, settings) as store:
        segment = store.segment("s")
        await segment.commit(put("first"))
        async with held(postgres_database) as other:
            writing = asyncio.ensure_future(segment.commit(put("a")))

            async def is_waiting() -> bool:
                return bool(await waiting_writes(other))

            assert await until(is_waiting)
            store.connections._settings = replace(settings, wait_seconds=0.3)
            began = time.monotonic()
            error = await refused(segment.read(EPK, "first"))
            assert error.row is UNAVAILABLE
            assert time.monotonic() - began < SECONDS_MAX / 2
            store.connections._settings = settings
        assert (await writing)[0].result is Result.CREATED
        assert await segment.read(EPK, "first") is not None


async def test_a_connection_can_be_made_in_the_first_step_of_a_request(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        await store.segment("s").commit(put("a"))
        loop = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            # The connections that are idle are taken, so that the read needs a new one.
            for _ in range(store.connections._count):
                connection = await store.connections.take()
                stack.push_async_callback(store.connections.give_back, connection)
            # From a plain callback of the loop, as the HTTP loop does it: there is no task around.
            started: asyncio.Future[Any] = loop.create_future()
            loop.call_soon(lambda: started.set_result(eager.start(store.segment("s").find(2**36), loop)))
            answer = await asyncio.wait_for(started, SECONDS_MAX)
            assert isinstance(answer, asyncio.Task)
            assert await answer is None


async def test_a_restart_of_the_server_loses_nothing_and_work_goes_on_by_itself(
    own_server: PostgresServer,
) -> None:
    async with opened(own_server.new_database()) as store:
        segment = store.segment("s")
        acknowledged: list[str] = []
        failures: set[ErrorRow] = set()
        stop = asyncio.Event()

        async def write(worker: int) -> None:
            number = 0
            while not stop.is_set():
                number += 1
                try:
                    await segment.commit(put(f"{worker}-{number}"))
                except PleiadError as error:
                    failures.add(error.row)
                    await turns()
                    continue
                acknowledged.append(f"{worker}-{number}")

        async def go_on(count: int) -> None:
            wanted = len(acknowledged) + count
            assert await until(lambda: len(acknowledged) >= wanted), "no write is acknowledged"

        workers = [asyncio.create_task(write(worker)) for worker in range(8)]
        for how in (signal.SIGQUIT, signal.SIGINT):
            await go_on(20)
            await asyncio.to_thread(own_server.stop, how)
            await asyncio.to_thread(own_server.start)
            await go_on(1)
        stop.set()
        await asyncio.gather(*workers)
        assert failures <= {UNAVAILABLE, REQUEST_TIMEOUT}
        found = await ids(segment)
        assert set(acknowledged) <= set(found)
        assert len(found) == len(set(found)) == (await segment.state(0)).items


async def test_a_server_that_does_not_answer_at_the_start_is_named(tmp_path: Any) -> None:
    with pytest.raises(StoreUnreachableError, match="does not answer"):
        await PostgresStore.open(f"postgresql://pleiad@/pleiad?host={tmp_path}")


async def test_data_of_a_newer_version_and_servers_that_are_too_old_are_refused(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_database):
        pass
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("UPDATE pleiad.version SET version = 99")
    with pytest.raises(SchemaError, match="newer Pleiad"):
        await PostgresStore.open(postgres_database)
    monkeypatch.setattr(schema, "SERVER_VERSION_MIN", 990_000)
    with pytest.raises(SchemaError, match="needs 99 or newer"):
        await PostgresStore.open(postgres_database)


async def test_a_segment_of_an_older_version_gets_what_it_lacks(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        await store.segment("s").commit(put("before"))
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        for function in ("write_3", "batch_3"):
            connection.execute(schema.sql(f'DROP FUNCTION "pleiad_s".{function}'))
    async with opened(postgres_database) as one, opened(postgres_database) as other:
        writes = [store.segment("s").commit(put(id)) for store, id in ((one, "i"), (other, "j"))]
        assert [outcome.result for (outcome,) in await asyncio.gather(*writes)] == [Result.CREATED] * 2
        assert (await one.segment("s").state(0)).items == 3


# -- groups ----------------------------------------------------------------------------------------


async def test_writes_of_one_moment_share_transactions(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        segment = store.segment("s")
        await asyncio.gather(*(segment.commit(put(f"i{number}")) for number in range(100)))
    with psycopg.connect(postgres_database) as connection:
        found = connection.execute('SELECT count(DISTINCT xmin::text) FROM "pleiad_s".item').fetchone()
    assert found is not None
    assert found[0] <= 3


async def test_of_a_group_that_fails_only_the_culprit_fails(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        segment = store.segment("s")
        writes = [put("a"), put("bad", b'{"n":'), put("b")]
        answers = await asyncio.gather(*map(segment.commit, writes), return_exceptions=True)
        assert isinstance(answers[1], PleiadError)
        assert answers[1].row is UNAVAILABLE
        assert await ids(segment) == ["a", "b"]


async def test_reads_of_one_moment_each_get_their_own_row(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        segment = store.segment("s")
        for number in range(70):
            await segment.commit(put(f"i{number}", b'{"n":%d}' % number))
        wanted = [f"i{number}" for number in (*range(70), 5, 5, 900)]
        rows = await asyncio.gather(*(segment.read(EPK, id) for id in wanted))
        assert [row.id if row else None for row in rows] == [*wanted[:-1], None]


# -- several servers -------------------------------------------------------------------------------


async def test_a_segment_another_server_dropped_is_no_empty_segment(postgres_database: str) -> None:
    async with opened(postgres_database) as one, opened(postgres_database) as other:
        for name in ("known", "unknown"):
            await one.segment(name).commit(put("a"))
        known, unknown = other.segment("known"), other.segment("unknown")
        assert await known.read(EPK, "a") is not None
        await one.drop_segments(["known", "unknown"])
        for segment in (known, unknown):
            for call in (segment.read(EPK, "a"), segment.scan(WHOLE, 0, 1), segment.commit(put("b"))):
                with pytest.raises(SegmentDroppedError):
                    await call


@contextlib.contextmanager
def between_statements(place: int, happening: Callable[[], Awaitable[object]]) -> Iterator[list[str]]:
    """Has something happen after so many statements of this task, before it sends the next; those that were sent."""
    execute = psycopg.AsyncConnection.execute
    task, sent = asyncio.current_task(), list[str]()

    async def counting(self: psycopg.AsyncConnection[Any], query: Any, *args: Any, **options: Any) -> Any:
        cursor = await execute(self, query, *args, **options)
        if asyncio.current_task() is task:
            sent.append(str(query))
            if len(sent) == place:
                await asyncio.create_task(_run(happening))
        return cursor

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.AsyncConnection, "execute", counting)
        yield sent


async def _run(happening: Callable[[], Awaitable[object]]) -> None:
    await happening()


@pytest.mark.parametrize("place", [1, 2, 3])
async def test_a_segment_that_another_server_makes_during_a_look_is_not_called_gone(
    postgres_database: str, place: int
) -> None:
    async with opened(postgres_database) as one, opened(postgres_database) as other:
        segment = one.segment("s")
        with between_statements(place, lambda: other.segment("s").commit(put("a"))) as sent:
            assert await segment.scan(WHOLE, 0, 10) == []
        if len(sent) < place:
            await other.segment("s").commit(put("a"))
        assert await ids(segment) == ["a"]
        assert (await segment.commit(put("b")))[0].result is Result.CREATED
        assert one.problems.standing() == []


@pytest.mark.parametrize("place", [1, 2, 3, 4])
async def test_a_segment_that_another_server_makes_during_a_start_is_not_missing(
    postgres_database: str, place: int
) -> None:
    async with opened(postgres_database) as one, opened(postgres_database) as other:
        with between_statements(place, lambda: other.segment("s").commit(put("a"))) as sent:
            await one.reconcile(["s"])
        assert len(sent) >= place
        assert await ids(one.segment("s")) == ["a"]


@pytest.mark.parametrize("place", [1, 2, 3])
async def test_a_segment_that_another_server_drops_during_a_look_is_dropped_and_not_gone(
    postgres_database: str, place: int
) -> None:
    async with opened(postgres_database) as one, opened(postgres_database) as other:
        await other.segment("s").commit(put("a"))
        segment = one.segment("s")
        with (
            between_statements(place, lambda: other.drop_segments(["s"])) as sent,
            contextlib.suppress(SegmentDroppedError),
        ):
            await segment.read(EPK, "a")
        assert len(sent) >= place
        with pytest.raises(SegmentDroppedError):
            await segment.read(EPK, "a")
        assert one.problems.standing() == []


async def test_what_a_drop_could_not_free_yet_is_not_the_segment_that_is_made_anew(
    postgres_database: str,
) -> None:
    async with opened(postgres_database) as store:
        await store.segment("s").commit(put("old"))
        async with held(postgres_database) as reader:
            await reader.execute('SELECT FROM "pleiad_s".item')
            await store.drop_segments(["s"])
            anew = store.segment("s")
            assert await ids(anew) == []
            assert status_of(await refused(anew.commit(put("new")))) == 503
        await anew.commit(put("new"))
        assert await store._freeing.free("s")
        assert await ids(anew) == ["new"]


async def test_what_a_drop_could_not_free_is_freed_when_nobody_reads_it_any_more(
    postgres_database: str,
) -> None:
    async with opened(postgres_database) as store:
        await store.segment("s").commit(put("a"))
        async with held(postgres_database) as reader:
            await reader.execute('SELECT FROM "pleiad_s".item')
            await store.drop_segments(["s"])
            assert await segments_left(store) == ["s"]
        assert await until(lambda: nothing_left(store))


async def test_what_a_killed_server_has_dropped_and_not_freed_is_freed_by_the_others(
    postgres_database: str,
) -> None:
    async with opened(postgres_database) as one, opened(postgres_database) as other:
        await one.segment("dropped").commit(put("a"))
        await one.segment("kept").commit(put("a"))
        # A kill between the note and what follows it leaves this.
        await one.connections.write(lambda connection: schema.note_drop(connection, "dropped"))
        assert await until(lambda: nothing_left(other))
        assert await ids(other.segment("kept")) == ["a"]


async def segments_left(store: PostgresStore) -> list[str]:
    return await store.connections.read(schema.left_by_drops)


async def nothing_left(store: PostgresStore) -> bool:
    return not await segments_left(store)


async def test_servers_write_the_same_partition_in_turn(postgres_database: str) -> None:
    async with opened(postgres_database) as one, opened(postgres_database) as other:
        segments = (one.segment("s"), other.segment("s"))
        calls = [segments[n % 2].commit(put(f"i{n}")) for n in range(200)]
        outcomes = [outcome for (outcome,) in await asyncio.gather(*calls)]
        assert sorted(outcome.lsn for outcome in outcomes) == list(range(1, 201))
        fenced = await one.segment("s").fence(0, 1)
        assert fenced is not None
        assert [outcome.result for outcome in await segments[1].commit(put("late"))] == [Result.GONE]


async def test_an_index_another_server_dropped_changes_no_answer(postgres_database: str) -> None:
    wanted = Selection(WHOLE, (Predicate(("n",), one_of=(3,)),))
    async with opened(postgres_database) as one, opened(postgres_database) as other:
        for number in range(20):
            await one.segment("s").commit(put(f"i{number}", b'{"n":%d}' % (number % 5)))
        one.segment("s").note_use([IndexedPath(("n",))])
        await built(one.segment("s"))
        found = await other.segment("s").select(wanted, 0, 100)
        assert len(found) == 4
        one.segment("s").drop_indexes(lambda path: False)
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            # The row of the index goes last, after its entries.
            left = 'SELECT count(*) FROM "pleiad_s".path_index'
            assert await until(lambda: connection.execute(left).fetchall() == [(0,)])
            assert connection.execute('SELECT count(*) FROM "pleiad_s".entry').fetchall() == [(0,)]
            connection.execute('VACUUM "pleiad_s".entry')
        assert await other.segment("s").select(wanted, 0, 100) == found
        assert await other.segment("s").count(wanted, count_only=True) == (4, 0)
        assert await other.segment("s").ordered(wanted, PathOrder(("n",)), None, 10) is None


# -- what index entries cannot hold ------------------------------------------------------------------


async def test_strings_too_long_for_an_index_entry_are_found_exactly(postgres_database: str) -> None:
    strings = ["a", "x" * 499, "x" * 500, "x" * 500 + "a", "x" * 500 + "b", "é" * 4_000, "y" * 9_000]
    async with opened(postgres_database) as store:
        segment = store.segment("s")
        segment_ids = dict(zip(strings, "abcdefg", strict=True))
        for string, id in segment_ids.items():
            await segment.commit(put(id, b'{"t":"%s"}' % string.encode()))
        segment.note_use([IndexedPath(("t",))])
        await built(segment)
        for string, id in segment_ids.items():
            equal = Selection(WHOLE, (Predicate(("t",), one_of=(string,)),))
            assert [row.id for row in await segment.select(equal, 0, 10)] == [id]
            assert await segment.count(equal, count_only=True) == (1, 0)
            for inclusive in (False, True):
                above = Selection(WHOLE, (Predicate(("t",), low=Bound(string, inclusive)),))
                expected = sorted(
                    other
                    for text, other in segment_ids.items()
                    if text > string or (inclusive and text == string)
                )
                assert sorted(row.id for row in await segment.select(above, 0, 10)) == expected
        short = Selection(WHOLE, (Predicate(("t",), high=Bound("x" * 499, True)),))
        in_order = await segment.ordered(short, PathOrder(("t",)), None, 10)
        assert in_order is not None
        assert [row.id for row, _ in in_order] == ["a", "b"]
        assert await segment.ordered(Selection(WHOLE), PathOrder(("t",)), None, 10) is None


async def test_long_unique_values_hold_too(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        segment = store.segment("s")
        values = [b'["%s"]' % (letter * 5_000) for letter in (b"a", b"b")]
        for id, value, expected in (
            ("1", values[0], Result.CREATED),
            ("2", values[1], Result.CREATED),
            ("3", values[0], Result.UNIQUE_CONFLICT),
        ):
            mutation = Mutation(Verb.CREATE, EPK, id, b"{}", 2, 1, None, (value,))
            (outcome,) = await segment.commit(PartitionWrite(0, 1, 1_000, (mutation,)))
            assert outcome.result is expected


async def test_numbers_beyond_what_jsonb_holds_are_kept_and_compared_as_doubles(
    postgres_database: str,
) -> None:
    numbers = {"huge": b"1e308", "tiny": b"1e-20000", "digits": b"1" * 700, "most": b"9e99999"}
    async with opened(postgres_database) as store:
        segment = store.segment("s")
        for id, text in numbers.items():
            await segment.commit(put(id, b'{"n":%s}' % text))
            row = await segment.read(EPK, id)
            assert row is not None
            assert row.body == b'{"n":%s}' % text
        for predicate, expected in (
            (Predicate(("n",), one_of=(0,)), ["tiny"]),
            (Predicate(("n",), one_of=(1e308,)), ["huge"]),
            (Predicate(("n",), low=Bound(1e308, False)), ["digits", "most"]),
        ):
            found = await segment.select(Selection(WHOLE, (predicate,)), 0, 10)
            assert sorted(row.id for row in found) == expected
