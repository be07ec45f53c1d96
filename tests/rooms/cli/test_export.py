"""`pleiad export` against a server that answers: what every form brings back, and that half a file never shows."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from click.testing import CliRunner, Result

from pleiad.cli.main import cli
from pleiad.job.item_file.form import Compression, Form
from pleiad.testing.start import RunningServer
from tests import warm_command
from tests.rooms.job.test_item_file import COMPRESSIONS, ENDINGS, FORMS
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX, wait_until

ITEMS: dict[str, dict[str, Any]] = {
    id: {"id": id, "city": f"c{number % 20}", "n": number / 8, "inner": {"x": [number, "é\n🏔"], "no": None}}
    for number, id in enumerate(f"item {number}" for number in range(1_500))
}


@pytest.fixture(scope="module")
def server(start_lasting_server: StartServer) -> Iterator[RunningServer]:
    with start_lasting_server() as started:
        database = CosmosClient(started.endpoint, started.key).create_database("town")
        database.create_container("empty", PartitionKey("/city"))
        database.create_container("people", PartitionKey("/city"), offer_throughput=30_000)
        text = "".join(json.dumps(item) + "\n" for item in ITEMS.values())
        assert run(started, "import", "-", "town/people", input=text).exit_code == 0
        yield started


def environment(server: RunningServer) -> dict[str, str]:
    return {"PLEIAD_ENDPOINT": server.endpoint, "PLEIAD_KEY": server.key}


def run(server: RunningServer, *arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, env=environment(server), input=input)


def by_id(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = {item["id"]: item for item in items}
    assert len(found) == len(items), "some item came twice"
    return found


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_exported_can_be_imported(
    server: RunningServer, tmp_path: Path, form: Form, compression: Compression
) -> None:
    path = tmp_path / f"people.{form.value}{ENDINGS[compression]}"
    result = run(server, "export", "town/people", str(path))
    assert result.exit_code == 0, result.output
    assert "exported 1,500 items in" in result.stderr
    assert result.stdout == ""
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    copy = f"town/{form.value}-{compression.value}"
    imported = run(server, "import", str(path), copy, "--partition-key", "/city")
    assert imported.exit_code == 0, imported.output
    again = run(server, "export", copy, "-", "--format", "json")
    assert by_id(json.loads(again.stdout)) == ITEMS


@pytest.mark.every_store
def test_partitions_are_read_side_by_side_and_splits_lose_nothing(start_server: StartServer) -> None:
    with start_server() as fresh:
        text = "".join(json.dumps(item) + "\n" for item in ITEMS.values())
        arguments = ["town/people", "--partition-key", "/city", "--throughput", "20000"]
        assert run(fresh, "import", "-", *arguments, input=text).exit_code == 0
        partitions = json.loads(run(fresh, "partitions", "town/people", "--json").stdout)["partitions"]
        assert len(partitions) >= 2
        assert run(fresh, "split", "town/people", partitions[0]["id"]).exit_code == 0
        for connections in ("1", "8"):
            result = run(fresh, "export", "town/people", "-", "--connections", connections)
            assert by_id([json.loads(line) for line in result.stdout.splitlines()]) == ITEMS


def test_an_empty_container_is_a_file_without_items(server: RunningServer, tmp_path: Path) -> None:
    for name, text in {"a.jsonl": b"", "a.json": b"[]\n", "a.csv": b""}.items():
        assert run(server, "export", "town/empty", str(tmp_path / name)).exit_code == 0
        assert (tmp_path / name).read_bytes() == text


def test_system_properties_are_kept_on_demand(server: RunningServer) -> None:
    plain = run(server, "export", "town/people", "-", "--query", "SELECT * FROM c WHERE c.id = 'item 7'")
    assert json.loads(plain.stdout) == ITEMS["item 7"]
    whole = run(
        server, "export", "town/people", "-", "--system", "--query", "SELECT * FROM c WHERE c.id = 'item 7'"
    )
    assert json.loads(whole.stdout).keys() >= {"_rid", "_etag", "_ts", "_self"}


def test_results_of_a_query_come_in_its_order(server: RunningServer, tmp_path: Path) -> None:
    query = "SELECT c.id, c.n FROM c WHERE c.n < 150 ORDER BY c.n DESC"
    result = run(server, "export", "town/people", str(tmp_path / "a.csv.gz"), "--query", query)
    assert result.exit_code == 0, result.output
    rows = gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).decode().splitlines()
    assert rows[0] == "id,n"
    assert rows[1:] == [f"item {n},{n / 8:g}" for n in range(1_199, -1, -1)]
    counted = run(server, "export", "town/people", "-", "--query", "SELECT VALUE COUNT(1) FROM c")
    assert counted.stdout == "1500\n"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["town/none", "FILE.jsonl"], 1, "there is no container town/none"),
        (
            ["town/people", "FILE.txt"],
            2,
            "does not tell a form: give --format with jsonl, json, csv or parquet",
        ),
        (["town/people", "-", "--definition"], 2, "--definition needs the name of a file"),
        (["town/people", "no folder/FILE.jsonl"], 1, "cannot be written: No such file"),
        (["town/people", "FILE.jsonl", "--query", "SELECT * FROM"], 1, "Syntax error"),
        (["town/people", "FILE.csv", "--query", "SELECT VALUE 1 FROM c"], 1, "only objects can be rows"),
    ],
)
def test_what_cannot_be_exported_is_told_and_leaves_nothing(
    server: RunningServer, tmp_path: Path, arguments: list[str], code: int, text: str
) -> None:
    result = run(server, "export", *[each.replace("FILE", str(tmp_path / "a")) for each in arguments])
    assert (result.exit_code, text in result.stderr) == (code, True), result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_key_and_a_server_that_is_not_there_are_told(server: RunningServer, tmp_path: Path) -> None:
    target = str(tmp_path / "a.jsonl")
    wrong = run(server, "export", "town/people", target, "--key", "YW5vdGhlciBrZXkgb2YgMTY=")
    assert (wrong.exit_code, "does not accept this key" in wrong.stderr) == (1, True)
    nobody = run(server, "export", "town/people", target, "--endpoint", "http://localhost:1")
    assert (nobody.exit_code, "nothing listens at" in nobody.stderr) == (1, True)


def test_a_closed_pipe_ends_an_export_quietly(server: RunningServer) -> None:
    command = [*warm_command.words(), "export", "town/people", "-", "--system"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment(server)}
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b"{")
    process.stdout.close()
    told = process.stderr.read()
    assert (process.wait(SECONDS_MAX), told) == (0, b"")
    process.stderr.close()


def test_an_export_that_was_killed_leaves_nothing_that_looks_whole(
    server: RunningServer, tmp_path: Path
) -> None:
    path = tmp_path / "people.jsonl"
    command = [sys.executable, "-m", "pleiad", "export", "town/people", str(path), "--connections", "1"]
    with server.faults.add("late", delay_ms=60_000, database="town", container="people", count=1):
        process = subprocess.Popen(
            command, env={**os.environ, **environment(server)}, stderr=subprocess.DEVNULL
        )
        assert wait_until(lambda: any(tmp_path.iterdir()))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not path.exists()
    assert all(each.name.startswith(".") for each in tmp_path.iterdir())


def test_busy_servers_are_asked_again(server: RunningServer) -> None:
    with server.faults.add("429", count=3, database="town", container="people", retry_after_ms=1):
        result = run(server, "export", "town/people", "-")
    assert by_id([json.loads(line) for line in result.stdout.splitlines()]) == ITEMS
    with server.faults.add("503", count=2, database="town", container="people"):
        assert run(server, "export", "town/people", "-").exit_code == 0
