"""The peers: what they are, where they are got from, and how they are started.

They are installed into ``build/peers`` by the package managers of their languages; what cannot be had is left out, and
said so.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from bench.load import LoadError
from bench.process import BUILD, LOOPBACK, free_port, start, stop
from bench.server import PleiadServer
from pleiad.account.keys import EMULATOR_KEY

PLACE = BUILD / "peers"
_READY_SECONDS = 60.0
_INSTALL_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A server to compare with."""

    name: str
    version: str
    about: str
    install: Callable[[], str]
    """Gets it; a sentence when it cannot be had here, else nothing."""
    command: Callable[[int], list[str]]
    """What starts it at a port."""


def _told(tool: str, arguments: list[str], place: Path = PLACE, **variables: str) -> str:
    """Runs an installer in a folder; what it says when it fails."""
    found = shutil.which(tool)
    if found is None:
        return f"{tool} is not installed here"
    done = subprocess.run(
        [found, *arguments],
        cwd=place,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
    )
    return "" if done.returncode == 0 else " ".join((done.stderr or done.stdout).split())[-300:]


_COSMIUM = "v0.1.20"
"""The newest that Go finds by its version: later tags have no ``v``, which makes them no versions of a module."""
_MODULE = "github.com/pikami/cosmium"
_VERCEL = "1.0.1"


def _install_cosmium() -> str:
    # Through a module of our own, since `go install` asks for the list of all versions, which not every proxy has.
    place = PLACE / "cosmium"
    place.mkdir(exist_ok=True)
    (place / "go.mod").write_text(f"module peer\n\nrequire {_MODULE} {_COSMIUM}\n")
    build = ["build", "-mod=mod", "-o", "server", f"{_MODULE}/cmd/server"]
    return _told("go", build, place, CGO_ENABLED="0")


def _install_vercel() -> str:
    packages = ["install", "--no-audit", "--no-fund", "--prefix", str(PLACE / "vercel")]
    return _told("npm", [*packages, f"@vercel/cosmosdb-server@{_VERCEL}"])


def _start_cosmium(port: int) -> list[str]:
    return [
        str(PLACE / "cosmium" / "server"), "-Host", LOOPBACK, "-Port", str(port), "-DisableTls",
        "-AccountKey", EMULATOR_KEY, "-LogLevel", "silent",
    ]  # fmt: skip


def _start_vercel(port: int) -> list[str]:
    # Its own command closes every connection after one answer; its function can be told to keep them.
    package = PLACE / "vercel" / "node_modules" / "@vercel" / "cosmosdb-server"
    program = f"require('{package}').createHttpServer({{keepAlive: true}}).listen({port}, '{LOOPBACK}')"
    return ["node", "--eval", program]


PEERS = (
    Peer(
        name="Cosmium",
        version=_COSMIUM.removeprefix("v"),
        about="Go, items in memory",
        install=_install_cosmium,
        command=_start_cosmium,
    ),
    Peer(
        name="cosmosdb-server",
        version=_VERCEL,
        about="JavaScript, items in memory, `@vercel/cosmosdb-server`",
        install=_install_vercel,
        command=_start_vercel,
    ),
)


def pleiad_command(port: int) -> list[str]:
    """Pleiad as it compares with servers that keep nothing; request units are counted and not enforced."""
    program = str(Path(sys.executable).with_name("pleiad"))
    return [program, "serve", "--ephemeral", "--host", LOOPBACK, "--port", str(port), "--throttle", "observe"]


@contextlib.contextmanager
def running(name: str, command: Callable[[int], list[str]]) -> Iterator[PleiadServer]:
    """A server that answers, until the end of the block."""
    PLACE.mkdir(parents=True, exist_ok=True)
    port, log_path = free_port(), PLACE / f"{name}.log"
    with log_path.open("wb") as log:
        child = start(command(port), log)
    try:
        server = PleiadServer(port, child.pid, EMULATOR_KEY)
        ends_at = time.monotonic() + _READY_SECONDS
        while True:
            with contextlib.suppress(OSError, HTTPException):
                server.call("GET", "/", "", "")
                break
            if child.poll() is not None or time.monotonic() > ends_at:
                raise LoadError(f"{name} does not start:\n{log_path.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield server
    finally:
        stop(child)
