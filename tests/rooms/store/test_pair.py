"""Catalog and segments in two stores of different kinds, and placements that name the node of their rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pleiad.catalog import placement as placements
from pleiad.catalog.placement import Placement, segment_of
from pleiad.catalog.throughput import Throughput
from pleiad.engine import items
from pleiad.engine.engine import Engine
from pleiad.errors import PleiadError
from pleiad.item.body import dump
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from pleiad.partition.governor import SYSTEM
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.store import StorePair
from tests.postgres_server import PostgresServer

ITEMS = 30


async def test_a_catalog_in_one_store_and_segments_in_another_make_a_database(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    dsn = postgres_server.new_database()
    for start in range(2):
        catalog, segments = SqliteStore(tmp_path / "catalog"), await PostgresStore.open(dsn)
        engine = Engine(StorePair(catalog, segments), Limits())
        await engine.open()
        if start == 0:
            database = await engine.create_database({"id": "db"}, None)
            body: dict[str, object] = {"id": "c", "partitionKey": {"paths": ["/pk"]}}
            await engine.create_container(database, body, Throughput(400))
        container = await engine.container("db", "c")
        for number in range(ITEMS if start == 0 else 0):
            item = {"id": f"i{number}", "pk": f"p{number}"}
            await items.create(container, dump(item), container.key.extract(item), SYSTEM)
        if start == 0:
            await engine.split(container, container.map.partitions[0].range_id)
            await engine.keeper.settled()
        else:
            await engine.merge(container, [part.range_id for part in container.map.partitions])
        rows = [row for part in container.map.partitions for row in await part.scan(WHOLE, 0, 1_000)]
        assert len(rows) == ITEMS
        assert engine.store.problems.standing() == []
        await engine.close()
    postgres_server.give_back(dsn)


def test_a_placement_remembers_its_node_and_one_of_an_older_version_is_on_the_first() -> None:
    placed = Placement("rid", 3, WHOLE, "c1-p3", 2, (0,), 5, node="b")
    assert placements.from_record(placed.to_record()) == placed
    first = replace(placed, node="")
    assert "node" not in first.to_record().body, "records of older versions stay as they are"
    assert placements.from_record(first.to_record()) == first


async def test_rows_on_a_node_that_is_not_connected_are_not_looked_for_here(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    placed = Placement("rid", 0, WHOLE, "c1-p0", 1)
    assert segment_of(placed, store) is store.segment("c1-p0")
    with pytest.raises(PleiadError, match="node 'b'"):
        segment_of(replace(placed, node="b"), store)
    await store.close()
    await store.close()
