"""The change feed, read from the beginning in pages of 1,000 items of 1 KB, without the network.

The server's own part is measured: the head answers request after request in this process. A second is one of CPU
time, so that other work on the machine does not count. Bars:

- ``change_feed_items``: items of latest versions per second over 50,000 a second.
- ``change_feed_versions``: changes of all versions and deletes per second over 25,000 a second; each change is a
  replace and carries two images of its item.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import request
from bench.items import items
from bench.load import LoadError, LoadProcess
from bench.report import Bar, FamilyReport
from bench.settings import Settings
from pleiad.account.keys import AccountKeys, KeysInForce
from pleiad.engine import batch
from pleiad.engine.batch import ItemOperation, ItemVerb
from pleiad.engine.desk import Desk
from pleiad.engine.engine import Engine
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.head import NoSqlHead
from pleiad.limits import Limits
from pleiad.server.http.message import Request
from pleiad.store.sqlite.store import SqliteStore

ITEMS_PER_SECOND = 50_000
VERSIONS_PER_SECOND = 25_000
PAGE_ITEMS = 1_000
LINK = "dbs/bench/colls/feed"
KEY = "YmVuY2ggYmVuY2ggYmVuY2ggYmVuY2g="


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """Both feeds over the same items."""
    latest, versions = asyncio.run(_rates(settings))
    return FamilyReport(
        lines=(),
        bars=(
            Bar(
                name="change_feed_items",
                ratio=latest / ITEMS_PER_SECOND,
                bar=1,
                meaning=f"items/s of the change feed ({latest:,.0f}) over {ITEMS_PER_SECOND:,}",
            ),
            Bar(
                name="change_feed_versions",
                ratio=versions / VERSIONS_PER_SECOND,
                bar=1,
                meaning=f"changes/s of all versions ({versions:,.0f}) over {VERSIONS_PER_SECOND:,}",
            ),
        ),
    )


async def _rates(settings: Settings) -> tuple[float, float]:
    """Items per second of latest versions, and changes per second of all versions: medians over the rounds."""
    limits = Limits()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        engine = Engine(SqliteStore(Path(directory), durable=False), limits)
        await engine.open()
        try:
            head = NoSqlHead(Desk(engine), Authenticator(KeysInForce(AccountKeys(KEY)), limits))
            await _load_items(engine, settings.items)
            place = _place(await _page(head, "Full-Fidelity Feed", "*"))
            await _load_items(engine, settings.items)
            latest = [
                await _rate(head, "Incremental Feed", "", settings.items) for _ in range(settings.rounds)
            ]
            versions = [
                await _rate(head, "Full-Fidelity Feed", place, settings.items) for _ in range(settings.rounds)
            ]
        finally:
            await engine.close()
    return statistics.median(latest), statistics.median(versions)


async def _load_items(engine: Engine, count: int) -> None:
    """Writes the items, or writes them again."""
    if engine.open_container("bench", "feed") is None:
        database = await engine.create_database({"id": "bench"}, None)
        key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
        policy = {"retentionDuration": 60}
        definition: dict[str, Any] = {"id": "feed", "partitionKey": key, "changeFeedPolicy": policy}
        await engine.create_container(database, definition, None)
    container = await engine.container("bench", "feed")
    upserts = [
        ItemOperation(ItemVerb.UPSERT, body=item.body, key=(item.pk,)) for item in items("feed", count)
    ]
    for start in range(0, count, PAGE_ITEMS):
        await batch.run_bulk(container, upserts[start : start + PAGE_ITEMS])


async def _rate(head: NoSqlHead, mode: str, place: str, count: int) -> float:
    """Changes per second of reading everything after a place."""
    found = 0
    began = time.process_time()
    while True:
        answer = await _page(head, mode, place)
        if answer.status == 304:
            break
        found += int(_header(answer, "x-ms-item-count"))
        place = _place(answer)
    seconds = time.process_time() - began
    if found != count:
        raise LoadError(f"the change feed gave {found} changes instead of {count}")
    return found / seconds


async def _page(head: NoSqlHead, mode: str, place: str) -> Any:
    fields = request.headers(KEY, "GET", "docs", LINK, request.date_text())
    fields |= {"A-IM": mode, "x-ms-max-item-count": str(PAGE_ITEMS)}
    if place:
        fields["If-None-Match"] = place
    headers = {name.lower().encode(): value.encode() for name, value in fields.items()}
    answer = await head.handle(Request("GET", f"/{LINK}/docs".encode(), headers))
    if answer.status not in (200, 304):
        raise LoadError(f"the change feed answered with {answer.status}: {answer.body[:400]!r}")
    return answer


def _place(answer: Any) -> str:
    return _header(answer, "etag")


def _header(answer: Any, name: str) -> str:
    for line in answer.headers.decode("latin-1").split("\r\n"):
        field, _, value = line.partition(": ")
        if field == name:
            return str(value)
    raise LoadError(f"the change feed answered without {name}")
