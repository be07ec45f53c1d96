"""A server with clients that ask in both ways, and containers to ask about."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from pleiad.testing.start import RunningServer
from tests.clients.direct.frames import Direct, Https
from tests.stores import StartServer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def direct_server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as server:
        yield server


@pytest.fixture
def direct(direct_server: RunningServer) -> Iterator[Direct]:
    client = Direct(direct_server)
    yield client
    client.close()


@pytest.fixture
def https(direct: Direct) -> Https:
    return direct.https


@pytest.fixture
def container(https: Https) -> list[str]:
    """The path of a new container with the key /pk, on one physical partition."""
    return make_container(https)


def make_container(https: Https, ru: int = 400, **properties: Any) -> list[str]:
    database = f"direct-{next(_numbers)}"
    assert https.send("POST", ["dbs"], {"id": database}).status == 201
    body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, **properties}
    made = https.send("POST", ["dbs", database, "colls"], body, {"x-ms-offer-throughput": str(ru)})
    assert made.status == 201, made.body
    return ["dbs", database, "colls", "c"]
