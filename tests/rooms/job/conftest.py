"""Places of accounts on both stores, and servers of this process on them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from azure.cosmos import CosmosClient

from pleiad.job.place import DataPlace, parse_place
from pleiad.node import Node
from pleiad.settings import SQLITE, Settings
from tests.coroutines import LoopThread
from tests.postgres_server import PostgresServer

T = TypeVar("T")


class Server:
    """A server of this process on a place, with a client and with its engine in reach."""

    def __init__(self, place: DataPlace, scratch: Path) -> None:
        store = SQLITE if place.directory is not None else place.dsn
        data = place.directory or scratch
        self._thread = LoopThread()
        self.node = Node(Settings(port=0, data=data, store=store, throttle="observe"))
        try:
            self.ask(self.node.start())
        except BaseException:
            self._thread.close()
            raise
        self.client = CosmosClient(f"http://localhost:{self.node.server.port}", self.node.settings.key)

    def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the server's own loop."""
        return self._thread.ask(work)

    def close(self) -> None:
        self.ask(self.node.stop())
        self._thread.close()


Serving = Callable[[str], contextlib.AbstractContextManager[Server]]
NewPlace = Callable[[str], str]


@pytest.fixture
def new_place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[NewPlace]:
    """`new_place("sqlite")` or `new_place("postgres")`: an empty place, as an operator writes it."""
    databases: list[tuple[PostgresServer, str]] = []
    made = 0

    def make(kind: str) -> str:
        nonlocal made
        made += 1
        if kind == "sqlite":
            return f"sqlite:{tmp_path / f'data-{made}'}"
        server: PostgresServer = request.getfixturevalue("postgres_server")
        databases.append((server, server.new_database()))
        return databases[-1][1]

    yield make
    for server, dsn in databases:
        server.give_back(dsn)


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    """`with serving(place) as server:` runs a server there."""

    @contextlib.contextmanager
    def serve(place: str) -> Iterator[Server]:
        server = Server(parse_place(place), tmp_path / "certificate")
        try:
            yield server
        finally:
            server.close()

    return serve


@pytest.fixture(params=[("sqlite", "postgres"), ("postgres", "sqlite"), ("sqlite", "sqlite")], ids="-".join)
def direction(request: pytest.FixtureRequest, new_place: NewPlace) -> tuple[str, str]:
    """A source and a target."""
    source, target = request.param
    return new_place(source), new_place(target)
