"""PostgreSQL without Pleiad's server: a process that works on the database through the driver.

A *plain* round gives each of its connections to one client, which runs a prepared statement in autocommit mode, waits
for the answer and runs the next: what an application without Pleiad would do. It reads a row of Pleiad's table by its
key, or inserts the same row into a table of the same columns and indexes. A *store* round is the same number of clients
on Pleiad's store in this process. Both have the event loop of the server, and the server's core.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import itertools
import multiprocessing
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from types import TracebackType
from typing import Any

import psycopg
from psycopg.types.numeric import Int8Dumper

from bench.items import items
from bench.load import LoadError, Measure, quantile_ms
from bench.process import cpu_seconds_of_all, pinned, server_cores
from pleiad.server.lifecycle import run
from pleiad.store.postgres.select import ROW
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.rows import Mutation, PartitionWrite, Result, Verb

PLAIN_READ, STORE_READ, PLAIN_CREATE, STORE_CREATE = (
    "plain_read",
    "store_read",
    "plain_create",
    "store_create",
)

_WARMUP_SECONDS = 0.3
_FILL_TOGETHER = 200
_TERMS = 20
_NOW = 1_700_000_000
_PLAIN_TABLE = "CREATE TABLE plain_item (LIKE pleiad_bench.item INCLUDING ALL)"
_PLAIN_READ = f"SELECT {ROW} FROM pleiad_bench.item AS item WHERE item.epk = %s AND item.id = %s"
_PLAIN_CREATE = "INSERT INTO plain_item VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, NULL)"

_Client = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverJob:
    """One round: what each of the clients does over and over."""

    name: str
    clients: int
    seconds: float
    database_pid: int


class _Rounds:
    """The database with its items, the store, and the plain connections made so far."""

    def __init__(self, dsn: str, store: PostgresStore, count: int) -> None:
        self._dsn = dsn
        self._store = store
        self._segment = store.segment("bench")
        self._wanted = [
            Mutation(
                Verb.CREATE,
                hashlib.md5(item.pk.encode(), usedforsecurity=False).digest(),
                item.id,
                item.body,
                len(item.body),
                _TERMS,
            )
            for item in items("item", count)
        ]
        # A step that no count of items is a multiple of, so that neighbours in time are none on the disk.
        self._reads = itertools.count(1, 7919)
        self._creates = itertools.count(1)
        self._plain: list[psycopg.AsyncConnection[Any]] = []
        self.clients: dict[str, _Client] = {
            PLAIN_READ: self._plain_read,
            STORE_READ: self._store_read,
            PLAIN_CREATE: self._plain_create,
            STORE_CREATE: self._store_create,
        }

    async def fill(self) -> None:
        """Puts the items into the store."""
        for first in range(0, len(self._wanted), _FILL_TOGETHER):
            some = self._wanted[first : first + _FILL_TOGETHER]
            await asyncio.gather(*(self._segment.commit(_write(mutation)) for mutation in some))
        async with await psycopg.AsyncConnection.connect(self._dsn, autocommit=True) as connection:
            await connection.execute(_PLAIN_TABLE)

    async def connect(self, clients: int) -> None:
        """Makes one plain connection for each client, sending values as the store's connections do."""
        while len(self._plain) < clients:
            connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
            connection.adapters.register_dumper(int, Int8Dumper)
            self._plain.append(connection)

    async def disconnect(self) -> None:
        """Closes the plain connections."""
        while self._plain:
            await self._plain.pop().close()

    def _next_read(self) -> Mutation:
        return self._wanted[next(self._reads) % len(self._wanted)]

    def _next_create(self) -> tuple[int, Mutation]:
        number = next(self._creates)
        mutation = self._wanted[number % len(self._wanted)]
        return number, mutation._replace(id=f"new-{number}")

    async def _plain_read(self, client: int) -> None:
        wanted = self._next_read()
        async with self._plain[client].cursor(binary=True) as cursor:
            await cursor.execute(_PLAIN_READ, (wanted.epk, wanted.id), prepare=True)
            if len(await cursor.fetchall()) != 1:
                raise LoadError("a row that was written is not there")

    async def _store_read(self, client: int) -> None:
        wanted = self._next_read()
        if await self._segment.read(wanted.epk, wanted.id) is None:
            raise LoadError("a row that was written is not there")

    async def _plain_create(self, client: int) -> None:
        number, new = self._next_create()
        values = (number, new.epk, new.id, number, _NOW, new.ttl, new.size_bytes, new.terms, new.body)
        async with self._plain[client].cursor(binary=True) as cursor:
            await cursor.execute(_PLAIN_CREATE, values, prepare=True)

    async def _store_create(self, client: int) -> None:
        outcomes = await self._segment.commit(_write(self._next_create()[1]))
        if outcomes[0].result is not Result.CREATED:
            raise LoadError(f"a create ended with {outcomes[0].result}")

    async def run(self, job: DriverJob) -> Measure:
        """One round; the clients begin at once and the clock starts after the warm-up."""
        await self.connect(job.clients)
        step = self.clients[job.name]
        latencies: list[float] = []
        stopping = False

        async def work(client: int) -> None:
            while not stopping:
                began = time.perf_counter()
                await step(client)
                latencies.append(time.perf_counter() - began)

        async with asyncio.TaskGroup() as group:
            for client in range(job.clients):
                group.create_task(work(client))
            await asyncio.sleep(_WARMUP_SECONDS)
            latencies.clear()
            database_before = cpu_seconds_of_all(job.database_pid)
            began, cpu_before = time.perf_counter(), time.process_time()
            await asyncio.sleep(job.seconds)
            ended, cpu_after = time.perf_counter(), time.process_time()
            database_after = cpu_seconds_of_all(job.database_pid)
            measured = sorted(latencies)
            stopping = True
        return Measure(
            name=job.name,
            requests=len(measured),
            seconds=ended - began,
            p50_ms=quantile_ms(measured, 0.50),
            p99_ms=quantile_ms(measured, 0.99),
            max_ms=measured[-1] * 1000,
            statuses={},
            server_cpu_seconds=cpu_after - cpu_before,
            client_cpu_seconds=0.0,
            database_cpu_seconds=database_after - database_before,
        )


