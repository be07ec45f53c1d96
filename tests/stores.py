"""The stores that tests run on.

A test that names the fixture `open_store` runs on SQLite, or on the store of `--store sqlite|postgres|both`; marked
`every_store` it runs on both whatever is asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from pleiad.store.contract import Store
from pleiad.store.index_use import DEFAULT_INDEX_SETTINGS, IndexSettings
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.sqlite.store import SqliteStore
from tests.postgres_server import PostgresServer

OpenStore = Callable[..., Awaitable[Store]]
"""`await open_store(directory, index_settings=...)`: the store of a directory, or of a database that stands for it."""

_KINDS = {"sqlite": ["sqlite"], "postgres": ["postgres"], "both": ["sqlite", "postgres"]}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", choices=list(_KINDS), default="sqlite", help="the store that tests run on")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    has_its_own = any("store_kind" in mark.args for mark in metafunc.definition.iter_markers("parametrize"))
    if "store_kind" in metafunc.fixturenames and not has_its_own:
        on_all = metafunc.definition.get_closest_marker("every_store") is not None
        metafunc.parametrize(
            "store_kind", _KINDS["both" if on_all else metafunc.config.getoption("store")], scope="session"
        )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server for the whole run; a test takes a database of its own from it."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def open_store(store_kind: str, request: pytest.FixtureRequest) -> Iterator[OpenStore]:
    """Opens the store of a directory, durable only where the test needs it to be."""
    databases: dict[Path, str] = {}
    server: PostgresServer | None = None
    if store_kind == "postgres":
        server = request.getfixturevalue("postgres_server")

    async def opened(
        directory: Path, index_settings: IndexSettings = DEFAULT_INDEX_SETTINGS, durable: bool = False
    ) -> Store:
        if server is None:
            return SqliteStore(directory, durable, index_settings)
        if directory not in databases:
            databases[directory] = server.new_database()
        return await PostgresStore.open(databases[directory], index_settings)

    yield opened
    if server is not None:
        for dsn in databases.values():
            server.give_back(dsn)
