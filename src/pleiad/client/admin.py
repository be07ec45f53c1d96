"""The admin API of a running server, one method a call.

What the server refuses is a RequestRefusedError whose text is the server's own sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pleiad.client.connection import Answer, Connection

_ROOT = ("_pleiad", "v1")
_CONTINUATION = "x-ms-continuation"
_FOR_PROGRAMS = re.compile(r"^Resource Not Found\. Learn more: \S+ (?=\S)")
"""What clients look for in a message, before what is said to people."""


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

    def explain(self, database: str, container: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What is to be known of a query without running it."""
        return dict(self._ask("POST", *_path(database, container), "explain", body=body))

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

    def backups(self) -> dict[str, Any]:
        """The whole backups, and the one under way or asked for last."""
        return dict(self._ask("GET", "backups"))

    def backup(self, name: str) -> dict[str, Any]:
        return dict(self._ask("GET", "backups", name))

    def start_backup(self, keep: int | None) -> dict[str, Any]:
        return dict(self._ask("POST", "backups", body={} if keep is None else {"keep": keep}))

    def copies(self) -> list[dict[str, Any]]:
        """The copies of containers under way and those that ended last, the oldest first."""
        return list(self._ask("GET", "copies")["copies"])

    def copy(self, id: str) -> dict[str, Any]:
        return dict(self._ask("GET", "copies", id))

    def start_copy(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """Begins a copy; the same one that is under way is told of instead."""
        return dict(self._ask("POST", "copies", body=plan))

    def complete_copy(self, id: str) -> dict[str, Any]:
        return dict(self._ask("POST", "copies", id, "complete"))

    def cancel_copy(self, id: str) -> dict[str, Any]:
        return dict(self._ask("DELETE", "copies", id))

    def advice(self, database: str, container: str) -> dict[str, Any]:
        """How far the advice on the key of a container is, and whether there is a report."""
        return dict(self._ask("GET", *_path(database, container), "advice"))

    def start_advice(self, database: str, container: str, plan: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self._ask("POST", *_path(database, container), "advice", body=plan))

    def cancel_advice(self, database: str, container: str) -> dict[str, Any]:
        return dict(self._ask("DELETE", *_path(database, container), "advice"))

    def advice_report(self, database: str, container: str) -> dict[str, Any]:
        """The newest report of the server on a container."""
        return dict(self._ask("GET", *_path(database, container), "advice", "report"))

    def warnings(self) -> list[dict[str, Any]]:
        return list(self._ask("GET", "warnings")["warnings"])

    def busiest(self) -> dict[str, Any]:
        """Sums of requests by container, operation and query, since somebody began to look."""
        return dict(self._ask("GET", "top"))

    def workload(self, database: str, container: str) -> dict[str, Any]:
        """Whether a container is recorded, and how much there is."""
        return dict(self._ask("GET", *_path(database, container), "workload"))

    def switch_workload(self, database: str, container: str, mode: str) -> dict[str, Any]:
        """Has a container recorded: `values`, `hashes` or `off`."""
        return dict(self._ask("PUT", *_path(database, container), "workload", body={"record": mode}))

    def forget_workload(self, database: str, container: str) -> None:
        self._ask("DELETE", *_path(database, container), "workload")

    def workload_lines(self, database: str, container: str, hashed: bool = False) -> Iterator[bytes]:
        """The record of a container, pieces of whole lines."""
        path = (*_path(database, container), "workload", "records")
        continuation = ""
        while True:
            headers = {_CONTINUATION: continuation} if continuation else {}
            answer = self._answer("GET", path, None, {"hashed": int(hashed)}, headers)
            continuation = answer.headers.get(_CONTINUATION, "")
            if answer.body:
                yield answer.body
            if not continuation:
                return

    def add_workload(self, database: str, container: str, lines: bytes) -> int:
        """Puts lines behind the record of a container; how many they were."""
        answer = self._answer("POST", (*_path(database, container), "workload"), lines)
        return int(answer.json()["added"])

    def _ask(
        self,
        method: str,
        *names: str,
        body: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Any:
        content = None if body is None else json.dumps(body).encode()
        answer = self._answer(method, names, content, parameters)
        return answer.json() if answer.body else None

    def _answer(
        self,
        method: str,
        names: Sequence[str],
        content: bytes | None,
        parameters: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        path = (*_ROOT, *names)
        kind, link = (path[-1], path[:-1]) if len(path) % 2 else (path[-2], path)
        answer = self._connection.request(method, path, kind, link, headers or {}, content, parameters)
        if not answer.is_success:
            raise refusal(answer)
        return answer


def _path(database: str, container: str | None) -> tuple[str, ...]:
    return ("dbs", database) if container is None else ("dbs", database, "colls", container)


def refusal(answer: Answer) -> RequestRefusedError:
    """What to raise for a failure: the server's message without the line for its log."""
    return RequestRefusedError(answer.status, sentence(answer.status, answer.body))


def sentence(status: int, body: bytes) -> str:
    """The server's message without the line for its log, and without what stands there for programs."""
    try:
        message = str(json.loads(body)["message"]).partition("\r\nActivityId:")[0]
    except (ValueError, TypeError, LookupError, RecursionError):
        return f"the server answered with status {status} and no reason; is it a Pleiad server?"
    if status == 401:
        return "the server does not accept this key: it needs the account's, given with --key or PLEIAD_KEY"
    return _FOR_PROGRAMS.sub("", message)
