"""The official client goes on through splits and merges: no operation fails, nothing is lost, doubled or seen twice."""

from __future__ import annotations

import threading
import time

import pytest

import pleiad
from tests.splits.load import Asker, Follower, Ledger, Mover, Worker, Writer, check, prepare, settled

LOAD_SECONDS = 6.0
WRITE_SECONDS_P99 = 0.25
"""Of a whole call of the client, on a busy machine; the pause itself is a part of it."""


@pytest.mark.requirement("R49", "R51")
def test_clients_do_not_notice_splits_and_merges() -> None:
    ledger = Ledger()
    with pleiad.start(child_process=True) as server:
        prepare(server, ledger)
        stop = threading.Event()
        follower = Follower(server, ledger, stop, "follower")
        workers: list[Worker] = [Writer(server, ledger, stop, number=number) for number in range(3)]
        workers += [Asker(server, ledger, stop, "asker"), follower, Mover(server, ledger, stop, "mover")]
        for worker in workers:
            worker.start()
        deadline = time.monotonic() + LOAD_SECONDS
        while time.monotonic() < deadline and not ledger.failures:
            time.sleep(0.05)
        stop.set()
        for worker in workers:
            worker.join(60)
            assert not worker.is_alive()
        assert not ledger.failures, ledger.failures[:3]
        settled(server)
        check(server, ledger)
        follower.act()
    assert ledger.changes > 5, "hardly anything was split or merged"
    assert all(worker.rounds > 0 for worker in workers), [worker.rounds for worker in workers]
    for key, known in ledger.items.items():
        if known.version is not None:
            assert follower.seen[key]["version"] == known.version, f"the feed has not told of {key}"
    for pk, count in ledger.counts.items():
        assert follower.seen[pk, "counter"]["count"] == count
    times = sorted(ledger.write_seconds)
    assert times[len(times) * 99 // 100] < WRITE_SECONDS_P99, "writes wait too long for splits and merges"
