"""A server to attack: `pleiad serve` as a process with keys of its own, and its log, which is evidence.

The data lies in a directory that the caller names, so that a server can be killed and started again on the same files.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from attack.callers import Bearer, Key
from attack.wire import Connection, NoAnswerError
from bench.process import stop
from tests.postgres_server import PostgresServer

START_SECONDS = 60.0
_ENDPOINT = re.compile(rb"endpoint\s+http://[^:\s]+:(\d+)/")
_TRACEBACK = b"Traceback (most recent call last)"

MASTER = Key("master key", base64.b64encode(b"the master key of the attack suite").decode())
READ_ONLY = Key("read-only key", base64.b64encode(b"the read-only key of the suite").decode())
STRANGER = Key("wrong key", base64.b64encode(b"a key that no server ever had.").decode())
NOBODY = Bearer("no key", "")


class DidNotStartError(Exception):
    """The server ended before it served; the text is what it said, and `exit_code` what it ended with."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


@dataclass(slots=True)
class Target:
    """A running server."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path
    store: str
    """The store it was started with, as `--store` names it."""
    data: Path

    @property
    def pid(self) -> int:
        """The process of the server; script processes are its children."""
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self.process.poll() is None

    def connect(self, tls: bool = False, seconds: float = 30.0) -> Connection:
        """A connection of its own."""
        return Connection(self.port, tls, seconds)

    def said(self) -> str:
        """Everything the server printed and logged."""
        return self.log.read_bytes().decode("utf-8", "replace")

    def tracebacks(self) -> int:
        """How many tracebacks the log has."""
        return self.log.read_bytes().count(_TRACEBACK)

    def kill(self) -> None:
        """Ends the process at once, with no chance to tidy up."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Ends the process as an operator does; returns its exit code."""
        if self.is_running:
            stop(self.process)
        return self.process.returncode


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a server is started with."""

    data: Path
    store: str = "sqlite"
    limits: Mapping[str, float] = field(default_factory=dict)
    """Limits that differ from the default profile."""
    throttle: str = "observe"
    arguments: tuple[str, ...] = ()
    open_files: int = 0
    """The hard limit of descriptors, of which half is the soft one; 0: as they are."""
    file_bytes: int = 0
    """The size beyond which its files cannot grow, as on a full disk; 0: any."""


def launch(wanted: Launch) -> Target:
    """Starts a server and waits until it says that it is ready. Raises DidNotStartError with what it said."""
    wanted.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = wanted.data.parent / f"{wanted.data.name}.log"
    profile = wanted.data.parent / f"{wanted.data.name}.limits.toml"
    profile.write_text(
        'profile = "default"\n' + "".join(f"{name} = {value}\n" for name, value in wanted.limits.items())
    )
    command = [str(Path(sys.executable).with_name("pleiad")), "serve", "--data", str(wanted.data)]
    command += ["--port", "0", "--limits", str(profile), "--throttle", wanted.throttle, *wanted.arguments]
    # Settings of the caller's own server must not leak into this one; keys come by variables, as operators are told.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLEIAD_")}
    environment |= {
        "PLEIAD_KEY": MASTER.key,
        "PLEIAD_READ_ONLY_KEY": READ_ONLY.key,
        "PLEIAD_STORE": wanted.store,
    }

    def confine() -> None:
        if wanted.open_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted.open_files // 2, wanted.open_files))
        if wanted.file_bytes:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (wanted.file_bytes, wanted.file_bytes))

    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            preexec_fn=confine,
        )
    port = _port(process, log, log.stat().st_size)
    return Target(port, process, log, wanted.store, wanted.data)


def _port(process: subprocess.Popen[bytes], log: Path, offset: int) -> int:
    deadline = time.monotonic() + START_SECONDS
    while True:
        said = log.read_bytes()[offset:]
        if found := _ENDPOINT.findall(said):
            return int(found[-1])
        if process.poll() is not None:
            text = log.read_bytes()[offset:].decode("utf-8", "replace")
            raise DidNotStartError(text, process.returncode)
        if time.monotonic() > deadline:
            stop(process)
            raise DidNotStartError("it did not get ready in time", -1)
        time.sleep(0.02)


@contextlib.contextmanager
def serving(wanted: Launch) -> Iterator[Target]:
    """A server for the time of a `with` block."""
    target = launch(wanted)
    try:
        yield target
    finally:
        target.stop()


@contextlib.contextmanager
def store_named(name: str) -> Iterator[str]:
    """The setting of a store of that kind with nothing in it; PostgreSQL is a server of its own, gone at the end."""
    if name == "sqlite":
        yield name
        return
    server = PostgresServer()
    try:
        server.start()
        yield server.new_database()
    finally:
        server.remove()


def is_well(target: Target, seconds: float = 10.0) -> bool:
    """Whether the server answers a new client within that time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        connection = target.connect(seconds=2.0)
        try:
            if connection.send(MASTER, "GET", ["dbs"]).status == 200:
                return True
        except (NoAnswerError, OSError):
            pass
        finally:
            connection.close()
        time.sleep(0.1)
    return False
