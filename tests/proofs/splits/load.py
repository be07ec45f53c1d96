"""Threads with the official client that write, read, query and follow the change feed of one container.

What was acknowledged is kept in a `Ledger`; an operation in flight when the server dies may or may not be there.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Connection, ConnectionFailedError
from pleiad.testing.start import RunningServer
from tests.waiting import wait_until

KEYS = 24
FIXED = 120
QUIET_READS = 50
_REFUSALS = {400, 404, 410, 412}
"""What a split or merge of a range that somebody else just changed is answered with."""


@dataclass
class Known:
    """The last acknowledged version of an item, and the ones in flight."""

    version: int | None = None
    in_flight: list[int | None] = field(default_factory=list)


class Ledger:
    """Everything that was acknowledged, over all lives of the server."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], Known] = {}
        self.pairs: list[tuple[str, str, str, int]] = []
        self.counts: dict[str, int] = {f"k{key}": 0 for key in range(3)}
        self.counting: dict[str, int] = dict.fromkeys(self.counts, 0)
        self.lock = threading.Lock()
        self.failures: list[str] = []
        self.acknowledged = 0
        self.changes = 0


def connect(server: RunningServer) -> ContainerProxy:
    client = CosmosClient(server.endpoint, server.key, retry_total=3, connection_timeout=5)
    return client.get_database_client("db").get_container_client("c")


def admin(server: RunningServer) -> Admin:
    return Admin(Connection(server.endpoint, server.key).__enter__())


def prepare(server: RunningServer, ledger: Ledger) -> None:
    """The container, the items nobody changes, and the counters."""
    client = CosmosClient(server.endpoint, server.key)
    database = client.create_database("db")
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=20_000)
    for number in range(FIXED):
        container.create_item({"id": f"fixed{number}", "pk": f"k{number % KEYS}", "fixed": True, "n": number})
    for pk in ledger.counts:
        container.create_item({"id": "counter", "pk": pk, "count": 0})


class Worker(threading.Thread):
    """Does one thing again and again until it is told to stop or the server dies."""

    def __init__(self, server: RunningServer, ledger: Ledger, stop: threading.Event, seed: str) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.ledger = ledger
        self.random = random.Random(seed)
        self._stop_asked = stop
        self.rounds = 0

    def run(self) -> None:
        try:
            self.begin()
            while not self._stop_asked.is_set():
                self.act()
                self.rounds += 1
        except (ServiceRequestError, ServiceResponseError, ConnectionFailedError, OSError) as error:
            if not self._stop_asked.wait(60):
                self.ledger.failures.append(f"{type(self).__name__}: the server is gone: {error!r}")
        except (AzureError, AssertionError, KeyError) as error:
            self.ledger.failures.append(f"{type(self).__name__}: {error!r}")

    def begin(self) -> None:
        self.container = connect(self.server)

    def act(self) -> None:
        raise AssertionError("a worker does something")


class Writer(Worker):
    """Upserts, deletes, counts by patch, and writes pairs by batch; reads back what it wrote."""

    def __init__(self, server: RunningServer, ledger: Ledger, stop: threading.Event, number: int) -> None:
        super().__init__(server, ledger, stop, seed=f"writer{number}/{ledger.acknowledged}")
        self.number = number

    def act(self) -> None:
        choice = self.random.random()
        if choice < 0.5:
            self._put()
        elif choice < 0.6:
            self._delete()
        elif choice < 0.8:
            self._count()
        else:
            self._pair()

    def _counted(self, call: Callable[[], Any]) -> Any:
        answer = call()
        with self.ledger.lock:
            self.ledger.acknowledged += 1
        return answer

    def _own(self) -> tuple[tuple[str, str], Known]:
        key = f"k{self.random.randrange(KEYS)}", f"w{self.number}-{self.random.randrange(8)}"
        return key, self.ledger.items.setdefault(key, Known())

    def _put(self) -> None:
        key, known = self._own()
        version = self.ledger.acknowledged * 10 + self.number
        known.in_flight.append(version)
        body = {"id": key[1], "pk": key[0], "version": version, "pad": "x" * self.random.choice((10, 1_000))}
        self._counted(lambda: self.container.upsert_item(body))
        known.version = version
        known.in_flight.clear()
        assert self.container.read_item(key[1], key[0])["version"] == version, f"{key} is not as written"

    def _delete(self) -> None:
        key, known = self._own()
        if known.version is None or known.in_flight:
            return
        known.in_flight.append(None)
        self._counted(lambda: self.container.delete_item(key[1], key[0]))
        known.version = None
        known.in_flight.clear()

    def _count(self) -> None:
        pk = self.random.choice(sorted(self.ledger.counts))
        with self.ledger.lock:
            self.ledger.counting[pk] += 1
        operations = [{"op": "incr", "path": "/count", "value": 1}]
        self._counted(lambda: self.container.patch_item("counter", pk, operations))
        with self.ledger.lock:
            self.ledger.counting[pk] -= 1
            self.ledger.counts[pk] += 1

    def _pair(self) -> None:
        """Two items by one transaction: after any crash both have the same version."""
        pk = f"k{self.random.randrange(KEYS)}"
        ids = f"pair{self.number}-a", f"pair{self.number}-b"
        known = [self.ledger.items.setdefault((pk, id), Known()) for id in ids]
        version = self.ledger.acknowledged * 10 + self.number
        for each in known:
            each.in_flight.append(version)
        batch = [("upsert", ({"id": id, "pk": pk, "version": version},)) for id in ids]
        self._counted(lambda: self.container.execute_item_batch(batch, pk))
        for each in known:
            each.version = version
            each.in_flight.clear()


