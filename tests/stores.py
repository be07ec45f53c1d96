"""The stores that tests run on.

A test that opens a store or a server through the fixtures here, or names `pleiad_server` and its like, runs on SQLite,
or on the store of `--store sqlite|postgres|both`; marked `every_store` it runs on both whatever is asked for. Where the
store is PostgreSQL, a database stands for each directory.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import pleiad
from pleiad.limits import Limits
from pleiad.settings import SQLITE
from pleiad.store.checked.store import checked
from pleiad.store.index_use import DEFAULT_INDEX_SETTINGS, IndexSettings
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.segments import Segment
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.store import Store
from pleiad.testing import start
from pleiad.testing.start import RunningServer
from tests.postgres_server import PostgresServer
from tests.waiting import until
from tests.warm_process import warm_command

OpenStore = Callable[..., Awaitable[Store]]
"""`await open_store(directory, index_settings=...)`: the store of a directory, or of a database that stands for it."""
StoreOf = Callable[..., str]
"""`store_of(directory)`: the setting `store` of a server on that directory; without one, of a server on nothing yet."""
SegmentNames = Callable[[Path], set[str]]
"""`segment_names(directory)`: the segments that the store of a directory holds, in use or not."""
StartServer = Callable[..., contextlib.AbstractContextManager[RunningServer]]
"""`with start_server(data=directory, ...) as server:` is `pleiad.start` on the store of the run."""

PATIENT = Limits(operation_seconds=60.0)
"""Under these no operation ends by time on a busy machine, for tests that are not about that."""
SEGMENT_NAMES = "SELECT substr(nspname, 8) FROM pg_namespace WHERE nspname LIKE 'pleiad\\_%'"
_KINDS = {"sqlite": ["sqlite"], "postgres": ["postgres"], "both": ["sqlite", "postgres"]}


async def built(segment: Segment) -> None:
    """Waits until every path index that the segment has begun is there to be used."""
    assert await until(lambda: segment.index_progress() == 1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", choices=list(_KINDS), default="sqlite", help="the store that tests run on")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    has_its_own = any("store_kind" in mark.args for mark in metafunc.definition.iter_markers("parametrize"))
    if "store_kind" in metafunc.fixturenames and not has_its_own:
        on_all = metafunc.definition.get_closest_marker("every_store") is not None
        metafunc.parametrize(
            "store_kind", _KINDS["both" if on_all else metafunc.config.getoption("store")], scope="session"
        )


@pytest.fixture(scope="session", autouse=True)
def _children_are_warm() -> Iterator[None]:
    """Servers that tests start in child processes have their modules already; see `warm_process.py`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(start, "_command", warm_command)
        yield


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
def postgres_database(postgres_server: PostgresServer) -> Iterator[str]:
    """A database of that server, for one test."""
    dsn = postgres_server.new_database()
    yield dsn
    postgres_server.give_back(dsn)


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server for tests that stop it or change its settings."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


class _Databases:
    """The databases that stand for directories."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._by_directory: dict[Path, str] = {}
        self._others: list[str] = []

    def of(self, directory: Path | None) -> str:
        """The connection string of a directory's database; without a directory, of a new one."""
        if directory is None:
            self._others.append(self._server.new_database())
            return self._others[-1]
        if directory not in self._by_directory:
            self._by_directory[directory] = self._server.new_database()
        return self._by_directory[directory]

    def remove(self, directory: Path) -> None:
        """Gives back the database of a directory."""
        dsn = self._by_directory.pop(directory, None)
        if dsn is not None:
            self._server.give_back(dsn)

    def give_back(self) -> None:
        for dsn in (*self._by_directory.values(), *self._others):
            self._server.give_back(dsn)


@pytest.fixture
def databases(store_kind: str, request: pytest.FixtureRequest) -> Iterator[_Databases | None]:
    """The databases of one test; None on SQLite."""
    if store_kind == SQLITE:
        yield None
        return
    found = _Databases(request.getfixturevalue("postgres_server"))
    yield found
    found.give_back()


@pytest.fixture
def open_store(databases: _Databases | None) -> OpenStore:
    """Opens the store of a directory, durable only where the test needs it to be; every call of it is tested."""

    async def opened(
        directory: Path, index_settings: IndexSettings = DEFAULT_INDEX_SETTINGS, durable: bool = False
    ) -> Store:
        if databases is None:
            return checked(SqliteStore(directory, durable, index_settings))
        return checked(await PostgresStore.open(databases.of(directory), index_settings))

    return opened


@pytest.fixture
def remove_data(databases: _Databases | None) -> Callable[[Path], None]:
    """Removes the data of a directory before the test ends, for tests that make very many."""

    def remove(directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        if databases is not None:
            databases.remove(directory)

    return remove


@pytest.fixture
def store_of(databases: _Databases | None) -> StoreOf:
    """For servers that a test starts with settings of its own."""

    def setting(directory: Path | None = None) -> str:
        return SQLITE if databases is None else databases.of(directory)

    return setting


def _patient(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a server, patient where they say nothing of limits."""
    if options.get("child_process"):  # takes its limits by name
        return options
    return {"limits": PATIENT, **options}


@pytest.fixture
def start_server(store_of: StoreOf) -> StartServer:
    """For servers of one test."""

    def started(data: Path | None = None, **options: Any) -> contextlib.AbstractContextManager[RunningServer]:
        return pleiad.start(data=data, store=store_of(data), **_patient(options))

    return started


@pytest.fixture
def segment_names(databases: _Databases | None) -> SegmentNames:
    """A look into the store, past every server."""

    def names(directory: Path) -> set[str]:
        if databases is None:
            # What was set aside counts too: after a crash there must be none.
            found = [*directory.glob("segments/*.sqlite"), *directory.glob("set-aside/*/*.sqlite")]
            return {path.stem for path in found}
        with psycopg.connect(databases.of(directory)) as connection:
            return {str(name) for (name,) in connection.execute(SEGMENT_NAMES)}

    return names


@pytest.fixture(scope="session")
def lasting_store(store_kind: str, request: pytest.FixtureRequest) -> Iterator[StoreOf]:
    """`store_of` for servers that several tests share."""
    if store_kind == SQLITE:
        yield lambda directory=None: SQLITE
        return
    found = _Databases(request.getfixturevalue("postgres_server"))
    yield lambda directory=None: found.of(directory)
    found.give_back()


@pytest.fixture(scope="session")
def start_lasting_server(lasting_store: StoreOf) -> StartServer:
    """`start_server` for servers that several tests share."""

    def started(**options: Any) -> contextlib.AbstractContextManager[RunningServer]:
        return pleiad.start(store=lasting_store(), **_patient(options))

    return started


@pytest.fixture(scope="session")
def pleiad_server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    """The server of the test kit's fixtures."""
    with start_lasting_server() as server:
        yield server
