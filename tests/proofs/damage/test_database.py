"""The same in PostgreSQL: schemas that nobody knows, schemas that are gone, and servers that do not agree."""

from __future__ import annotations

import logging

import psycopg
import pytest

import pleiad
from pleiad.limits import Limits
from pleiad.store.postgres.schema import sql
from pleiad.store.problems import MissingDataError, SettingsDifferError
from tests.postgres_server import PostgresServer
from tests.proofs.damage.account import Client

OTHER_KEY = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldC1zZWNyZXQ="


@pytest.fixture
def dsn(postgres_server: PostgresServer) -> str:
    found = postgres_server.new_database()
    with pleiad.start(store=found) as server:
        Client(server).fill("first", "second")
    return found


def schemas(dsn: str) -> list[str]:
    text = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pleiad\\_%' ORDER BY nspname"
    with psycopg.connect(dsn) as connection:
        return [str(name) for (name,) in connection.execute(text)]


def run(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql(statement))


def test_a_schema_that_no_container_names_is_renamed_and_never_dropped(dsn: str) -> None:
    run(dsn, 'CREATE SCHEMA "pleiad_c99-p0"; CREATE TABLE "pleiad_c99-p0".item(number bigint)')
    with pleiad.start(store=dsn) as server:
        client = Client(server)
        assert client.statuses("first") == {200}
        assert [each["kind"] for each in client.warnings()] == ["segments-set-aside"]
    (aside,) = [name for name in schemas(dsn) if name.startswith("pleiad_set_aside_")]
    assert aside.endswith("_c99-p0")
    with pleiad.start(store=dsn) as server:
        assert Client(server).warnings() == []
    assert aside in schemas(dsn)


def test_a_database_that_lost_its_records_keeps_its_segments_and_is_refused(dsn: str) -> None:
    before = schemas(dsn)
    run(dsn, "DELETE FROM pleiad.record")
    with pytest.raises(MissingDataError, match="and no account"), pleiad.start(store=dsn):
        pass
    assert schemas(dsn) == before


def test_a_schema_that_held_items_and_is_gone_stops_the_start(dsn: str) -> None:
    run(dsn, f'DROP SCHEMA "{schemas(dsn)[0]}" CASCADE')
    with pytest.raises(MissingDataError, match="held items and is gone"), pleiad.start(store=dsn):
        pass


def test_a_schema_that_goes_under_a_running_server_is_503_and_no_empty_container(dsn: str) -> None:
    with pleiad.start(store=dsn) as server:
        client = Client(server)
        assert client.statuses("first") == {200}
        run(dsn, f'DROP SCHEMA "{schemas(dsn)[0]}" CASCADE')
        assert client.read("first", 1).status == 503
        assert client.create("first", 500).status == 503
        assert client.statuses("second") == {200}
        assert [each["kind"] for each in client.warnings()] == ["segment-out-of-service"]
    assert len(schemas(dsn)) == 1, "it was not made anew"


def test_what_a_deleted_container_held_is_dropped(dsn: str) -> None:
    with pleiad.start(store=dsn) as server:
        assert Client(server).delete_container("first").status == 204
    assert len(schemas(dsn)) == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"key": OTHER_KEY}, "master key"),
        ({"throttle": "enforce"}, "throttle"),
        ({"limits": Limits(item_bytes=1_000)}, "limit item_bytes"),
    ],
)
def test_a_server_that_differs_from_those_that_run_is_refused_with_what_differs(
    dsn: str, options: dict[str, object], named: str
) -> None:
    with (
        pleiad.start(store=dsn),
        pytest.raises(SettingsDifferError, match=named) as refusal,
        pleiad.start(store=dsn, **options),  # type: ignore[arg-type]
    ):
        pass
    assert OTHER_KEY not in str(refusal.value)


def test_a_server_that_agrees_is_welcome_and_one_that_comes_alone_decides_anew(dsn: str) -> None:
    with pleiad.start(store=dsn), pleiad.start(store=dsn) as second:
        assert Client(second).statuses("first") == {200}
    with pleiad.start(store=dsn, throttle="enforce") as alone:
        assert Client(alone).statuses("first") == {200}


def test_an_outage_is_one_line_when_it_begins_and_one_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    own = PostgresServer()
    try:
        own.start()
        with caplog.at_level(logging.WARNING), pleiad.start(store=own.new_database()) as server:
            client = Client(server)
            client.fill("first")
            own.stop()
            assert client.probe("ready")[0] == 503
            assert client.read("first", 1).status in (503, 408)
            assert client.probe("ready")[1]["status"] == "store unavailable"
            assert client.probe("health")[0] == 200
            own.start()
            while client.probe("ready")[1] != {"status": "ready"}:
                pass
        told = [record.getMessage() for record in caplog.records]
        assert len([line for line in told if "store-unreachable:" in line]) == 1, told
        assert len([line for line in told if "store-unreachable is over" in line]) == 1, told
    finally:
        own.remove()
