"""The change feed over the wire: signed requests without a client library, for what no library sends or shows."""

from __future__ import annotations

import base64
import hmac
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

import pytest

from pleiad.testing.start import RunningServer
from tests.waiting import SECONDS_MAX


@dataclass(frozen=True)
class FeedReply:
    """One response; header names are lower-case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def place(self) -> str:
        return self.headers["etag"]

    @property
    def entries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.body)["Documents"] if self.status == 200 else []
        return found

    @property
    def message(self) -> str:
        return str(json.loads(self.body)["message"])


class FeedWire:
    """One connection to a server."""

    def __init__(self, server: RunningServer) -> None:
        self._key = base64.b64decode(server.key)
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS_MAX)

    def get(self, link: str, query: dict[str, Any] | None = None, **headers: str) -> FeedReply:
        """One page of the feed of latest versions, or of what `A_IM` says; with a query, of what passes it."""
        date = formatdate(usegmt=True)
        method = "GET" if query is None else "POST"
        text = f"{method.lower()}\ndocs\n{link}\n{date.lower()}\n\n"
        proof = base64.b64encode(hmac.digest(self._key, text.encode(), "sha256")).decode()
        sent = {
            "x-ms-date": date,
            "x-ms-version": "2020-07-15",
            "authorization": quote(f"type=master&ver=1.0&sig={proof}", safe=""),
            "A-IM": "Incremental Feed",
            **({} if query is None else {"x-ms-documentdb-isquery": "True"}),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        body = None if query is None else json.dumps(query)
        self._connection.request(method, f"/{link}/docs", body, sent)
        answer = self._connection.getresponse()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return FeedReply(answer.status, fields, answer.read())

    def all_versions(
        self, link: str, place: str = "*", query: dict[str, Any] | None = None, **headers: str
    ) -> FeedReply:
        """One page of the feed of all versions and deletes."""
        fidelity = {"A_IM": "Full-Fidelity Feed", "If_None_Match": place}
        return self.get(link, query, **{**fidelity, **headers})

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def wire(pleiad_server: RunningServer) -> Iterator[FeedWire]:
    opened = FeedWire(pleiad_server)
    yield opened
    opened.close()
