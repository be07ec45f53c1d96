"""`pleiad serve --workers`: several processes on one port that are one server to those who use and run it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from pleiad.account.keys import EMULATOR_KEY
from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from tests.waiting import SECONDS_MAX, wait_until

from .test_serve import OWN_KEY, Served, refused, serving

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are for Linux")

ITEM = ("dbs", "db", "colls", "c", "docs", "3")
MANY = 40
"""So many connections reach each of two workers, but once in 2 to the power of 39."""
TWO = ("--workers", 2, "--throttle", "observe")
"""Two workers that refuse nothing: each has its share of the throughput only a moment after it has asked for it."""


def workers_of(served: Served) -> list[int]:
    """The processes of the workers; their helpers are not children of the process above them."""
    pid = served.process.pid
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def metrics(served: Served) -> dict[str, float]:
    status, body = served.get("/metrics")
    assert status == 200
    samples = (line.rpartition(" ") for line in body.decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def endpoint(served: Served) -> str:
    return f"http://localhost:{served.port}"


def container_of(served: Served, key: str = EMULATOR_KEY) -> None:
    """Makes the container `db/c` with the items `0` to `9`."""
    client = CosmosClient(endpoint(served), key)
    container = client.create_database("db").create_container("c", PartitionKey("/pk"))
    for number in range(10):
        container.create_item({"id": str(number), "pk": "a", "n": number})


def read(served: Served, times: int = MANY, key: str = EMULATOR_KEY) -> Counter[int]:
    """Reads an item over new connections; how often which status came."""
    statuses: Counter[int] = Counter()
    for _ in range(times):
        with Connection(endpoint(served), key, retries_max=0) as connection:
            headers = {"x-ms-documentdb-partitionkey": '["a"]'}
            answer = connection.request("GET", ITEM, "docs", ITEM, headers)
            statuses[answer.status] += 1
    return statuses


def ask(served: Served, name: str, *arguments: Any, **named: Any) -> Any:
    with Connection(endpoint(served), EMULATOR_KEY) as connection:
        return getattr(Admin(connection), name)(*arguments, **named)


def kill(served: Served, worker: int, with_signal: int = signal.SIGKILL) -> None:
    """Ends a worker; another one is in its place afterwards."""
    restarts = metrics(served)["pleiad_worker_restarts_total"]
    os.kill(worker, with_signal)
    # Connections that it has taken are lost with it; its sockets are closed when its last thread is gone.
    assert wait_until(lambda: not Path(f"/proc/{worker}").exists())
    assert wait_until(lambda: metrics(served)["pleiad_worker_restarts_total"] == restarts + 1)
    assert wait_until(lambda: metrics(served)['pleiad_workers{state="running"}'] == 2)


def test_workers_serve_one_account_and_their_figures_are_added_up(
    postgres_database: str, tmp_path: Path
) -> None:
    options = ("--data", tmp_path, "--port", 0, *TWO, "--link")
    with serving(*options, PLEIAD_STORE=postgres_database) as served:
        assert re.search(r"^  workers +2$", served.banner, re.M)
        assert len(workers_of(served)) == 2
        container_of(served)
        assert read(served) == {200: MANY}
        found = metrics(served)
        assert found['pleiad_requests_total{operation="read",status="200"}'] == MANY
        assert found['pleiad_requests_total{operation="create",status="201"}'] == 10
        assert found['pleiad_partition_items{database="db",container="c",partition="0"}'] == 10
        assert found['pleiad_workers{state="running"}'] == found['pleiad_workers{state="wanted"}'] == 2
        assert found["pleiad_worker_restarts_total"] == 0

        units = found['pleiad_partition_request_units_total{database="db",container="c",partition="0"}']
        assert units > MANY
        (partition,) = ask(served, "partitions", "db", "c")["partitions"]
        assert (partition["ru"]["total"], partition["items"]) == (units, 10)
        answers = [served.get("/_pleiad/ready")[0] for _ in range(MANY)]
        assert set(answers) == {200}

        # The link works once, whichever workers answer.
        address = re.search(r"explorer +(\S+)/#handover=(\S+)", served.banner)
        assert address is not None
        assert [bring(served, address.group(2)) for _ in range(MANY // 4)].count(200) == 1
        code, output, log = served.stop()
    assert (code, log) == (0, "")
    assert output.splitlines() == ["SIGTERM: finishing running requests ...", "Stopped."]


def bring(served: Served, token: str) -> int:
    connection = http.client.HTTPConnection("localhost", served.port, timeout=SECONDS_MAX)
    host = f"localhost:{served.port}"
    headers = {"x-pleiad-handover": token, "Origin": f"http://{host}", "Host": host}
    connection.request("POST", "/_pleiad/handover", headers=headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_worker_that_is_killed_is_started_again_and_nobody_else_notices(postgres_database: str) -> None:
    options = ("--ephemeral", "--port", 0, *TWO, "--log-format", "json")
    with serving(*options, PLEIAD_STORE=postgres_database) as served:
        container_of(served)
        read(served)
        before = metrics(served)
        first, second = workers_of(served)
        kill(served, first)
        assert second in workers_of(served)
        assert len(workers_of(served)) == 2
        assert read(served) == {200: MANY}
        after = metrics(served)
        reads = 'pleiad_requests_total{operation="read",status="200"}'
        assert after[reads] == before[reads] + MANY
        assert after["pleiad_worker_restarts_total"] == 1
        # A worker that is told to end does so for itself, and another takes its place.
        kill(served, second, signal.SIGTERM)
        code, _, log = served.stop(signal.SIGINT)
    assert code == 0
    told = [json.loads(line)["message"] for line in log.splitlines()]
    assert any("ended with signal 9; it is started again" in each for each in told)
    assert any("ended with exit code 0; it is started again" in each for each in told)


def test_a_session_reads_its_own_writes_at_whichever_worker_answers(postgres_database: str) -> None:
    headers = {"x-ms-documentdb-partitionkey": '["a"]'}
    with serving("--ephemeral", "--port", 0, *TWO, PLEIAD_STORE=postgres_database) as served:
        container_of(served)
        for number in range(MANY):
            item = json.dumps({"id": "3", "pk": "a", "n": number}).encode()
            with Connection(endpoint(served), EMULATOR_KEY) as connection:
                written = connection.request("PUT", ITEM, "docs", ITEM, headers, item)
            session = {**headers, "x-ms-session-token": written.headers["x-ms-session-token"]}
            with Connection(endpoint(served), EMULATOR_KEY) as connection:
                assert connection.request("GET", ITEM, "docs", ITEM, session).json()["n"] == number
            with Connection(endpoint(served), EMULATOR_KEY) as connection:
                query = {"query": "SELECT VALUE c.n FROM c WHERE c.id = '3'"}
                assert connection.query(ITEM[:4], query, session).json()["Documents"] == [number]


def test_a_permission_reaches_as_far_at_every_worker(postgres_database: str) -> None:
    with serving("--ephemeral", "--port", 0, *TWO, PLEIAD_STORE=postgres_database) as served:
        container_of(served)
        database = CosmosClient(endpoint(served), EMULATOR_KEY).get_database_client("db")
        user = database.create_user({"id": "u"})
        link = database.get_container_client("c").container_link
        token = user.create_permission({"id": "p", "permissionMode": "Read", "resource": link}).properties
        headers = {"x-ms-documentdb-partitionkey": '["a"]', "authorization": quote(token["_token"], safe="")}
        statuses: Counter[tuple[str, int]] = Counter()
        for _ in range(MANY):
            for method, body in (("GET", None), ("PUT", b'{"id": "3", "pk": "a"}'), ("DELETE", None)):
                with Connection(endpoint(served), EMULATOR_KEY) as connection:
                    answer = connection.request(method, ITEM, "docs", ITEM, headers, body)
                statuses[method, answer.status] += 1
        assert statuses == {("GET", 200): MANY, ("PUT", 403): MANY, ("DELETE", 403): MANY}


def test_no_worker_outlives_the_process_above_it(postgres_database: str) -> None:
    with serving("--ephemeral", "--port", 0, *TWO, PLEIAD_STORE=postgres_database) as served:
        workers = workers_of(served)
        served.process.kill()
        assert wait_until(lambda: not any(map(is_alive, workers)))


def test_a_fault_is_met_as_often_as_it_says_by_all_workers_together(postgres_database: str) -> None:
    with serving("--ephemeral", "--port", 0, *TWO, PLEIAD_STORE=postgres_database) as served:
        container_of(served)
        id = ask(served, "add_fault", {"fault": "503", "operation": "read", "count": 5})["id"]
        assert read(served) == {503: 5, 200: MANY - 5}
        assert {ask(served, "fault", id)["hits"] for _ in range(10)} == {5}
        lasting = ask(served, "add_fault", {"fault": "503", "operation": "read", "share": 1.0})["id"]
        assert lasting != id
        assert read(served) == {503: MANY}
        # One that starts later has it too.
        kill(served, workers_of(served)[0])
        assert read(served) == {503: MANY}
        ask(served, "remove_fault", lasting)
        assert read(served) == {200: MANY}


def test_new_keys_reach_all_workers(postgres_database: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"primaryMasterKey": EMULATOR_KEY}))
    options = ("--data", tmp_path / "data", "--port", 0, *TWO, "--key-file", keys)
    with serving(*options, PLEIAD_STORE=postgres_database) as served:
        container_of(served)
        keys.write_text(json.dumps({"primaryMasterKey": OWN_KEY}))
        served.process.send_signal(signal.SIGHUP)
        assert wait_until(lambda: read(served, key=OWN_KEY) == {200: MANY})
        assert read(served) == {401: MANY}


def test_a_folder_and_the_sample_are_loaded_once(postgres_database: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder" / "db"
    folder.mkdir(parents=True)
    (folder / "c.jsonl").write_text("".join(f'{{"id": "{number}", "pk": "a"}}\n' for number in range(10)))
    (folder / "c.container.json").write_text('{"id": "c", "partitionKey": {"paths": ["/pk"]}}')
    options = ("--ephemeral", "--port", 0, *TWO, "--load", tmp_path / "folder", "--sample")
    with serving(*options, PLEIAD_STORE=postgres_database) as served:
        assert read(served) == {200: MANY}
        client = CosmosClient(endpoint(served), EMULATOR_KEY)
        databases = {each["id"] for each in client.list_databases()}
        assert len(databases) > 1
        # What was deleted stays so when a worker starts again.
        client.delete_database("db")
        kill(served, workers_of(served)[0])
        for _ in range(10):
            client = CosmosClient(endpoint(served), EMULATOR_KEY)
            assert {each["id"] for each in client.list_databases()} == databases - {"db"}


def test_what_workers_cannot_do_is_refused_in_a_sentence(postgres_database: str, tmp_path: Path) -> None:
    said = refused("--data", tmp_path, "--port", 0, "--workers", 2)
    assert "with SQLite one process owns the data: to serve with several workers, use PostgreSQL" in said
    nowhere = f"postgresql://nobody@/nothing?host={tmp_path}"
    assert "does not answer" in refused("--ephemeral", "--port", 0, *TWO, PLEIAD_STORE=nowhere)
    with serving("--ephemeral", "--port", 0, *TWO, PLEIAD_STORE=postgres_database) as served:
        taken = refused("--ephemeral", "--port", served.port, "--workers", 2, PLEIAD_STORE=postgres_database)
        assert f"port {served.port} of 127.0.0.1 is in use" in taken
