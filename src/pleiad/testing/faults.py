"""Faults on demand for the tests of a team: `server.faults.add(429, count=3)`."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any

from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Connection


class Fault:
    """A fault that was set; used in a with-block it ends with it."""

    def __init__(self, faults: Faults, id: str) -> None:
        self._faults = faults
        self.id = id

    @property
    def hits(self) -> int:
        """How many requests met it until now; of a hold, how many splits and merges."""
        with self._faults.connection() as connection:
            return int(Admin(connection).fault(self.id)["hits"])

    def remove(self) -> None:
        """Ends the fault, unless it is over already."""
        with contextlib.suppress(RequestRefusedError), self._faults.connection() as connection:
            Admin(connection).remove_fault(self.id)

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class Faults:
    """The faults of one server."""

    def __init__(self, endpoint: str, key: str) -> None:
        self._endpoint = endpoint
        self._key = key

    def connection(self) -> Connection:
        return Connection(self._endpoint, self._key)

    def add(
        self,
        fault: str | int,
        *,
        count: int | None = None,
        share: float | None = None,
        seed: int | None = None,
        database: str | None = None,
        container: str | None = None,
        partition: str | None = None,
        operation: str | None = None,
        delay_ms: int | None = None,
        retry_after_ms: int | None = None,
        seconds: float | None = None,
    ) -> Fault:
        """Sets a fault: 429, 449, 408, "410/1002", "410/1007", 500, 503, "late", "cut-before" or "cut-after".

        It happens to the next request on an item, or to the next `count`, or to a `share` of them drawn from the
        `seed`; of one `database`, `container`, `partition` (range id) or `operation` only, where one is given.
        """
        rule: dict[str, Any] = {
            "fault": str(fault),
            "count": count,
            "share": share,
            "seed": seed,
            "database": database,
            "container": container,
            "partition": partition,
            "operation": operation,
            "delayMs": delay_ms,
            "retryAfterMs": retry_after_ms,
            "seconds": seconds,
        }
        return self._set(rule)

    def hold(
        self,
        phase: str,
        *,
        database: str | None = None,
        container: str | None = None,
        seconds: float | None = None,
    ) -> Fault:
        """Makes splits and merges wait at a phase, of one `database` or `container` where one is given.

        The phases are "preparing", "dividing", "copying", "catching-up", "fenced" and "committing"; behind the last
        two nobody can write. The fault's `hits` are the changes that have come to wait.
        """
        place = {"database": database, "container": container}
        return self._set({"fault": "hold", "phase": phase, "seconds": seconds, **place})

    def _set(self, rule: dict[str, Any]) -> Fault:
        given = {name: value for name, value in rule.items() if value is not None}
        with self.connection() as connection:
            return Fault(self, str(Admin(connection).add_fault(given)["id"]))

    def list(self) -> list[dict[str, Any]]:
        """The faults in force, as the admin API shows them."""
        with self.connection() as connection:
            return Admin(connection).faults()

    def clear(self) -> int:
        """Ends all faults; how many there were."""
        with self.connection() as connection:
            return Admin(connection).clear_faults()
