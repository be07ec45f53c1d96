"""`pleiad workload`: recording the requests on a container from the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from click.testing import CliRunner, Result

from pleiad.cli.main import cli
from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from pleiad.testing.start import RunningServer, start
from pleiad.workload.record import Operation, read
from tests.project import ROOT
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with start() as started:
        yield started


@pytest.fixture
def container(server: RunningServer) -> Iterator[ContainerProxy]:
    """A new container `shop/orders` with one item."""
    client = CosmosClient(server.endpoint, server.key)
    database = client.create_database("shop")
    made = database.create_container("orders", PartitionKey("/city"))
    made.create_item({"id": "1", "city": "LAX"})
    yield made
    client.delete_database("shop")


def _run(server: RunningServer, *arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(
        cli, ["workload", *arguments, "--endpoint", server.endpoint, "--key", server.key], input=input
    )


def test_a_record_is_switched_on_shown_exported_and_switched_off(
    server: RunningServer, container: ContainerProxy, tmp_path: Path
) -> None:
    assert _run(server, "on", "shop/orders").output == (
        "requests on shop/orders are recorded, with values in them\n"
    )
    container.read_item("1", "LAX")
    list(container.query_items("SELECT * FROM c WHERE c.n = 1", enable_cross_partition_query=True))
    shown = _run(server, "show", "shop/orders").output
    assert re.search(r"shop/orders is recorded +2 requests in \d+ bytes of 64 MB", shown)
    assert re.search(r"query +1 ", shown)
    file = tmp_path / "requests.jsonl"
    assert _run(server, "export", "shop/orders", str(file)).exit_code == 0
    with file.open("rb") as lines:
        found = list(read(lines))
    assert [each.operation for each in found] == [Operation.READ, Operation.QUERY]
    assert found[0].key == ("LAX",)
    hidden = _run(server, "export", "shop/orders", "-", "--hashes")
    assert "LAX" not in hidden.stdout
    assert "not recorded any more" in _run(server, "off", "shop/orders").output
    state = json.loads(_run(server, "show", "shop/orders", "--json").output)
    assert (state["record"], state["records"]) == ("off", 2)
    assert [each["operation"] for each in state["operations"]] == ["query", "read"]
    assert "is removed" in _run(server, "clear", "shop/orders").output
    assert "0 requests" in _run(server, "show", "shop/orders").output


def test_a_file_of_another_service_is_added_without_its_bad_lines(
    server: RunningServer, container: ContainerProxy, tmp_path: Path
) -> None:
    file = tmp_path / "theirs.jsonl"
    file.write_text('{"at":1,"operation":"read"}\nnonsense\n{"at":2,"operation":"query","key":["LAX"]}\n')
    result = _run(server, "import", "shop/orders", str(file))
    assert result.exit_code == 1
    assert "added 2 requests to the record of shop/orders" in result.stderr
    assert "line 2: it is not valid JSON" in result.stderr
    assert "1 line of" in result.stderr
    assert json.loads(_run(server, "show", "shop/orders", "--json").output)["records"] == 2


def test_a_container_that_is_not_there_is_told(server: RunningServer) -> None:
    result = _run(server, "on", "shop/nobody")
    assert result.exit_code == 1
    assert "There is no database 'shop'" in result.stderr


def test_a_record_is_there_after_the_server_was_killed_and_its_last_line_torn(tmp_path: Path) -> None:
    with start(data=tmp_path, child_process=True) as server:
        database = CosmosClient(server.endpoint, server.key).create_database("shop")
        container = database.create_container("orders", PartitionKey("/city"))
        with Connection(server.endpoint, server.key) as connection:
            Admin(connection).switch_workload("shop", "orders", "values")
        for number in range(200):
            container.upsert_item({"id": str(number), "city": "LAX"})
        container.read_item("7", "LAX")

        def files() -> list[Path]:
            return sorted((tmp_path / "workload").glob("*/*.jsonl"))

        assert wait_until(lambda: sum(path.read_bytes().count(b'"7"') for path in files()) >= 2)
        os.kill(server.process_id, signal.SIGKILL)
    with files()[-1].open("ab") as file:
        file.write(b'{"at":1,"operation":"re')
    with start(data=tmp_path, child_process=True) as server, Connection(server.endpoint, server.key) as again:
        admin = Admin(again)
        assert admin.workload("shop", "orders")["record"] == "values"
        database = CosmosClient(server.endpoint, server.key).get_database_client("shop")
        database.get_container_client("orders").read_item("9", "LAX")
        lines = b"".join(admin.workload_lines("shop", "orders")).splitlines()
    assert [json.loads(line)["id"] for line in lines][-1] == "9"
    assert len(lines) == 202


def test_the_program_of_the_page_makes_a_record_of_a_log(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "workload.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    log = "time,verb,tenant,document,ru\n2026-03-01T10:00:00+00:00,GET,anna,d-1,1.0\n"
    made = subprocess.run(
        [sys.executable, "-c", program], input=log, capture_output=True, text=True, check=True
    )
    assert json.loads(made.stdout) == {
        "at": 1772359200.0,
        "operation": "read",
        "key": ["anna"],
        "id": "d-1",
        "charge": 1.0,
    }
    (lines,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "page.jsonl"
    file.write_text(lines)
    with file.open("rb") as shown:
        assert len(list(read(shown))) == 3
