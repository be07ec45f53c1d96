"""`pleiad check` finds what is wrong with data at rest, writes nothing, and tells by its exit code."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import apsw
import psycopg
import pytest
from click.testing import CliRunner, Result

import pleiad
from pleiad.cli.main import cli
from pleiad.store.postgres.schema import sql
from pleiad.testing.start import start
from tests.postgres_server import PostgresServer
from tests.proofs.damage.account import ITEMS, Client, flip_bit, segments
from tests.proofs.damage.test_damaged import offsets_of


def check(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["check", *map(str, arguments)])


def everything(data: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}


def test_a_whole_account_is_whole_and_nothing_is_written(data: Path) -> None:
    before = everything(data)
    done = check("--json", data)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["ok"], report["items"], report["segments"], report["findings"]) == (True, 2 * ITEMS, 2, [])
    assert everything(data) == before


def test_an_account_whose_server_was_killed_is_looked_through_with_its_logs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with start(data=data, child_process=True) as server:
        Client(server).fill("first")
        os.kill(server.process_id, signal.SIGKILL)
    before = everything(data)
    done = check("--json", data)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["items"] == ITEMS
    assert everything(data) == before


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("body", "is not what was written"),
        ("halved", "bytes"),
        ("gone", "gone or empty"),
        ("swapped", "another segment"),
        ("counters", "counts 61 items"),
        ("index", "index of keys"),
        ("catalog", "is not what was written"),
        ("junk", "not a database"),
    ],
)
def test_damage_of_each_kind_is_found_and_is_exit_code_1(data: Path, damage: str, said: str) -> None:
    first, second = segments(data)
    if damage == "body":
        for place in offsets_of(first, b"the text of 17"):
            flip_bit(first, place)
    elif damage == "halved":
        os.truncate(first, first.stat().st_size // 2)
    elif damage == "gone":
        first.unlink()
    elif damage == "swapped":
        shutil.copy(second, first)
    elif damage == "junk":
        first.write_bytes(b"no database" * 1_000)
    elif damage == "catalog":
        change(
            data / "catalog.sqlite",
            "UPDATE record SET body = replace(body, '/pk', '/qk') WHERE kind = 'colls'",
        )
    elif damage == "counters":
        change(first, "UPDATE partition SET items = 61, checksum = NULL")
    elif damage == "index":
        change(first, "PRAGMA writable_schema=ON; DELETE FROM sqlite_schema WHERE name = 'item_key'")
        change(first, "CREATE UNIQUE INDEX item_key ON item(epk, id) WHERE number <> 5")
    before = everything(data)
    done = check(data)
    assert done.exit_code == 1, done.output
    assert "DAMAGE" in done.output
    assert said in done.output or damage == "index"
    assert everything(data) == before


def change(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement).fetchall()
    connection.close()


def test_files_that_nobody_knows_are_named_and_are_no_damage(data: Path) -> None:
    shutil.copy(segments(data)[0], data / "segments" / "c99-p0.sqlite")
    done = check(data)
    assert done.exit_code == 0
    assert "c99-p0: no container names it" in done.output


def test_a_directory_that_a_server_has_open_is_not_looked_into(data: Path) -> None:
    with pleiad.start(data=data):
        done = check(data)
    assert done.exit_code == 1
    assert "a server has" in done.output
    assert check(data / "nowhere").exit_code == 1


def test_a_row_that_was_changed_in_the_database_is_found(postgres_server: PostgresServer) -> None:
    dsn = postgres_server.new_database()
    with pleiad.start(store=dsn) as server:
        client = Client(server)
        client.fill("first", "second")
        assert check(dsn).exit_code == 0
        with psycopg.connect(dsn, autocommit=True) as connection:
            names = sorted(
                str(name)
                for (name,) in connection.execute(
                    "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pleiad\\_c%'"
                )
            )
            connection.execute(
                sql(
                    f"""UPDATE "{names[0]}".item SET body = replace(convert_from(body, 'UTF8'), 'text of 17', """
                    """'text of 71')::bytea WHERE id = 'item-17'"""
                )
            )
        done = check(dsn)
        assert done.exit_code == 1
        assert "is not what was written" in done.output
        assert client.read("first", 17).status == 503
        assert client.statuses("first") == {503}
        assert client.statuses("second") == {200}
        assert [each["kind"] for each in client.warnings()] == ["segment-out-of-service"]
