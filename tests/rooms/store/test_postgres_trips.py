"""What an operation costs on PostgreSQL: round trips, statements, and values that arrive as they were meant."""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
from collections.abc import AsyncIterator

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pleiad.store.postgres import arrays
from pleiad.store.postgres.connections import Connections, ConnectionSettings
from pleiad.store.postgres.json_sql import document_of
from pleiad.store.postgres.schema import schema_name
from pleiad.store.postgres.snapshot import PostgresSnapshot
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.rows import ItemKey, Mutation, PartitionWrite, Result, Verb
from tests.postgres_server import PostgresServer

EPK = b"\x20" * 16
ONE_CONNECTION = ConnectionSettings(connections_max=1)
BODY = b'{"n":1}'


def put(*ids: str, atomic: bool = False) -> PartitionWrite:
    mutations = tuple(Mutation(Verb.UPSERT, EPK, id, BODY, len(BODY), 1) for id in ids)
    return PartitionWrite(0, 1, 1_000, mutations, atomic=atomic)


def gone(id: str) -> PartitionWrite:
    return PartitionWrite(0, 1, 1_000, (Mutation(Verb.DELETE, EPK, id),))


class Trace:
    """The messages between a store and the server in the course of a block."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    @property
    def round_trips(self) -> int:
        return self.messages.count("ReadyForQuery")


@contextlib.asynccontextmanager
async def traced(connections: Connections) -> AsyncIterator[Trace]:
    """Has libpq write down what a single connection sends and gets; it is there to see after the block."""
    connection = await connections.take()
    await connections.give_back(connection)
    trace = Trace()
    with tempfile.TemporaryFile("w+") as file:
        connection.pgconn.trace(file.fileno())
        yield trace
        connection.pgconn.untrace()
        file.seek(0)
        trace.messages = re.findall(r"\t[FB]\t\d+\t(\w+)", file.read())


async def warm(store: PostgresStore) -> None:
    """So that the segment is made and every statement has been used often enough to be prepared."""
    segment = store.segment("s")
    for number in range(7):
        await segment.commit(put(f"i{number}"))
        await segment.commit(put(f"i{number}", atomic=True))
        await segment.read(EPK, f"i{number}")
        await asyncio.gather(segment.read(EPK, "i0"), segment.read(EPK, "i1"))


@pytest.mark.parametrize("ids", [("a",), ("a", "b", "c")])
@pytest.mark.parametrize("atomic", [False, True])
async def test_a_write_is_one_prepared_statement_in_one_round_trip(
    postgres_database: str, ids: tuple[str, ...], atomic: bool
) -> None:
    store = await PostgresStore.open(postgres_database, connection_settings=ONE_CONNECTION)
    try:
        await warm(store)
        async with traced(store.connections) as trace:
            outcomes = await store.segment("s").commit(put(*ids, atomic=atomic))
        assert [outcome.result for outcome in outcomes] == [Result.CREATED] * len(ids)
        assert trace.round_trips == 1
        assert trace.messages.count("Execute") == 1
        assert "Parse" not in trace.messages
        assert "Query" not in trace.messages
    finally:
        await store.close()


@pytest.mark.parametrize("wanted", [("i1",), ("i1", "i2", "i3", "none")])
async def test_reads_of_one_moment_are_one_prepared_statement_in_one_round_trip(
    postgres_database: str, wanted: tuple[str, ...]
) -> None:
    store = await PostgresStore.open(postgres_database, connection_settings=ONE_CONNECTION)
    try:
        await warm(store)
        segment = store.segment("s")
        async with traced(store.connections) as trace:
            rows = await asyncio.gather(*(segment.read(EPK, id) for id in wanted))
        assert [row.id if row else "none" for row in rows] == list(wanted)
        assert trace.round_trips == 1
        assert trace.messages.count("Execute") == 1
        assert "Parse" not in trace.messages
    finally:
        await store.close()


async def test_a_hundred_writes_of_one_moment_are_a_few_round_trips(postgres_database: str) -> None:
    store = await PostgresStore.open(postgres_database, connection_settings=ONE_CONNECTION)
    try:
        await warm(store)
        segment = store.segment("s")
        async with traced(store.connections) as trace:
            await asyncio.gather(*(segment.commit(put(f"new-{number}")) for number in range(100)))
        assert trace.round_trips <= 3
    finally:
        await store.close()


async def test_a_snapshot_begins_with_one_round_trip_whenever_it_is_taken(postgres_database: str) -> None:
    store = await PostgresStore.open(postgres_database)
    moments = Connections(postgres_database, ONE_CONNECTION)
    try:
        await warm(store)
        for _ in range(8):
            async with traced(moments) as trace:
                snapshot = PostgresSnapshot(schema_name("s"), moments, store.segment("s")._missing)
                await snapshot.begun
            await store.segment("s").commit(put("later"))
            found = await snapshot.read_many([ItemKey(EPK, "i0"), ItemKey(EPK, "later")])
            snapshot.close()
            assert snapshot.ended is not None
            await snapshot.ended
            await store.segment("s").commit(gone("later"))
            assert [row is not None for row in found] == [True, False]
            assert trace.round_trips == 1
    finally:
        await moments.close()
        await store.close()


async def test_a_snapshot_of_a_segment_that_is_not_made_is_empty_and_leaves_a_good_connection(
    postgres_database: str,
) -> None:
    store = await PostgresStore.open(postgres_database)
    moments = Connections(postgres_database, ONE_CONNECTION)
    try:
        for _ in range(2):
            snapshot = PostgresSnapshot(schema_name("none"), moments, store.segment("none")._missing)
            assert await snapshot.read_many([ItemKey(EPK, "i0")]) == [None]
            snapshot.close()
        async with traced(moments) as trace:
            await moments.read(lambda connection: connection.execute("SELECT 1"))
        assert trace.round_trips == 1
    finally:
        await moments.close()
        await store.close()


# -- values ----------------------------------------------------------------------------------------

INT4 = st.integers(-(2**31), 2**31 - 1)
INT8 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@settings(max_examples=60, deadline=None)
@given(
    fours=st.lists(INT4),
    eights=st.lists(INT8 | st.none()),
    texts=st.lists(TEXT | st.none()),
    byteas=st.lists(st.binary()),
)
def test_arrays_arrive_as_they_are(
    postgres_server: PostgresServer,
    fours: list[int],
    eights: list[int | None],
    texts: list[str | None],
    byteas: list[bytes],
) -> None:
    with psycopg.connect(postgres_server.dsn("postgres")) as connection:
        arrays.register(connection)
        found = connection.execute(
            "SELECT %s::int[], %s::bigint[], %s::text[], %s::bytea[]",
            (arrays.int4s(fours), arrays.int8s(eights), arrays.texts(texts), arrays.byteas(byteas)),
        ).fetchone()
    assert found == (fours, eights, texts, byteas)


def test_long_arrays_arrive_as_they_are(postgres_server: PostgresServer) -> None:
    numbers = list(range(-700, 700))
    with psycopg.connect(postgres_server.dsn("postgres")) as connection:
        arrays.register(connection)
        found = connection.execute(
            "SELECT %s::int[], %s::bigint[]", (arrays.int4s(numbers), arrays.int8s(numbers))
        ).fetchone()
    assert found == (numbers, numbers)


async def test_texts_are_kept_whatever_encoding_the_surroundings_ask_for(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    store = await PostgresStore.open(postgres_database)
    try:
        segment = store.segment("s")
        await segment.commit(put("Ærø €"))
        rows = await asyncio.gather(segment.read(EPK, "Ærø €"), segment.read(EPK, "Ærø €"))
        assert [row.id for row in rows if row] == ["Ærø €"] * 2
    finally:
        await store.close()


NEEDS_DOCUMENT = re.compile(rb"\\u000[01]|[0-9][eE][+-]?[0-9]{3}|[0-9]{400}")
NUMBER = st.sampled_from(["1", "-1.5e308", "2E-100", "3e+99", "4e10", "5E+400", "7" * 399, "8" * 400, "1e0"])
STRING = st.sampled_from(
    ['"plain"', '"\\u0000"', '"\\u0001 "', '"\\u0009"', '"\\\\"', '"be1000"', '"1e1000"']
)


@given(st.lists(NUMBER | STRING, max_size=4))
def test_a_document_stands_beside_exactly_those_bodies_that_jsonb_would_not_hold(parts: list[str]) -> None:
    body = ("{" + ",".join(f'"p{place}":{part}' for place, part in enumerate(parts)) + "}").encode()
    assert (document_of(body) is not None) == bool(NEEDS_DOCUMENT.search(body))
