"""Pages end by size and by time too, and a heavy query lets other requests through."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

import pytest

from pleiad.engine import reading
from pleiad.engine.query import execution
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.node import Node
from pleiad.partition.partition import Partition
from pleiad.query import pace
from pleiad.server.http.failures import status_of
from pleiad.settings import Settings
from tests.rooms.query_engine.heart import beating
from tests.stores import StoreOf
from tests.waiting import SECONDS_MAX, until

QUERIES = (
    "SELECT * FROM c",
    "SELECT c.id, t FROM c JOIN t IN c.tags",
    "SELECT VALUE c.id FROM c WHERE c.n % 7 = 3",
    "SELECT * FROM c ORDER BY c.n DESC",
    "SELECT DISTINCT VALUE c.n FROM c",
    "SELECT VALUE COUNT(1) FROM c",
)
HEAVY = "SELECT VALUE c.id FROM c WHERE c.n % 1000 = 999 AND CONTAINS(c.text, 'never there')"


async def fill(world: Any, count: int) -> None:
    async def put(number: int) -> None:
        await world.put(
            {"id": f"i{number}", "pk": f"p{number % 50}", "n": number, "tags": ["a", "b"], "text": "x" * 50}
        )

    for start in range(0, count, 5_000):
        await asyncio.gather(*(put(number) for number in range(start, min(start + 5_000, count))))


@pytest.mark.parametrize("text", QUERIES)
async def test_a_page_ends_before_the_answer_is_too_large(world: Any, text: str) -> None:
    async with world(partitions=2) as w:
        await fill(w, 100)
        whole = await w.query(text)
    async with world(limits=Limits(response_bytes=600)) as w:
        cut = await w.query(text)
    assert cut.results == whole.results
    assert cut.charge_ru == whole.charge_ru
    # One result more than fits is allowed, or a result larger than the limit could never be given.
    assert all(sum(map(len, page.results[:-1])) <= 600 for page in cut.pages)


async def test_a_result_larger_than_an_answer_may_be_is_given_alone(world: Any) -> None:
    async with world(limits=Limits(response_bytes=50)) as w:
        await fill(w, 5)
        answer = await w.query("SELECT * FROM c ORDER BY c.n")
    assert [len(page.results) for page in answer.pages] == [1] * 5


@pytest.mark.parametrize("text", QUERIES)
async def test_a_page_ends_when_its_time_is_over(world: Any, text: str) -> None:
    async with world(partitions=3) as w:
        await fill(w, 1_500)
        whole = await w.query(text)
    async with world(limits=Limits(operation_seconds=0.0)) as w:
        cut = await w.query(text)
    assert cut.results == whole.results
    assert cut.charge_ru == whole.charge_ru


async def test_a_page_whose_time_is_over_may_be_empty(world: Any) -> None:
    async with world(partitions=2, limits=Limits(operation_seconds=0.0)) as w:
        await fill(w, 2_000)
        answer = await w.query("SELECT * FROM c WHERE c.n % 2000 = 1999")
    assert len(answer.results) == 1
    assert len(answer.pages) > 2
    assert any(not page.results and page.token for page in answer.pages)


async def test_an_item_with_countless_rows_is_given_page_by_page(world: Any) -> None:
    """A JOIN of one item with itself would give 64 million rows; a page takes the first of them."""
    async with world() as w:
        await w.put({"id": "a", "pk": "p", "many": list(range(400))})
        text = "SELECT VALUE 1 FROM c JOIN x IN c.many JOIN y IN c.many JOIN z IN c.many"
        page = await w.page(text, items_max=100)
        page = await w.page(text, items_max=100, token=page.token)
    assert len(page.results) == 100
    assert page.token is not None


async def test_an_order_over_countless_rows_of_large_items_keeps_only_the_best(
    world: Any, index_settings: tuple[Any, Any]
) -> None:
    text = "SELECT c.id, x, y FROM c JOIN x IN c.many JOIN y IN c.many ORDER BY c.n DESC"
    never, at_once = index_settings
    little = Limits(query_memory_bytes=2_000_000)
    async with world(limits=little, indexes=never) as w:
        for number, id in enumerate("ab"):
            large = {"id": id, "pk": "p", "n": number, "many": list(range(120)), "text": "x" * 400_000}
            await w.put(large)
        scanned = await w.page(text, items_max=20)
    async with world(limits=little, indexes=at_once) as w:
        await w.page(text, items_max=20)
        await w.indexes_built()
        indexed = await w.page(text, items_max=20)
    # Ties come from the end where the first key is descending.
    assert list(map(json.loads, scanned.results)) == [{"id": "b", "x": 119, "y": 119 - n} for n in range(20)]
    assert indexed.results == scanned.results
    assert indexed.charge_ru == scanned.charge_ru


async def test_point_reads_go_on_while_a_heavy_query_runs(world: Any) -> None:
    async with world(partitions=2) as w:
        await fill(w, 12_000)
        reads = 0
        async with asyncio.timeout(SECONDS_MAX), beating() as heart:
            while reads <= 4:
                query = asyncio.create_task(w.query(HEAVY))
                while not query.done():
                    await reading.read(w.container, f"i{reads}", (f"p{reads % 50}",))
                    reads += not query.done()  # one that had to wait for the query ends with it
                    await asyncio.sleep(0)
                assert (await query).results == []
    assert heart.longest_seconds < 0.5


async def test_a_query_that_is_given_up_stops(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks: list[int] = []
    original = Partition.glance

    async def counted(self: Partition, *arguments: Any) -> Any:
        chunks.append(1)
        return await original(self, *arguments)

    monkeypatch.setattr(Partition, "glance", counted)
    async with world(partitions=2) as w:
        await fill(w, 6_000)
        others = asyncio.all_tasks()
        task = asyncio.create_task(execution.run(w.container, w.request(HEAVY)))
        while len(chunks) < 2:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await until(lambda: asyncio.all_tasks() <= others), "something goes on"
    assert len(chunks) < 10


@pytest.mark.parametrize("selection", ["VALUE COUNT(1)", "DISTINCT VALUE x", "VALUE x"])
async def test_an_item_that_takes_too_long_stops_the_query(
    world: Any, selection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 million rows of one item would keep the server busy for a minute."""
    monkeypatch.setattr(pace, "REQUEST_SECONDS_MIN", 0.2)
    async with world(limits=Limits(operation_seconds=0.0)) as w:
        await w.put({"id": "a", "pk": "p", "many": list(range(400))})
        joined = "FROM c JOIN x IN c.many JOIN y IN c.many JOIN z IN c.many"
        with pytest.raises(PleiadError) as caught:
            await w.query(f"SELECT {selection} {joined} WHERE x + y + z >= @none", {"@none": 1197})
    assert status_of(caught.value) == 408


