"""The official Python client asking queries, with what each answer tells about its cost and its way."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

RU_PER_PARTITION = 6_000
_names = itertools.count()


@dataclass
class Asked:
    """The results of a query and the headers of its pages."""

    results: list[Any]
    headers: list[dict[str, Any]] = field(default_factory=list)

    @property
    def charge_ru(self) -> float:
        return round(sum(float(page["x-ms-request-charge"]) for page in self.headers), 2)

    @property
    def ranges(self) -> set[str]:
        """The physical partitions that were asked, as the reports name them."""
        return {id for page in self.headers for id in page["x-pleiad-partitions-visited"].split(",")}


@pytest.fixture
def ask() -> Callable[..., Asked]:
    """Runs a query of the client to its end; without key or feed range it may cross partitions."""

    def asked(
        container: ContainerProxy, text: str, values: dict[str, Any] | None = None, **options: Any
    ) -> Asked:
        answer = Asked([])
        if "partition_key" not in options and "feed_range" not in options:
            options.setdefault("enable_cross_partition_query", True)
        options.setdefault("populate_query_metrics", True)
        parameters = [{"name": name, "value": value} for name, value in (values or {}).items()]
        found = container.query_items(
            query=text,
            parameters=parameters,
            response_hook=lambda headers, _: answer.headers.append(dict(headers)),
            **options,
        )
        answer.results = list(found)
        return answer

    return asked


@pytest.fixture(scope="session")
def query_database(pleiad_client: Any) -> Iterator[DatabaseProxy]:
    """One database for all query tests; its containers have names of their own."""
    database = pleiad_client.create_database("queries")
    yield database
    pleiad_client.delete_database("queries")


@pytest.fixture(scope="session")
def make_container(query_database: DatabaseProxy) -> Callable[..., ContainerProxy]:
    """A container with these items on that many physical partitions."""

    def make(
        items: list[dict[str, Any]], key: Any = "/pk", partitions: int = 1, **options: Any
    ) -> ContainerProxy:
        partition_key = PartitionKey(key, kind="Hash" if isinstance(key, str) else "MultiHash")
        container: ContainerProxy = query_database.create_container(
            f"container-{next(_names)}",
            partition_key,
            offer_throughput=RU_PER_PARTITION * partitions,
            **options,
        )
        for item in items:
            container.upsert_item(item)
        return container

    return make


@pytest.fixture
def refused() -> Callable[..., contextlib.AbstractContextManager[None]]:
    """`with refused(400, "text"):` the client raises this status and message."""

    @contextlib.contextmanager
    def expect(status: int, text: str = "") -> Iterator[None]:
        with pytest.raises(CosmosHttpResponseError) as caught:
            yield
        assert caught.value.status_code == status, caught.value
        assert text in str(caught.value)

    return expect
