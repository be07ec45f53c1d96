"""Many clients in one logical partition at once: what they were told must fit one serial order.

Every write is acknowledged with its LSN, which orders the writes of a partition; every read shows the LSN of the
version it saw in the etag. A recorded history is serial when each observation agrees with that order and with the
clock: what ended before something else began comes before it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from azure.cosmos import ContainerProxy

from pleiad.testing.start import RunningServer
from tests.waiting import SECONDS_MAX

if TYPE_CHECKING:
    from tests.clients.batch.conftest import BatchWire

Connect = Callable[[RunningServer], "BatchWire"]
Work = Callable[["BatchWire", random.Random], None]


class Event(NamedTuple):
    """Something a client was told: when it asked and was answered, the LSN, and the value written or seen."""

    began: float
    ended: float
    lsn: int
    value: str


def serial_order_broken(history: list[Event]) -> str:
    """Why no serial order explains the history, or nothing when the order of the LSNs does."""
    value_at: dict[int, str] = {}
    for event in history:
        if value_at.setdefault(event.lsn, event.value) != event.value:
            return f"LSN {event.lsn} has the values {value_at[event.lsn]} and {event.value}"
    newest_ended = 0
    by_end = sorted(history, key=lambda event: event.ended)
    position = 0
    for event in sorted(history, key=lambda event: event.began):
        while position < len(by_end) and by_end[position].ended < event.began:
            newest_ended = max(newest_ended, by_end[position].lsn)
            position += 1
        if event.lsn < newest_ended:
            return f"LSN {event.lsn} was told after LSN {newest_ended} had been"
    return ""


def lsn_of(etag: str) -> int:
    return int(etag.strip('"').split("-")[0], 16)


def upsert(id: str, **more: Any) -> dict[str, Any]:
    return {"operationType": "Upsert", "resourceBody": {"id": id, "pk": "a", **more}}


def read(id: str) -> dict[str, Any]:
    return {"operationType": "Read", "id": id}


def increment(id: str, **values: int) -> dict[str, Any]:
    changes = [{"op": "incr", "path": f"/{name}", "value": value} for name, value in values.items()]
    return {"operationType": "Patch", "id": id, "resourceBody": {"operations": changes}}


@pytest.fixture
def together(pleiad_server: RunningServer, new_wire: Connect) -> Callable[[Sequence[Work]], None]:
    """Runs each piece of work in a thread with a connection of its own; the first failure is the test's."""

    def run(works: Sequence[Work]) -> None:
        failures: list[BaseException] = []

        def guarded(work: Work, number: int, wire: BatchWire) -> None:
            try:
                work(wire, random.Random(number))
            except BaseException as error:
                failures.append(error)

        threads = [
            threading.Thread(target=guarded, args=(work, number, new_wire(pleiad_server)))
            for number, work in enumerate(works)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS_MAX)
            assert not thread.is_alive()
        if failures:
            raise failures[0]

    return run


def test_the_checker_finds_histories_that_no_serial_order_explains() -> None:
    assert not serial_order_broken([Event(0, 1, 1, "a"), Event(2, 3, 2, "b"), Event(0, 9, 1, "a")])
    assert serial_order_broken([Event(0, 1, 2, "b"), Event(2, 3, 1, "a")]), "an old version after a new one"
    assert serial_order_broken([Event(0, 1, 1, "a"), Event(0, 1, 1, "b")]), "two versions at one place"


@pytest.mark.requirement("R20")
def test_batches_and_their_readers_have_one_serial_order(
    together: Callable[[Sequence[Work]], None], container: ContainerProxy, wire: BatchWire
) -> None:
    link = container.container_link
    history: list[Event] = []
    assert wire.batch(link, [upsert("x", tag="0"), upsert("y", tag="0")]).status == 200

    def write(wire: BatchWire, chooser: random.Random) -> None:
        me = threading.get_ident()
        for turn in range(30):
            tag, began = f"{me}-{turn}", time.monotonic()
            pair = [upsert("x", tag=tag), upsert("y", tag=tag)]
            chooser.shuffle(pair)
            reply = wire.batch(link, pair)
            assert reply.status == 200, reply.body
            lsns = {lsn_of(entry["eTag"]) for entry in reply.json}
            assert len(lsns) == 1, "all changes of a batch are one write"
            history.append(Event(began, time.monotonic(), lsns.pop(), tag))

    def look(wire: BatchWire, chooser: random.Random) -> None:
        for _ in range(60):
            began = time.monotonic()
            first, second = chooser.sample(["x", "y"], 2)
            reply = wire.batch(link, [read(first), read(second)])
            (one, lsn), (other, other_lsn) = (
                (entry["resourceBody"]["tag"], lsn_of(entry["eTag"])) for entry in reply.json
            )
            assert (one, lsn) == (other, other_lsn), "half of a batch was seen"
            history.append(Event(began, time.monotonic(), lsn, one))

    def disturb(wire: BatchWire, chooser: random.Random) -> None:
        for turn in range(60):
            item = {"id": f"z{chooser.randrange(3)}", "pk": "a", "turn": turn}
            reply = wire.post(
                link,
                "docs",
                item,
                x_ms_documentdb_partitionkey='["a"]',
                x_ms_documentdb_is_upsert="true",
            )
            assert reply.status in (200, 201)

    together([write] * 4 + [look] * 3 + [disturb])
    assert not serial_order_broken(history)
    assert len({event.lsn for event in history if "-" in event.value}) == 4 * 30, (
        "every batch has its own place"
    )


