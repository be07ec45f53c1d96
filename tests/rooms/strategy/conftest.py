"""Plans on a real server, through the synchronous and through the asynchronous client."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient

from pleiad.strategy import Answer, Plan, run, run_async
from pleiad.testing.start import RunningServer
from tests.coroutines import LoopThread

T = TypeVar("T")
RU_PER_PARTITION = 6_000


@dataclass(frozen=True)
class Hand:
    """A container, and one of the two clients that carries plans out on it."""

    container: ContainerProxy
    carry_out: Callable[[Plan[Any]], Answer[Any]]

    def do(self, plan: Plan[T]) -> T:
        """The result of a plan."""
        value: T = self.carry_out(plan).value
        return value

    def items(self) -> list[dict[str, Any]]:
        return [dict(item) for item in self.container.read_all_items()]


@pytest.fixture(scope="session")
def async_client(pleiad_server: RunningServer) -> Iterator[tuple[LoopThread, AsyncCosmosClient]]:
    """The asynchronous client on a loop of its own."""
    thread = LoopThread()
    client = thread.ask(AsyncCosmosClient(pleiad_server.endpoint, pleiad_server.key).__aenter__())
    yield thread, client
    thread.ask(client.close())
    thread.close()


@pytest.fixture(scope="session")
def strategy_database(pleiad_client: Any) -> DatabaseProxy:
    """A database whose many containers go with their server."""
    made: DatabaseProxy = pleiad_client.create_database(f"strategy-{uuid.uuid4()}")
    return made


@pytest.fixture(params=["sync", "async"])
def make_hand(
    request: pytest.FixtureRequest,
    strategy_database: DatabaseProxy,
    async_client: tuple[LoopThread, AsyncCosmosClient],
) -> Callable[..., Hand]:
    """`make_hand(partitions=5, ...)`: a new container in reach of one client, then of the other."""

    def make(partitions: int = 1, **options: Any) -> Hand:
        container: ContainerProxy = strategy_database.create_container(
            str(uuid.uuid4()),
            PartitionKey("/partitionKey"),
            offer_throughput=RU_PER_PARTITION * partitions,
            **options,
        )
        if request.param == "sync":
            return Hand(container, lambda plan: run(container, plan))
        thread, client = async_client
        found = client.get_database_client(strategy_database.id).get_container_client(container.id)
        return Hand(container, lambda plan: thread.ask(run_async(found, plan)))

    return make


@pytest.fixture
def hand(make_hand: Callable[..., Hand]) -> Hand:
    return make_hand()
