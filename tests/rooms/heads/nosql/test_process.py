"""The server as a process of its own: what it writes to its log, and how much memory odd requests cost it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pleiad.testing.start import RunningServer
from tests.stores import StoreOf
from tests.waiting import SECONDS_MAX

OWN_KEY = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldC1zZWNyZXQ="
GROWTH_MB_MAX = 12


class ChildServer:
    """A server in a child process that logs everything into a file."""

    def __init__(self, folder: Path, store: str) -> None:
        self.output = folder / "output.txt"
        command = [
            sys.executable,
            "-m",
            "pleiad",
            "serve",
            "--ephemeral",
            "--port",
            "0",
            "--log-level",
            "debug",
        ]
        self._file = self.output.open("wb")
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self._file,
            text=True,
            env={**os.environ, "PLEIAD_KEY": OWN_KEY, "PLEIAD_STORE": store},
        )
        assert self.process.stdout is not None
        self.banner = ""
        for line in self.process.stdout:
            self.banner += line
            if "stop  " in line:
                break
        port = int(self.banner.split("localhost:")[1].split("/")[0])
        self.server = RunningServer(f"http://localhost:{port}", OWN_KEY, port, self.process.pid)

    def stop(self) -> str:
        """Stops the server; everything it ever wrote."""
        self.process.terminate()
        rest, _ = self.process.communicate(timeout=SECONDS_MAX)
        self._file.close()
        return self.banner + rest + self.output.read_text(errors="replace")


def memory_kb(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


@pytest.fixture
def child(tmp_path: Path, store_of: StoreOf) -> Iterator[ChildServer]:
    server = ChildServer(tmp_path, store_of())
    yield server
    server.process.kill()
    server.process.wait()


def odd_requests(wire: Any, count: int) -> None:
    """Requests of many kinds, most of them wrong, each a little different from all others."""
    chance = random.Random(7)
    docs = ["dbs", "d", "colls", "c", "docs"]
    for number in range(count):
        noise = "".join(chance.choices("abcxyz0189[]{}:#%é", k=20))
        kind = number % 8
        if kind == 0:
            wire.send("GET", ["dbs", noise])
        elif kind == 1:
            wire.send("GET", [*docs, noise], key=[noise])
        elif kind == 2:
            wire.send("POST", docs, noise.encode(), key=["a"])
        elif kind == 3:
            wire.send("GET", docs, headers={"authorization": noise, "x-ms-date": noise})
        elif kind == 4:
            wire.send("GET", docs, headers={"x-ms-continuation": noise})
        elif kind == 5:
            query = {"query": f"SELECT * FROM c WHERE c.id = '{number}' {noise if number % 16 > 8 else ''}"}
            wire.send("POST", docs, query, {"x-ms-documentdb-isquery": "True"}, ["a"])
        elif kind == 6:
            wire.send("GET", [noise, noise, noise])
        else:
            wire.send(
                "POST",
                docs,
                {"id": "same", "pk": "a", "noise": noise},
                {"x-ms-documentdb-is-upsert": "True"},
                ["a"],
            )


def test_odd_requests_leave_no_memory_behind(child: ChildServer, wire: Any, store_of: StoreOf) -> None:
    other = wire.__class__(child.server, store_of)
    other.send("POST", ["dbs"], {"id": "d"})
    other.send("POST", ["dbs", "d", "colls"], {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}})
    odd_requests(other, 1000)
    before_kb = memory_kb(child.process.pid)
    odd_requests(other, 2000)
    grown_mb = (memory_kb(child.process.pid) - before_kb) / 1024
    assert grown_mb < GROWTH_MB_MAX, f"2,000 odd requests grew the server by {grown_mb:.1f} MB"
    other.close()


def test_nothing_the_server_writes_holds_a_key_or_token(
    child: ChildServer, wire: Any, store_of: StoreOf
) -> None:
    other = wire.__class__(child.server, store_of)
    other.send("POST", ["dbs"], {"id": "d"})
    other.send("POST", ["dbs", "d", "users"], {"id": "u"})
    body = {"id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c"}
    token = other.send("POST", ["dbs", "d", "users", "u", "permissions"], body).json["_token"]
    headers = other.signed("GET", ["dbs"])
    other.send_raw("GET", "/dbs", None, headers)
    other.send_raw("GET", "/dbs/d", None, headers)
    other.send("GET", ["dbs", "d", "colls", "c"], headers={"authorization": token})
    odd_requests(other, 100)
    other.close()
    written = child.stop()
    assert child.process.returncode == 0
    signature = headers["authorization"].rsplit("sig%3D", 1)[1]
    for secret in (OWN_KEY, token, token.split(";")[0][-40:], headers["authorization"], signature):
        assert secret not in written
    assert "Traceback" not in written, written[-2000:]
