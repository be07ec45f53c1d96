"""A Pleiad server as a child process: started on a port, waited for, and always stopped.

The server runs the installed `pleiad` command, as a user would run it, with a data directory that
disappears with it. Its output goes to a log file, which is what to read when a test makes it fall over.
"""

import http.client
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.postgres_server import PostgresServer
from tests.waiting import wait_until

EMULATOR_PORT = 8081
EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
START_TIMEOUT_S = 240.0
STOP_TIMEOUT_S = 10.0


def stop_children_when_terminated() -> None:
    """Make SIGTERM unwind the program, so that the servers and tests it started end with it."""

    def end(_signal: int, _frame: object) -> None:
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)


class ServerUnavailableError(Exception):
    """The server did not start or does not answer; the text says why."""


@dataclass(slots=True)
class ServerProcess:
    """A running server and where its output goes."""

    port: int
    log: Path
    process: subprocess.Popen[bytes]

    def exit_code(self) -> int | None:
        """Return the exit code if the server has ended, else None."""
        return self.process.poll()

    def log_tail(self, line_count: int = 15) -> str:
        """Return the last lines the server wrote."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-line_count:])


def port_is_free(port: int) -> bool:
    """Say whether nobody listens on the port of the loopback addresses."""
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.settimeout(1.0)
                if probe.connect_ex((host, port)) == 0:
                    return False
        except OSError:
            continue
    return True


def free_port() -> int:
    """Return a port the system considers free."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int, *, tls: bool, host: str = "127.0.0.1") -> bool:
    """Say whether an HTTP request for the account is answered, with any status."""
    connection: http.client.HTTPConnection
    if tls:
        context = ssl.create_default_context()
        context.check_hostname = False  # the certificate of a local server is self-signed
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=30, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


@contextmanager
def postgres_database() -> Iterator[str]:
    """Start a PostgreSQL server, yield the connection string of an empty database, and remove it at the end."""
    server = PostgresServer()
    try:
        server.start()
        yield server.new_database()
    finally:
        server.remove()


@contextmanager
def running_server(
    port: int,
    log: Path,
    *,
    tls: bool,
    limits: str = "default",
    store: str = "sqlite",
    throttle: str = "observe",
    read_only_key: str | None = None,
    region_host: str | None = None,
    sample_in: Path | None = None,
) -> Iterator[ServerProcess]:
    """Start an empty server, or one with the sample in a directory, yield it once it answers, and stop it at the end.

    The suites make containers of 400 RU/s and do not expect to be held up by them, so throughput is only observed.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    data = ["--ephemeral"] if sample_in is None else ["--data", str(sample_in), "--sample"]
    command = [_pleiad_command(), "serve", *data, "--port", str(port), "--limits", limits]
    command += ["--throttle", throttle, "--store", store]
    if read_only_key is not None:
        command += ["--read-only-key", read_only_key]
    if region_host is not None:
        command += ["--region-host", region_host]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Settings of the caller's own server must not leak into the measured one.
            env={name: value for name, value in os.environ.items() if not name.startswith("PLEIAD_")},
            start_new_session=True,  # an interrupt must reach the tests first, the server last
        )
    server = ServerProcess(port, log, process)
    try:
        _wait_until_it_answers(server, tls=tls)
        yield server
    finally:
        _stop(process)


def _pleiad_command() -> str:
    beside = Path(sys.executable).parent / "pleiad"
    found = str(beside) if beside.exists() else shutil.which("pleiad")
    if found is None:
        raise ServerUnavailableError("the pleiad command is not installed beside this interpreter")
    return found


def _wait_until_it_answers(server: ServerProcess, *, tls: bool) -> None:
    has_come = wait_until(
        lambda: server.exit_code() is not None or answers(server.port, tls=tls), START_TIMEOUT_S
    )
    if server.exit_code() is not None:
        text = f"the server ended with code {server.exit_code()}:\n{server.log_tail()}"
        raise ServerUnavailableError(text)
    if not has_come:
        raise ServerUnavailableError(
            f"the server did not answer within {START_TIMEOUT_S:.0f} s:\n{server.log_tail()}"
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
