"""Killing the server in the middle of splits and merges: nothing acknowledged is lost or there twice.

PLEIAD_CRASH_KILLS says how often.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from pathlib import Path

import pytest

from pleiad.testing.start import RunningServer
from tests.proofs.splits.load import Ledger, Mover, Worker, Writer, check, connect, prepare, settled
from tests.stores import SegmentNames, StartServer
from tests.waiting import SECONDS_MAX, any_moment, wait_until

KILLS = int(os.environ.get("PLEIAD_CRASH_KILLS", "2"))
LIMITS = 'profile = "default"\nphysical_partition_bytes = 150_000\n'


def raise_throughput(server: RunningServer, life: int) -> None:
    """Asks for one more physical partition, as a client does."""
    wanted = 10_000 * min(2 + life, 5) + 1_000
    connect(server).replace_throughput(wanted)


def wait_until_busy(ledger: Ledger, life: int) -> None:
    """Waits until this life has acknowledged writes and the first one a change, however slow the machine is."""
    written = ledger.acknowledged + 25
    assert wait_until(
        lambda: ledger.failures or (ledger.acknowledged >= written and (life or ledger.changes))
    )


def live_and_die(
    data: Path,
    limits: Path,
    ledger: Ledger,
    life: int,
    start_server: StartServer,
    segment_names: SegmentNames,
) -> None:
    """One life: check what the last one left, work and reshape, and be killed."""
    with start_server(data=data, limits=str(limits), child_process=True) as server:
        if life == 0:
            prepare(server, ledger)
        check(server, ledger)
        partitions = settled(server)
        # What a change has left may still be about to be freed.
        assert wait_until(lambda: len(segment_names(data)) == partitions), "a segment belongs to nobody"
        if life == KILLS:
            return
        stop = threading.Event()
        workers: list[Worker] = [Writer(server, ledger, stop, number=number) for number in range(3)]
        workers.append(Mover(server, ledger, stop, f"mover{life}"))
        for worker in workers:
            worker.start()
        wait_until_busy(ledger, life)
        if life % 2 == 0:
            raise_throughput(server, life)
        any_moment(random.Random(life), 0.5)
        os.kill(server.process_id, signal.SIGKILL)
        stop.set()
        for worker in workers:
            worker.join(SECONDS_MAX)
            assert not worker.is_alive()
        assert not ledger.failures, ledger.failures[:3]


@pytest.mark.filterwarnings("ignore")  # the client's own threads complain that the server is gone
@pytest.mark.timeout(900 + 60 * KILLS)
def test_a_server_killed_in_the_middle_of_splits_and_merges_loses_nothing(
    tmp_path: Path, start_server: StartServer, segment_names: SegmentNames
) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text(LIMITS)
    ledger = Ledger()
    for life in range(KILLS + 1):
        live_and_die(tmp_path / "data", limits, ledger, life, start_server, segment_names)
    assert ledger.acknowledged > 20 * KILLS, "the clients hardly wrote anything"
    assert ledger.changes > 0
