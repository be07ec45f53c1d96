"""The workload record of a server with several workers: one record, whichever of them answers or dies."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from pleiad.account.keys import EMULATOR_KEY
from pleiad.client.connection import Connection
from pleiad.workload.record import Operation, Request
from pleiad.workload.record import read as read_records

from .test_serve import Served, serving
from .test_workers import MANY, TWO, ask, container_of, endpoint, kill, workers_of
from .test_workers import read as read_item

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are for Linux")

NAMES = ("db", "c")


def recorded(served: Served, hashed: bool = False) -> list[Request]:
    """The record; every page of it is told by whichever worker is asked."""
    pages: list[bytes] = []
    headers: dict[str, str] = {}
    path = ("_pleiad", "v1", "dbs", "db", "colls", "c", "workload", "records")
    while True:
        with Connection(endpoint(served), EMULATOR_KEY) as connection:
            answer = connection.request(
                "GET", path, "workload", path, headers, parameters={"hashed": int(hashed)}
            )
        assert answer.status == 200
        pages.append(answer.body)
        if "x-ms-continuation" not in answer.headers:
            return list(read_records(io.BytesIO(b"".join(pages))))
        headers["x-ms-continuation"] = answer.headers["x-ms-continuation"]


def query(served: Served, times: int) -> None:
    """Queries over new connections, which are records of another kind."""
    for _ in range(times):
        with Connection(endpoint(served), EMULATOR_KEY) as connection:
            asked = {"query": "SELECT VALUE c.n FROM c WHERE c.id = '3'"}
            assert connection.query(("dbs", "db", "colls", "c"), asked, {}).status == 200


def writers(folder: Path) -> set[int]:
    """The workers that have written to records."""
    names = [path.stem.partition("-")[2] for path in folder.glob("workload/*/*.jsonl")]
    return {int(name or 0) for name in names}


def in_order(found: list[Request]) -> bool:
    return [each.at for each in found] == sorted(each.at for each in found)


def test_a_record_is_that_of_all_workers_and_outlives_one_that_is_killed_and_the_server(
    postgres_database: str, tmp_path: Path
) -> None:
    options = ("--data", tmp_path, "--port", 0, *TWO)
    with serving(*options, PLEIAD_STORE=postgres_database) as served:
        container_of(served)
        assert read_item(served) == {200: MANY}
        assert recorded(served) == []
        # The switch is in force at both when it is answered.
        assert ask(served, "switch_workload", *NAMES, "values")["switched"] is True
        assert {ask(served, "workload", *NAMES)["record"] for _ in range(MANY)} == {"values"}
        assert read_item(served) == {200: MANY}
        query(served, MANY)
        for _ in range(MANY // 4):
            state = ask(served, "workload", *NAMES)
            assert (state["records"], state["lost"]) == (2 * MANY, 0)
        found = recorded(served)
        kinds = [each.operation for each in found]
        assert kinds == [Operation.READ] * MANY + [Operation.QUERY] * MANY
        assert in_order(found)
        assert writers(tmp_path) == {0, 1}

        # What was written before a worker is killed stays, and its successor goes on.
        kill(served, workers_of(served)[0])
        assert recorded(served) == found
        assert read_item(served) == {200: MANY}
        after = recorded(served)
        assert after[: len(found)] == found
        assert [each.id for each in after[len(found) :]] == ["3"] * MANY
        assert in_order(after)
        assert served.stop()[0] == 0

    # The server again, and then one process alone, with the switch and the record of all.
    with serving(*options, PLEIAD_STORE=postgres_database) as served:
        assert recorded(served) == after
        assert read_item(served) == {200: MANY}
        again = recorded(served)
        assert (again[: len(after)], len(again)) == (after, len(after) + MANY)
        served.process.kill()
    with serving("--data", tmp_path, "--port", 0, PLEIAD_STORE=postgres_database) as served:
        assert recorded(served) == again
        assert read_item(served, 1) == {200: 1}
        assert len(recorded(served)) == len(again) + 1


def test_a_record_is_switched_off_and_cleared_at_all_workers(postgres_database: str, tmp_path: Path) -> None:
    options = ("--data", tmp_path, "--port", 0, *TWO, "--record-workload", "hashes")
    with serving(*options, PLEIAD_STORE=postgres_database) as served:
        container_of(served)
        assert read_item(served) == {200: MANY}
        reads = [each for each in recorded(served) if each.operation is Operation.READ]
        assert len(reads) == MANY
        assert all(each.hashed for each in reads)
        # Both workers hash with one secret.
        assert len({(each.key, each.id) for each in reads}) == 1
        assert recorded(served, hashed=True) == recorded(served)

        ask(served, "switch_workload", *NAMES, "off")
        before = recorded(served)
        assert read_item(served) == {200: MANY}
        assert recorded(served) == before
        # One that starts later goes by it too.
        kill(served, workers_of(served)[1])
        assert read_item(served) == {200: MANY}
        assert recorded(served) == before

        ask(served, "forget_workload", *NAMES)
        states = [json.dumps(ask(served, "workload", *NAMES)) for _ in range(MANY)]
        (state,) = set(states)
        assert json.loads(state) | {"limitBytes": 0} == {
            "record": "hashes",
            "switched": False,
            "records": 0,
            "bytes": 0,
            "limitBytes": 0,
            "lost": 0,
        }
        assert read_item(served) == {200: MANY}
        assert len(recorded(served)) == MANY
        assert writers(tmp_path) == {0, 1}
        # What is imported at one is read at all.
        line = b'{"at":1,"operation":"delete","id":"gone"}'
        assert ask(served, "add_workload", *NAMES, line) == 1
        assert {len(recorded(served)) for _ in range(MANY // 4)} == {MANY + 1}
        code, _, log = served.stop()
    assert code == 0
    assert "Traceback" not in log
