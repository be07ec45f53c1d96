"""A server with its admin API, and a container to look at."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

import pleiad
from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from pleiad.testing.start import RunningServer

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with pleiad.start() as started:
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
    made: Any = database.create_container("things", PartitionKey("/pk"))
    made.create_item({"id": "1", "pk": "a"})
    return made