def _write(mutation: Mutation) -> PartitionWrite:
    return PartitionWrite(0, 1, _NOW, (mutation,))


async def _serve(pipe: Pipe, dsn: str, count: int) -> None:
    """Takes jobs from the pipe and answers each with a measure or an error text."""
    store = await PostgresStore.open(dsn)
    rounds = _Rounds(dsn, store, count)
    try:
        await rounds.fill()
        gc.freeze()
        gc.disable()
        while (job := await asyncio.to_thread(_receive, pipe)) is not None:
            try:
                pipe.send(await rounds.run(job))
            except Exception:
                pipe.send(f"{job.name}: {traceback.format_exc()}")
            gc.collect()
    finally:
        await rounds.disconnect()
        await store.close()


def _receive(pipe: Pipe) -> DriverJob | None:
    try:
        job: DriverJob | None = pipe.recv()
    except EOFError:
        return None
    return job


def _serve_jobs(pipe: Pipe, dsn: str, count: int) -> None:
    run(_serve(pipe, dsn, count))


class DriverProcess:
    """The process, for the time of a ``with`` block; it fills its database with ``count`` items first."""

    def __init__(self, dsn: str, count: int) -> None:
        self._dsn = dsn
        self._count = count

    def __enter__(self) -> DriverProcess:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve_jobs, args=(theirs, self._dsn, self._count), daemon=True
        )
        with pinned(server_cores()):
            self._process.start()
        theirs.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.close()
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.kill()

    def run(self, job: DriverJob) -> Measure:
        """One round. Raises LoadError when a statement failed or the process is gone."""
        try:
            self._pipe.send(job)
            if not self._pipe.poll(job.seconds + 120):
                raise LoadError(f"{job.name}: the driver gave no result in time")
            answer: Measure | str = self._pipe.recv()
        except (EOFError, OSError):
            raise LoadError(f"{job.name}: the process of the driver ended") from None
        if isinstance(answer, str):
            raise LoadError(answer)
        return answer
