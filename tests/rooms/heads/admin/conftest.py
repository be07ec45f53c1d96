"""A server with its admin API, and a container to look at."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from pleiad.node import Node
from pleiad.settings import Settings
from pleiad.testing.start import RunningServer
from tests.coroutines import LoopThread
from tests.stores import StartServer, StoreOf

T = TypeVar("T")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as started:
        yield started


@pytest.fixture
def admin(server: RunningServer) -> Iterator[Admin]:
    with Connection(server.endpoint, server.key) as connection:
        yield Admin(connection)
    server.faults.clear()


@pytest.fixture(scope="module")
def client(server: RunningServer) -> CosmosClient:
    return CosmosClient(server.endpoint, server.key)


@pytest.fixture
def container(client: CosmosClient) -> ContainerProxy:
    """A new container keyed /pk with the item 1 of the key a."""
    database = client.create_database(f"admin-{next(_numbers)}")
    made = database.create_container("things", PartitionKey("/pk"))
    made.create_item({"id": "1", "pk": "a"})
    return made


class Running:
    """A node of this process: what clients reach of it, and its inside."""

    def __init__(self, settings: Settings) -> None:
        self.node = Node(settings)
        self._thread = LoopThread()
        self.ask(self.node.start())
        port = self.node.server.port
        self.server = RunningServer(f"http://localhost:{port}", settings.key, port, os.getpid())

    def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the server's own loop."""
        return self._thread.ask(work)

    def close(self) -> None:
        self.ask(self.node.stop())
        self._thread.close()


@pytest.fixture
def run(store_of: StoreOf) -> Iterator[Callable[..., Running]]:
    """Starts nodes with settings of their own: `run(limits=...)`."""
    running: list[Running] = []

    def start(**settings: Any) -> Running:
        running.append(Running(Settings(port=0, store=store_of(), **{"throttle": "observe", **settings})))
        return running[-1]

    yield start
    for each in running:
        each.close()
