"""A disk that takes no more writes: writes are refused, reads go on, two lines tell of it, and it heals."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from pleiad.account.keys import EMULATOR_KEY
from pleiad.store.problems import DISK, SUMMARY_SECONDS, Outage, Problems
from pleiad.testing.start import RunningServer
from tests.proofs.damage.account import Client
from tests.rooms.cli.test_serve import Served, command, environment

LIMIT_BYTES = 2 << 20


def test_a_server_whose_files_cannot_grow_refuses_writes_serves_reads_and_heals(tmp_path: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    process = subprocess.Popen(
        command("serve", "--data", tmp_path / "data", "--port", 0, "--throttle", "observe"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, hard)),
    )
    try:
        served = Served(process)
        client = Client(
            RunningServer(f"http://localhost:{served.port}", EMULATOR_KEY, served.port, process.pid)
        )
        client.fill("first")
        statuses = [client.create("first", number, "x" * 200_000).status for number in range(100, 130)]
        assert set(statuses) == {201, 503}
        assert json.loads(client.create("first", 200, "x" * 200_000).body)["code"] == "ServiceUnavailable"
        assert client.statuses("first") == {200}, "reads are served"
        assert client.probe("health")[1] == {"status": "degraded", "problems": [DISK]}
        assert client.probe("ready")[0] == 200
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert client.create("first", 300, "x" * 200_000).status == 201
        assert client.probe("health")[1] == {"status": "ok"}
        _, _, log = served.stop()
    finally:
        process.kill()
        process.communicate()
    assert "Traceback" not in log
    lines = [line for line in log.splitlines() if DISK in line]
    assert len(lines) == 2, lines
    assert "is over" in lines[1]


@pytest.mark.skipif(
    os.getuid() != 0 or sys.platform != "linux", reason="a file system is mounted by root only"
)
def test_a_full_file_system_is_refused_and_heals_when_space_returns(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        process = subprocess.Popen(
            command("serve", "--data", place / "data", "--port", 0, "--throttle", "observe"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        served = Served(process)
        client = Client(
            RunningServer(f"http://localhost:{served.port}", EMULATOR_KEY, served.port, process.pid)
        )
        client.fill("first")
        statuses = [client.create("first", number, "x" * 200_000).status for number in range(100, 140)]
        assert set(statuses) == {201, 503}
        assert client.statuses("first") == {200}
        subprocess.run(["mount", "-o", "remount,size=60m", str(place)], check=True)
        assert client.create("first", 300, "x" * 200_000).status == 201
        assert client.probe("health")[1] == {"status": "ok"}
        process.kill()
        process.communicate()
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_an_outage_is_told_at_its_beginning_once_a_minute_and_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    outage = Outage(Problems(), DISK, "", clock=lambda: now)
    for _ in range(10_000):
        outage.failed("full")
    assert len(caplog.records) == 1
    now = SUMMARY_SECONDS
    outage.failed("full")
    outage.failed("full")
    assert len(caplog.records) == 2
    assert "10001 failures" in caplog.records[1].getMessage()
    outage.recovered()
    outage.recovered()
    assert len(caplog.records) == 3
