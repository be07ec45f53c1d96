"""The pytest plugin: one server per test run, clients for it, and a fresh database per test.

Installed with Pleiad; a test just names the fixture it wants:

    def test_orders(pleiad_database):
        orders = pleiad_database.create_container("orders", PartitionKey("/customerId"))

The fixtures `pleiad_async_*` are coroutines, for tests that pytest-asyncio or anyio runs. Where the variable
PLEIAD_CONNECTION_STRING names a server, that one is used instead of one of the run's own.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pleiad.limits import Limits
    from pleiad.testing.start import RunningServer


@pytest.fixture(scope="session")
def pleiad_heads() -> str | Sequence[str]:
    """The heads that the server of the test run has beside NoSQL; define it anew for others, or for `"all"`."""
    return ()


@pytest.fixture(scope="session")
def pleiad_limits() -> str | Limits:
    """The limits of the server: a profile's name or file, or a `Limits`; define it anew for others."""
    return "default"


@pytest.fixture(scope="session")
def pleiad_throttle() -> str:
    """What happens beyond the throughput of a container; define it anew as `"enforce"` for answers of 429."""
    return "observe"


@pytest.fixture(scope="session")
def pleiad_load() -> str | os.PathLike[str] | None:
    """A folder with the data that tests find on the server; define it anew to name one."""
    return None


@pytest.fixture(scope="session")
def pleiad_server(
    pleiad_heads: str | Sequence[str],
    pleiad_limits: str | Limits,
    pleiad_throttle: str,
    pleiad_load: str | os.PathLike[str] | None,
) -> Iterator[RunningServer]:
    """A server with temporary data for the whole test run, or the one that PLEIAD_CONNECTION_STRING names."""
    from pleiad.testing.start import named_server, start

    with named_server() or start(
        heads=pleiad_heads, limits=pleiad_limits, throttle=pleiad_throttle, load=pleiad_load
    ) as server:
        yield server


@pytest.fixture(scope="session")
def pleiad_client(pleiad_server: RunningServer) -> Any:
    """The official Python client, connected to the server of the test run."""
    client_class = _official_client("azure.cosmos", "azure-cosmos")
    return client_class(pleiad_server.endpoint, pleiad_server.key)


@pytest.fixture
def pleiad_database(pleiad_client: Any) -> Iterator[Any]:
    """A new database for one test, deleted after it."""
    id = _new_name()
    yield pleiad_client.create_database(id)
    with _unless_gone():
        pleiad_client.delete_database(id)


def _async_fixture() -> Callable[[Callable[..., Any]], Any]:
    """What makes a fixture of a coroutine: pytest-asyncio, in its strict mode too, or else whoever runs the test."""
    if find_spec("pytest_asyncio") is None:
        return pytest.fixture
    made: Callable[[Callable[..., Any]], Any] = import_module("pytest_asyncio").fixture
    return made


@_async_fixture()
async def pleiad_async_client(pleiad_server: RunningServer) -> AsyncIterator[Any]:
    """The official asynchronous Python client, open for one test."""
    client_class = _official_client("azure.cosmos.aio", "azure-cosmos aiohttp")
    async with client_class(pleiad_server.endpoint, pleiad_server.key) as client:
        yield client


@_async_fixture()
async def pleiad_async_database(pleiad_async_client: Any) -> AsyncIterator[Any]:
    """A new database of the asynchronous client for one test, deleted after it."""
    id = _new_name()
    yield await pleiad_async_client.create_database(id)
    with _unless_gone():
        await pleiad_async_client.delete_database(id)


def _official_client(module: str, libraries: str) -> Any:
    """The class of the official client; a test that asks for it where it is not installed is told what to install."""
    try:
        return import_module(module).CosmosClient
    except ImportError as error:
        pytest.fail(
            f"this fixture gives the official client, which is not here ({error}): pip install {libraries}",
            pytrace=False,
        )


def _new_name() -> str:
    return f"test-{uuid.uuid4()}"


def _unless_gone() -> contextlib.AbstractContextManager[None]:
    """The test may have deleted its database itself, or rolled the server back."""
    from azure.cosmos.exceptions import CosmosResourceNotFoundError

    return contextlib.suppress(CosmosResourceNotFoundError)
