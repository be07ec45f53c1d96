"""The official Python client against Pleiad, and a look inside the engine for what no client is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.item.body import dump
from pleiad.limits import Limits
from pleiad.node import Node
from pleiad.settings import Settings
from pleiad.store.rows import LogicalPartition
from tests.coroutines import LoopThread
from tests.stores import PATIENT, StoreOf

T = TypeVar("T")


class Laboratory:
    """A server of this process with a client, and with its engine in reach."""

    def __init__(self, limits: Limits, store: str, throttle: str = "observe", **settings: Any) -> None:
        self.node = Node(Settings(port=0, store=store, limits=limits, throttle=throttle, **settings))
        self._thread = LoopThread()
        self.ask(self.node.start())
        self.client = CosmosClient(f"http://localhost:{self.node.server.port}", self.node.settings.key)
        self.database: DatabaseProxy = self.client.create_database("laboratory")

    def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the server's own loop."""
        return self._thread.ask(work)

    def close(self) -> None:
        self.ask(self.node.stop())
        self._thread.close()

    def inside(self, container: ContainerProxy) -> Container:
        """The engine's own view of a container."""
        database = container.container_link.split("/")[1]
        return self.ask(self.node.engine.container(database, container.id))

    def fill(self, container: ContainerProxy, made: list[dict[str, Any]]) -> None:
        """Creates many items through the engine, as every head does it."""
        inside = self.inside(container)

        async def create() -> None:
            work = (items.create(inside, dump(item), inside.key.extract(item)) for item in made)
            await asyncio.gather(*work)

        self.ask(create())

    def settle(self) -> None:
        """Waits until the keeper has seen to everything."""
        self.ask(self.node.engine.keeper.settled())

    def spent_ru(self, container: ContainerProxy) -> list[float]:
        """The request units that each physical partition was charged, in the order of ranges."""
        return [partition.governor.snapshot().ru for partition in self.inside(container).map.partitions]

    def logical_partitions(self, container: ContainerProxy) -> dict[str, list[LogicalPartition]]:
        """The logical partitions of a container, by the physical partition they are on."""

        async def look(inside: Container) -> dict[str, list[LogicalPartition]]:
            partitions = inside.map.partitions
            return {
                partition.range_id: list(await partition.logical_partitions()) for partition in partitions
            }

        return self.ask(look(self.inside(container)))

    def logical_partition_count(self, container: ContainerProxy) -> int:
        return sum(len(found) for found in self.logical_partitions(container).values())

    def physical_partition_count(self, container: ContainerProxy) -> int:
        return len(self.inside(container).map.partitions)


@pytest.fixture(scope="session")
def laboratory(lasting_store: StoreOf) -> Iterator[Laboratory]:
    made = Laboratory(PATIENT, lasting_store())
    yield made
    made.close()


@pytest.fixture
def laboratory_with(store_of: StoreOf) -> Iterator[Callable[..., Laboratory]]:
    """Laboratories with limits and settings of their own."""
    made: list[Laboratory] = []

    def make(limits: Limits, **settings: Any) -> Laboratory:
        made.append(Laboratory(limits, store_of(), **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def container(pleiad_database: DatabaseProxy) -> ContainerProxy:
    """A container with the key /pk."""
    return pleiad_database.create_container("things", PartitionKey("/pk"))


@pytest.fixture
def refused() -> Callable[..., contextlib.AbstractContextManager[None]]:
    """`with refused(404, 1002, "text"):` the client raises this status, sub-status and message."""

    @contextlib.contextmanager
    def expect(status: int, substatus: int | None = None, text: str = "") -> Iterator[None]:
        with pytest.raises(CosmosHttpResponseError) as caught:
            yield
        error = caught.value
        assert error.status_code == status, error
        if substatus is not None:
            assert (error.sub_status or 0) == substatus, error
        assert not text or text in str(error)

    return expect
