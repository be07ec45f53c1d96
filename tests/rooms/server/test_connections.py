"""How many connections there may be: by address, by descriptors, and what is left for the files of the store."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from pleiad.account.keys import EMULATOR_KEY
from pleiad.limits import Limits
from pleiad.server import connections, tls
from pleiad.server.connections import address_of
from pleiad.server.descriptors import Descriptors, raise_descriptor_limit
from tests.rooms.server.test_protocol import GET, echo
from tests.waiting import SECONDS_MAX, wait_until

Serve = Callable[..., Any]
HEALTH = b"GET /_pleiad/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address")


def connect_from(address: str, port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX, source_address=(address, 0))


@on_linux
def test_one_address_cannot_take_all_connections(serve: Serve) -> None:
    running = serve(echo, connections=10, connections_per_address=6)
    taken = [connect_from("127.0.0.1", running.server.port) for _ in range(8)]
    assert wait_until(lambda: running.server.connections == 6)
    with connect_from("127.0.0.2", running.server.port) as other:
        other.sendall(GET)
        assert other.recv(65536).startswith(b"HTTP/1.1 200")
    taken[7].sendall(GET)
    refused = taken[7].recv(65536)
    assert refused.startswith(b"HTTP/1.1 503")
    assert b"Retry-After: 1\r\n" in refused
    for connection in taken:
        connection.close()
    assert wait_until(lambda: running.server.connections == 0)
    with connect_from("127.0.0.1", running.server.port) as again:
        again.sendall(GET)
        assert again.recv(65536).startswith(b"HTTP/1.1 200")


class Peer:
    def __init__(self, *peername: Any) -> None:
        self._peername = peername

    def get_extra_info(self, name: str) -> Any:
        return self._peername or None


@pytest.mark.parametrize(
    ("peername", "address"),
    [
        (("10.1.2.3", 5), "10.1.2.3"),
        (("::ffff:10.1.2.3", 5, 0, 0), "10.1.2.3"),
        (("2001:db8:1:2:3:4:5:6", 5, 0, 0), "2001:db8:1:2::"),
        (("fe80::1%eth0", 5, 0, 0), "fe80::"),
        ((), ""),
    ],
)
def test_an_address_is_a_machine(peername: tuple[Any, ...], address: str) -> None:
    assert address_of(Peer(*peername)) == address  # type: ignore[arg-type]


def test_a_crowded_server_gives_idle_connections_less_time(serve: Serve) -> None:
    running = serve(echo, connections=8, idle_seconds=60.0)
    clients = [running.connect() for _ in range(5)]
    for client in clients:
        assert client.send(GET).read().status == 200
    running.pass_time(connections.CROWDED_IDLE_SECONDS + 1)
    assert running.server.connections == 5
    more = [running.connect() for _ in range(3)]
    assert wait_until(lambda: running.server.connections == 8)
    running.pass_time(1)
    assert wait_until(lambda: running.server.connections < 6)
    assert running.connect().send(GET).read().status == 200
    assert more


def test_a_connection_that_never_says_anything_is_closed(serve: Serve) -> None:
    running = serve(echo, request_read_seconds=0.3)
    assert running.connect().is_closed_by_server()


@pytest.mark.parametrize("kind", ["plain", "tls hello"])
def test_thousands_of_connects_leave_nothing_behind(serve: Serve, kind: str) -> None:
    running = serve(echo, tls=True)
    hello = b"\x16\x03\x01\x02\x00\x01" if kind == "tls hello" else b""
    for _ in range(1_000):
        with socket.create_connection(("127.0.0.1", running.server.port), timeout=SECONDS_MAX) as connection:
            if hello:
                connection.sendall(hello)
    assert running.connect().send(GET).read().status == 200
    assert wait_until(lambda: running.server.connections <= 1)
    assert tls.HANDSHAKE_SECONDS_MAX <= 10


# -- descriptors ---------------------------------------------------------------------------------------


def test_few_descriptors_are_shared_by_halves_and_many_keep_the_reserve() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, before[1]))
        assert Descriptors.of_process(Limits()) == Descriptors(400, 200)
        assert Descriptors.of_process(Limits(descriptors_reserved=100)).for_connections == 300
        assert Descriptors.of_process(Limits(descriptors_reserved=100)).for_files == 100
        raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("descriptor", "connections", "fits"),
    [
        (511, 505, True),
        (523, 513, False),  # few files are open, so nearly all of the reserve may still be needed
        (520, 200, True),  # the files that are open have their part of the reserve already
        (895, 200, True),
        (896, 200, False),  # a quarter of the reserve is left free
    ],
)
def test_files_that_are_open_are_part_of_the_reserve(descriptor: int, connections: int, fits: bool) -> None:
    assert Descriptors(1024, 512).leave_room(descriptor, connections) is fits


@contextlib.contextmanager
def serving(folder: Path, soft: int, hard: int) -> Iterator[tuple[int, int]]:
    """A server in a process that may open so many files: its port and its process id."""
    log = folder / "log.txt"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "pleiad", "serve", "--data", str(folder / "data"), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        )
        assert process.stdout is not None
        banner = ""
        try:
            for line in process.stdout:
                banner += line
                if "stop  " in line:
                    break
            found = re.search(r"localhost:(\d+)", banner)
            assert found, log.read_text()
            yield int(found[1]), process.pid
        finally:
            process.terminate()
            process.wait(SECONDS_MAX)


@on_linux
def test_a_full_house_is_answered_with_503_and_the_store_still_opens_its_files(tmp_path: Path) -> None:
    hard = 256
    with serving(tmp_path, 64, hard) as (port, pid):
        limits = Path(f"/proc/{pid}/limits").read_text()
        assert re.search(rf"Max open files\s+{hard}\s+{hard}", limits), "the soft limit is raised"
        client = CosmosClient(f"http://localhost:{port}", EMULATOR_KEY)
        database = client.create_database("full")
        crowd: list[socket.socket] = []
        for number in range(hard):
            connection = connect_from(f"127.0.0.{2 + number % 8}", port)
            connection.sendall(HEALTH)
            crowd.append(connection)
        answers = [connection.recv(65536)[:12] for connection in crowd]
        served, refused = answers.count(b"HTTP/1.1 200"), answers.count(b"HTTP/1.1 503")
        assert served >= 90, answers
        assert refused >= 90, answers
        assert len(os.listdir(f"/proc/{pid}/fd")) < hard - 60
        # Containers are files, which are opened now.
        for number in range(5):
            container = database.create_container(f"c{number}", PartitionKey("/pk"))
            container.create_item({"id": "1", "pk": "a"})
            assert container.read_item("1", "a")["pk"] == "a"
        began_at = time.process_time()
        for connection in crowd:
            connection.close()
        # The server learns of a new connection, it may be, before it learns that the others are closed.
        assert wait_until(lambda: len(os.listdir(f"/proc/{pid}/fd")) < hard // 2)
        with connect_from("127.0.0.1", port) as after:
            after.sendall(HEALTH)
            assert after.recv(65536).startswith(b"HTTP/1.1 200")
        assert time.process_time() - began_at < 5
    assert "Traceback" not in (tmp_path / "log.txt").read_text()


@on_linux
def test_an_address_with_too_many_silent_connections_is_alone_in_being_refused(tmp_path: Path) -> None:
    with serving(tmp_path, 64, 256) as (port, pid):
        client = CosmosClient(f"http://localhost:{port}", EMULATOR_KEY)
        database = client.create_database("open")
        for number in range(12):
            database.create_container(f"c{number}", PartitionKey("/pk")).create_item({"id": "1", "pk": "a"})
        assert len(os.listdir(f"/proc/{pid}/fd")) > 64
        crowd = [connect_from("127.0.0.2", port) for _ in range(200)]
        for _ in range(3):
            with connect_from("127.0.0.3", port) as honest:
                honest.sendall(HEALTH)
                assert honest.recv(65536).startswith(b"HTTP/1.1 200")
        for connection in crowd:
            connection.close()
