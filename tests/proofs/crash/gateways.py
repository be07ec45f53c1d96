"""Servers on one PostgreSQL database, and clients that write through them whatever happens to either.

Every answer is a verdict: done, certainly not done, or unknown. An item whose last write is unknown is left alone from
then on, so that at the end it must be as it was before that write or after it, whole.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import AzureError
from azure.cosmos import ContainerProxy, CosmosClient
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError

import pleiad
from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Connection, ConnectionFailedError
from pleiad.testing.start import RunningServer
from tests.waiting import wait_until

KEYS = 24
COUNTERS = ("k0", "k1", "k2")
_CERTAINLY_NOT = {410, 429, 449, 503}
_UNKNOWN = {408}
_MOVER_MAY_HEAR = {400, 404, 408, 410, 412, 503}
_PARTITIONS_MAX = 5


class Verdict(Enum):
    DONE = "done"
    NOT_DONE = "certainly not done"
    UNKNOWN = "unknown"


class Gateway:
    """One of the servers; when it is killed another one takes its place."""

    def __init__(self, name: str, store: str) -> None:
        self.name = name
        self._store = store
        self.successes: list[float] = []
        self._stack = ExitStack()
        self.start()

    def start(self) -> None:
        self.server: RunningServer = self._stack.enter_context(
            pleiad.start(store=self._store, child_process=True)
        )

    def kill(self) -> None:
        os.kill(self.server.process_id, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        self._stack.close()

    def container(self) -> ContainerProxy:
        """A new client that tries nothing again by itself, so that each attempt has its verdict."""
        client = CosmosClient(
            self.server.endpoint, self.server.key, retry_total=0, connection_timeout=2, read_timeout=60
        )
        return client.get_database_client("db").get_container_client("c")

    @contextlib.contextmanager
    def admin(self) -> Iterator[Admin]:
        with Connection(self.server.endpoint, self.server.key) as connection:
            yield Admin(connection)

    def first_success_after(self, moment: float, seconds: float) -> float:
        """Waits for the first write that was acknowledged after a moment; how long after."""
        assert wait_until(lambda: self.successes and self.successes[-1] > moment, seconds), (
            f"{self.name} takes no writes {seconds} s after the database is back"
        )
        return min(success for success in self.successes[-1_000:] if success > moment) - moment


@dataclass
class Item:
    """The versions an item may be at, None for absent: one, or two after an unknown outcome."""

    pk: str
    possible: list[int | None]
    etag: str = ""


class Ledger:
    """What was acknowledged, what is unknown, and what should not have been answered."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.pairs: list[tuple[str, str]] = []
        self.counts = dict.fromkeys(COUNTERS, 0)
        self.counts_unknown = dict.fromkeys(COUNTERS, 0)
        self.verdicts = dict.fromkeys(Verdict, 0)
        self.changes = 0
        self.surprises: list[str] = []
        self.lock = threading.Lock()


class Worker(threading.Thread):
    """Does one thing again and again; when a client fails it takes a new one, to the server that is there then."""

    def __init__(self, gateway: Gateway, ledger: Ledger, stop: threading.Event, seed: str) -> None:
        super().__init__(name=seed, daemon=True)
        self.gateway = gateway
        self.ledger = ledger
        self.random = random.Random(seed)
        self.container: ContainerProxy | None = None
        self._stop_asked = stop

    def run(self) -> None:
        while not self._stop_asked.is_set():
            try:
                if self.container is None:
                    self.container = self.gateway.container()
                self.act(self.container)
            except (AzureError, OSError):
                self.container = None
                self._stop_asked.wait(0.02)
            except Exception as error:
                self.ledger.surprises.append(f"{self.name}: {error!r}")
                return

    def act(self, container: ContainerProxy) -> None:
        raise AssertionError("a worker does something")


