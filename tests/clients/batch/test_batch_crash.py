"""The server is killed in the middle of batches: what is left has every batch whole or not at all."""

from __future__ import annotations

import http.client
import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pleiad.testing.start import RunningServer
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX, any_moment, wait_until

if TYPE_CHECKING:
    from tests.clients.batch.conftest import BatchWire

Connect = Callable[[RunningServer], "BatchWire"]
CLIENTS = 4
KILLS = 2
LINK = "dbs/db/colls/c"


def turn_of(key: str, number: int) -> list[dict[str, Any]]:
    """Two counters moved to a number, and two new items that carry it."""
    moved = [
        {"operationType": "Upsert", "resourceBody": {"id": id, "pk": key, "n": number}} for id in ("x", "y")
    ]
    made = [
        {"operationType": "Create", "resourceBody": {"id": f"{number}-{half}", "pk": key}} for half in (0, 1)
    ]
    return [moved[0], made[0], moved[1], made[1]]


def work(wire: BatchWire, key: str, acknowledged: dict[str, int]) -> None:
    """Sends batch after batch until the server is gone."""
    try:
        while True:
            number = acknowledged[key] + 1
            reply = wire.batch(LINK, turn_of(key, number), f'["{key}"]')
            assert reply.status == 200, reply.body
            acknowledged[key] = number
    except (OSError, http.client.HTTPException):
        return


def check(wire: BatchWire, key: str, acknowledged: dict[str, int]) -> None:
    found = wire.batch(LINK, [{"operationType": "Read", "id": id} for id in ("x", "y")], f'["{key}"]')
    number = 0
    if found.status == 200:
        number, other = (entry["resourceBody"]["n"] for entry in found.json)
        assert number == other, "half of a batch survived"
    assert number in (acknowledged[key], acknowledged[key] + 1), "an acknowledged batch is lost"
    query = {"query": "SELECT VALUE c.id FROM c WHERE c.id NOT IN ('x', 'y')", "parameters": []}
    made: set[str] = set()
    token: dict[str, str] = {}
    while True:
        page = wire.post(
            LINK,
            "docs",
            query,
            content_type="application/query+json",
            x_ms_documentdb_isquery="true",
            x_ms_documentdb_partitionkey=f'["{key}"]',
            x_ms_max_item_count="1000",
            **token,
        )
        assert page.status == 200, page.body
        made |= set(page.json["Documents"])
        if "x-ms-continuation" not in page.headers:
            break
        token = {"x_ms_continuation": page.headers["x-ms-continuation"]}
    assert made == {f"{each}-{half}" for each in range(1, number + 1) for half in (0, 1)}
    acknowledged[key] = number


def test_a_killed_server_leaves_no_half_batch(
    tmp_path: Path, new_wire: Connect, start_server: StartServer
) -> None:
    acknowledged = {f"k{number}": 0 for number in range(CLIENTS)}
    for life in range(KILLS + 1):
        with start_server(data=tmp_path / "data", child_process=True) as server:
            wire = new_wire(server)
            if life == 0:
                assert wire.post("", "dbs", {"id": "db"}).status == 201
                body = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
                assert wire.post("dbs/db", "colls", body).status == 201
            for key in acknowledged:
                check(wire, key, acknowledged)
            if life == KILLS:
                break
            threads = [
                threading.Thread(target=work, args=(new_wire(server), key, acknowledged))
                for key in acknowledged
            ]
            for thread in threads:
                thread.start()
            assert wait_until(lambda: sum(acknowledged.values()) > 10)
            any_moment(random.Random(life), 0.5)
            os.kill(server.process_id, signal.SIGKILL)
            for thread in threads:
                thread.join(SECONDS_MAX)
                assert not thread.is_alive()
    assert sum(acknowledged.values()) > 10, "the clients hardly wrote anything"
