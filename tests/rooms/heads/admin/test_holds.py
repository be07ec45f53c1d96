"""Holds: splits and merges wait at a phase on demand, and the official client works meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Connection
from pleiad.engine.container import Container
from pleiad.limits import Limits
from pleiad.partition.partition import Partition
from pleiad.testing.faults import Fault
from pleiad.testing.start import RunningServer
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX, wait_until

from .conftest import Running

WAIT_SECONDS = 0.3
"""How long the server of these tests lets a writer wait for the end of a split."""
ITEMS = 20


class Place:
    """A container `shop/orders` that is going to be changed, with items in as many logical partitions."""

    def __init__(self, server: RunningServer, **options: Any) -> None:
        self.server = server
        database = CosmosClient(server.endpoint, server.key).create_database("shop")
        self.orders: ContainerProxy = database.create_container("orders", PartitionKey("/pk"), **options)
        for number in range(ITEMS):
            self.orders.create_item({"id": "1", "pk": f"k{number}", "n": number})

    def start(self, change: Callable[[Admin], object]) -> threading.Thread:
        """Sends a change of the partitions in a thread of its own."""

        def send() -> None:
            with Connection(self.server.endpoint, self.server.key) as connection:
                change(Admin(connection))

        thread = threading.Thread(target=send)
        thread.start()
        return thread

    def partitions(self) -> list[str]:
        with Connection(self.server.endpoint, self.server.key) as connection:
            look = Admin(connection).partitions("shop", "orders", 0, 0)
        return [each["id"] for each in look["partitions"]]

    def numbers(self) -> list[int]:
        text = "SELECT VALUE c.n FROM c ORDER BY c.n"
        found: Iterable[Any] = self.orders.query_items(text, enable_cross_partition_query=True)
        return list(found)

    def changes(self) -> int:
        return len(list(self.orders.query_items_change_feed(start_time="Beginning")))


def until_met(hold: Fault) -> None:
    assert wait_until(lambda: hold.hits > 0), "nothing came to the hold"


def split(admin: Admin) -> object:
    return admin.split("shop", "orders", {})


def merge(admin: Admin) -> object:
    return admin.merge("shop", "orders", {"partitions": ["0", "1"]})


@pytest.fixture
def server(run: Callable[..., Running]) -> Iterator[RunningServer]:
    running = run(limits=Limits(operation_seconds=WAIT_SECONDS))
    yield running.server
    running.server.faults.clear()


@pytest.mark.parametrize(
    ("phase", "change", "options"),
    [
        ("committing", split, {}),
        ("fenced", merge, {"offer_throughput": 12_000}),
        ("committing", merge, {"offer_throughput": 12_000}),
    ],
)
def test_behind_the_fence_writers_are_told_to_come_again_and_readers_notice_nothing(
    server: RunningServer, phase: str, change: Callable[[Admin], object], options: dict[str, Any]
) -> None:
    place = Place(server, **options)
    before = place.partitions()
    if change is merge:
        place.orders.replace_throughput(10_000)
    with server.faults.hold(phase, database="shop", container="orders") as hold:
        changing = place.start(change)
        until_met(hold)
        began = time.monotonic()
        with pytest.raises(CosmosHttpResponseError) as caught:
            place.orders.create_item({"id": "2", "pk": "k1"})
        assert (caught.value.status_code, caught.value.sub_status) == (410, 1007)
        assert time.monotonic() - began >= WAIT_SECONDS
        assert place.orders.read_item("1", "k1")["n"] == 1
        assert place.numbers() == list(range(ITEMS))
        assert place.changes() == ITEMS
        assert changing.is_alive()
        assert place.partitions() == before
    changing.join(SECONDS_MAX)
    assert not changing.is_alive()
    place.orders.create_item({"id": "2", "pk": "k1", "n": ITEMS})
    assert place.numbers() == list(range(ITEMS + 1))
    assert place.partitions() == (["1", "2"] if change is split else ["2"])


def test_a_writer_who_waits_when_the_split_is_released_succeeds(
    run: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = threading.Event()
    wait = Container.successor

    async def noted(container: Container, gone: Partition, epk: bytes) -> Partition:
        waits.set()
        return await wait(container, gone, epk)

    monkeypatch.setattr(Container, "successor", noted)
    server = run(limits=Limits(operation_seconds=20)).server
    place = Place(server)
    with server.faults.hold("committing") as hold:
        splitting = place.start(split)
        until_met(hold)
        writing = threading.Thread(target=place.orders.create_item, args=[{"id": "2", "pk": "k1", "n": 99}])
        writing.start()
        assert waits.wait(SECONDS_MAX)
        assert writing.is_alive()
    writing.join(SECONDS_MAX)
    splitting.join(SECONDS_MAX)
    assert place.orders.read_item("2", "k1")["n"] == 99


@pytest.mark.parametrize("phase", ["preparing", "dividing"])
def test_before_the_fence_writers_notice_nothing(server: RunningServer, phase: str) -> None:
    place = Place(server)
    with server.faults.hold(phase) as hold:
        splitting = place.start(split)
        until_met(hold)
        place.orders.create_item({"id": "2", "pk": "k1", "n": ITEMS})
        assert place.partitions() == ["0"]
    splitting.join(SECONDS_MAX)
    assert place.numbers() == list(range(ITEMS + 1))
    assert place.partitions() == ["1", "2"]


@pytest.mark.parametrize("phase", ["copying", "catching-up"])
def test_what_is_written_while_a_copy_is_held_is_in_the_copy(server: RunningServer, phase: str) -> None:
    place = Place(server, offer_throughput=12_000)
    place.orders.replace_throughput(10_000)
    with server.faults.hold(phase) as hold:
        merging = place.start(merge)
        until_met(hold)
        place.orders.upsert_item({"id": "1", "pk": "k0", "n": ITEMS})
        place.orders.delete_item("1", "k1")
    merging.join(SECONDS_MAX)
    assert place.partitions() == ["2"]
    assert place.numbers() == list(range(2, ITEMS + 1))


def test_a_hold_ends_by_its_time_and_by_clearing_all_faults(server: RunningServer) -> None:
    place = Place(server)
    hold = server.faults.hold("committing", seconds=3)
    began = time.monotonic()
    splitting = place.start(split)
    splitting.join(SECONDS_MAX)
    assert time.monotonic() - began >= 2.9
    assert hold.hits >= 1
    assert server.faults.list() == []
    server.faults.hold("preparing")
    server.faults.add(449, database="nobody")
    again = place.start(lambda admin: admin.split("shop", "orders", {"partition": "1"}))
    again.join(0.3)
    assert again.is_alive()
    assert server.faults.clear() == 2
    again.join(SECONDS_MAX)
    assert place.partitions() == ["3", "4", "2"]


def test_a_hold_is_for_the_container_it_names_and_meets_no_requests(server: RunningServer) -> None:
    place = Place(server)
    holds = [
        server.faults.hold("preparing", database="shop", container="others"),
        server.faults.hold("preparing", database="mall"),
    ]
    place.start(split).join(SECONDS_MAX)
    assert place.partitions() == ["1", "2"]
    assert [hold.hits for hold in holds] == [0, 0]
    shown = server.faults.list()[0]
    for name in ("secondsLeft", "setAt", "endsAt"):
        del shown[name]
    expected = {"fault": "hold", "phase": "preparing", "database": "shop", "container": "others", "hits": 0}
    assert shown == {"id": holds[0].id, **expected}


def test_a_split_that_is_held_is_undone_when_the_database_is_closed(run: Callable[..., Running]) -> None:
    running = run()
    place = Place(running.server)
    hold = running.server.faults.hold("committing")
    refusals: list[int] = []

    def refused(admin: Admin) -> None:
        with pytest.raises(RequestRefusedError, match="The server stops") as caught:
            split(admin)
        refusals.append(caught.value.status)

    splitting = place.start(refused)
    until_met(hold)
    running.ask(running.node.engine.reshaper.stop())
    splitting.join(SECONDS_MAX)
    assert refusals == [503]
    assert place.partitions() == ["0"]
    place.orders.create_item({"id": "2", "pk": "k1", "n": ITEMS})


def test_a_hold_that_nobody_released_does_not_keep_the_server_from_ending(start_server: StartServer) -> None:
    with start_server() as server:
        place = Place(server)
        hold = server.faults.hold("committing")
        splitting = place.start(split)
        until_met(hold)
        began = time.monotonic()
    splitting.join(SECONDS_MAX)
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"fault": "hold"}, "needs a 'phase', one of preparing, dividing"),
        ({"fault": "hold", "phase": "cleaning"}, "needs a 'phase', one of"),
        ({"fault": "hold", "phase": ["fenced"]}, "needs a 'phase', one of"),
        ({"fault": "hold", "phase": "fenced", "count": 3}, "Unknown in the body: count"),
        ({"fault": "hold", "phase": "fenced", "operation": "read"}, "Unknown in the body: operation"),
        ({"fault": "hold", "phase": "fenced", "container": "c"}, "name that too"),
        ({"fault": "hold", "phase": "fenced", "seconds": 0}, "'seconds' must be a number"),
        ({"fault": "429", "phase": "fenced"}, "Only the fault 'hold' has a 'phase'"),
    ],
)
def test_a_hold_that_makes_no_sense_is_refused_with_the_reason(
    admin: Admin, rule: dict[str, Any], text: str
) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        admin.add_fault(rule)
    assert caught.value.status == 400
    assert text in str(caught.value)
