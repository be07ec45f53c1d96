"""A server where Windows' modules are all there is: Python here is made to believe so, as far as that goes.

What this shows: nothing on the way of a server needs a module that Windows lacks, and the branches for it are taken.
What it cannot show is Windows itself: its event loop, its files and its signals.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from pleiad.account.keys import EMULATOR_KEY

_WINDOWS = """
import asyncio, ctypes, importlib.metadata, platform, shutil, signal, subprocess, sys, tempfile, types
import click, multiprocessing, ssl, socket, threading, logging, uuid, zoneinfo, urllib.request
import fcntl as locks_of_this_system

class Lacking:
    NAMES = {"fcntl", "resource", "pwd", "grp", "termios", "uvloop", "readline", "psycopg"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.NAMES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in Lacking.NAMES:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Lacking())

def locking(descriptor, mode, byte_count):
    assert (mode, byte_count) == (2, 1)
    locks_of_this_system.flock(descriptor, locks_of_this_system.LOCK_EX | locks_of_this_system.LOCK_NB)

sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
sys.platform = "win32"
from pleiad.cli.main import main
main()
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", _WINDOWS, *arguments]


@contextlib.contextmanager
def served(data: Path) -> Iterator[str]:
    """A server on Windows; its endpoint."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command("serve", "--port", "0", "--data", str(data)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    said: list[str] = []
    try:
        for line in process.stdout:
            said.append(line)
            found = re.search(r"endpoint +(http://\S+)", line)
            if found:
                yield found[1]
                break
        else:
            pytest.fail("".join(said))
        process.send_signal(signal.SIGINT)
        said += process.stdout.read().splitlines()
        assert process.wait() == 0, said
        assert not any("Traceback" in line or "can be read by others" in line for line in said), said
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_server_without_the_modules_of_unix_keeps_items_over_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(data) as endpoint, CosmosClient(endpoint, EMULATOR_KEY) as client:
        users = client.create_database("shop").create_container("users", PartitionKey("/userId"))
        users.create_item({"id": "1", "userId": "Andrew", "n": 1})
        users.patch_item("1", "Andrew", [{"op": "incr", "path": "/n", "value": 1}])
        users.create_item({"id": "2", "userId": "Maia"})
        users.delete_item("2", "Maia")
    with served(data) as endpoint, CosmosClient(endpoint, EMULATOR_KEY) as client:
        users = client.get_database_client("shop").get_container_client("users")
        assert users.read_item("1", "Andrew")["n"] == 2
        found = users.query_items("SELECT VALUE c.id FROM c", enable_cross_partition_query=True)
        assert list(found) == ["1"]


def test_a_data_directory_is_of_one_server_on_windows_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(data):
        second = subprocess.run(
            command("serve", "--port", "0", "--data", str(data)), capture_output=True, text=True, check=False
        )
        assert second.returncode != 0
        assert "has the data directory" in second.stderr
        checked = subprocess.run(command("check", str(data)), capture_output=True, text=True, check=False)
        assert "a server has" in checked.stderr
    checked = subprocess.run(command("check", str(data)), capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_scripts_say_that_windows_has_no_place_for_them(tmp_path: Path) -> None:
    with served(tmp_path / "data") as endpoint, CosmosClient(endpoint, EMULATOR_KEY) as client:
        users = client.create_database("shop").create_container("users", PartitionKey("/userId"))
        users.scripts.create_stored_procedure({"id": "p", "body": "function () { return 1 }"})
        with pytest.raises(CosmosHttpResponseError, match="need a server on Linux or macOS"):
            users.scripts.execute_stored_procedure("p", partition_key="Andrew")


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--port", "0", "--store", "postgresql://pleiad@localhost/pleiad"),
        ("check", "postgresql://pleiad@localhost/pleiad"),
        ("copy-data", "--from", "sqlite:data", "--to", "postgresql://pleiad@localhost/pleiad"),
    ],
)
def test_a_database_without_its_driver_is_told_how_to_get_it(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode != 0
    assert "pip install 'psycopg[binary]'" in done.stderr
    assert "Traceback" not in done.stderr