class Writer(Worker):
    """Creates, replaces with etag, upserts, patches, deletes, counts, and creates pairs by batch."""

    def __init__(self, gateway: Gateway, ledger: Ledger, stop: threading.Event, number: int) -> None:
        super().__init__(gateway, ledger, stop, f"w{number}")
        self._numbers = itertools.count()
        self._mine: list[str] = []

    def act(self, container: ContainerProxy) -> None:
        acts = [self._create, self._replace, self._upsert, self._patch, self._delete, self._count, self._pair]
        if len(self._mine) < 5:
            self._create(container)
        else:
            self.random.choices(acts, (4, 3, 2, 3, 2, 4, 2))[0](container)

    def _verdict(self, call: Callable[[], Any]) -> tuple[Verdict, Any]:
        answer, verdict = None, Verdict.UNKNOWN
        try:
            answer = call()
            verdict = Verdict.DONE
            self.gateway.successes.append(time.monotonic())
        except (CosmosHttpResponseError, CosmosBatchOperationError) as error:
            if error.status_code in _CERTAINLY_NOT:
                verdict = Verdict.NOT_DONE
            elif error.status_code not in _UNKNOWN:
                self.ledger.surprises.append(f"{self.name}: {error.status_code} {error}")
        except (AzureError, OSError):
            self.container = None
        with self.ledger.lock:
            self.ledger.verdicts[verdict] += 1
        if verdict is not Verdict.DONE:
            self._stop_asked.wait(0.01)
        return verdict, answer

    def _change(self, id: str, version: int | None, call: Callable[[], Any]) -> None:
        """Writes an item of this worker and notes what may be true of it then."""
        item = self.ledger.items[id]
        before = item.possible
        item.possible = [*before, version]
        verdict, answer = self._verdict(call)
        if verdict is Verdict.DONE:
            item.possible = [version]
            item.etag = answer["_etag"] if answer else ""
        elif verdict is Verdict.NOT_DONE:
            item.possible = before
        if item.possible == [None] or verdict is Verdict.UNKNOWN:
            self._mine.remove(id)

    def _new(self, kind: str, pk: str) -> str:
        id = f"{self.name}-{kind}{next(self._numbers)}"
        self.ledger.items[id] = Item(pk, [None])
        return id

    def _some(self) -> tuple[str, Item, int]:
        id = self.random.choice(self._mine)
        item = self.ledger.items[id]
        (version,) = item.possible
        assert version is not None
        return id, item, version

    def _document(self, id: str, pk: str, version: int) -> dict[str, Any]:
        pad = "x" * self.random.choice((0, 30, 3_000))
        return {"id": id, "pk": pk, "version": version, "check": f"{id}/{version}", "pad": pad}

    def _create(self, container: ContainerProxy) -> None:
        pk = f"k{self.random.randrange(KEYS)}"
        id = self._new("i", pk)
        self._mine.append(id)
        self._change(id, 1, lambda: container.create_item(self._document(id, pk, 1)))

    def _replace(self, container: ContainerProxy) -> None:
        id, item, version = self._some()
        body = self._document(id, item.pk, version + 1)
        condition = MatchConditions.IfNotModified
        self._change(
            id,
            version + 1,
            lambda: container.replace_item(id, body, etag=item.etag, match_condition=condition),
        )

    def _upsert(self, container: ContainerProxy) -> None:
        id, item, version = self._some()
        body = self._document(id, item.pk, version + 1)
        self._change(id, version + 1, lambda: container.upsert_item(body))

    def _patch(self, container: ContainerProxy) -> None:
        id, item, version = self._some()
        operations: list[dict[str, Any]] = [
            {"op": "incr", "path": "/version", "value": 1},
            {"op": "set", "path": "/check", "value": f"{id}/{version + 1}"},
        ]
        self._change(id, version + 1, lambda: container.patch_item(id, item.pk, operations))

    def _delete(self, container: ContainerProxy) -> None:
        id, item, _ = self._some()
        self._change(id, None, lambda: container.delete_item(id, item.pk))

    def _count(self, container: ContainerProxy) -> None:
        pk = self.random.choice(COUNTERS)
        operations = [{"op": "incr", "path": "/version", "value": 1}]
        verdict, _ = self._verdict(lambda: container.patch_item("counter", pk, operations))
        with self.ledger.lock:
            self.ledger.counts[pk] += verdict is Verdict.DONE
            self.ledger.counts_unknown[pk] += verdict is Verdict.UNKNOWN

    def _pair(self, container: ContainerProxy) -> None:
        pk = f"k{self.random.randrange(KEYS)}"
        pair = self._new("a", pk), self._new("b", pk)
        self.ledger.pairs.append(pair)
        batch = [("create", (self._document(id, pk, 1),)) for id in pair]
        verdict, _ = self._verdict(lambda: container.execute_item_batch(batch, pk))
        known: dict[Verdict, list[int | None]] = {Verdict.DONE: [1], Verdict.NOT_DONE: [None]}
        possible = known.get(verdict, [None, 1])
        for id in pair:
            self.ledger.items[id].possible = possible


class Follower(Worker):
    """Follows the change feed from the beginning with the continuation it has, over all servers and faults."""

    def __init__(self, gateway: Gateway, ledger: Ledger, stop: threading.Event) -> None:
        super().__init__(gateway, ledger, stop, "follower")
        self.seen: dict[str, dict[str, Any]] = {}
        self._token: str | None = None

    def act(self, container: ContainerProxy) -> None:
        start: dict[str, Any] = {"continuation": self._token} if self._token else {"start_time": "Beginning"}
        for change in container.query_items_change_feed(**start):
            self.seen[f"{change['pk']}/{change['id']}"] = change
        self._token = container.client_connection.last_response_headers["etag"]
        self._stop_asked.wait(0.05)


class Mover(Worker):
    """Splits and merges through one of the servers."""

    def act(self, container: ContainerProxy) -> None:
        try:
            with self.gateway.admin() as admin:
                self._change_map(admin)
            self.ledger.changes += 1
        except RequestRefusedError as error:
            if error.status not in _MOVER_MAY_HEAR:
                self.ledger.surprises.append(f"{self.name}: {error.status} {error}")
        except ConnectionFailedError:
            self._stop_asked.wait(0.05)
        self._stop_asked.wait(self.random.uniform(0, 0.3))

    def _change_map(self, admin: Admin) -> None:
        ids = [each["id"] for each in admin.partitions("db", "c", 0, 0)["partitions"]]
        index = self.random.randrange(len(ids))
        if len(ids) < 2 or (len(ids) < _PARTITIONS_MAX and self.random.random() < 0.6):
            admin.split("db", "c", {"partition": ids[index]})
        else:
            first = min(index, len(ids) - 2)
            admin.merge("db", "c", {"partitions": ids[first : first + 2]})
