"""An import that is ended in the middle, however that happens, goes on where it was: nothing lost, nothing twice."""

from __future__ import annotations

import contextlib
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

import pleiad
from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from pleiad.testing.start import RunningServer
from tests.stores import StartServer
from tests.waiting import SECONDS_MAX, wait_until

ITEMS = 4_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a bad line among every hundred, and items without an id among them."""
    path = tmp_path / "orders.jsonl"
    texts = []
    for number in range(1, ITEMS + 1):
        if number % 100 == 50:
            texts.append("no item")
        elif number % 100 == 51:
            texts.append(json.dumps({"city": f"c{number % 30}", "n": number}))
        else:
            texts.append(json.dumps({"id": f"o{number}", "city": f"c{number % 30}", "n": number}))
    path.write_text("\n".join(texts) + "\n")
    return path


GOOD = {number for number in range(1, ITEMS + 1) if number % 100 != 50}
BAD = sorted(set(range(1, ITEMS + 1)) - GOOD)


def command(file: Path | str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "pleiad", "import", str(file), "town/orders", "--generate-id", *arguments]


def environment(server: RunningServer) -> dict[str, str]:
    return {**os.environ, "PLEIAD_ENDPOINT": server.endpoint, "PLEIAD_KEY": server.key}


def make_container(server: RunningServer) -> None:
    client = CosmosClient(server.endpoint, server.key)
    client.create_database("town").create_container("orders", PartitionKey("/city"))


def numbers(server: RunningServer) -> list[int]:
    database: Any = CosmosClient(server.endpoint, server.key).get_database_client("town")
    return [item["n"] for item in database.get_container_client("orders").read_all_items()]


@contextlib.contextmanager
def importing(
    server: RunningServer, *arguments: str, stdin: Any = None, items_per_second: int = 20
) -> Iterator[subprocess.Popen[str]]:
    """An import in a process of its own that has brought in something, and would need minutes for the rest."""
    slow = ["--items-per-second", str(items_per_second)]
    process = subprocess.Popen(
        [*arguments, *slow], env=environment(server), stdin=stdin, stderr=subprocess.PIPE, text=True
    )
    try:
        assert wait_until(lambda: len(numbers(server)) > 40)
        yield process
    finally:
        process.kill()
        process.communicate()


def finish(server: RunningServer, arguments: list[str], stdin: Any = None) -> str:
    done = subprocess.run(
        arguments, env=environment(server), stdin=stdin, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1, done.stderr  # for the bad lines
    return done.stderr


def assert_whole(server: RunningServer, file: Path, told: str) -> None:
    """Every good line is there once, and every bad one is among the rejects once."""
    assert sorted(numbers(server)) == sorted(GOOD)
    rejects = Path(f"{file}.rejects.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["line"] for line in rejects) == BAD
    assert f"imported {len(GOOD):,} items" in told
    assert f"{len(BAD)} items rejected" in told
    assert not Path(f"{file}.import-state").exists()


@pytest.mark.parametrize("mode", [[], ["--upsert"]], ids=["create", "upsert"])
def test_an_import_that_was_killed_goes_on_where_it_was(
    start_server: StartServer, file: Path, mode: list[str]
) -> None:
    with start_server() as server:
        make_container(server)
        for _ in range(2):
            with importing(server, *command(file, *mode)) as process:
                process.send_signal(signal.SIGKILL)
                process.wait()
            assert len(numbers(server)) < len(GOOD)
        told = finish(server, command(file, *mode))
        assert "an earlier run brought it up to entry" in told
        assert_whole(server, file, told)


def test_an_interrupted_import_says_that_it_can_go_on(start_server: StartServer, file: Path) -> None:
    with start_server() as server:
        make_container(server)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with importing(server, *command(file)) as process:
                process.send_signal(signal.SIGINT)
                _, told = process.communicate(timeout=SECONDS_MAX)
        finally:
            signal.signal(signal.SIGINT, before)
        assert process.returncode == 1
        assert "interrupted\nstopped after" in told
        assert "the same command goes on from here" in told
        assert "Traceback" not in told
        assert_whole(server, file, finish(server, command(file)))


def test_a_server_that_is_killed_is_told_and_the_import_goes_on_with_the_next(
    tmp_path: Path, file: Path
) -> None:
    data = tmp_path / "data"
    with pleiad.start(data=data, child_process=True) as server:
        make_container(server)
        with importing(server, *command(file)) as process:
            os.kill(server.process_id, signal.SIGKILL)
            _, told = process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 1
        assert "nothing listens at" in told or "no answer from" in told
        assert "the same command goes on from here" in told
        assert "Traceback" not in told
    with pleiad.start(data=data, port=server.port, child_process=True) as again:
        assert again.endpoint == server.endpoint
        assert_whole(again, file, finish(again, command(file)))


def test_standard_input_goes_on_where_a_state_is_kept(
    start_server: StartServer, tmp_path: Path, file: Path
) -> None:
    kept = ["--state", str(file) + ".import-state", "--rejects", str(file) + ".rejects.jsonl"]
    with start_server() as server:
        make_container(server)
        with file.open("rb") as stream, importing(server, *command("-", *kept), stdin=stream) as process:
            process.kill()
            process.wait()
        with file.open("rb") as stream:
            told = finish(server, command("-", *kept), stdin=stream)
        assert_whole(server, file, told)


def test_a_partition_that_splits_meanwhile_costs_nothing(start_server: StartServer, file: Path) -> None:
    with start_server() as server:
        make_container(server)
        with importing(server, *command(file), items_per_second=400) as process:
            with Connection(server.endpoint, server.key) as connection:
                assert Admin(connection).split("town", "orders", {})
            _, told = process.communicate(timeout=300)
        assert_whole(server, file, told)


def test_a_state_of_another_import_is_refused_and_can_be_dropped(
    start_server: StartServer, file: Path
) -> None:
    with start_server() as server:
        make_container(server)
        with importing(server, *command(file)) as process:
            process.kill()
            process.wait()

        def refused(*arguments: str) -> str:
            done = subprocess.run(
                arguments, env=environment(server), capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 1, done.stderr
            return done.stderr

        assert "it was run without --upsert" in refused(*command(file, "--upsert"))
        text = file.read_text()
        file.write_text(text + "\n")
        assert "the file has changed since" in refused(*command(file))
        with Connection(server.endpoint, server.key) as connection:
            link = ("dbs", "town", "colls", "orders")
            assert connection.request("DELETE", link, "colls", link, {}).status == 204
        database: Any = CosmosClient(server.endpoint, server.key).get_database_client("town")
        database.create_container("orders", PartitionKey("/city"))
        os.utime(file)
        assert "is the state of another import" in refused(*command(file))
        assert_whole(server, file, finish(server, command(file, "--restart")))


def test_a_state_that_is_none_is_refused(start_server: StartServer, file: Path) -> None:
    Path(f"{file}.import-state").write_text('{"version": 9}')
    with start_server() as server:
        make_container(server)
        done = subprocess.run(
            command(file), env=environment(server), capture_output=True, text=True, timeout=300
        )
        assert (done.returncode, "is not the state of an import" in done.stderr) == (1, True)
