"""A container at work in this process, queried through the engine page by page."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from pleiad.catalog.throughput import Throughput
from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.items import NO_CONDITIONS
from pleiad.engine.query import execution
from pleiad.engine.query.job import QueryJob
from pleiad.engine.query.page import QueryPage
from pleiad.engine.query.request import QueryRequest
from pleiad.errors import RESOURCE_EXISTS, PleiadError
from pleiad.keys.range import WHOLE
from pleiad.limits import Limits
from pleiad.store.index_use import IndexSettings
from pleiad.store.rows import Row
from tests.stores import PATIENT, OpenStore
from tests.waiting import until

NO_INDEXES = IndexSettings(items_min=10**9)
INDEXES_AT_ONCE = IndexSettings(items_min=0, uses_min=1, indexes_max=1_000)
RU_PER_PARTITION = 6_000
PAGES_MAX = 5_000


@dataclass(frozen=True)
class Answer:
    """All pages of a query."""

    results: list[Any]
    pages: list[QueryPage]

    @property
    def charge_ru(self) -> float:
        """What the pages are charged together, without what the least charge of a page adds."""
        return round(sum(page.own_ru for page in self.pages), 2)

    @property
    def added_ru(self) -> float:
        return sum(page.charge_ru - page.own_ru for page in self.pages)


class World:
    """One container on one directory; several queries may run at once."""

    def __init__(self, engine: Engine, container: Container) -> None:
        self.engine = engine
        self.container = container

    async def put(self, item: dict[str, Any]) -> None:
        key = self.container.key.extract(item)
        await items.upsert(self.container, orjson.dumps(item), key, NO_CONDITIONS)

    async def remove(self, item: dict[str, Any]) -> None:
        key = self.container.key.extract(item)
        await items.delete(self.container, item["id"], key, NO_CONDITIONS)

    def request(self, text: str, parameters: Mapping[str, Any] | None = None, **more: Any) -> QueryRequest:
        asked = {"span": WHOLE, "is_confined": True, "items_max": 10**6, **more}
        return QueryRequest(text=text, parameters=parameters or {}, **asked)

    async def page(self, text: str, parameters: Mapping[str, Any] | None = None, **more: Any) -> QueryPage:
        return await execution.run(self.container, self.request(text, parameters, **more))

    async def query(
        self,
        text: str,
        parameters: Mapping[str, Any] | None = None,
        page_items: Callable[[], int] = lambda: 10**6,
        **more: Any,
    ) -> Answer:
        """Every page of a query, each asked for with nothing but the token of the one before."""
        results: list[Any] = []
        pages: list[QueryPage] = []
        token = more.pop("token", "")
        while len(pages) < PAGES_MAX:
            count = page_items()
            page = await self.page(text, parameters, items_max=count, token=token, **more)
            assert len(page.results) <= count, "a page has more results than were asked for"
            pages.append(page)
            results += map(orjson.loads, page.results)
            if page.token is None:
                return Answer(results, pages)
            token = page.token
        raise AssertionError("the pages of the query do not end")

    async def rows(self) -> list[Row]:
        """All rows in scan order."""
        return [row for part in self.container.map.partitions for row in await part.scan(WHOLE, 0, 10**9)]

    async def items_in_order_of(self, job: QueryJob) -> list[dict[str, Any]]:
        """All items: first those the query goes to, in the order it meets them, then the rest."""
        rows = await self.rows()
        query = job.query
        if job.lookups is not None:
            wanted = set(job.lookups)
            first = sorted((row for row in rows if (row.epk, row.id) in wanted), key=lambda row: row.number)
        elif (query.order_by and not query.is_aggregate) or not query.is_per_item:
            inside = (row for row in rows if any(span.contains(row.epk) for span in job.spans))
            first = sorted(inside, key=lambda row: row.number)
        else:
            first = [row for row in rows if any(span.contains(row.epk) for span in job.spans)]
        met = {row.number for row in first}
        rest = [] if job.request.span != WHOLE else [row for row in rows if row.number not in met]
        return [orjson.loads(self.container.render(row)) for row in (*first, *rest)]

    def item_of(self, row: Row) -> dict[str, Any]:
        """The item of a row as its client wrote it."""
        item: dict[str, Any] = orjson.loads(row.body)
        return item

    async def indexes_built(self) -> None:
        """Waits until the indexes that queries asked for are ready."""
        segments = [self.engine.store.segment(part.segment_name) for part in self.container.map.partitions]
        assert await until(lambda: all(segment.index_progress() == 1.0 for segment in segments))


Opened = Callable[..., AbstractAsyncContextManager[World]]


@asynccontextmanager
async def open_world(
    open_store: OpenStore,
    directory: Path,
    *,
    indexes: IndexSettings = NO_INDEXES,
    limits: Limits | None = None,
    partitions: int = 1,
    key_paths: tuple[str, ...] = ("/pk",),
    **properties: Any,
) -> AsyncIterator[World]:
    """The container of a directory, made when it is not there yet."""
    engine = Engine(await open_store(directory, indexes), limits or PATIENT)
    await engine.open()
    try:
        key = {"paths": list(key_paths), "kind": "Hash" if len(key_paths) == 1 else "MultiHash", "version": 2}
        ru = RU_PER_PARTITION * partitions
        try:
            await engine.create_database({"id": "d"}, None)
            definition = {"id": "c", "partitionKey": key, **properties}
            await engine.create_container(engine.database("d"), definition, Throughput(ru))
        except PleiadError as error:
            if error.row is not RESOURCE_EXISTS:
                raise
        yield World(engine, await engine.container("d", "c"))
    finally:
        await engine.close()


@pytest.fixture
def world(tmp_path: Path, open_store: OpenStore) -> Opened:
    """`async with world(partitions=3) as w:` opens the container; a second block opens the same data."""

    def opened(**options: Any) -> AbstractAsyncContextManager[World]:
        return open_world(open_store, tmp_path / options.pop("name", "data"), **options)

    return opened


@pytest.fixture
def world_in(open_store: OpenStore) -> Opened:
    """The same in a directory of the test's choice."""
    return functools.partial(open_world, open_store)


@pytest.fixture
def world_of() -> type[World]:
    """`world_of(engine, container)` for a container that is at work already."""
    return World


def _load(path: Path) -> Any:
    name = f"query_engine_{path.stem}"
    if name not in sys.modules:
        specification = importlib.util.spec_from_file_location(name, path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.modules[name] = module
        specification.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def oracle(project_root: Path) -> Any:
    """The slow, obvious interpreter of the query tests."""
    return _load(project_root / "tests" / "rooms" / "query" / "oracle.py")


@pytest.fixture(scope="session")
def generator(project_root: Path) -> Any:
    """The random items and queries of the query tests."""
    return _load(project_root / "tests" / "rooms" / "query" / "generator.py")


@pytest.fixture(scope="session")
def index_settings() -> tuple[IndexSettings, IndexSettings]:
    """Never any physical index, and one for every path a query asks for."""
    return NO_INDEXES, INDEXES_AT_ONCE
