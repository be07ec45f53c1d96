"""The routes of the admin API, of the metrics and of the health and readiness checks.

Everything under `/_pleiad/v1` is signed like a request of the NoSQL protocol, by the same rule: the type is the last
name of the path when the number of names is odd, else the last but one. The NoSQL head serves these routes with its
own, so that finding, authenticating, counting and failing are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from pleiad import errors
from pleiad.heads.admin import faults, health, metrics, partitions, reshape, throughput, warnings
from pleiad.heads.nosql.auth import Authenticator
from pleiad.heads.nosql.call import Call
from pleiad.server.message import Response, render_headers

HEALTH_PATH = b"/_pleiad/health"
READY_PATH = b"/_pleiad/ready"
METRICS_PATH = b"/metrics"
VERSION = "v1"

_BEARER = "bearer "
Operation = Callable[[Call], Awaitable[Response]]


class AdminOperations:
    """What the admin API needs beside the engine: the keys, and what the process knows of itself.

    Metrics are open where only this machine can reach the server; elsewhere they need a key of the account.
    """

    def __init__(
        self, authenticator: Authenticator, metrics_open: bool, connections: Callable[[], int]
    ) -> None:
        self._authenticator = authenticator
        self._metrics_open = metrics_open
        self._connections = connections
        self.open_paths = frozenset({HEALTH_PATH, READY_PATH, METRICS_PATH})
        """Paths that need no signature; the operations behind them decide."""

    def routes(self) -> Mapping[str, Mapping[str, Operation]]:
        """Every path with its operations, with a star where a name stands."""
        container = "_pleiad/*/dbs/*/colls/*"
        versioned: dict[str, dict[str, Operation]] = {
            "_pleiad/*/throughput": {"GET": throughput.read_account},
            "_pleiad/*/dbs/*/throughput": {"GET": throughput.read, "PUT": throughput.replace},
            f"{container}/throughput": {"GET": throughput.read, "PUT": throughput.replace},
            f"{container}/partitions": {"GET": partitions.read, "PUT": partitions.redistribute},
            f"{container}/split": {"POST": reshape.split},
            f"{container}/merge": {"POST": reshape.merge},
            "_pleiad/*/faults": {"GET": faults.list_all, "POST": faults.add, "DELETE": faults.clear},
            "_pleiad/*/faults/*": {"GET": faults.read, "DELETE": faults.delete},
            "_pleiad/*/warnings": {"GET": warnings.list_all},
        }
        routes: dict[str, Mapping[str, Operation]] = {
            "_pleiad/*": {"GET": _probe},
            "metrics": {"GET": self.metrics},
        }
        for pattern, methods in versioned.items():
            routes[pattern] = {method: _versioned(operation) for method, operation in methods.items()}
        return routes

    async def metrics(self, call: Call) -> Response:
        if not self._metrics_open:
            given = call.text(b"authorization")
            is_bearer = given[: len(_BEARER)].lower() == _BEARER
            if not is_bearer or not self._authenticator.is_key(given[len(_BEARER) :].strip()):
                raise errors.UNAUTHORIZED(
                    reason="Beyond this machine the metrics need a key of the account: 'Authorization: Bearer <key>'."
                )
        body = await metrics.page(call.engine, self._connections())
        return Response(200, render_headers([("Content-Type", metrics.CONTENT_TYPE)]), body)


async def _probe(call: Call) -> Response:
    """The two checks that need no key."""
    if call.raw_path == HEALTH_PATH:
        return health.health(call)
    if call.raw_path == READY_PATH:
        return await health.readiness(call)
    raise errors.ROUTE_NOT_FOUND(path="/".join(call.segments)[:200])


def _versioned(operation: Operation) -> Operation:
    """The operation behind the one version of the API that there is."""

    async def checked(call: Call) -> Response:
        if call.segments[1] != VERSION:
            raise errors.ROUTE_NOT_FOUND(path="/".join(call.segments)[:200])
        return await operation(call)

    return checked