@pytest.mark.requirement("R20")
def test_transfers_between_two_items_keep_their_sum(
    together: Callable[[Sequence[Work]], None], container: ContainerProxy, wire: BatchWire
) -> None:
    link = container.container_link
    accounts = [upsert("x", amount=500, moves=0, notes=0), upsert("y", amount=500, moves=0, notes=0)]
    assert wire.batch(link, [*accounts, upsert("audits", n=0)]).status == 200
    done: list[str] = []

    def transfer(wire: BatchWire, chooser: random.Random) -> None:
        for _ in range(20):
            source, target = chooser.sample(["x", "y"], 2)
            amount = chooser.randrange(400)
            take = increment(source, amount=-amount, moves=1)
            take["resourceBody"]["condition"] = f"from c where c.amount >= {amount}"
            reply = wire.batch(link, [take, increment(target, amount=amount, moves=1), read(source)])
            if reply.status == 200:
                done.append("transfer")
                assert reply.json[2]["resourceBody"]["amount"] >= 0
            else:
                assert reply.statuses == [412, 424, 424], reply.body

    def note(wire: BatchWire, chooser: random.Random) -> None:
        for _ in range(20):
            alone = increment(chooser.choice(["x", "y"]), notes=1)
            assert wire.bulk(link, [{**alone, "partitionKey": '["a"]'}]).statuses == [200]
            done.append("note")

    def note_by_etag(wire: BatchWire, chooser: random.Random) -> None:
        """As `note`, but the client itself computes the new item and says which version it comes from."""
        noted = 0
        while noted < 20:
            found = wire.batch(link, [read(chooser.choice(["x", "y"]))]).json[0]
            item = found["resourceBody"]
            replace = {
                "operationType": "Replace",
                "id": item["id"],
                "resourceBody": {**item, "notes": item["notes"] + 1},
                "ifMatch": found["eTag"],
                "partitionKey": '["a"]',
            }
            (status,) = wire.bulk(link, [replace]).statuses
            assert status in (200, 412)
            if status == 200:
                noted += 1
                done.append("note")

    def audit(wire: BatchWire, chooser: random.Random) -> None:
        for _ in range(40):
            reply = wire.batch(link, [read("x"), increment("audits", n=1), read("y")])
            assert reply.status == 200, reply.body
            amounts = [reply.json[index]["resourceBody"]["amount"] for index in (0, 2)]
            assert sum(amounts) == 1000, "a transfer was seen half done"

    together([transfer] * 4 + [note] + [note_by_etag] + [audit] * 2)
    x, y = (container.read_item(id, "a") for id in ("x", "y"))
    assert x["amount"] + y["amount"] == 1000
    assert x["moves"] == y["moves"] == done.count("transfer")
    assert x["notes"] + y["notes"] == done.count("note") == 40
    assert done.count("transfer") > 10
    assert container.read_item("audits", "a")["n"] == 80


@pytest.mark.requirement("R20")
def test_no_update_is_lost_that_an_etag_should_have_protected(
    together: Callable[[Sequence[Work]], None], container: ContainerProxy
) -> None:
    link = container.container_link
    container.create_item({"id": "counter", "pk": "a", "n": 0})
    acknowledged: list[int] = []

    def count(wire: BatchWire, chooser: random.Random) -> None:
        successes = 0
        while successes < 10:
            found = wire.batch(link, [read("counter")]).json[0]
            following = found["resourceBody"]["n"] + 1
            replace = {
                "operationType": "Replace",
                "id": "counter",
                "ifMatch": found["eTag"],
                "resourceBody": {"id": "counter", "pk": "a", "n": following},
            }
            log = {"operationType": "Create", "resourceBody": {"id": f"log-{following}", "pk": "a"}}
            reply = wire.batch(link, [log, replace] if chooser.random() < 0.5 else [replace, log])
            if reply.status == 200:
                successes += 1
                acknowledged.append(following)
            else:
                assert set(reply.statuses) <= {412, 409, 424}, reply.body

    together([count] * 5)
    assert sorted(acknowledged) == list(range(1, 51))
    assert container.read_item("counter", "a")["n"] == 50
    logs = {item["id"] for item in container.read_all_items()} - {"counter"}
    assert logs == {f"log-{n}" for n in range(1, 51)}
