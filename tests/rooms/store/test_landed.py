"""Data that the first versions wrote opens, is whole, and is written on: what is kept here was made by them."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import psycopg
import pytest

from pleiad.engine import items
from pleiad.engine.engine import Engine
from pleiad.item.body import dump
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from pleiad.partition.governor import SYSTEM
from pleiad.store.postgres.schema import sql
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.rows import Verb
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.store import Store
from tests.postgres_server import PostgresServer

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


async def test_a_data_directory_of_the_first_version_opens_and_is_written_on(tmp_path: Path) -> None:
    with tarfile.open(LANDED / "sqlite_1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    await check_and_go_on(SqliteStore(tmp_path))
    store = SqliteStore(tmp_path)
    engine = Engine(store, Limits())
    await engine.open()
    assert store.registry.made() == engine.catalog.segment_names()
    assert store.problems.standing() == []
    await engine.close()


@pytest.fixture
def landed_database(postgres_server: PostgresServer) -> str:
    dsn = postgres_server.new_database()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql(gzip.decompress((LANDED / "postgres_2.sql.gz").read_bytes()).decode()))
    return dsn


async def test_a_database_of_the_second_version_opens_and_is_written_on(landed_database: str) -> None:
    await check_and_go_on(await PostgresStore.open(landed_database))
    store = await PostgresStore.open(landed_database)
    engine = Engine(store, Limits())
    await engine.open()
    assert store.problems.standing() == []
    await engine.close()
