"""The official client goes on through splits and merges: no operation fails, nothing is lost, doubled or seen twice."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from pleiad.testing.start import RunningServer
from tests.proofs.splits.aio_load import AioFollower, AioLoad, client_of
from tests.proofs.splits.load import Asker, Follower, Ledger, Mover, Worker, Writer, check, prepare, settled
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX, until, wait_until

CHANGES = 12
"""So many splits and merges take place under the load, however long they take."""


@pytest.mark.requirement("R49", "R51")
def test_clients_do_not_notice_splits_and_merges(start_server: StartServer) -> None:
    ledger = Ledger()
    with start_server(child_process=True) as server:
        prepare(server, ledger)
        stop = threading.Event()
        follower = Follower(server, ledger, stop, "follower")
        workers: list[Worker] = [Writer(server, ledger, stop, number=number) for number in range(3)]
        workers += [Asker(server, ledger, stop, "asker"), follower, Mover(server, ledger, stop, "mover")]
        # The follower may come to the end of the feed only when nobody writes any more.
        ended = [worker for worker in workers if worker is not follower]
        for worker in workers:
            worker.start()
        assert wait_until(
            lambda: ledger.failures or (ledger.changes >= CHANGES and all(each.rounds for each in ended))
        )
        stop.set()
        for worker in workers:
            worker.join(SECONDS_MAX)
            assert not worker.is_alive()
        assert not ledger.failures, ledger.failures[:3]
        settled(server)
        check(server, ledger)
        follower.read_everything()
    assert all(worker.rounds > 0 for worker in workers), [worker.rounds for worker in workers]
    check_feed(ledger, follower.seen)


@pytest.mark.requirement("R49", "R51")
def test_the_asynchronous_client_does_not_notice_splits_and_merges(start_server: StartServer) -> None:
    ledger = Ledger()
    with start_server(child_process=True) as server:
        prepare(server, ledger)
        stop = threading.Event()
        mover = Mover(server, ledger, stop, "mover")
        seen, rounds = asyncio.run(asynchronous_load(server, ledger, mover, stop))
        assert not ledger.failures, ledger.failures[:3]
        check(server, ledger)
    assert all(rounds.values()), rounds
    check_feed(ledger, seen)


async def asynchronous_load(
    server: RunningServer, ledger: Ledger, mover: Mover, stop: threading.Event
) -> tuple[dict[tuple[str, str], dict[str, Any]], dict[str, int]]:
    """Works with two clients while partitions are split and merged; what the feed told, and who did how much."""
    async with client_of(server) as client, client_of(server) as feed_client:
        load = AioLoad(client.get_database_client("db").get_container_client("c"), ledger)
        follower = AioFollower(feed_client.get_database_client("db").get_container_client("c"))
        acts = {f"writer{number}": load.writer(number) for number in range(4)}
        acts |= {"asker": load.ask, "reader": load.read_many, "follower": follower.follow}
        # As above, the follower may have to wait for the end of all writing.
        ended = acts.keys() - {"follower"}
        await follower.read()
        mover.start()
        working = [asyncio.create_task(load.repeat(name, act)) for name, act in acts.items()]
        assert await until(
            lambda: (
                any(task.done() for task in working)
                or (ledger.changes >= CHANGES and all(map(load.rounds.get, ended)))
            )
        )
        load.is_over = True
        await asyncio.gather(*working)
        stop.set()
        await asyncio.to_thread(mover.join, SECONDS_MAX)
        await asyncio.to_thread(settled, server)
        if not ledger.failures:
            await follower.read_everything()
        return follower.seen, load.rounds


def check_feed(ledger: Ledger, seen: dict[tuple[str, str], dict[str, Any]]) -> None:
    """The change feed has told the last version of everything."""
    for key, known in ledger.items.items():
        if known.version is not None:
            assert seen[key]["version"] == known.version, f"the feed has not told of {key}"
    for pk, count in ledger.counts.items():
        assert seen[pk, "counter"]["count"] == count
