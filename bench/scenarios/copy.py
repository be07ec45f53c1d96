"""Copies of a container of 1 KB items with another partition key.

Bars:

- ``copy_items``: items per second of a whole copy, its comparison included, over half of those that
  ``pleiad copy-data`` moves of the same data from one directory to another; both in this process and on one disk.
- ``copy_load``: the rate of clients that create items in a container while an online copy of it copies, compares and
  follows, over 80 % of their rate before; on a server of its own, over HTTP.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import tempfile
import time
from pathlib import Path

import orjson

from bench import request
from bench.items import items
from bench.load import Job, LoadError, LoadProcess, Measure
from bench.process import BUILD
from bench.report import Bar, FamilyReport, line
from bench.server import PleiadServer, pleiad_server
from bench.settings import Settings
from pleiad.engine import batch
from pleiad.engine.batch import ItemOperation, ItemVerb
from pleiad.engine.engine import Engine
from pleiad.job.copy.copies import Copies
from pleiad.job.copy.job import CopyJob, CopyState
from pleiad.job.copy.plan import plan_from_json
from pleiad.job.copy_data import copy_account
from pleiad.limits import Limits
from pleiad.store.sqlite.store import SqliteStore

COPY_SHARE = 0.5
LOAD_SHARE = 0.8
_BULK = 1_000
_ITEMS_PER_SETTING = 2
_ROUNDS_MAX = 30
_CREATES_PER_ROUND = 20_000


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """A copy against the copy of the whole account, and writers beside an online copy."""
    copy_bar = asyncio.run(_measure_copy(settings.items * _ITEMS_PER_SETTING))
    with pleiad_server() as server:
        before, during = _measure_load(server, load, settings)
    usual, meanwhile = (statistics.median(each.rate for each in measures) for measures in (before, during))
    load_bar = Bar(
        name="copy_load",
        ratio=meanwhile / usual / LOAD_SHARE,
        bar=1,
        meaning=f"creates/s during an online copy ({meanwhile:,.0f} of {usual:,.0f}) over {LOAD_SHARE:.0%}",
    )
    lines = (line("create, nothing else", before), line("create, online copy", during))
    return FamilyReport(lines=lines, bars=(copy_bar, load_bar))


async def _measure_copy(count: int) -> Bar:
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as directory:
        source = Path(directory) / "source"
        engine = Engine(SqliteStore(source), Limits())
        await engine.open()
        try:
            await _fill(engine, count)
            began = time.perf_counter()
            await _copy(engine)
            copied = count / (time.perf_counter() - began)
            await engine.delete((await engine.container("bench", "other")).resource)
        finally:
            await engine.close()
        moved = count / await _copy_data(source, Path(directory) / "target")
    return Bar(
        name="copy_items",
        ratio=copied / moved / COPY_SHARE,
        bar=1,
        meaning=f"items/s of a copy with another key ({copied:,.0f}) over {COPY_SHARE:.0%} of `pleiad copy-data` "
        f"({moved:,.0f}); {count:,} items",
    )


async def _fill(engine: Engine, count: int) -> None:
    database = await engine.create_database({"id": "bench"}, None)
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    await engine.create_container(database, {"id": "copy", "partitionKey": key}, None)
    container = await engine.container("bench", "copy")
    known = items("copy", count)
    for start in range(0, count, _BULK):
        chunk = known[start : start + _BULK]
        operations = [ItemOperation(ItemVerb.UPSERT, body=item.body, key=(item.pk,)) for item in chunk]
        if (await batch.run_bulk(container, operations)).has_failure:
            raise LoadError("an item could not be written")


async def _copy(engine: Engine) -> None:
    copies = Copies(engine)
    copies.open()
    try:
        plan = {"source": "bench/copy", "target": "bench/other", "partitionKey": "/address/city"}
        progress, _ = await copies.start(plan_from_json(plan, engine.limits))
        while not copies.find(progress.job.id).job.is_over:
            await asyncio.sleep(0.01)
        _check(copies.find(progress.job.id).job)
    finally:
        await copies.close()


def _check(job: CopyJob) -> None:
    if job.state is not CopyState.DONE:
        raise LoadError(f"the copy failed: {job.problem}")


async def _copy_data(source: Path, target: Path) -> float:
    """How long the copy of the whole account takes."""
    stores = SqliteStore(source), SqliteStore(target)
    try:
        began = time.perf_counter()
        await copy_account(*stores, lambda _: None)
        return time.perf_counter() - began
    finally:
        for store in stores:
            await store.close()


def _measure_load(
    server: PleiadServer, load: LoadProcess, settings: Settings
) -> tuple[list[Measure], list[Measure]]:
    link = server.create_container("bench", "copy")
    server.fill(load, link, items("filled", settings.items * _ITEMS_PER_SETTING))
    number = itertools.count()

    def measure(name: str) -> Measure:
        creates = request.ItemCreates(server.host, server.key, link, request.date_text())
        new = items(f"new{next(number)}", _CREATES_PER_ROUND)
        return load.run(
            Job(
                name=name,
                port=server.port,
                server_pid=server.pid,
                requests=[creates.create(item.pk, item.body) for item in new],
                statuses=(201,),
                connections=settings.connections,
                seconds=settings.seconds,
                repeat=False,
            )
        )

    before = [measure("create, nothing else") for _ in range(settings.rounds)]
    plan = {"source": "bench/copy", "target": "bench/other", "partitionKey": "/address/city", "online": True}
    path = "_pleiad/v1/copies"
    status, answer = server.call("POST", f"/{path}", "copies", "_pleiad/v1", plan)
    if status != 202:
        raise LoadError(f"the copy could not be begun: {status} {answer[:400]!r}")
    link_of_copy = f"{path}/{orjson.loads(answer)['id']}"
    during: list[Measure] = []
    for _ in range(_ROUNDS_MAX):
        during.append(measure("create, online copy"))
        told = orjson.loads(server.call("GET", f"/{link_of_copy}", "copies", link_of_copy)[1])
        if told["state"] not in ("planned", "running"):
            raise LoadError(f"the copy is {told['state']}: {told.get('problem')}")
        if told["ready"] and len(during) >= settings.rounds:
            break
    return before, during
