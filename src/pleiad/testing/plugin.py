"""The pytest plugin: one server per test run, a client for it, and a fresh database per test.

Installed with Pleiad; a test just names the fixture it wants:

    def test_orders(pleiad_database):
        orders = pleiad_database.create_container("orders", PartitionKey("/customerId"))
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pleiad.testing.start import RunningServer


@pytest.fixture(scope="session")
def pleiad_heads() -> str | Sequence[str]:
    """The heads that the server of the test run has beside NoSQL; define it anew for others, or for `"all"`."""
    return ()


@pytest.fixture(scope="session")
def pleiad_server(pleiad_heads: str | Sequence[str]) -> Iterator[RunningServer]:
    """A server with temporary data for the whole test run."""
    from pleiad.testing.start import start

    with start(heads=pleiad_heads) as server:
        yield server


@pytest.fixture(scope="session")
def pleiad_client(pleiad_server: RunningServer) -> Any:
    """The official Python client, connected to the server of the test run."""
    from azure.cosmos import CosmosClient

    return CosmosClient(pleiad_server.endpoint, pleiad_server.key)


@pytest.fixture
def pleiad_database(pleiad_client: Any) -> Iterator[Any]:
    """A new database for one test, deleted after it."""
    id = f"test-{uuid.uuid4()}"
    yield pleiad_client.create_database(id)
    pleiad_client.delete_database(id)