async def test_a_client_that_hangs_up_stops_its_query(
    monkeypatch: pytest.MonkeyPatch, world_of: Any, store_of: StoreOf
) -> None:
    chunks: list[int] = []
    original = Partition.glance

    async def counted(self: Partition, *arguments: Any) -> Any:
        chunks.append(1)
        return await original(self, *arguments)

    monkeypatch.setattr(Partition, "glance", counted)
    node = Node(Settings(port=0, store=store_of(), throttle="observe"))
    await node.start()
    await node.engine.create_database({"id": "d"}, None)
    definition = {"id": "c", "partitionKey": {"paths": ["/pk"]}}
    await node.engine.create_container(node.engine.database("d"), definition, None)
    await fill(world_of(node.engine, await node.engine.container("d", "c")), 6_000)
    others = asyncio.all_tasks()
    _, writer = await asyncio.open_connection("127.0.0.1", node.server.port)
    writer.write(signed_query("dbs/d/colls/c", HEAVY, node.settings.key))
    while len(chunks) < 2:
        await asyncio.sleep(0)
    asked = asyncio.all_tasks() - others
    assert asked, "the query is under way"
    writer.close()
    await writer.wait_closed()
    assert await until(lambda: all(task.done() for task in asked)), asked
    await node.stop()
    assert len(chunks) < 12


def signed_query(container: str, text: str, key: str) -> bytes:
    """A query request with its signature, as clients send it."""
    date = formatdate(usegmt=True)
    signed = f"post\ndocs\n{container}\n{date.lower()}\n\n".encode()
    signature = base64.b64encode(hmac.digest(base64.b64decode(key), signed, "sha256")).decode()
    token = f"type=master&ver=1.0&sig={signature}"
    body = json.dumps({"query": text, "parameters": []})
    lines = [
        f"POST /{container}/docs HTTP/1.1",
        "Host: localhost",
        f"x-ms-date: {date}",
        f"authorization: {quote(token, safe='')}",
        "content-type: application/query+json",
        "x-ms-documentdb-isquery: True",
        "x-ms-documentdb-query-enablecrosspartition: True",
        f"content-length: {len(body)}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()