class Asker(Worker):
    """Queries the items nobody changes, page by page: each is there once, over splits between the pages."""

    TEXTS = (
        "SELECT VALUE c.id FROM c WHERE c.fixed = true",
        "SELECT VALUE c.id FROM c WHERE c.fixed = true ORDER BY c.n DESC",
    )

    def act(self) -> None:
        text = self.random.choice(self.TEXTS)
        found: list[str] = []
        token: str | None = None
        while True:
            pages: Any = self.container.query_items(
                text, enable_cross_partition_query=True, max_item_count=25
            ).by_page(token)
            found += list(next(pages, []))
            token = pages.continuation_token
            if not token:
                break
            self._stop_asked.wait(0.005)
        assert sorted(found) == sorted(f"fixed{n}" for n in range(FIXED)), f"{text}: {len(found)} items"


class Follower(Worker):
    """Follows the change feed with its own continuation; counters never go back in it.

    A change may come again: after a merge and another split the client itself goes back to whole ranges.
    """

    def begin(self) -> None:
        super().begin()
        self.token: str | None = None
        self.seen: dict[tuple[str, str], dict[str, Any]] = {}

    def act(self) -> None:
        start: dict[str, Any] = {"continuation": self.token} if self.token else {"start_time": "Beginning"}
        for change in self.container.query_items_change_feed(**start):
            key = change["pk"], change["id"]
            before = self.seen.get(key)
            if before is not None and "count" in change:
                what = f"the feed goes back at {key} from {before['count']} to {change['count']}"
                assert change["count"] >= before["count"], what
            self.seen[key] = change
        self.token = self.container.client_connection.last_response_headers["etag"]
        self._stop_asked.wait(0.01)

    def read_everything(self) -> None:
        """Reads until nothing new has come for a long while.

        After merges and splits the client has some ranges several times in its continuation, and takes the second
        for the end of a round: what follows is read by later calls.
        """
        quiet = 0
        while quiet < QUIET_READS:
            before = dict(self.seen)
            self.act()
            quiet = quiet + 1 if self.seen == before else 0


class Mover(Worker):
    """Splits and merges over the admin API; a range that somebody else changed meanwhile is let go."""

    partitions_max = 6

    def begin(self) -> None:
        self.admin = admin(self.server)

    def act(self) -> None:
        ids = [each["id"] for each in self.admin.partitions("db", "c", 0, 0)["partitions"]]
        index = self.random.randrange(len(ids))
        try:
            if len(ids) < 2 or (len(ids) < self.partitions_max and self.random.random() < 0.6):
                self.admin.split("db", "c", {"partition": ids[index]})
            else:
                first = min(index, len(ids) - 2)
                self.admin.merge("db", "c", {"partitions": ids[first : first + 2]})
            self.ledger.changes += 1
        except RequestRefusedError as error:
            if error.status not in _REFUSALS:
                raise AssertionError(f"a change failed: {error.status} {error}") from error
        self._stop_asked.wait(self.random.uniform(0, 0.05))


def check(server: RunningServer, ledger: Ledger) -> None:
    """Compares what is there with what was acknowledged; from then on that is what is known."""
    container = connect(server)
    documents = list(container.query_items("SELECT * FROM c", enable_cross_partition_query=True))
    found = {(each["pk"], each["id"]): each for each in documents}
    assert len(found) == len(documents), "an item is there twice"
    for key, known in ledger.items.items():
        version = found[key]["version"] if key in found else None
        possible = [known.version, *known.in_flight]
        assert version in possible, f"{key} is at {version}, it may be at {possible}"
        known.version = version
        known.in_flight.clear()
    for (pk, id), item in found.items():
        if id.startswith("pair"):
            other = found.get((pk, id[:-1] + ("b" if id.endswith("a") else "a")))
            assert other is not None, f"half of the batch of {id}"
            assert other["version"] == item["version"], f"half of the batch of {id}"
    for pk, count in ledger.counts.items():
        actual = found[pk, "counter"]["count"]
        assert count <= actual <= count + ledger.counting[pk], (
            f"the counter of {pk} is at {actual}, not {count}"
        )
        ledger.counts[pk], ledger.counting[pk] = actual, 0
    assert sum(id.startswith("fixed") for _, id in found) == FIXED
    check_partitions(server, len(found))


def check_partitions(server: RunningServer, items: int) -> None:
    """The ranges tile, and together the partitions count what is there."""
    look = admin(server).partitions("db", "c", 0, 0)["partitions"]
    ranges = sorted((each["minInclusive"], each["maxExclusive"]) for each in look)
    edges = ["", *(high for _, high in ranges)]
    assert [low for low, _ in ranges] == edges[:-1], f"the ranges do not tile: {ranges}"
    assert edges[-1] == "FF"
    assert sum(each["items"] for each in look) == items


def settled(server: RunningServer, seconds: float = 20) -> int:
    """Waits until no change is under way; how many partitions there are then."""
    asking = admin(server)

    counts: list[int] = []

    def is_settled() -> bool:
        look = asking.partitions("db", "c", 0, 0)
        counts.append(len(look["partitions"]))
        return bool(look["settled"])

    assert wait_until(is_settled, seconds), "a change of the map does not end"
    return counts[-1]
