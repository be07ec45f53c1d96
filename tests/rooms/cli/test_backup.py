"""`pleiad backup` and `pleiad restore` as operators give them: who may, where to, and what holds afterwards."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError
from click.testing import CliRunner

from pleiad.account.keys import EMULATOR_KEY
from pleiad.cli.main import cli
from pleiad.client.admin import Admin, RequestRefusedError
from pleiad.client.connection import Connection
from pleiad.job.backup.manifest import moment
from pleiad.testing.start import start
from tests.postgres_server import PostgresServer
from tests.waiting import SECONDS_MAX

from .test_serve import command, environment, serving
from .test_serve import refused as no_server

READ_ONLY = "cmVhZC1vbmx5LXJlYWQtb25seS1yZWFkLW9ubHktMTI="


def done(*arguments: object) -> str:
    run = CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False)
    assert run.exit_code == 0, run.stderr
    return run.stdout


def refused(verb: str, *arguments: object, **variables: str) -> str:
    if verb == "serve":
        return no_server(*arguments, **variables)
    run = CliRunner().invoke(cli, [verb, *map(str, arguments)], env=variables, catch_exceptions=False)
    assert run.exit_code != 0, run.stdout
    return run.stderr


def things(port: int) -> ContainerProxy:
    client = CosmosClient(f"http://localhost:{port}", EMULATOR_KEY)
    database = client.create_database_if_not_exists("db")
    return database.create_container_if_not_exists("things", PartitionKey("/pk"))


def test_a_running_server_backs_itself_up_and_what_was_acknowledged_is_there_after_a_restore(
    tmp_path: Path,
) -> None:
    backups = tmp_path / "backups"
    with serving("--data", tmp_path / "data", "--port", 0, "--backup-dir", backups) as served:
        endpoint = ("--endpoint", f"http://localhost:{served.port}")
        container = things(served.port)
        for number in range(20):
            container.create_item({"id": str(number), "pk": "a"})
        first = json.loads(done("backup", *endpoint, "--json"))
        container.create_item({"id": "later", "pk": "a"})
        second = json.loads(done("backup", *endpoint, "--json"))
        assert f"removed: {first['name']}" in done("backup", *endpoint, "--keep", "2")
        listed = json.loads(done("backup", "--list", *endpoint, "--json"))["backups"]
        assert len(listed) == 2
        assert first["name"] not in [each["name"] for each in listed]
        assert second["name"] in done("backup", "--list", *endpoint)
        told = served.get("/metrics")[1].decode()
        (last,) = re.findall(r"^pleiad_last_backup_timestamp_seconds (\S+)", told, flags=re.MULTILINE)
        assert listed[-1]["takenAt"] == moment(float(last))
        assert "a server has" in refused("backup", "--data", tmp_path / "data", "--to", backups)
        assert served.stop()[0] == 0
    assert second["name"] in done("backup", "--list", "--to", backups)
    assert "all is whole" in done("check", backups / second["name"])
    assert "restored 21 items" in done("restore", backups / second["name"], tmp_path / "restored")
    assert "is not empty" in refused("restore", backups, tmp_path / "restored")
    inside = backups / second["name"] / "deep" / "data"
    assert "would be removed with" in refused("restore", backups, inside)
    assert not inside.parent.exists()
    assert "is a backup" in refused("serve", "--data", backups / second["name"], "--port", 0)
    with serving("--data", tmp_path / "restored", "--port", 0) as served:
        assert things(served.port).read_item("later", "a")["id"] == "later"
    done("backup", "--data", tmp_path / "data", "--to", tmp_path / "others")
    assert "restored 21 items" in done("restore", tmp_path / "others", tmp_path / "again")


def test_tokens_of_before_the_backup_hold_after_a_restore_and_those_of_later_are_told(tmp_path: Path) -> None:
    def new_client(endpoint: str) -> Any:
        return CosmosClient(endpoint, EMULATOR_KEY).get_database_client("db").get_container_client("c")

    headers: dict[str, str] = {}

    def keep(given: Any, _: Any) -> None:
        headers.update(given)

    with start(data=tmp_path / "data") as server:
        CosmosClient(server.endpoint, server.key).create_database("db").create_container(
            "c", PartitionKey("/pk")
        )
        container = new_client(server.endpoint)
        for number in range(30):
            container.create_item({"id": f"{number:02}", "pk": "a"}, response_hook=keep)
        session = headers["x-ms-session-token"]
        pages = container.query_items(
            "SELECT * FROM c ORDER BY c.id", partition_key="a", max_item_count=10
        ).by_page()
        assert [item["id"] for item in next(pages)] == [f"{number:02}" for number in range(10)]
        continuation = pages.continuation_token
        list(container.query_items_change_feed(start_time="Beginning", partition_key="a", response_hook=keep))
        place = headers["etag"]
    made = tmp_path / "backups"
    done("backup", "--data", tmp_path / "data", "--to", made)
    with start(data=tmp_path / "data") as server:
        container = new_client(server.endpoint)
        for number in range(30, 35):
            container.create_item({"id": f"{number:02}", "pk": "a"}, response_hook=keep)
        later_session = headers["x-ms-session-token"]
        list(container.query_items_change_feed(continuation=place, partition_key="a", response_hook=keep))
        later_place = headers["etag"]
        assert later_place != place
    done("restore", made, tmp_path / "restored")
    with start(data=tmp_path / "restored") as server:
        container = new_client(server.endpoint)
        assert container.read_item("29", "a", session_token=session)["id"] == "29"
        rest = container.query_items(
            "SELECT * FROM c ORDER BY c.id", partition_key="a", max_item_count=10
        ).by_page(continuation)
        assert [item["id"] for page in rest for item in page] == [f"{number:02}" for number in range(10, 30)]
        with pytest.raises(CosmosHttpResponseError) as caught:
            container.read_item("29", "a", session_token=later_session)
        assert (caught.value.status_code, caught.value.sub_status) == (404, 1002)
        later = container.query_items_change_feed(continuation=later_place, partition_key="a")
        assert list(later) == []
        container.create_item({"id": "new", "pk": "a"})
        changes = container.query_items_change_feed(continuation=place, partition_key="a")
        assert [item["id"] for item in changes] == ["new"]
        unseen = container.query_items_change_feed(continuation=later_place, partition_key="a")
        assert list(unseen) == [], "it was further: it has to begin before the point in time of the backup"


def test_only_the_master_key_takes_backups_and_no_request_says_where_to(tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    options = (
        "--data",
        tmp_path / "data",
        "--port",
        0,
        "--backup-dir",
        backups,
        "--read-only-key",
        READ_ONLY,
    )
    with serving(*options) as served:
        endpoint = f"http://localhost:{served.port}"
        assert "read-only" in refused("backup", "--endpoint", endpoint, PLEIAD_KEY=READ_ONLY)
        with Connection(endpoint, READ_ONLY) as connection:
            assert Admin(connection).backups() == {"backups": []}
        assert not list(backups.glob("2*"))
        with Connection(endpoint, EMULATOR_KEY) as connection:
            admin = Admin(connection)
            for body in (
                {"directory": "/tmp/elsewhere"},
                {"to": ".."},
                {"name": "../x"},
                {"keep": 0},
                {"keep": True},
                {"keep": "1"},
                {"keep": -1},
                {"keep": 10**30},
            ):
                with pytest.raises(RequestRefusedError) as caught:
                    admin._ask("POST", "backups", body=body)
                assert caught.value.status == 400
            for name in ("..", "../data", ".lock", "%2e%2e", "x" * 300, "\u0000"):
                with pytest.raises(RequestRefusedError) as caught:
                    admin.backup(name)
                assert caught.value.status in (400, 404)
        assert [path.name for path in backups.iterdir()] == [".lock"]


BYTES_MAX = 10_000
"""Less than any file of a backup: those that did not change are not copied again."""


def test_a_disk_that_takes_no_more_leaves_the_backups_there_are_and_nothing_else(tmp_path: Path) -> None:
    with start(data=tmp_path / "data") as server:
        container = things(server.port)
        for number in range(50):
            container.create_item({"id": str(number), "pk": "a", "text": "x" * 5_000})
    data, backups = tmp_path / "data", tmp_path / "backups"
    done("backup", "--data", data, "--to", backups)
    with start(
        data=data
    ) as server:  # what has not changed since a backup is in the next one without being copied
        things(server.port).upsert_item({"id": "0", "pk": "a", "text": "y" * 5_000})
    before = sorted(path.name for path in backups.iterdir())
    for verb in (("backup", "--data", data, "--to", backups), ("restore", backups, tmp_path / "new")):
        run = subprocess.run(
            command(*verb),
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
            env=environment(),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (BYTES_MAX, BYTES_MAX)),
        )
        assert run.returncode == 1
        assert run.stderr.startswith("Error: ")
        assert "Traceback" not in run.stderr
    assert sorted(path.name for path in backups.iterdir()) == before
    assert not list((tmp_path / "new").rglob("*.sqlite"))
    done("backup", "--data", data, "--to", backups)
    assert "restored 50 items" in done("restore", backups, tmp_path / "new")


def test_a_server_without_a_folder_for_backups_says_so(tmp_path: Path) -> None:
    with serving("--ephemeral", "--port", 0) as served:
        assert "--backup-dir" in refused("backup", "--endpoint", f"http://localhost:{served.port}")
    assert "inside the data directory" in refused(
        "serve", "--data", tmp_path / "d", "--backup-dir", tmp_path / "d" / "b", "--port", 0
    )
    (tmp_path / "file").write_text("x")
    assert "--backup-dir cannot be used" in refused(
        "serve", "--data", tmp_path / "d", "--backup-dir", tmp_path / "file", "--port", 0
    )


def test_what_cannot_be_backed_up_or_restored_is_refused_with_a_sentence(tmp_path: Path) -> None:
    assert "pg_dump" in refused("backup", "--data", "postgresql://x@y/z", "--to", tmp_path / "b")
    assert "no data of Pleiad" in refused("backup", "--data", tmp_path, "--to", tmp_path / "b")
    assert "--to" in refused("backup", "--data", tmp_path)
    assert "--backup-dir" in refused("backup", "--to", tmp_path)
    assert "no backup" in refused("restore", tmp_path / "nothing", tmp_path / "d")
    assert done("backup", "--list", "--to", tmp_path) == "there are no backups\n"


def test_of_an_account_in_postgresql_the_verb_says_what_to_use(postgres_server: PostgresServer) -> None:
    dsn = postgres_server.new_database()
    with start(store=dsn) as server:
        assert "pg_dump" in refused("backup", "--endpoint", server.endpoint)
    assert "pg_dump" in refused("serve", "--store", dsn, "--backup-dir", os.devnull, "--port", 0)
    postgres_server.give_back(dsn)
