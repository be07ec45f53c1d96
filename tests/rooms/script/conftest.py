"""Scripts through the official Python client."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.limits import Limits
from tests.stores import StartServer

_numbers = itertools.count(1)
Refused = Callable[..., contextlib.AbstractContextManager[None]]


class Scripted:
    """A container in which scripts are run by their text."""

    def __init__(self, container: ContainerProxy) -> None:
        self.container = container
        # The client sends any JSON as parameters and declares objects only.
        self.scripts: Any = container.scripts

    def run(self, body: str, *arguments: Any, pk: Any = "a", **options: Any) -> Any:
        """Makes a procedure of a text and executes it."""
        id = f"procedure-{next(_numbers)}"
        self.scripts.create_stored_procedure({"id": id, "body": body})
        try:
            return self.scripts.execute_stored_procedure(id, pk, list(arguments), **options)
        finally:
            self.scripts.delete_stored_procedure(id)

    def trigger(self, body: str, type: str = "Pre", operation: str = "All") -> str:
        id = f"trigger-{next(_numbers)}"
        self.scripts.create_trigger(
            {"id": id, "body": body, "triggerType": type, "triggerOperation": operation}
        )
        return id

    def ids(self, pk: Any = "a") -> list[str]:
        found = self.container.query_items("SELECT VALUE c.id FROM c", partition_key=pk)
        return sorted(str(id) for id in found)

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.container.client_connection.last_response_headers)


@pytest.fixture
def scripted(pleiad_database: DatabaseProxy) -> Scripted:
    """A container with the key /pk."""
    return Scripted(pleiad_database.create_container("scripted", PartitionKey("/pk")))


HASTY_SECONDS = 0.3


@pytest.fixture(scope="session")
def strict_client(start_lasting_server: StartServer) -> Iterator[CosmosClient]:
    """A server with little of everything but time, so that limits are met soon."""
    limits = Limits(
        operation_seconds=60.0,
        response_bytes=100_000,
        query_memory_bytes=1_000_000,
        script_memory_bytes=16 * 1024 * 1024,
        script_processes=2,
        script_ru=100,
        stored_procedures=8,
        triggers=2,
        user_defined_functions=2,
        script_bytes=2_000,
    )
    with start_lasting_server(limits=limits) as server:
        yield CosmosClient(server.endpoint, server.key)


@pytest.fixture
def strict(strict_client: CosmosClient) -> Scripted:
    database = strict_client.create_database(f"strict-{next(_numbers)}")
    return Scripted(database.create_container("strict", PartitionKey("/pk")))


@pytest.fixture(scope="session")
def hasty_client(start_lasting_server: StartServer) -> Iterator[CosmosClient]:
    """A server that gives scripts so little time that it is for those only which do not end."""
    with start_lasting_server(limits=Limits(operation_seconds=HASTY_SECONDS)) as server:
        yield CosmosClient(server.endpoint, server.key)


@pytest.fixture
def hasty(hasty_client: CosmosClient) -> Scripted:
    database = hasty_client.create_database(f"hasty-{next(_numbers)}")
    return Scripted(database.create_container("hasty", PartitionKey("/pk")))


@pytest.fixture
def refused() -> Refused:
    """`with refused(404, 1002, "text"):` the client raises this status, sub-status and message."""

    @contextlib.contextmanager
    def expect(status: int, substatus: int | None = None, text: str = "") -> Iterator[None]:
        with pytest.raises(CosmosHttpResponseError) as caught:
            yield
        error = caught.value
        assert error.status_code == status, error
        if substatus is not None:
            assert (error.sub_status or 0) == substatus, error
        assert not text or text in str(error), error

    return expect
