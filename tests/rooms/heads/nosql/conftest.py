"""A signed HTTP request as a client library sends it, without the library: the wire itself is looked at."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import itertools
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

import pytest

from attack.callers import signature, signed_parts
from pleiad.node import Node
from pleiad.settings import Settings
from pleiad.testing.start import RunningServer
from tests.coroutines import LoopThread
from tests.stores import StartServer, StoreOf
from tests.waiting import SECONDS_MAX

PARTITION_KEY = "x-ms-documentdb-partitionkey"
IDLE_SECONDS_MAX = 60
"""A server closes connections that nobody uses, and other tests may take a while."""
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    """One response; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json["message"])

    @property
    def substatus(self) -> int:
        return int(self.headers.get("x-ms-substatus", "0"))


class Wire:
    """A connection to one server on which signed requests are sent."""

    def __init__(self, server: RunningServer, store_of: StoreOf) -> None:
        self.server = server
        self._store_of = store_of
        self._connection: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def signed(
        self, method: str, segments: Sequence[str], moment: float | None = None, key: str | None = None
    ) -> dict[str, str]:
        """The headers that prove who asks for a path by names."""
        kind, link = signed_parts(segments)
        return self.signed_for(method, kind, link, moment, key)

    def signed_for(
        self, method: str, kind: str, link: str, moment: float | None = None, key: str | None = None
    ) -> dict[str, str]:
        """The headers that prove who asks, for a resource type and link."""
        date = formatdate(time.time() if moment is None else moment, usegmt=True)
        proof = signature(key or self.server.key, method, kind, link, date)
        return {"x-ms-date": date, "authorization": proof, "x-ms-version": "2020-07-15"}

    def proof(self, method: str, kind: str, link: str, date: str) -> str:
        """The authorization header for any text as date."""
        return signature(self.server.key, method, kind, link, date)

    @contextlib.contextmanager
    def serve(self, settings: Settings) -> Iterator[Wire]:
        """A connection to another server, started with these settings on a loop of its own."""
        node = Node(dataclasses.replace(settings, store=self._store_of()))
        thread = LoopThread()
        try:
            thread.ask(node.start())
            port = node.server.port
            server = RunningServer(f"http://localhost:{port}", settings.key, port, os.getpid())
            wire = Wire(server, self._store_of)
            yield wire
            wire.close()
            thread.ask(node.stop())
        finally:
            thread.close()

    def send(
        self,
        method: str,
        segments: Sequence[str],
        body: bytes | dict[str, Any] | list[Any] | None = None,
        headers: Mapping[str, str] | None = None,
        key: Sequence[Any] | None = None,
        slash: bool = False,
    ) -> Answer:
        """Sends a signed request; headers given replace the signed ones, `key` is the partition key."""
        fields = {**self.signed(method, segments), **(headers or {})}
        if key is not None:
            fields.setdefault(PARTITION_KEY, json.dumps(list(key)))
        path = "/" + "/".join(quote(segment, safe="") for segment in segments) + ("/" if slash else "")
        payload = json.dumps(body).encode() if isinstance(body, dict | list) else body
        return self.send_raw(method, path, payload, fields)

    def send_raw(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Sends exactly these headers."""
        if time.monotonic() - self._used_at > IDLE_SECONDS_MAX:
            self.close()
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=SECONDS_MAX)
        self._used_at = time.monotonic()
        try:
            self._connection.request(method, path, body, dict(headers))
            response = self._connection.getresponse()
            content = response.read()
        except BaseException:
            self.close()
            raise
        if response.will_close:
            self.close()
        return Answer(
            response.status, {name.lower(): value for name, value in response.getheaders()}, content
        )


@dataclass(frozen=True)
class Place:
    """A container to work in, with the requests most tests need."""

    wire: Wire
    database: str
    container: str
    rid: str
    self_link: str

    @property
    def path(self) -> list[str]:
        return ["dbs", self.database, "colls", self.container]

    def create(self, item: bytes | dict[str, Any], key: Sequence[Any], **headers: str) -> Answer:
        return self.wire.send("POST", [*self.path, "docs"], item, _dashed(headers), key)

    def read(self, id: str, key: Sequence[Any] | None, **headers: str) -> Answer:
        return self.wire.send("GET", [*self.path, "docs", id], None, _dashed(headers), key)


def _dashed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def make_place(wire: Wire, partition_key: dict[str, Any], headers: Mapping[str, str] | None = None) -> Place:
    """A new container in a new database."""
    database, container = f"wire-{next(_numbers)}", "things"
    assert wire.send("POST", ["dbs"], {"id": database}).status == 201
    body = {"id": container, "partitionKey": partition_key}
    answer = wire.send("POST", ["dbs", database, "colls"], body, headers)
    assert answer.status == 201, answer.body
    return Place(wire, database, container, answer.json["_rid"], answer.json["_self"])


@pytest.fixture(scope="session")
def wire_server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as server:
        yield server


@pytest.fixture(scope="session")
def wire(wire_server: RunningServer, lasting_store: StoreOf) -> Iterator[Wire]:
    connection = Wire(wire_server, lasting_store)
    yield connection
    connection.close()


@pytest.fixture
def place(wire: Wire) -> Iterator[Place]:
    """A container with the key /pk."""
    made = make_place(wire, {"paths": ["/pk"], "kind": "Hash", "version": 2})
    yield made
    wire.send("DELETE", ["dbs", made.database])


@pytest.fixture
def hierarchical_place(wire: Wire) -> Iterator[Place]:
    """A container with the key /tenant, /user, /session."""
    paths = ["/tenant", "/user", "/session"]
    made = make_place(wire, {"paths": paths, "kind": "MultiHash", "version": 2})
    yield made
    wire.send("DELETE", ["dbs", made.database])


@pytest.fixture
def spread_place(wire: Wire) -> Iterator[Place]:
    """A container on five physical partitions."""
    key = {"paths": ["/pk"], "kind": "Hash", "version": 2}
    made = make_place(wire, key, {"x-ms-offer-throughput": "30000"})
    yield made
    wire.send("DELETE", ["dbs", made.database])
