"""How much a script moves at once: rounds end by bytes, and its queries hold no more than others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson
import pytest

from pleiad.catalog.resource import Kind
from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.script import definition, execution
from pleiad.engine.script.query import ScriptPage, ScriptQueries
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.script import worker
from pleiad.script.process import ScriptProcess

pytestmark = pytest.mark.every_store

Opened = Callable[..., AbstractAsyncContextManager[Engine]]
RESPONSE_BYTES = 50_000
READ_MANY = """function (count) {
  var seen = [];
  for (var number = 0; number < count; number++) {
    (function (number) {
      __.readDocuments(__.getSelfLink(), { pageSize: 10 }, function (error, docs) {
        if (error) throw error;
        seen.push([number, docs.length]);
        if (number === 0) __.readDocument(__.getAltLink() + "/docs/0", function () { seen.push(["last"]); });
        __.response.setBody(seen);
      });
    })(number);
  }
}"""
QUERY = """function (text) {
  __.queryDocuments(__.getSelfLink(), text, function (error, found) {
    __.response.setBody(error ? error.message : found);
  });
}"""


async def filled(opened: Engine, count: int, chars: int) -> Container:
    database = await opened.create_database({"id": "db"}, None)
    definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}}
    await opened.create_container(database, definition, None)
    container = await opened.container("db", "c")
    for number in range(count):
        body = {"id": str(number), "pk": "k", "n": number, "text": "x" * chars}
        await items.create(container, orjson.dumps(body), ("k",))
    return container


async def run(opened: Engine, container: Container, body: str, *arguments: Any) -> Any:
    made, _ = await definition.create(
        opened, Kind.STORED_PROCEDURE, container.resource, {"id": "p", "body": body}, upsert=True
    )
    return orjson.loads(
        (await execution.execute(container, made, ("k",), orjson.dumps(arguments).decode())).body
    )


async def test_a_round_ends_when_its_results_fill_one_response(
    engine: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    ask = ScriptProcess.ask

    async def measured(process: ScriptProcess, command: int, text: bytes, seconds: float) -> Any:
        if command == worker.RESUME:
            sent.append(len(text))
        return await ask(process, command, text, seconds)

    monkeypatch.setattr(ScriptProcess, "ask", measured)
    async with engine(Limits(response_bytes=RESPONSE_BYTES)) as opened:
        container = await filled(opened, 10, 4_000)
        seen = await run(opened, container, READ_MANY, 30)
    assert seen == [*([number, 10] for number in range(30)), ["last"]], "everything is done, in order"
    assert len(sent) > 10
    assert max(sent) < 3 * RESPONSE_BYTES


async def test_a_query_of_a_script_holds_no_more_than_any_query_may(engine: Opened) -> None:
    limits = Limits(response_bytes=RESPONSE_BYTES, query_memory_bytes=8_000_000)
    async with engine(limits) as opened:
        container = await filled(opened, 90, 100_000)
        assert await run(opened, container, QUERY, "SELECT VALUE COUNT(1) FROM c WHERE c.n > 9") == [80]
        assert await run(opened, container, QUERY, "SELECT VALUE SUM(c.n) FROM c") == [sum(range(90))]
        groups = await run(
            opened, container, QUERY, "SELECT c.n % 3 AS r, COUNT(1) AS c FROM c GROUP BY c.n % 3"
        )
        assert groups == [{"r": remainder, "c": 30} for remainder in range(3)]
        assert await run(opened, container, QUERY, "SELECT VALUE c.n FROM c WHERE c.n < 3") == [0, 1, 2]
        refused = await run(opened, container, QUERY, "SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n DESC")
        assert "more than 7.6 MB of memory" in refused


async def test_an_operation_larger_than_a_request_is_refused_where_it_is_made(engine: Opened) -> None:
    create = """function () {
      __.createDocument(__.getSelfLink(), { id: "a", pk: "k", text: "x".repeat(60000) });
    }"""
    async with engine(Limits(response_bytes=RESPONSE_BYTES)) as opened:
        container = await filled(opened, 0, 0)
        with pytest.raises(PleiadError, match="larger than a request may be"):
            await run(opened, container, create)


async def test_the_operations_of_a_round_end_with_the_time_of_the_script(
    engine: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[ScriptPage] = []
    page = ScriptQueries.page

    async def last(queries: ScriptQueries, operation: dict[str, Any]) -> ScriptPage:
        pages.append(await page(queries, operation))
        monkeypatch.setattr(queries._clock, "_ends_at", 0.0)
        return pages[-1]

    monkeypatch.setattr(ScriptQueries, "page", last)
    async with engine(Limits()) as opened:
        container = await filled(opened, 10, 10)
        with pytest.raises(PleiadError, match="The script was stopped"):
            await run(opened, container, READ_MANY, 30)
    assert len(pages) == 1, "none of the other operations was begun"
