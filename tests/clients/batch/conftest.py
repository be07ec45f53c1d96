"""Batches over the wire: signed requests without a client library, for what no library sends or shows."""

from __future__ import annotations

import base64
import hmac
import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

import pytest
from azure.cosmos import ContainerProxy, DatabaseProxy, PartitionKey

from pleiad.testing.start import RunningServer
from tests.waiting import SECONDS_MAX


@dataclass(frozen=True)
class BatchReply:
    """One response; header names are lower-case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def statuses(self) -> list[int]:
        return [entry["statusCode"] for entry in self.json]


class BatchWire:
    """One connection; `OSError` or `HTTPException` when the server is gone."""

    def __init__(self, server: RunningServer) -> None:
        self._key = base64.b64decode(server.key)
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS_MAX)

    def post(self, link: str, kind: str, body: Any, **headers: str) -> BatchReply:
        """Posts to the feed of that kind under a link; bytes go as they are."""
        date = formatdate(usegmt=True)
        text = f"post\n{kind}\n{link}\n{date.lower()}\n\n"
        proof = base64.b64encode(hmac.digest(self._key, text.encode(), "sha256")).decode()
        sent = {
            "x-ms-date": date,
            "x-ms-version": "2020-07-15",
            "authorization": quote(f"type=master&ver=1.0&sig={proof}", safe=""),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._connection.request("POST", f"/{link}/{kind}".replace("//", "/"), payload, sent)
        answer = self._connection.getresponse()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return BatchReply(answer.status, fields, answer.read())

    def batch(self, link: str, operations: Any, key: str = '["a"]', **headers: str) -> BatchReply:
        """A transactional batch in one logical partition."""
        sent = {
            "x_ms_cosmos_is_batch_request": "True",
            "x_ms_cosmos_batch_atomic": "True",
            "x_ms_documentdb_partitionkey": key,
        }
        return self.post(link, "docs", operations, **(sent | headers))

    def bulk(self, link: str, operations: Any, range_id: str = "0", **headers: str) -> BatchReply:
        """Independent operations, sent to one physical partition."""
        sent = {
            "x_ms_cosmos_is_batch_request": "true",
            "x_ms_cosmos_batch_atomic": "false",
            "x_ms_cosmos_batch_continue_on_error": "true",
            "x_ms_documentdb_partitionkeyrangeid": range_id,
        }
        return self.post(link, "docs", operations, **(sent | headers))

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def new_wire() -> Iterator[Callable[[RunningServer], BatchWire]]:
    """Opens connections that are closed after the test."""
    opened: list[BatchWire] = []

    def connect(server: RunningServer) -> BatchWire:
        opened.append(BatchWire(server))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


@pytest.fixture
def wire(pleiad_server: RunningServer, new_wire: Callable[[RunningServer], BatchWire]) -> BatchWire:
    return new_wire(pleiad_server)


@pytest.fixture
def container(pleiad_database: DatabaseProxy) -> ContainerProxy:
    """A container with the key /pk."""
    return pleiad_database.create_container("things", PartitionKey("/pk"))
