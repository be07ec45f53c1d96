"""What the PostgreSQL store keeps of shared budgets: no more is handed out than there is, and no turn waits long."""

from __future__ import annotations

import signal

import psycopg
import pytest

from pleiad.store.budget import BudgetClaim
from pleiad.store.postgres import schema
from pleiad.store.postgres.store import PostgresStore
from tests.postgres_server import PostgresServer
from tests.postgres_settings import set_standbys
from tests.waiting import until


async def test_the_store_hands_out_no_more_than_there_is_and_frees_what_is_named_no_more(
    postgres_database: str,
) -> None:
    one, other = await PostgresStore.open(postgres_database), await PostgresStore.open(postgres_database)
    try:
        assert (await one.share_budgets([], False, 60)).servers == 1
        answer = await other.share_budgets([BudgetClaim("b", 1, 1, 0)], False, 60)
        assert answer.servers == 2
        assert answer.parts["b"].share == 0  # the first one holds all
        first = await one.share_budgets([BudgetClaim("b", 0.6, 0.6, 0.3)], False, 60)
        assert first.parts["b"] == (0.6, (1.0,))
        answer = await other.share_budgets([BudgetClaim("b", 1, 1, 0)], False, 60)
        assert answer.parts["b"].share == pytest.approx(0.4)
        assert (await one.share_budgets([], False, 60)).parts == {}
        answer = await other.share_budgets([BudgetClaim("b", 1, 1, 0.4)], False, 60)
        assert answer.parts["b"] == (1.0, ())
        await other.close()
        assert (await one.share_budgets([], False, 60)).servers == 1
    finally:
        await one.close()


async def test_a_database_of_the_version_before_gets_what_it_lacks(postgres_database: str) -> None:
    await (await PostgresStore.open(postgres_database)).close()
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("DROP FUNCTION pleiad.share_budgets")
        connection.execute("DROP TABLE pleiad.budget")
        connection.execute("UPDATE pleiad.version SET version = 1")
    for _ in range(2):
        store = await PostgresStore.open(postgres_database)
        assert (await store.share_budgets([], False, 60)).servers == 1
        await store.close()
    with psycopg.connect(postgres_database) as connection:
        rows = connection.execute("SELECT version FROM pleiad.version").fetchall()
    assert rows == [(schema.VERSION,)]


async def test_a_share_is_free_when_its_time_is_over(postgres_database: str) -> None:
    one, other = await PostgresStore.open(postgres_database), await PostgresStore.open(postgres_database)
    try:
        await one.share_budgets([], False, 60)
        await other.share_budgets([], False, 60)
        await one.share_budgets([BudgetClaim("b", 1, 1, 0)], False, 2)
        claim = [BudgetClaim("b", 1, 1, 0)]
        assert (await other.share_budgets(claim, False, 60)).parts["b"] == (0.0, (1.0,))

        async def is_free() -> bool:
            answer = await other.share_budgets(claim, False, 60)
            return (answer.servers, answer.parts["b"]) == (1, (1.0, ()))

        assert await until(is_free)
    finally:
        await one.close()
        await other.close()


async def test_a_turn_waits_for_no_standby() -> None:
    server = PostgresServer()
    server.start()
    try:
        store = await PostgresStore.open(server.new_database())
        await set_standbys(server.dsn("postgres"), "nobody")
        for _ in range(3):
            assert (await store.share_budgets([BudgetClaim("b", 1, 1, 1)], True, 60)).servers == 1
        server.stop(signal.SIGQUIT)  # and the first one after a recovery, which has something to log
        server.start()
        for _ in range(3):
            assert (await store.share_budgets([BudgetClaim("b", 1, 1, 1)], True, 60)).servers == 1
        await store.close()
    finally:
        server.remove()
