"""Many item operations in one request, none of which depends on another."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

import orjson

from pleiad.client.admin import RequestRefusedError
from pleiad.client.connection import Answer, Connection
from pleiad.client.containers import FoundContainer, accepted
from pleiad.item.body import strip_system

OPERATIONS_MAX = 100
"""What a request may hold."""
BUSY = frozenset({408, 410, 429, 449, 503})
"""Refusals that pass by themselves."""
THROTTLED = 429
"""The one of them after which nothing was done for sure."""
_HEADERS = {
    "Content-Type": "application/json",
    "Prefer": "return=minimal",
    "x-ms-cosmos-is-batch-request": "True",
    "x-ms-cosmos-batch-continue-on-error": "True",
}
_READING = {name: value for name, value in _HEADERS.items() if name != "Prefer"}


class ItemWrite(NamedTuple):
    """An item to be written, and where it came from."""

    number: int
    line: int
    id: str
    key: bytes
    """Its partition key, as a JSON array."""
    body: bytes


class Ending(NamedTuple):
    """How one operation ended."""

    status: int
    charge_ru: float
    retry_after_ms: int
    message: str

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class BulkWriter:
    """Writes items to a container over one connection, for the time of a with-block."""

    def __init__(self, endpoint: str, key: str, container: FoundContainer, is_upsert: bool) -> None:
        self._connection = Connection(endpoint, key)
        self._link = container.link
        self._start = b'{"operationType":"%b","partitionKey":' % (b"Upsert" if is_upsert else b"Create")

    def __enter__(self) -> BulkWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.__exit__(kind, error, trace)

    def write(self, items: Sequence[ItemWrite]) -> list[Ending]:
        """How the write of each item ended; RequestRefusedError when the server refused all of them at once."""
        start = self._start
        body = b",".join([b'%b%b,"resourceBody":%b}' % (start, each.key, each.body) for each in items])
        return [_ending(result) for result in self._send(_HEADERS, b"[%b]" % body, len(items))]

    def holds(self, items: Sequence[ItemWrite]) -> list[bool | None]:
        """Of each item whether the container has it exactly like this; None where that was throttled.

        Raises `RequestRefusedError` when the server is busy with something else.
        """
        reads = [
            {"operationType": "Read", "id": each.id, "partitionKey": orjson.loads(each.key)} for each in items
        ]
        results = self._send(_READING, orjson.dumps(reads), len(items))
        for status in (result["statusCode"] for result in results):
            if status in BUSY and status != THROTTLED:
                raise RequestRefusedError(status, f"the server answered with {status}")
        return [
            None if result["statusCode"] == THROTTLED else _same(result.get("resourceBody"), each.body)
            for result, each in zip(results, items, strict=True)
        ]

    def _send(self, headers: dict[str, str], body: bytes, count: int) -> list[dict[str, Any]]:
        path = (*self._link, "docs")
        answer = self._connection.request("POST", path, "docs", self._link, headers, body)
        results = _results(answer)
        if not isinstance(results, list) or len(results) != count:
            raise RequestRefusedError(answer.status, "the answer is not one of bulk; is it a Pleiad server?")
        return results


def _results(answer: Answer) -> Any:
    try:
        return orjson.loads(answer.body) if answer.is_success else accepted(answer)
    except orjson.JSONDecodeError:
        return accepted(answer)


def _ending(result: dict[str, Any]) -> Ending:
    return Ending(
        int(result["statusCode"]),
        float(result.get("requestCharge") or 0),
        int(result.get("retryAfterMilliseconds") or 0),
        str(result.get("message") or ""),
    )


def _same(stored: Any, body: bytes) -> bool:
    if not isinstance(stored, dict):
        return False
    strip_system(stored)
    given: dict[str, Any] = orjson.loads(body)
    strip_system(given)
    return stored == given
