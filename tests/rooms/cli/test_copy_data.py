"""`pleiad copy-data` as operators give it: a process of its own, killed in the middle, and refused with a sentence."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import psycopg
import pytest
from azure.cosmos import CosmosClient
from click.testing import CliRunner

import pleiad
from pleiad.catalog.catalog import UnfinishedCopyError
from pleiad.cli.copy_data import progress_text
from pleiad.cli.main import cli
from pleiad.cli.view.progress_line import bar, duration, in_columns
from pleiad.engine import items
from pleiad.engine.engine import Engine
from pleiad.job.copy_data import CopyProgress, CopyStage
from pleiad.limits import Limits
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.sqlite.store import SqliteStore
from tests.waiting import SECONDS_MAX

ITEMS = 3_000
BODY = "x" * 10_000


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """A data directory with a database and a container of one item."""
    make_account(tmp_path / "account", 1)
    return tmp_path / "account"


def make_account(directory: Path, count: int) -> None:
    async def fill() -> None:
        engine = Engine(SqliteStore(directory, durable=False), Limits())
        await engine.open()
        await engine.create_database({"id": "db"}, None)
        definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}}
        await engine.create_container(engine.database("db"), definition, None)
        container = await engine.container("db", "c")
        bodies = [f'{{"id":"i{number}","pk":"k","text":"{BODY}"}}'.encode() for number in range(count)]
        for first in range(0, count, 100):
            written = (items.create(container, body, ("k",)) for body in bodies[first : first + 100])
            await asyncio.gather(*written)
        await engine.close()

    asyncio.run(fill())


def command(source: object, target: object) -> list[str]:
    return [sys.executable, "-m", "pleiad", "copy-data", "--from", str(source), "--to", str(target)]


def copy(source: object, target: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(source, target), capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )


def refused(source: object, target: object) -> str:
    """The sentence a copy is refused with."""
    done = CliRunner().invoke(cli, ["copy-data", "--from", str(source), "--to", str(target)])
    assert done.exit_code == 1, done
    assert isinstance(done.exception, SystemExit), done.exception
    assert "geheim" not in done.output
    return done.stderr.split("Error: ", 1)[1]


@pytest.mark.parametrize("store_kind", ["sqlite", "postgres"])
def test_a_copy_that_was_killed_goes_on_where_it_was(
    tmp_path: Path, store_kind: str, request: pytest.FixtureRequest
) -> None:
    source = tmp_path / "source"
    make_account(source, ITEMS)
    directory = tmp_path / "target"
    target = (
        request.getfixturevalue("postgres_database") if store_kind == "postgres" else f"sqlite:{directory}"
    )
    with subprocess.Popen(command(f"sqlite:{source}", target), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("copying"):
                break
        process.kill()
    with pytest.raises(UnfinishedCopyError):
        asyncio.run(open_engine(target, directory))
    done = copy(f"sqlite:{source}", target)
    assert done.returncode == 0, done
    resumed = re.search(rf"copied {ITEMS:,} items in 1 physical partition, ([\d,]+) of them", done.stdout)
    assert resumed, done.stdout
    assert 0 < int(resumed[1].replace(",", "")) < ITEMS
    assert "counts and checksums agree" in done.stdout
    assert re.search(r"verifying 3,000 of 3,000 items, [\d,]+ items/s, 0 s left", done.stderr)
    store = target if store_kind == "postgres" else "sqlite"
    with pleiad.start(data=directory, store=store, child_process=True) as server:
        container = (
            CosmosClient(server.endpoint, server.key).get_database_client("db").get_container_client("c")
        )
        copied = {item["id"]: item["_etag"] for item in container.read_all_items()}
    with pleiad.start(data=source, child_process=True) as server:
        container = (
            CosmosClient(server.endpoint, server.key).get_database_client("db").get_container_client("c")
        )
        assert {item["id"]: item["_etag"] for item in container.read_all_items()} == copied


async def open_engine(target: str, directory: Path) -> None:
    if target.startswith("sqlite:"):
        await Engine(SqliteStore(directory), Limits()).open()
    else:
        await Engine(await PostgresStore.open(target), Limits()).open()


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        ("somewhere", "sqlite:{tmp}/t", "a place is a data directory as sqlite:DIR"),
        ("sqlite:", "sqlite:{tmp}/t", "a place is a data directory as sqlite:DIR"),
        ("sqlite:{tmp}/none", "sqlite:{tmp}/t", "there is no data of Pleiad in"),
        ("sqlite:{account}", "mysql://geheim@host/x", "a place is a data directory as sqlite:DIR"),
        (
            "sqlite:{account}",
            "postgresql://a:geheim@h/x?nonsense=1",
            "connection string of the PostgreSQL database",
        ),
        ("sqlite:{account}", "postgresql://a:geheim@/x?host={tmp}", "does not answer"),
        ("sqlite:{account}", "sqlite:{tmp}/../{tmp_name}/account", "source and target are the same"),
        ("sqlite:{account}", "sqlite:{account}/catalog.sqlite", "cannot be opened"),
    ],
)
def test_a_place_that_cannot_be_copied_is_refused_with_a_sentence(
    tmp_path: Path, account: Path, source: str, target: str, sentence: str
) -> None:
    names = {"tmp": tmp_path, "tmp_name": tmp_path.name, "account": account}
    assert sentence in refused(source.format(**names), target.format(**names))


def test_a_source_without_an_account_is_refused(tmp_path: Path, postgres_database: str) -> None:
    asyncio.run(SqliteStore(tmp_path / "empty").close())
    assert "holds no account" in refused(f"sqlite:{tmp_path / 'empty'}", f"sqlite:{tmp_path / 't'}")
    assert "holds no data of Pleiad" in refused(postgres_database, f"sqlite:{tmp_path / 't'}")
    with psycopg.connect(postgres_database) as connection:
        (found,) = connection.execute("SELECT to_regnamespace('pleiad')").fetchall()
        assert found == (None,), "a database that is only looked at stays as it is"


def test_a_target_with_an_account_is_refused_and_kept(tmp_path: Path, account: Path) -> None:
    other = tmp_path / "other"
    make_account(other, 2)
    assert "the target is not empty" in refused(f"sqlite:{account}", f"sqlite:{other}")
    with pleiad.start(data=other, child_process=True) as server:
        container = (
            CosmosClient(server.endpoint, server.key).get_database_client("db").get_container_client("c")
        )
        assert len(list(container.read_all_items())) == 2


def test_a_target_whose_catalog_is_lost_keeps_its_items(tmp_path: Path, account: Path) -> None:
    other = tmp_path / "other"
    make_account(other, 1)
    for path in other.glob("catalog.sqlite*"):
        path.unlink()
    assert "it has items, although no catalog" in refused(f"sqlite:{account}", f"sqlite:{other}")
    assert list((other / "segments").glob("*.sqlite"))


def test_places_that_servers_work_on_are_refused(
    tmp_path: Path, account: Path, postgres_database: str
) -> None:
    with pleiad.start(data=account, child_process=True):
        assert "in use by a server" in refused(f"sqlite:{account}", f"sqlite:{tmp_path / 't'}")
    with pleiad.start(store=postgres_database, child_process=True):
        assert "in use by a server" in refused(f"sqlite:{account}", postgres_database)


def spoil_catalog(directory: Path) -> None:
    apsw.Connection(str(directory / "catalog.sqlite")).pragma("user_version", 99)


def spoil_segment(directory: Path) -> None:
    (segment,) = (directory / "segments").glob("*.sqlite")
    apsw.Connection(str(segment)).pragma("user_version", 99)


@pytest.mark.parametrize("spoil", [spoil_catalog, spoil_segment])
def test_data_of_a_newer_version_is_refused(
    tmp_path: Path, account: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(account)
    sentence = refused(f"sqlite:{account}", f"sqlite:{tmp_path / 't'}")
    assert "was written by a newer Pleiad (format 99" in sentence


def test_a_database_of_a_newer_version_is_refused(account: Path, postgres_database: str) -> None:
    async def make() -> None:
        await (await PostgresStore.open(postgres_database)).close()

    asyncio.run(make())
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("UPDATE pleiad.version SET version = 99")
    assert "was written by a newer Pleiad (format 99" in refused(f"sqlite:{account}", postgres_database)


def test_progress_is_told_with_speed_and_time_left() -> None:
    half = CopyProgress(CopyStage.COPYING, 5_000, 10_000)
    assert bar(0.5, 24) == "[############............]"
    assert bar(1.0, 24) == "[########################]"
    assert progress_text(half, 0, 0.0) == "copying 5,000 of 10,000 items"
    # A resumed copy has done 1,000 of them in 20 seconds itself.
    assert progress_text(half, 1_000, 20.0) == "copying 5,000 of 10,000 items, 50 items/s, 1 min 40 s left"
    assert [duration(seconds) for seconds in (0.4, 59.4, 3_599, 7_260)] == [
        "0 s",
        "59 s",
        "59 min 59 s",
        "2 h 1 min",
    ]


@pytest.mark.parametrize("columns", [20, 60, 80, 200])
def test_progress_fits_the_terminal(columns: int) -> None:
    step = CopyProgress(CopyStage.COPYING, 12_345_678, 123_456_789)
    text = progress_text(step, 12_345_678, 5_000.0)
    line = in_columns(text, 0.1, columns)
    assert len(line) < columns
    assert line.startswith("[##") is (columns == 200)
    assert in_columns("copying", 0.5, 80) == f"{bar(0.5, 24)} copying"
