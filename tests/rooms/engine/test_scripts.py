"""Scripts while physical partitions split, merge and move: nothing is lost, and nobody is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import orjson
import pytest

from pleiad.catalog.resource import Kind
from pleiad.engine import items, reading
from pleiad.engine.engine import Engine
from pleiad.engine.script import definition, execution

pytestmark = pytest.mark.every_store

Opened = Callable[..., AbstractAsyncContextManager[Engine]]

COUNT = """function () {
  __.readDocument(__.getAltLink() + "/docs/count", function (error, count) {
    if (error && error.number !== 404) throw error;
    count = count || { id: "count", pk: null, n: 0 };
    count.n += 1;
    __.upsertDocument(__.getSelfLink(), count, function (error) { if (error) throw error; });
    __.createDocument(__.getSelfLink(), { id: "log-" + count.n, pk: null });
  });
}"""


@pytest.mark.requirement("R51", "R79")
async def test_scripts_count_right_while_their_partition_is_split_and_moved(engine: Opened) -> None:
    async with engine() as opened:
        database = await opened.create_database({"id": "db"}, None)
        await opened.create_container(
            database, {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}}, None
        )
        container = await opened.container("db", "c")
        for number in range(40):
            await items.create(container, orjson.dumps({"id": "x", "pk": f"k{number}"}), (f"k{number}",))
        keys = [f"k{number}" for number in range(4)]
        procedures = {}
        for key in keys:
            body = {"id": f"count-{key}", "body": COUNT.replace("pk: null", f"pk: '{key}'")}
            procedures[key], _ = await definition.create(
                opened, Kind.STORED_PROCEDURE, container.resource, body
            )

        begun = asyncio.Event()

        async def work(key: str) -> None:
            for _ in range(12):
                await execution.execute(container, procedures[key], (key,), "[]")
                begun.set()

        running = [asyncio.create_task(work(key)) for key in keys]
        await begun.wait()
        for range_id in ("0", "1", "2"):
            await opened.split(container, range_id)
        await asyncio.gather(*running)
        await opened.keeper.settled()
        assert len(container.map.partitions) == 4
        for key in keys:
            answer = await reading.read(container, "count", (key,))
            assert answer.row is not None
            assert orjson.loads(answer.row.body)["n"] == 12
            for number in range(1, 13):
                await reading.read(container, f"log-{number}", (key,))
