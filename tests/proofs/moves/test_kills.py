"""Kills movers and reconcilers at every step: the item is there, once, and as it was written last."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.strategy import Reconciled, reconcile, run
from pleiad.strategy.move.mark import MARK
from pleiad.testing.start import RunningServer
from tests.project import ROOT
from tests.proofs.moves.victim import Case
from tests.waiting import wait_until

_WRITE_SECONDS = 0.01
MOVE_REQUESTS = 6
"""The read, the mark, the copy, the moment of the move, the removal of the copy's mark, the delete."""


class Victims:
    """Carries out cases in processes of their own."""

    def __init__(self, server: RunningServer, container: ContainerProxy, database: DatabaseProxy) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.proofs.moves.victim",
                server.endpoint,
                server.key,
                database.id,
                container.id,
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def is_killed(self, case: Case) -> bool:
        """Carries a case out; whether it was killed, or came to its end before."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(case)) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        assert code in (0, -signal.SIGKILL)
        return code != 0

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def database(pleiad_client: CosmosClient) -> Iterator[DatabaseProxy]:
    yield pleiad_client.create_database("moves")
    pleiad_client.delete_database("moves")


@pytest.fixture(scope="module")
def container(database: DatabaseProxy) -> ContainerProxy:
    return database.create_container("items", PartitionKey("/partitionKey"))


@pytest.fixture(scope="module")
def victims(
    pleiad_server: RunningServer, container: ContainerProxy, database: DatabaseProxy
) -> Iterator[Victims]:
    made = Victims(pleiad_server, container, database)
    yield made
    made.close()


def new_item(container: ContainerProxy) -> str:
    id = str(uuid.uuid4())
    container.create_item({"id": id, "partitionKey": "old", "n": 0})
    return id


def versions(container: ContainerProxy, id: str) -> list[dict[str, Any]]:
    found = container.query_items(
        "SELECT * FROM c WHERE c.id = @id",
        parameters=[{"name": "@id", "value": id}],
        enable_cross_partition_query=True,
    )
    return [dict(item) for item in found]


def settled(container: ContainerProxy) -> Reconciled:
    done = run(container, reconcile(idle_seconds=0)).value
    assert done.unsettled == ()
    assert done.unreadable == ()
    return done


@pytest.mark.requirement("R118", "R120")
@pytest.mark.parametrize("client", ["sync", "async"])
def test_whenever_a_mover_is_killed_its_item_is_there_once_afterwards(
    victims: Victims, container: ContainerProxy, client: str
) -> None:
    ends = []
    for kill_before in range(1, MOVE_REQUESTS + 2):
        id = new_item(container)
        case = Case(client=client, work="move", id=id, source="old", target="new", kill_before=kill_before)
        assert victims.is_killed(case) == (kill_before <= MOVE_REQUESTS)
        left = versions(container, id)
        assert any(item.get(MARK, {}).get("state") != "left" for item in left), "it is in force somewhere"
        settled(container)
        (item,) = versions(container, id)
        assert (item["n"], MARK in item) == (0, False)
        ends.append(item["partitionKey"])
    assert ends == ["old"] * 3 + ["new"] * 4, "undone before there was a copy, finished afterwards"


@pytest.mark.requirement("R120")
def test_whenever_a_reconciler_is_killed_the_next_one_brings_the_move_to_its_end(
    victims: Victims, container: ContainerProxy
) -> None:
    """After a mover that was killed when it had made its copy, through one client and the other in turns."""
    for kill_before, client in zip(itertools.count(1), itertools.cycle(("sync", "async")), strict=False):
        id = new_item(container)
        assert victims.is_killed(
            Case(client="sync", work="move", id=id, source="old", target="new", kill_before=4)
        )
        is_killed = victims.is_killed(Case(client=client, work="reconcile", kill_before=kill_before))
        settled(container)
        (item,) = versions(container, id)
        assert (item["partitionKey"], MARK in item) == ("new", False)
        if not is_killed:
            break
    assert kill_before > 5


class Writer:
    """Adds one to an item again and again, as the version that it has read, wherever the item is in force."""

    def __init__(self, container: ContainerProxy, id: str) -> None:
        self._container = container
        self._id = id
        self.written = 0
        self._told = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def has_gone_on(self) -> bool:
        """Whether it has written something since the last call."""
        before, self._told = self._told, self.written
        return self.written > before

    def _write(self) -> None:
        for key in itertools.cycle(("old", "new")):
            if self._ended.wait(_WRITE_SECONDS):
                return
            with contextlib.suppress(CosmosHttpResponseError):
                item = self._container.read_item(self._id, key)
                if item.get(MARK, {}).get("state") not in ("left", "arriving"):
                    self._container.replace_item(
                        self._id,
                        {**item, "n": item["n"] + 1},
                        etag=item["_etag"],
                        match_condition=MatchConditions.IfNotModified,
                    )
                    self.written += 1


@pytest.mark.requirement("R120")
@pytest.mark.parametrize("client", ["sync", "async"])
def test_no_update_is_lost_while_movers_are_killed_and_reconcilers_run_at_once(
    victims: Victims,
    container: ContainerProxy,
    pleiad_server: RunningServer,
    database: DatabaseProxy,
    client: str,
) -> None:
    """The item goes to and fro; its movers are killed at every step, and two reconcilers clear up each time."""
    id = new_item(container)
    clients = [CosmosClient(pleiad_server.endpoint, pleiad_server.key) for _ in range(2)]
    containers = [
        each.get_database_client(database.id).get_container_client(container.id) for each in clients
    ]
    moved = 0
    with Writer(container, id) as writer, ThreadPoolExecutor(2) as threads:
        for kill_before in range(1, MOVE_REQUESTS + 3):
            (present,) = {item["partitionKey"] for item in versions(container, id)}
            other = "new" if present == "old" else "old"
            writer.has_gone_on()
            victims.is_killed(
                Case(client=client, work="move", id=id, source=present, target=other, kill_before=kill_before)
            )
            # A writer may keep them from coming to an end in time, but they leave nothing wrong behind.
            list(threads.map(lambda each: run(each, reconcile(idle_seconds=0)), containers))
            assert wait_until(lambda: not run(container, reconcile(idle_seconds=0)).value.unsettled)
            (item,) = versions(container, id)
            moved += item["partitionKey"] == other
            assert wait_until(writer.has_gone_on)
    (item,) = versions(container, id)
    assert (item["n"], MARK in item) == (writer.written, False)
    assert moved > 0
