"""Killing the server under clients in direct mode, which go on by themselves: nothing is lost or there twice.

The server is killed while its partitions are split and merged, and started again on the same port. Its clients keep
what they know of ranges and addresses until they are told that it is old, and connect again where a connection is
gone. PLEIAD_CRASH_KILLS says how often.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pleiad.testing.start import RunningServer
from tests.clients.direct.frames import RANGE, Direct
from tests.clients.direct.operations import QUERY
from tests.ports import reserved_port
from tests.proofs.splits.load import Known, Ledger, Mover, Worker, check, prepare, settled
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX, any_moment, wait_until

KILLS = int(os.environ.get("PLEIAD_CRASH_KILLS", "2"))
LIMITS = 'profile = "default"\nphysical_partition_bytes = 150_000\n'
WRITERS, KEYS, IDS = 3, 24, 4
CONTAINER = ["dbs", "db", "colls", "c"]
DOCS = [*CONTAINER, "docs"]
NOT_APPLIED = {410, 429, 449, 503}


class DirectWriter(Worker):
    """Writes and reads items of its own over frames, and connects again when the server comes back."""

    def __init__(self, server: RunningServer, ledger: Ledger, stop: threading.Event, number: int) -> None:
        super().__init__(server, ledger, stop, f"direct{number}")
        self.number = number
        self.client: Direct | None = None
        self.connections = 0
        self.refreshes = 0
        self.answered_at = time.monotonic()

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set():
                try:
                    self.act()
                except OSError:
                    self._lose()
                    self._stop_asked.wait(0.05)
        except (AssertionError, KeyError) as error:
            self.ledger.failures.append(f"DirectWriter: {error!r}")

    def act(self) -> None:
        if self.client is None:
            self.client = Direct(self.server)
            self.connections += 1
        client = self.client
        pk, id = f"k{self.random.randrange(KEYS)}", f"direct{self.number}-{self.random.randrange(IDS)}"
        known = self.ledger.items.setdefault((pk, id), Known())
        if known.in_flight and not self._learn(client, pk, id, known):
            return
        if self.random.random() < 0.05:
            self._query(client)
        version = (known.version or 0) + 1
        known.in_flight.append(version)
        body = {"id": id, "pk": pk, "version": version, "text": "x" * 400}
        answer = client.send("POST", DOCS, body, {"x-ms-documentdb-is-upsert": "True"}, [pk])
        if answer.status in NOT_APPLIED:
            known.in_flight.clear()
            self._look_again()
            return
        assert answer.status in (200, 201), (answer.status, answer.body)
        known.version = version
        known.in_flight.clear()
        self.answered_at = time.monotonic()
        with self.ledger.lock:
            self.ledger.acknowledged += 1

    def _learn(self, client: Direct, pk: str, id: str, known: Known) -> bool:
        """Finds out what became of a write that had no answer."""
        answer = client.send("GET", [*DOCS, id], None, None, [pk])
        if answer.status in NOT_APPLIED:
            self._look_again()
            return False
        assert answer.status in (200, 404), (answer.status, answer.body)
        version = answer.json["version"] if answer.status == 200 else None
        possible = [known.version, *known.in_flight]
        assert version in possible, f"{pk}/{id} is at {version}, it may be at {possible}"
        known.version = version
        known.in_flight.clear()
        return True

    def _query(self, client: Direct) -> None:
        """All items of this writer, asked for range by range: each of them once."""
        ranges = client.https.send("GET", [*CONTAINER, "pkranges"]).json["PartitionKeyRanges"]
        text = f"SELECT VALUE c.id FROM c WHERE STARTSWITH(c.id, 'direct{self.number}-')"
        found = 0
        for each in ranges:
            headers = {**QUERY, RANGE: each["id"], "x-ms-max-item-count": "-1"}
            answer = client.send("POST", DOCS, {"query": text}, headers)
            if answer.status in NOT_APPLIED:
                self._look_again()
                return
            assert answer.status == 200, (answer.status, answer.body)
            found += len(answer.json["Documents"])
        own = [key for key in self.ledger.items if key[1].startswith(f"direct{self.number}-")]
        written = [key for key in own if self.ledger.items[key].version is not None]
        uncertain = [key for key in own if self.ledger.items[key].in_flight]
        assert len(written) - len(uncertain) <= found <= len(own)

    def _look_again(self) -> None:
        assert self.client is not None
        self.client.forget()
        self.refreshes += 1
        waited_seconds = time.monotonic() - self.answered_at
        assert waited_seconds < SECONDS_MAX, "the client is told to look again without end"
        self._stop_asked.wait(0.01)

    def _lose(self) -> None:
        if self.client is not None:
            self.client.close()
            self.client = None


def wait_until_busy(ledger: Ledger, changes: int) -> None:
    """Waits until this life has acknowledged writes and changes of the map, however slow the machine is."""
    written = ledger.acknowledged + 40
    assert wait_until(
        lambda: ledger.failures or (ledger.acknowledged >= written and ledger.changes >= changes)
    )


@contextlib.contextmanager
def ended(stop: threading.Event, workers: Sequence[Worker]) -> Iterator[None]:
    """Afterwards the workers have stopped, whatever happened: they would go on beside all other tests."""
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join(SECONDS_MAX)
        assert not any(worker.is_alive() for worker in workers)


def live(server: RunningServer, ledger: Ledger, life: int) -> None:
    """One life: writes and changes of the map, and a kill unless it is the last one."""
    halted = threading.Event()
    mover = Mover(server, ledger, halted, f"mover{life}")
    mover.start()
    with ended(halted, [mover]):
        wait_until_busy(ledger, ledger.changes + 2)
        if life < KILLS:
            any_moment(random.Random(life), 0.3)
            os.kill(server.process_id, signal.SIGKILL)


@pytest.mark.filterwarnings("ignore")  # the threads of the client over HTTP complain that the server is gone
@pytest.mark.timeout(900 + 60 * KILLS)
def test_clients_in_direct_mode_go_on_after_every_kill_and_lose_nothing(
    tmp_path: Path, start_server: StartServer
) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text(LIMITS)
    ledger, stop = Ledger(), threading.Event()
    writers: list[DirectWriter] = []
    with reserved_port() as port, ended(stop, writers):
        for life in range(KILLS + 1):
            with start_server(
                data=tmp_path / "data", limits=str(limits), child_process=True, port=port
            ) as server:
                if life == 0:
                    prepare(server, ledger)
                    writers += [DirectWriter(server, ledger, stop, number) for number in range(WRITERS)]
                    for writer in writers:
                        writer.start()
                live(server, ledger, life)
                if life < KILLS:
                    continue
                with ended(stop, writers):
                    pass
                assert not ledger.failures, ledger.failures[:3]
                settled(server)
                check(server, ledger)
    assert all(writer.connections > KILLS for writer in writers)
    assert sum(writer.refreshes for writer in writers) > 0, "no client was ever told of a split"
