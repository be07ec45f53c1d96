"""Plain HTTP to a running server, as anybody sends it."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from pleiad.testing.start import RunningServer
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX


@dataclass(frozen=True)
class Answer:
    """One response; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Ask = Callable[..., Answer]


@pytest.fixture(scope="module")
def server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as server:
        yield server


@pytest.fixture
def ask(server: RunningServer) -> Ask:
    """Sends one request, unsigned unless the headers say otherwise."""

    def send(path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS_MAX)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            answer = connection.getresponse()
            body = answer.read()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)
        finally:
            connection.close()

    return send
