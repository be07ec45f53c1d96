"""The admin API of a running server, one method a call.

What the server refuses is a RequestRefusedError whose text is the server's own sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pleiad.client.connection import Connection

_ROOT = ("_pleiad", "v1")


class RequestRefusedError(Exception):
    """The server answered with a failure; the text is for the person who asked."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Admin:
    """Calls of the admin API over one connection. A container is a pair of names."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def partitions(self, database: str, container: str, largest: int = 5, hottest: int = 5) -> dict[str, Any]:
        """The physical partitions of a container and its notable logical partitions."""
        parameters = {"largest": largest, "hottest": hottest}
        return dict(self._ask("GET", *_path(database, container), "partitions", parameters=parameters))

    def redistribute(
        self, database: str, container: str, rates: Mapping[str, float] | None
    ) -> dict[str, Any]:
        """Gives each physical partition RU/s of its own, or even shares; what each has then."""
        body = {"ru": None if rates is None else dict(rates)}
        return dict(self._ask("PUT", *_path(database, container), "partitions", body=body)["ru"])

    def split(self, database: str, container: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self._ask("POST", *_path(database, container), "split", body=body))

    def merge(self, database: str, container: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self._ask("POST", *_path(database, container), "merge", body=body))

    def account_throughput(self) -> dict[str, Any]:
        """The throughput of all databases and containers together, and the budget of requests on metadata."""
        return dict(self._ask("GET", "throughput"))

    def throughput(self, database: str, container: str | None) -> dict[str, Any]:
        """The throughput of a database, or of a container."""
        return dict(self._ask("GET", *_path(database, container), "throughput"))

    def set_throughput(
        self, database: str, container: str | None, wanted: Mapping[str, Any]
    ) -> dict[str, Any]:
        return dict(self._ask("PUT", *_path(database, container), "throughput", body=wanted))

    def faults(self) -> list[dict[str, Any]]:
        return list(self._ask("GET", "faults")["faults"])

    def fault(self, id: str) -> dict[str, Any]:
        """A fault, in force or over not long ago."""
        return dict(self._ask("GET", "faults", id))

    def add_fault(self, rule: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self._ask("POST", "faults", body=rule))

    def remove_fault(self, id: str) -> None:
        self._ask("DELETE", "faults", id)

    def clear_faults(self) -> int:
        """Ends all faults; how many there were."""
        return int(self._ask("DELETE", "faults")["cleared"])

    def warnings(self) -> list[dict[str, Any]]:
        return list(self._ask("GET", "warnings")["warnings"])

    def _ask(
        self,
        method: str,
        *names: str,
        body: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Any:
        path = (*_ROOT, *names)
        kind, link = (path[-1], path[:-1]) if len(path) % 2 else (path[-2], path)
        content = None if body is None else json.dumps(body).encode()
        answer = self._connection.request(method, path, kind, link, {}, content, parameters)
        if not answer.is_success:
            raise RequestRefusedError(answer.status, _sentence(answer.status, answer.body))
        return answer.json() if answer.body else None


def _path(database: str, container: str | None) -> tuple[str, ...]:
    return ("dbs", database) if container is None else ("dbs", database, "colls", container)


def _sentence(status: int, body: bytes) -> str:
    """The server's message without the line for its log."""
    try:
        message = str(json.loads(body)["message"]).partition("\r\nActivityId:")[0]
    except (ValueError, TypeError, LookupError, RecursionError):
        return f"the server answered with status {status} and no reason; is it a Pleiad server?"
    if status == 401:
        return "the server does not accept this key: it needs the account's, given with --key or PLEIAD_KEY"
    return message
