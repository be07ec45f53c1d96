"""Data that earlier versions wrote opens, is whole, and is written on: what is kept here was made by them.

`sqlite_1` and `postgres_2` are of the days before the first release; the others have the name of their version, and are
made by `python -m tools.released_data` when it is released.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import tarfile
from pathlib import Path

import apsw
import psycopg
import pytest

from pleiad.engine import items
from pleiad.engine.engine import Engine
from pleiad.item.body import dump
from pleiad.job.check import check_directory
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from pleiad.partition.governor import SYSTEM
from pleiad.store.postgres.database import SchemaError as DatabaseSchemaError
from pleiad.store.postgres.schema import sql
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.rows import Verb
from pleiad.store.sqlite import schema
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.store import Store
from tests.postgres_server import PostgresServer
from tests.project import ROOT

LANDED = Path(__file__).parent / "landed"
ITEMS = 40


async def check_and_go_on(store: Store) -> None:
    engine = Engine(store, Limits())
    await engine.open()
    for name in ("plain", "kept", "divided", "untouched"):
        container = await engine.container("landed", name)
        rows = [row for part in container.map.partitions for row in await part.scan(WHOLE, 0, 1_000)]
        assert len(rows) == (0 if name == "untouched" else ITEMS)
        item = {"id": "new", "pk": "p1", "mail": "new@x"}
        await items.create(container, dump(item), container.key.extract(item), SYSTEM)
    kept = (await engine.container("landed", "kept")).map.partitions[0]
    versions = await kept.segment.versions(WHOLE, 0, 1_000)
    assert sum(version.verb is Verb.CREATE for version in versions) == ITEMS + 1
    divided = await engine.container("landed", "divided")
    await engine.merge(divided, [part.range_id for part in divided.map.partitions])
    merged = await divided.map.partitions[0].scan(WHOLE, 0, 1_000)
    assert len(merged) == ITEMS + 1, "rows with and without a checksum were copied"
    assert store.problems.standing() == []
    await engine.close()


def unpacked(archive: Path, data: Path) -> Path:
    with tarfile.open(archive) as packed:
        packed.extractall(data, filter="data")
    return data


def named(kind: str) -> list[str]:
    return sorted(path.name for path in LANDED.glob(f"*{kind}*"))


def test_there_is_data_of_every_version_that_was_released() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\d\S*)", changes, flags=re.MULTILINE)
    assert versions
    for version in versions:
        assert f"{version}_sqlite.tar.gz" in named("sqlite")
        assert f"{version}_postgres.sql.gz" in named("postgres")


@pytest.mark.parametrize("name", named("sqlite"))
async def test_a_data_directory_of_every_version_opens_and_is_written_on(tmp_path: Path, name: str) -> None:
    unpacked(LANDED / name, tmp_path)
    assert check_directory(tmp_path, lambda *_: None).is_whole
    await check_and_go_on(SqliteStore(tmp_path))
    store = SqliteStore(tmp_path)
    engine = Engine(store, Limits())
    await engine.open()
    assert store.registry.made() == engine.catalog.segment_names()
    assert store.problems.standing() == []
    await engine.close()


@pytest.mark.parametrize("version", [schema.VERSION + 1, 1_000])
@pytest.mark.parametrize("file", ["catalog.sqlite", "segments"])
async def test_a_data_directory_of_a_newer_version_is_refused_with_a_sentence_and_left_as_it_is(
    tmp_path: Path, file: str, version: int
) -> None:
    unpacked(LANDED / named("_sqlite")[-1], tmp_path)
    path = tmp_path / file if file.endswith("sqlite") else next((tmp_path / file).glob("*.sqlite"))
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute(f"PRAGMA user_version={version}")
    before = {each: each.read_bytes() for each in tmp_path.rglob("*.sqlite")}
    with pytest.raises(schema.SchemaError, match=f"written by a newer Pleiad .format {version}"):
        await opened(SqliteStore(tmp_path))
    assert {each: each.read_bytes() for each in tmp_path.rglob("*.sqlite")} == before
    (fault,) = [each for each in check_directory(tmp_path, lambda *_: None).findings if not each.is_note][:1]
    assert "newer Pleiad" in fault.message


async def opened(store: Store) -> None:
    """Opens an account; a store that is refused is closed."""
    try:
        await Engine(store, Limits()).open()
    except BaseException:
        await store.close()
        raise


async def test_a_database_of_a_newer_version_is_refused_with_a_sentence(
    postgres_server: PostgresServer,
) -> None:
    dsn = filled(postgres_server, named("_postgres")[-1])
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE pleiad.version SET version = version + 1")
    with pytest.raises(DatabaseSchemaError, match="written by a newer Pleiad"):
        await PostgresStore.open(dsn)


def filled(server: PostgresServer, name: str) -> str:
    dsn = server.new_database()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql(gzip.decompress((LANDED / name).read_bytes()).decode()))
    return dsn


@pytest.fixture(params=named("postgres"))
def landed_database(postgres_server: PostgresServer, request: pytest.FixtureRequest) -> str:
    return filled(postgres_server, request.param)


async def test_a_database_of_every_version_opens_and_is_written_on(landed_database: str) -> None:
    await check_and_go_on(await PostgresStore.open(landed_database))
    store = await PostgresStore.open(landed_database)
    engine = Engine(store, Limits())
    await engine.open()
    assert store.problems.standing() == []
    await engine.close()
