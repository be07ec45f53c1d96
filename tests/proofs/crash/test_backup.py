"""Killing the server in the middle of a backup, and a restore in the middle of its work: nothing half is ever taken for
whole, and what was acknowledged before a backup began is in it.

PLEIAD_CRASH_KILLS says how often to kill; PLEIAD_CRASH_SEED repeats the choices of an earlier run.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from azure.core.exceptions import AzureError
from azure.cosmos import ContainerProxy, CosmosClient, PartitionKey

from pleiad.client.admin import Admin
from pleiad.client.connection import Connection
from pleiad.job.backup.manifest import faults_of
from pleiad.job.backup.restore import restore
from pleiad.job.backup.shelf import Shelf
from pleiad.store.sqlite.schema import SchemaError
from pleiad.store.sqlite.store import SqliteStore
from pleiad.testing.start import RunningServer, start
from tests.proofs.crash.seeds import chosen_seed
from tests.waiting import SECONDS_MAX, any_moment, wait_until

KILLS = int(os.environ.get("PLEIAD_CRASH_KILLS", "2"))
SEED = chosen_seed()
BODY = "x" * 20_000
ITEMS = 300


def container_of(server: RunningServer) -> ContainerProxy:
    client = CosmosClient(server.endpoint, server.key, retry_total=0)
    return client.create_database_if_not_exists("db").create_container_if_not_exists("c", PartitionKey("/pk"))


class Writer(threading.Thread):
    """Writes items one after the other until the server is gone; how many were acknowledged."""

    def __init__(self, server: RunningServer, life: int) -> None:
        super().__init__(daemon=True)
        self._container = container_of(server)
        self._life = life
        self.acknowledged = 0

    def run(self) -> None:
        try:
            while True:
                name = f"{self._life}-{self.acknowledged}"
                self._container.create_item({"id": name, "pk": "w", "text": BODY[:500]}, retry_write=0)
                self.acknowledged += 1
        except (AzureError, OSError):
            return


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory that takes a moment to copy; servers started here have a folder for backups."""
    monkeypatch.setenv("PLEIAD_BACKUP_DIR", str(tmp_path / "backups"))
    data = tmp_path / "data"
    with start(data=data) as server:
        container = container_of(server)
        for number in range(ITEMS):
            container.create_item({"id": str(number), "pk": f"k{number}", "text": BODY})
    return data


def live_and_die(
    server: RunningServer, shelf: Shelf, life: int, chance: random.Random
) -> dict[str, tuple[int, int]]:
    """Writes, takes a backup or two and kills the server in the last; what was acknowledged before each began."""
    writer = Writer(server, life)
    writer.start()
    assert wait_until(lambda: writer.acknowledged > 3)
    acknowledged: dict[str, tuple[int, int]] = {}
    with Connection(server.endpoint, server.key) as connection:
        admin = Admin(connection)

        def begin() -> str:
            before = writer.acknowledged
            name = str(admin.start_backup(None)["name"])
            acknowledged[name] = (life, before)
            return name

        if life % 2:
            first = begin()
            assert wait_until(lambda: admin.backup(first)["state"] == "whole")
        last = begin()
    folders = (shelf.directory / f".unfinished-{last}", shelf.directory / last)
    assert wait_until(lambda: any(folder.exists() for folder in folders))
    any_moment(chance, 0.15)
    os.kill(server.process_id, signal.SIGKILL)
    writer.join()
    return acknowledged


def test_a_server_that_is_killed_while_it_backs_up_leaves_only_whole_backups(
    account: Path, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    shelf = Shelf(tmp_path / "backups")
    acknowledged: dict[str, tuple[int, int]] = {}
    for life in range(KILLS):
        with start(data=account, child_process=True) as server:
            acknowledged |= live_and_die(server, shelf, life, chance)
    whole = shelf.all()
    for number, manifest in enumerate(whole):
        assert faults_of(shelf.folder(manifest), manifest) == []
        life, least = acknowledged[manifest.name]
        target = tmp_path / f"restored-{number}"
        restore(shelf.folder(manifest), manifest, target, lambda *_: None)
        with start(data=target) as server:
            items = container_of(server).query_items("SELECT c.id FROM c", enable_cross_partition_query=True)
            found = {item["id"] for item in items}
        assert {str(each) for each in range(ITEMS)} <= found
        assert {f"{life}-{each}" for each in range(least)} <= found, f"seed {SEED}"
    with start(data=account, child_process=True) as server, Connection(server.endpoint, server.key) as asked:
        name = Admin(asked).start_backup(None)["name"]
        assert wait_until(lambda: Admin(asked).backup(name)["state"] == "whole")
    assert not list(shelf.directory.glob(".unfinished-*"))
    assert len(shelf.all()) == len(whole) + 1


def killed_in_the_middle(command: list[str], target: Path, chance: random.Random) -> bool:
    """Gives a restore some time and kills it; whether it was under way."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert wait_until(lambda: (target / "restoring").exists() or process.poll() is not None)
    any_moment(chance, 0.05)
    process.kill()
    process.communicate()
    return (target / "restoring").exists()


def test_a_restore_that_is_killed_leaves_no_account_and_can_be_given_again(
    account: Path, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    pleiad = [sys.executable, "-m", "pleiad"]
    backup = [*pleiad, "backup", "--data", str(account), "--to", str(tmp_path / "backups")]
    subprocess.run(backup, check=True, timeout=SECONDS_MAX)
    target = tmp_path / "restored"
    command = [*pleiad, "restore", str(tmp_path / "backups"), str(target)]
    for _ in range(KILLS):
        if not killed_in_the_middle(command, target, chance):
            break
        with pytest.raises(SchemaError, match="was not finished"):
            SqliteStore(target)
    else:
        subprocess.run(command, check=True, timeout=SECONDS_MAX)
    with start(data=target) as server:
        found = container_of(server).query_items("SELECT c.id FROM c", enable_cross_partition_query=True)
        assert len(list(found)) == ITEMS
