"""Killing the server while it copies containers and exchanges them for their copies, again and again.

Clients of the official SDK write to one container all the time and note what was acknowledged. Beside them the
container is copied with another partition key and exchanged for the copy, and then back, without end. The server is
killed at random moments and started on the same data. Then, after each death and at the end:

- every item is at its last acknowledged version, or at the one that was in flight when the server died;
- no item is there twice, or back from an acknowledged delete;
- the copy that was under way goes on and ends well, and so does every later one.

PLEIAD_CRASH_KILLS says how often to kill; PLEIAD_CRASH_SEED repeats the choices of an earlier run.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.client.admin import Admin
from pleiad.client.connection import Connection, ConnectionFailedError
from pleiad.testing.start import RunningServer
from tests.proofs.crash.seeds import chosen_seed
from tests.stores import StartServer
from tests.waiting import any_moment, wait_until

KILLS = int(os.environ.get("PLEIAD_CRASH_KILLS", "2"))
SEED = chosen_seed()
ITEMS = 400
WRITERS = 2
KEYS = ("/pk", "/t")


class Writer(threading.Thread):
    """Writes and deletes items of its own until the server is gone, or it is told to stop."""

    def __init__(self, server: RunningServer, number: int, known: dict[str, set[int | None]]) -> None:
        super().__init__(daemon=True)
        client = CosmosClient(server.endpoint, server.key, retry_total=0, retry_connect=0)
        self._container = client.get_database_client("db").get_container_client("a")
        self._number = number
        self._known = known
        self.acknowledged = 0
        self.must_stop = False
        self.surprises: list[str] = []

    def run(self) -> None:
        for turn in itertools.count():
            if self.must_stop:
                return
            try:
                self._write(turn)
                self.acknowledged += 1
            except CosmosHttpResponseError as error:
                if error.status_code not in (0, 408, 503):
                    self.surprises.append(f"{error.status_code}/{error.sub_status}: {error.message}")
                return
            except (AzureError, OSError):
                return

    def _write(self, turn: int) -> None:
        place = turn * 7 % 40
        id = f"w{self._number}-{place}"
        states = self._known.setdefault(id, {None})
        wanted = None if turn % 4 == 3 and states == {max(states, key=_order)} != {None} else time.time_ns()
        states.add(wanted)
        item = {"id": id, "pk": f"p{place % 5}", "t": f"t{place % 3}", "n": wanted}
        for attempt in itertools.count():
            try:
                if wanted is None:
                    self._container.delete_item(id, self._key(place), retry_write=0)
                else:
                    self._container.upsert_item(item, retry_write=0)
                break
            except CosmosHttpResponseError as error:
                # A write that was under way with the old key is told so once, and the client then knows the new one.
                is_stale = (error.status_code, error.sub_status) == (400, 1001)
                is_gone = wanted is None and error.status_code == 404
                # What a killed server held is open again when another one on the database has found it dead.
                is_held = (error.status_code, error.sub_status) == (410, 1007)
                if attempt > 5 or not (is_stale or is_gone or is_held):
                    raise
        self._known[id] = {wanted}

    def _key(self, place: int) -> str:
        """The partition key of an item by the definition that the container has now, as an application would know."""
        paths = self._container.read()["partitionKey"]["paths"]
        return f"p{place % 5}" if paths == ["/pk"] else f"t{place % 3}"


def _order(state: int | None) -> int:
    return -1 if state is None else state


class Copier(threading.Thread):
    """Exchanges the container for a copy with the other key, and back, until the server is gone."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__(daemon=True)
        self._server = server
        self.done = 0
        self.problems: list[str] = []
        self.must_stop = False

    def run(self) -> None:
        try:
            with Connection(self._server.endpoint, self._server.key) as connection:
                while not self.must_stop:
                    self.finish(Admin(connection))
        except (ConnectionFailedError, OSError):
            return

    def finish(self, admin: Admin) -> None:
        """Brings the copy under way to its end, or a new one."""
        under_way = [each for each in admin.copies() if each["state"] in ("planned", "running", "switching")]
        client = CosmosClient(self._server.endpoint, self._server.key, retry_total=0, retry_connect=0)
        try:
            database = client.get_database_client("db")
            if not under_way:
                now = database.get_container_client("a").read()["partitionKey"]["paths"][0]
                for each in database.list_containers():
                    if each["id"] != "a":
                        database.delete_container(each["id"])
                plan = {"source": "db/a", "target": f"db/c{time.time_ns()}", "switch": True, "share": 0.7}
                under_way = [admin.start_copy({**plan, "partitionKey": KEYS[now == KEYS[0]]})]
        except AzureError:
            return
        ended: dict[str, Any] = {}

        def is_over() -> bool:
            ended.update(admin.copy(under_way[0]["id"]))
            return ended["state"] in ("done", "failed", "cancelled")

        assert wait_until(is_over)
        if ended["state"] == "done":
            self.done += 1
        else:
            self.problems.append(str(ended))


def check(server: RunningServer, known: dict[str, set[int | None]]) -> None:
    """Compares the container with what was acknowledged."""
    client = CosmosClient(server.endpoint, server.key)
    container = client.get_database_client("db").get_container_client("a")
    found = list(container.query_items("SELECT * FROM c", enable_cross_partition_query=True))
    states: dict[str, int | None] = {}
    for item in found:
        assert item["id"] not in states, f"seed {SEED}: {item['id']} is there twice"
        states[item["id"]] = item.get("n")
    assert sum(id.startswith("i") for id in states) == ITEMS, f"seed {SEED}"
    for id, allowed in known.items():
        assert states.get(id) in allowed, f"seed {SEED}: {id} is {states.get(id)}, not one of {allowed}"
        known[id] = {states.get(id)}


def end(writers: list[Writer], copier: Copier) -> None:
    """Lets everybody come to an end, when the container was exchanged twice more."""
    assert wait_until(lambda: copier.done >= 2 or copier.problems)
    copier.must_stop = True
    for writer in writers:
        writer.must_stop = True


def kill(server: RunningServer, writers: list[Writer], chance: random.Random) -> None:
    """Kills the server at any moment after every writer was at work."""
    assert wait_until(lambda: all(each.acknowledged > 3 for each in writers))
    any_moment(chance, 1.2)
    os.kill(server.process_id, signal.SIGKILL)


@pytest.mark.every_store
def test_a_server_that_is_killed_while_it_copies_loses_nothing_and_goes_on(
    start_server: StartServer, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    known: dict[str, set[int | None]] = {}
    with start_server(data=tmp_path) as server:
        database = CosmosClient(server.endpoint, server.key).create_database("db")
        container = database.create_container("a", PartitionKey("/pk"))
        for number in range(ITEMS):
            container.create_item({"id": f"i{number}", "pk": f"p{number % 5}", "t": f"t{number % 7}"})
    for life in range(KILLS + 1):
        is_last = life == KILLS
        with start_server(data=tmp_path, child_process=True) as server:
            if life:
                check(server, known)
            writers = [Writer(server, number, known) for number in range(WRITERS)]
            copier = Copier(server)
            for thread in (*writers, copier):
                thread.start()
            if is_last:
                end(writers, copier)
            else:
                kill(server, writers, chance)
            for thread in (*writers, copier):
                thread.join()
            assert not copier.problems, f"seed {SEED}: {copier.problems}"
            assert not [each.surprises for each in writers if each.surprises], f"seed {SEED}"
            if is_last:
                check(server, known)
