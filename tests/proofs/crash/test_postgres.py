"""Two servers on one PostgreSQL database, which are killed, frozen and restarted under load, in turns.

Official clients write through both servers while partitions are split and merged. Afterwards:

- no acknowledged write is lost, and none is there twice; a write that was refused is not there;
- a write whose outcome is unknown is there whole or not at all;
- both servers tell the same;
- the counters of each physical partition equal its rows, and no segment belongs to nobody;
- the change feed has told the last version of everything, from the beginning and to a follower that went on over all
  of it;
- the servers go on by themselves soon after the database is back.

PLEIAD_CRASH_KILLS says how many turns there are.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest
from azure.cosmos import CosmosClient, PartitionKey

from pleiad.engine.engine import Engine
from pleiad.store.postgres.store import PostgresStore
from tests.postgres_server import PostgresServer
from tests.proofs.crash.gateways import COUNTERS, Follower, Gateway, Ledger, Mover, Verdict, Worker, Writer
from tests.stores import PATIENT
from tests.waiting import SECONDS_MAX, any_moment, until, wait_until

TURNS = int(os.environ.get("PLEIAD_CRASH_KILLS", "7"))
STOPPED_SECONDS = 10.0
FROZEN_SECONDS = 3.0
RESUME_SECONDS = 2.0
RESUME_SECONDS_MAX = 60.0
"""Of the slowest of all turns, on a machine that does other things too."""
QUIET_READS = 50
"""After splits and merges the client needs many calls to come round to all of its ranges."""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


# -- what happens ----------------------------------------------------------------------------------


def crash(server: PostgresServer) -> None:
    server.kill()
    server.start()


def quit_at_once(server: PostgresServer) -> None:
    server.stop(signal.SIGQUIT)
    server.start()


def restart(server: PostgresServer) -> None:
    server.stop(signal.SIGINT)
    server.start()


def stop_for_a_while(server: PostgresServer) -> None:
    server.stop(signal.SIGINT)
    time.sleep(STOPPED_SECONDS)  # the fault is that it is away for so long
    server.start()


def freeze(server: PostgresServer) -> None:
    server.freeze()
    time.sleep(FROZEN_SECONDS)  # the fault is that it stands still for so long
    server.thaw()


FAULTS: list[Callable[[PostgresServer], None] | None] = [
    crash,
    None,  # a server of ours is killed, and the database goes on
    quit_at_once,
    freeze,
    restart,
    stop_for_a_while,
    crash,
]


class Drill:
    """The turns, and how long it took after each until both servers worked."""

    def __init__(self, server: PostgresServer, gateways: list[Gateway]) -> None:
        self._server = server
        self._gateways = gateways
        self._random = random.Random(len(FAULTS))
        self.resumed: list[tuple[str, str, float]] = []

    def turn(self, number: int) -> None:
        any_moment(self._random, 1.0)
        fault = FAULTS[number % len(FAULTS)]
        if fault is None:
            gateway = self._gateways[number // len(FAULTS) % len(self._gateways)]
            gateway.kill()
            gateway.start()
        else:
            fault(self._server)
        back = time.monotonic()
        for gateway in self._gateways:
            seconds = gateway.first_success_after(back, RESUME_SECONDS_MAX)
            self.resumed.append((fault.__name__ if fault else "kill", gateway.name, round(seconds, 2)))


# -- what must be true afterwards --------------------------------------------------------------------


def settled(gateway: Gateway) -> None:
    """Waits until no change of the partitions is under way."""
    with gateway.admin() as admin:
        assert wait_until(lambda: admin.partitions("db", "c", 0, 0)["settled"]), (
            "a change of the map does not end"
        )


def documents(gateway: Gateway) -> dict[str, dict[str, Any]]:
    found = list(gateway.container().query_items("SELECT * FROM c", enable_cross_partition_query=True))
    by_id = {f"{each['pk']}/{each['id']}": each for each in found}
    assert len(by_id) == len(found), "an item is there twice"
    return by_id


def check_items(ledger: Ledger, found: dict[str, dict[str, Any]]) -> None:
    for id, item in ledger.items.items():
        document = found.get(f"{item.pk}/{id}")
        version = document["version"] if document else None
        assert version in item.possible, f"{id} is at {version}, it may be at {item.possible}"
        assert document is None or document["check"] == f"{id}/{version}", f"half of a write: {document}"
    for one, other in ledger.pairs:
        pk = ledger.items[one].pk
        assert (f"{pk}/{one}" in found) == (f"{pk}/{other}" in found), f"half of the batch of {one}"
    for pk in COUNTERS:
        least, most = ledger.counts[pk], ledger.counts[pk] + ledger.counts_unknown[pk]
        count = found[f"{pk}/counter"]["version"]
        assert least <= count <= most, f"the counter of {pk} is at {count}, it may be at {least} to {most}"
    assert len(found) <= len(ledger.items) + len(COUNTERS)


def check_feed(found: dict[str, dict[str, Any]], told: dict[str, dict[str, Any]]) -> None:
    untold = [key for key, item in found.items() if told.get(key, {}).get("_etag") != item["_etag"]]
    assert not untold, f"the feed has not told the last of {len(untold)} items: {untold[:5]}"


async def check_counters(dsn: str) -> None:
    """Each physical partition counts what it holds and is open, and nothing else is in the database."""
    async with AsyncExitStack() as stack:
        engine = Engine(await PostgresStore.open(dsn), PATIENT)
        await engine.open()
        stack.push_async_callback(engine.close)
        container = await engine.container("db", "c")
        for partition in container.map.partitions:
            state, totals = await partition.state(), await partition.segment.totals(partition.span)
            assert (state.items, state.size_bytes) == (totals.items, totals.size_bytes)
            assert state.epoch == partition.epoch
        live = engine.catalog.segment_names()
    # What a killed server has dropped and not freed the other one frees.
    assert await until(lambda: segments(dsn) == live), "a segment belongs to nobody"


def segments(dsn: str) -> set[str]:
    with psycopg.connect(dsn) as connection:
        made = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pleiad\\_%'")
        return {name.removeprefix("pleiad_") for (name,) in made.fetchall()}


def read_everything(follower: Follower) -> None:
    """The follower goes on where it is, until nothing new has come for a while; see `splits.load.Follower`."""
    quiet = 0
    container = follower.gateway.container()
    while quiet < QUIET_READS:
        before = dict(follower.seen)
        follower.act(container)
        quiet = quiet + 1 if follower.seen == before else 0


def whole_feed(gateway: Gateway) -> dict[str, dict[str, Any]]:
    changes = gateway.container().query_items_change_feed(start_time="Beginning")
    return {f"{change['pk']}/{change['id']}": change for change in changes}


# -- the proof ---------------------------------------------------------------------------------------


def prepare(gateway: Gateway) -> None:
    database = CosmosClient(gateway.server.endpoint, gateway.server.key).create_database("db")
    container = database.create_container("c", PartitionKey("/pk"), offer_throughput=20_000)
    for pk in COUNTERS:
        container.create_item({"id": "counter", "pk": pk, "version": 0})


def is_enough(ledger: Ledger) -> bool:
    """Whether so much was written and changed that what is lost or doubled would show."""
    return ledger.verdicts[Verdict.DONE] > 50 * TURNS and ledger.changes > 0


def run_turns(drill: Drill, workers: list[Worker], stop: threading.Event, ledger: Ledger) -> None:
    for worker in workers:
        worker.start()
    try:
        for number in range(TURNS):
            drill.turn(number)
            assert not ledger.surprises, ledger.surprises[:3]
        assert wait_until(lambda: is_enough(ledger) or ledger.surprises)
    finally:
        stop.set()
        for worker in workers:
            worker.join(SECONDS_MAX)
    assert not any(worker.is_alive() for worker in workers)


@pytest.mark.filterwarnings("ignore")  # the client's own threads complain that a server is gone
@pytest.mark.timeout(900 + 60 * TURNS)
def test_nothing_acknowledged_is_lost_or_doubled_whatever_fails(server: PostgresServer) -> None:
    dsn = server.new_database()
    gateways = [Gateway("one", dsn), Gateway("two", dsn)]
    ledger, stop, drill = Ledger(), threading.Event(), Drill(server, gateways)
    try:
        prepare(gateways[0])
        follower = Follower(gateways[1], ledger, stop)
        workers: list[Worker] = [Writer(gateways[n % 2], ledger, stop, n) for n in range(4)]
        workers += [follower, Mover(gateways[0], ledger, stop, "m0"), Mover(gateways[1], ledger, stop, "m1")]
        run_turns(drill, workers, stop, ledger)
        for gateway in gateways:
            settled(gateway)
        found = documents(gateways[0])
        assert documents(gateways[1]) == found
        check_items(ledger, found)
        asyncio.run(check_counters(dsn))
        for gateway in gateways:
            check_feed(found, whole_feed(gateway))
        read_everything(follower)
        check_feed(found, follower.seen)
        assert not ledger.surprises, ledger.surprises[:3]
    finally:
        for gateway in gateways:
            gateway.close()
    report(drill, ledger)
    assert is_enough(ledger), "the clients hardly wrote anything, or nothing was split or merged"
    seconds = [each for _, _, each in drill.resumed]
    # How long it takes is measured by `make crash` alone, on a machine that has nothing else to do.
    if "PLEIAD_CRASH_KILLS" in os.environ:
        assert statistics.median(seconds) <= RESUME_SECONDS, drill.resumed


def report(drill: Drill, ledger: Ledger) -> None:
    verdicts = ", ".join(f"{count} {verdict.value}" for verdict, count in ledger.verdicts.items())
    print(f"writes: {verdicts}; {ledger.changes} splits and merges; seconds until writes went on:")
    for fault, name, seconds in drill.resumed:
        print(f"  {fault:18} {name:5} {seconds}")
