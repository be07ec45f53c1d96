"""What a simulated server stands on: its store, the loop that suits it, and what a crash leaves of it.

On SQLite a seed decides everything. On PostgreSQL the answers of a real server come when they come: a seed repeats its
plan, what each client does, and at which turn of the loop the process dies, but not the order of every event.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

import apsw
import psycopg
from psycopg import pq

from pleiad.store.checked.store import checked
from pleiad.store.postgres.schema import schema_name
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.sqlite.store import SqliteStore
from pleiad.store.store import Store
from tests.proofs.simulation.loop import SeededLoop, SeededThreads, SocketLoop
from tests.stores import SEGMENT_NAMES

_ITEMS = "SELECT number, epk FROM {}"
_CLAIMS = "SELECT number FROM {}"
_OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
_TERMINATE = f"SELECT pg_terminate_backend(pid) {_OTHERS}"
_BACKENDS = f"SELECT count(*) {_OTHERS} AND backend_type = 'client backend'"
_LEASES_END = "UPDATE pleiad.lease SET expires = clock_timestamp()"
_DEAD_SECONDS_MAX = 20.0
_sleep, _monotonic = time.sleep, time.monotonic  # the clock of the world outside


@dataclass(frozen=True)
class Rows:
    """A segment as its store keeps it: number and epk of each item, and the numbers that claim unique values."""

    items: list[tuple[int, bytes]]
    claims: set[int]


class Ground(Protocol):
    """The data of one server over its lives."""

    def loop(self, order: random.Random, now: float) -> SeededLoop:
        """The event loop of the next life."""

    async def open(self, loop: SeededLoop, order: random.Random) -> Store:
        """The store of the next life."""

    def survive(self, life: int, order: random.Random) -> None:
        """Keeps what the dead process left, and no more."""

    def abandon(self) -> None:
        """Gives back what the operating system would take from a dead process."""

    def segments(self) -> dict[str, Rows]:
        """All segments there are, looked at past the server."""


class SqliteGround:
    """Files in a directory; a crash copies them as they are."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "life0"
        self._store: SqliteStore | None = None

    def loop(self, order: random.Random, now: float) -> SeededLoop:
        return SeededLoop(order, now)

    async def open(self, loop: SeededLoop, order: random.Random) -> Store:
        self._directory.mkdir(exist_ok=True, parents=True)
        self._store = SqliteStore(self._directory, durable=False, threads=SeededThreads(loop, order))
        return checked(self._store)

    def survive(self, life: int, order: random.Random) -> None:
        left = self._directory.with_name(f"life{life + 1}")
        shutil.copytree(self._directory, left, ignore=shutil.ignore_patterns("*-shm", "lock"))
        self._directory = left

    def abandon(self) -> None:
        store, self._store = self._store, None
        if store is None:
            return
        for segment in store._segments.values():
            file, segment._file = segment._file, None
            if file is not None:
                for connection in (file.log._connection, file.reader, file.writer):
                    if connection is not None:
                        connection.close(True)
        store._catalog.close(True)
        with contextlib.suppress(OSError):  # it was closed in an orderly way
            os.close(store._lock)

    def segments(self) -> dict[str, Rows]:
        return {path.stem: self._look(path) for path in (self._directory / "segments").glob("*.sqlite")}

    def _look(self, path: Path) -> Rows:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            items = [(number, epk) for number, epk in connection.execute(_ITEMS.format("item"))]
            claims = {number for (number,) in connection.execute(_CLAIMS.format("unique_value"))}
            return Rows(items, claims)
        finally:
            connection.close()


class _Lines:
    """The connections of one life: they are cut when it ends."""

    def __init__(self) -> None:
        self._made: list[psycopg.AsyncConnection[Any]] = []
        self._connecting = 0
        self._connect = psycopg.AsyncConnection.connect
        self._patch = mock.patch.object(psycopg.AsyncConnection, "connect", self._connect_noted)
        self._patch.start()

    async def _connect_noted(self, *given: Any, **options: Any) -> psycopg.AsyncConnection[Any]:
        self._connecting += 1
        try:
            self._made.append(await self._connect(*given, **options))
        finally:
            self._connecting -= 1
        return self._made[-1]

    def is_quiet(self) -> bool:
        """Whether no answer is awaited."""
        active = pq.TransactionStatus.ACTIVE
        return not self._connecting and all(line.pgconn.transaction_status != active for line in self._made)

    def cut(self) -> None:
        """Ends them without a word, as the end of a process does."""
        self._patch.stop()
        for line in self._made:
            with contextlib.suppress(OSError, psycopg.Error):
                twin = socket.socket(fileno=os.dup(line.fileno()))
                with contextlib.closing(twin):
                    twin.shutdown(socket.SHUT_RDWR)
            line.pgconn.finish()
        self._made.clear()


class PostgresGround:
    """A database of a real server; a crash cuts every connection, with what was under way done or undone."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._lines: _Lines | None = None

    def loop(self, order: random.Random, now: float) -> SeededLoop:
        self._bury()
        self._lines = _Lines()
        return SocketLoop(order, now, self._lines.is_quiet)

    async def open(self, loop: SeededLoop, order: random.Random) -> Store:
        return checked(await PostgresStore.open(self._dsn))

    def survive(self, life: int, order: random.Random) -> None:
        if order.random() < 0.5:
            with psycopg.connect(self._dsn, autocommit=True) as outside:
                outside.execute(_TERMINATE)

    def abandon(self) -> None:
        if self._lines is not None:
            self._lines.cut()
            self._lines = None

    def _bury(self) -> None:
        """Waits for the end of what the last server had under way, and of its leases."""
        with psycopg.connect(self._dsn, autocommit=True) as outside:
            end = _monotonic() + _DEAD_SECONDS_MAX
            while outside.execute(_BACKENDS).fetchall() != [(0,)]:
                assert _monotonic() < end, "the backends of the last server do not end"
                _sleep(0.002)
            with contextlib.suppress(psycopg.errors.UndefinedTable):
                outside.execute(_LEASES_END)

    def segments(self) -> dict[str, Rows]:
        with psycopg.connect(self._dsn) as outside:
            outside.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            names = [str(name) for (name,) in outside.execute(SEGMENT_NAMES)]
            return {name: self._look(outside, schema_name(name)) for name in names}

    def _look(self, outside: psycopg.Connection[Any], schema: str) -> Rows:
        items = [
            (int(number), bytes(epk)) for number, epk in outside.execute(_ITEMS.format(f"{schema}.item"))
        ]
        claims = {int(number) for (number,) in outside.execute(_CLAIMS.format(f"{schema}.unique_value"))}
        return Rows(items, claims)
