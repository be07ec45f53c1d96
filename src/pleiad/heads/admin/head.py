"""The routes of the admin API, of the metrics and of the health and readiness checks.

Everything under `/_pleiad/v1` is signed like a request of the NoSQL protocol, by the same rule: the type is the last
name of the path when the number of names is odd, else the last but one. The NoSQL head serves these routes with its
own, so that finding, authenticating, counting and failing are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pleiad import errors
from pleiad.account.keys import KeysInForce
from pleiad.engine.operation import Operation
from pleiad.heads.admin import (
    contents,
    explain,
    faults,
    handover,
    health,
    keys,
    me,
    metrics,
    metrics_page,
    partitions,
    reshape,
    throughput,
    top,
    warnings,
    workload,
)
from pleiad.heads.admin.advice import AdviceOperations
from pleiad.heads.admin.backups import BackupOperations
from pleiad.heads.admin.copies import CopyOperations
from pleiad.heads.admin.handover import Handover
from pleiad.heads.admin.shown import Shown
from pleiad.heads.admin.workers import sums
from pleiad.heads.admin.workers.metrics_sum import one_page
from pleiad.heads.admin.workers.shared_faults import SharedFaults
from pleiad.heads.admin.workers.shared_workload import SharedWorkload
from pleiad.heads.admin.workers.workers import Merge, Workers, added_up
from pleiad.heads.http.call import HttpCall
from pleiad.heads.http.route import Route
from pleiad.job.advice.advices import Advices
from pleiad.job.backup.run import Backups
from pleiad.job.copy.copies import Copies
from pleiad.server.http.failures import ROUTE_NOT_FOUND
from pleiad.server.http.message import Response, render_headers

HEALTH_PATH = b"/_pleiad/health"
SERVICE_PROBE_PATH = b"/probe"
"""Where the balancers of the service ask whether a gateway answers."""
READY_PATH = b"/_pleiad/ready"
METRICS_PATH = b"/metrics"
VERSION = "v1"

_BEARER = "bearer "
_METRICS = "metrics"


class AdminOperations:
    """What the admin API needs beside the engine: the keys, and what the process knows of itself.

    Metrics are open where only this machine can reach the server; elsewhere they need a key of the account.
    """

    def __init__(
        self,
        keys: KeysInForce,
        metrics_open: bool,
        connections: Callable[[], int],
        copies: Callable[[], Copies],
        advices: Callable[[], Advices],
        backups: Backups | None = None,
        handover: Handover | None = None,
        workers: Workers | None = None,
    ) -> None:
        self._keys = keys
        self._copies = copies
        self._advices = advices
        self._backups = backups
        self._handover = handover
        self._metrics_open = metrics_open
        self._connections = connections
        self._workers = workers
        """The other workers of this server; their figures are added to those of this process."""

    def routes(self) -> Mapping[str, Mapping[str, Route[HttpCall]]]:
        """Every path with its operations, with a star where a name stands."""
        container = "_pleiad/*/dbs/*/colls/*"
        shown = Shown()
        own_throughput = {
            "GET": Route(Operation.READ_THROUGHPUT, throughput.read),
            "PUT": Route(Operation.REPLACE_THROUGHPUT, throughput.replace),
        }
        versioned: dict[str, dict[str, Route[HttpCall]]] = {
            "_pleiad/*/me": {"GET": Route(Operation.READ_RIGHTS, me.read)},
            "_pleiad/*/throughput": {"GET": Route(Operation.READ_THROUGHPUT, throughput.read_account)},
            "_pleiad/*/dbs/*/throughput": own_throughput,
            f"{container}/throughput": own_throughput,
            "_pleiad/*/overview": {"GET": Route(Operation.READ_OVERVIEW, shown.overview)},
            "_pleiad/*/live": {"GET": Route(Operation.READ_LIVE, shown.live)},
            f"{container}/live": {"GET": Route(Operation.READ_LIVE, shown.live_container)},
            "_pleiad/*/history": {"GET": Route(Operation.READ_HISTORY, shown.history)},
            f"{container}/history": {"GET": Route(Operation.READ_HISTORY, shown.history_of_container)},
            f"{container}/heat": {"GET": Route(Operation.READ_HEAT, shown.heat)},
            f"{container}/partitions": {
                "GET": Route(Operation.READ_PARTITIONS, partitions.read),
                "PUT": Route(Operation.REDISTRIBUTE, partitions.redistribute),
            },
            f"{container}/paths": {"GET": Route(Operation.READ_PATHS, contents.paths)},
            f"{container}/keys": {"GET": Route(Operation.READ_KEY_VALUES, contents.keys)},
            f"{container}/explain": {"POST": Route(Operation.EXPLAIN_QUERY, explain.read)},
            f"{container}/split": {"POST": Route(Operation.SPLIT, reshape.split)},
            f"{container}/merge": {"POST": Route(Operation.MERGE, reshape.merge)},
            f"{container}/workload": {
                "GET": Route(Operation.READ_WORKLOAD, workload.read),
                "PUT": Route(Operation.SWITCH_WORKLOAD, workload.switch),
                "POST": Route(Operation.ADD_WORKLOAD, workload.add),
                "DELETE": Route(Operation.DELETE_WORKLOAD, workload.forget),
            },
            f"{container}/workload/*": {"GET": Route(Operation.READ_WORKLOAD, workload.lines)},
            "_pleiad/*/faults": {
                "GET": Route(Operation.LIST_FAULTS, faults.list_all),
                "POST": Route(Operation.ADD_FAULT, faults.add),
                "DELETE": Route(Operation.CLEAR_FAULTS, faults.clear),
            },
            "_pleiad/*/faults/*": {
                "GET": Route(Operation.READ_FAULT, faults.read),
                "DELETE": Route(Operation.DELETE_FAULT, faults.delete),
            },
            "_pleiad/*/keys": {"GET": Route(Operation.READ_KEYS, self.keys)},
            "_pleiad/*/warnings": {"GET": Route(Operation.LIST_WARNINGS, warnings.list_all)},
            "_pleiad/*/top": {"GET": Route(Operation.READ_BUSIEST, top.read)},
            **self._jobs(),
        }
        routes: dict[str, Mapping[str, Route[HttpCall]]] = {
            "_pleiad/*": {
                "GET": Route(Operation.READ_HEALTH, _probe),
                "POST": Route(Operation.HAND_OVER, self.hand_over),
            },
            "metrics": {"GET": Route(Operation.READ_METRICS, self.metrics)},
            "probe": {"GET": Route(Operation.READ_HEALTH, _probe)},
        }
        if self._workers is not None:
            self._add_up(self._workers, versioned)
        for pattern, methods in versioned.items():
            routes[pattern] = {method: _versioned(route) for method, route in methods.items()}
        return routes

    def _add_up(self, workers: Workers, versioned: dict[str, dict[str, Route[HttpCall]]]) -> None:
        """Has this worker answer for all of them."""
        container = "_pleiad/*/dbs/*/colls/*"
        merged: dict[str, Merge] = {
            "_pleiad/*/overview": sums.one_of,
            "_pleiad/*/live": sums.one_of,
            f"{container}/live": sums.one_of,
            "_pleiad/*/history": sums.one_history,
            f"{container}/history": sums.one_of,
            f"{container}/heat": sums.one_of,
            f"{container}/partitions": sums.one_of,
            "_pleiad/*/warnings": sums.one_of,
            "_pleiad/*/top": sums.one_list_of_busiest,
        }
        for pattern, merge in merged.items():
            own = versioned[pattern]["GET"]
            versioned[pattern]["GET"] = Route(own.operation, added_up(workers, pattern, own.handler, merge))
        workers.offer(_METRICS, self._own_metrics)
        shared = SharedFaults(workers)
        workers.when_open(shared.open)
        workers.when_open(SharedWorkload(workers).open)
        versioned["_pleiad/*/faults"] |= {
            "POST": Route(Operation.ADD_FAULT, shared.add),
            "DELETE": Route(Operation.CLEAR_FAULTS, shared.clear),
        }
        versioned["_pleiad/*/faults/*"]["DELETE"] = Route(Operation.DELETE_FAULT, shared.delete)

    def _jobs(self) -> dict[str, dict[str, Route[HttpCall]]]:
        """The paths of what goes on in the background."""
        backups, copies = BackupOperations(self._backups), CopyOperations(self._copies)
        advice = AdviceOperations(self._advices)
        return {
            "_pleiad/*/dbs/*/colls/*/advice": {
                "GET": Route(Operation.READ_ADVICE, advice.read),
                "POST": Route(Operation.START_ADVICE, advice.start),
                "DELETE": Route(Operation.CANCEL_ADVICE, advice.cancel),
            },
            "_pleiad/*/dbs/*/colls/*/advice/*": {"GET": Route(Operation.READ_ADVICE, advice.report)},
            "_pleiad/*/backups": {
                "GET": Route(Operation.LIST_BACKUPS, backups.list_all),
                "POST": Route(Operation.CREATE_BACKUP, backups.create),
            },
            "_pleiad/*/backups/*": {"GET": Route(Operation.READ_BACKUP, backups.read)},
            "_pleiad/*/copies": {
                "GET": Route(Operation.LIST_COPIES, copies.list_all),
                "POST": Route(Operation.CREATE_COPY, copies.create),
            },
            "_pleiad/*/copies/*": {
                "GET": Route(Operation.READ_COPY, copies.read),
                "DELETE": Route(Operation.CANCEL_COPY, copies.cancel),
            },
            "_pleiad/*/copies/*/complete": {"POST": Route(Operation.COMPLETE_COPY, copies.complete)},
        }

    def hand_over(self, call: HttpCall) -> Response:
        if call.raw_path != handover.PATH:
            raise ROUTE_NOT_FOUND(path="/".join(call.segments)[:200])
        return handover.answer(call, self._handover)

    async def keys(self, call: HttpCall) -> Response:
        return await keys.read(call, self._keys)

    async def metrics(self, call: HttpCall) -> Response:
        if not self._metrics_open:
            given = call.text(b"authorization")
            is_bearer = given[: len(_BEARER)].lower() == _BEARER
            if not is_bearer or not self._keys.keys.has(given[len(_BEARER) :].strip()):
                raise errors.UNAUTHORIZED(
                    reason="Beyond this machine the metrics need a key of the account: 'Authorization: Bearer <key>'."
                )
        own = await self._own_metrics(call)
        if self._workers is not None:
            others = await self._workers.ask(_METRICS, call)
            own.body = one_page(own.body, others, self._workers.place.directory, self._workers.state())
        return own

    async def _own_metrics(self, call: HttpCall) -> Response:
        """Those of this process."""
        format = metrics_page.wanted(call.text(b"accept"))
        last_backup_at = None if self._backups is None else self._backups.last_success_at
        body = await metrics.page(call.engine, self._connections(), format, last_backup_at)
        return Response(200, render_headers([("Content-Type", format.value)]), body)


async def _probe(call: HttpCall) -> Response:
    """The two checks that need no key."""
    if call.raw_path in (HEALTH_PATH, SERVICE_PROBE_PATH):
        return health.health(call)
    if call.raw_path == READY_PATH:
        return await health.readiness(call)
    raise ROUTE_NOT_FOUND(path="/".join(call.segments)[:200])


def _versioned(route: Route[HttpCall]) -> Route[HttpCall]:
    """The route behind the one version of the API that there is."""

    def checked(call: HttpCall) -> Response | Coroutine[Any, Any, Response]:
        if call.segments[1] != VERSION:
            raise ROUTE_NOT_FOUND(path="/".join(call.segments)[:200])
        return route.handler(call)

    return Route(route.operation, checked)
