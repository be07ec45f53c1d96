"""Point operations on PostgreSQL, beside a plain prepared statement that does the same row work.

PostgreSQL is a real server with its own settings, so a commit waits for the disk. Rounds of 32 clients alternate:
the plain statement through the driver (``bench/driver.py``), Pleiad's store alone, and the whole server over HTTP
with routing, signature, charge and rendering, which the plain statement has none of. The servers and the driver's
process have the first core, the load generator and the second gateway the other one; PostgreSQL takes what is free.
Bars:
- ``postgres_read_vs_plain``, ``postgres_store_read_vs_plain``: point reads/s over HTTP, and of the store alone, over
  plain SELECTs/s of the same rows.
- ``postgres_create_vs_plain``, ``postgres_store_create_vs_plain``: durable creates/s over plain INSERTs/s of the same
  rows, without the partition's counters and LSN that a create keeps besides.
- ``postgres_writes_per_commit``: how many of the creates on one physical partition shared a commit.
- ``postgres_two_gateways_vs_one``: point reads/s with a second server process on the same database over one.
- ``postgres_gateway_cpu_two_vs_one``: the same per second of CPU time of the servers: what a second one adds where
  it has a core of its own.
- ``postgres_two_workers_vs_one``, ``postgres_worker_cpu_two_vs_one``: the same of a server with ``--workers 2``.
"""

from __future__ import annotations

import contextlib
import random
import re
import statistics
import subprocess
from collections.abc import Callable, Iterator, Sequence

import psycopg

from bench import request
from bench.driver import PLAIN_CREATE, PLAIN_READ, STORE_CREATE, STORE_READ, DriverJob, DriverProcess
from bench.items import items
from bench.load import Job, LoadError, LoadProcess, Measure
from bench.process import BUILD, client_cores
from bench.report import Bar, FamilyReport, line, paired_ratio
from bench.server import PleiadServer, pleiad_server
from bench.settings import Settings
from tests.postgres_server import PostgresServer

WARMUP_SECONDS = 0.3
READS_PER_SECOND = 30_000
CREATES_PER_SECOND = 12_000
_COMMITS = re.compile(rb"^pleiad_commit_writes_(sum|count) (\S+)$", re.MULTILINE)


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """All rounds on one PostgreSQL server."""
    with postgres_server() as postgres:
        store = postgres.new_database()
        with (
            DriverProcess(postgres.new_database(), settings.items) as driver,
            pleiad_server(store=store) as server,
            pleiad_server(store=store, key=server.key, cores=client_cores()) as second,
            pleiad_server(store=store, key=server.key, cores=set(), workers=2) as workers,
        ):
            rounds = _Rounds(settings, load, driver, server, second, workers, postgres.pid)
            reads = rounds.alternate(
                rounds.driven(PLAIN_READ),
                rounds.driven(STORE_READ),
                rounds.reads,
                rounds.reads_of_two,
                rounds.reads_of_workers,
            )
            before = rounds.commits()
            creates = rounds.alternate(
                rounds.driven(PLAIN_CREATE), rounds.driven(STORE_CREATE), rounds.creates
            )
            after = rounds.commits()
    return _report(reads, creates, (after[0] - before[0]) / max(1, after[1] - before[1]))


@contextlib.contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A durable server with its data beside that of the other families."""
    try:
        postgres = PostgresServer(durable=True, parent=BUILD)
    except (OSError, subprocess.CalledProcessError) as error:
        raise LoadError(f"PostgreSQL could not be set up under {BUILD}: {error}") from error
    try:
        try:
            postgres.start()
        except (OSError, psycopg.OperationalError) as error:
            raise LoadError(f"PostgreSQL did not start: {error}") from error
        yield postgres
    finally:
        postgres.remove()


def _report(
    reads: list[list[Measure]], creates: list[list[Measure]], writes_per_commit: float
) -> FamilyReport:
    plain_read, store_read, read, read_of_two, read_of_workers = reads
    plain_create, store_create, create = creates
    two, one = _per_cpu(read_of_two), _per_cpu(read)
    return FamilyReport(
        lines=(
            line("postgres_plain_read", plain_read),
            line("postgres_store_read", store_read),
            line("postgres_read", read),
            line("postgres_read_2_gateways", read_of_two),
            line("postgres_read_2_workers", read_of_workers),
            line("postgres_plain_create", plain_create),
            line("postgres_store_create", store_create),
            line("postgres_create", create),
        ),
        bars=(
            Bar(
                name="postgres_read_vs_plain",
                ratio=paired_ratio(read, plain_read),
                bar=0.6,
                meaning=f"point reads/s over HTTP over plain SELECTs/s ({_cpu(read)}; plain {_cpu(plain_read)})",
            ),
            Bar(
                name="postgres_store_read_vs_plain",
                ratio=paired_ratio(store_read, plain_read),
                bar=0.6,
                meaning=f"point reads/s of the store alone over plain SELECTs/s ({_cpu(store_read)})",
            ),
            Bar(
                name="postgres_create_vs_plain",
                ratio=paired_ratio(create, plain_create),
                bar=0.5,
                meaning=f"durable creates/s over HTTP over plain INSERTs/s ({_cpu(create)}; "
                f"plain {_cpu(plain_create)})",
            ),
            Bar(
                name="postgres_store_create_vs_plain",
                ratio=paired_ratio(store_create, plain_create),
                bar=0.5,
                meaning=f"durable creates/s of the store alone over plain INSERTs/s ({_cpu(store_create)})",
            ),
            Bar(
                name="postgres_writes_per_commit",
                ratio=writes_per_commit,
                bar=8,
                meaning="creates that share a commit, 32 clients on one physical partition",
            ),
            Bar(
                name="postgres_two_gateways_vs_one",
                ratio=paired_ratio(read_of_two, read),
                bar=1.1,
                meaning=f"point reads/s of two servers over one, all on this machine ({_cpu(read_of_two)})",
            ),
            Bar(
                name="postgres_gateway_cpu_two_vs_one",
                ratio=statistics.median(a / b for a, b in zip(two, one, strict=True)),
                bar=0.7,
                meaning="point reads per second of the servers' CPU time, two servers over one",
            ),
            Bar(
                name="postgres_two_workers_vs_one",
                ratio=paired_ratio(read_of_workers, read),
                bar=1.1,
                meaning=f"point reads/s with --workers 2 over one process, on one machine ({_cpu(read_of_workers)})",
            ),
            Bar(
                name="postgres_worker_cpu_two_vs_one",
                ratio=statistics.median(a / b for a, b in zip(_per_cpu(read_of_workers), one, strict=True)),
                bar=0.7,
                meaning="point reads per second of the workers' CPU time, two workers over one process",
            ),
        ),
    )


def _per_cpu(measures: Sequence[Measure]) -> list[float]:
    return [measure.requests / max(measure.server_cpu_seconds, 0.01) for measure in measures]


def _cpu(measures: Sequence[Measure]) -> str:
    """CPU time of one request: of the process that asks PostgreSQL, and of PostgreSQL."""
    asking = statistics.median(1e6 * m.server_cpu_seconds / m.requests for m in measures)
    answering = statistics.median(1e6 * m.database_cpu_seconds / m.requests for m in measures)
    return f"{asking:.0f} + {answering:.0f} µs of CPU"


class _Rounds:
    """The rounds on one database server; the container ``read`` holds the items."""

    def __init__(
        self,
        settings: Settings,
        load: LoadProcess,
        driver: DriverProcess,
        server: PleiadServer,
        second: PleiadServer,
        workers: PleiadServer,
        database_pid: int,
    ) -> None:
        self._settings = settings
        self._load = load
        self._driver = driver
        self._server = server
        self._second = second
        self._workers = workers
        self._database_pid = database_pid
        self._items = items("item", settings.items)
        self._read_link = server.create_container("bench", "read")
        self._create_link = server.create_container("bench", "create")
        server.fill(load, self._read_link, self._items)

    def alternate(self, *scenarios: Callable[[int], Measure]) -> list[list[Measure]]:
        """One round of each scenario after the other, as often as the settings say."""
        measures: list[list[Measure]] = [[] for _ in scenarios]
        for number in range(self._settings.rounds):
            for scenario, taken in zip(scenarios, measures, strict=True):
                taken.append(scenario(number))
        return measures

    def driven(self, name: str) -> Callable[[int], Measure]:
        """A scenario of the driver's process."""
        job = DriverJob(
            name=name,
            clients=self._settings.connections,
            seconds=self._settings.seconds,
            database_pid=self._database_pid,
        )
        return lambda number: self._driver.run(job)

    def reads(self, number: int) -> Measure:
        """Point reads through one server."""
        return self._run("postgres_read", self._read_requests(number), 200)

    def reads_of_two(self, number: int) -> Measure:
        """The same point reads, half of the connections through each server."""
        others = ((self._second.port, self._second.pid),)
        return self._run("postgres_read_2_gateways", self._read_requests(number), 200, others)

    def reads_of_workers(self, number: int) -> Measure:
        """The same point reads through a server of two workers, on all cores."""
        requests = self._read_requests(number)
        return self._run("postgres_read_2_workers", requests, 200, server=self._workers)

    def creates(self, number: int) -> Measure:
        """Durable creates through one server, in a container of one physical partition."""
        server = self._server
        creates = request.ItemCreates(server.host, server.key, self._create_link, request.date_text())
        new = items(f"new-{number}", self._prepared(CREATES_PER_SECOND))
        return self._run("postgres_create", [creates.create(item.pk, item.body) for item in new], 201)

    def commits(self) -> tuple[float, float]:
        """Writes and commits of the server so far."""
        _, page = self._server.call("GET", "/metrics", "", "")
        found = {name: float(value) for name, value in _COMMITS.findall(page)}
        if len(found) != 2:
            raise LoadError("the metrics do not tell how many writes share a commit")
        return found[b"sum"], found[b"count"]

    def _prepared(self, per_second: int) -> int:
        return int(per_second * (self._settings.seconds + WARMUP_SECONDS))

    def _read_requests(self, number: int) -> list[bytes]:
        server, link = self._server, self._read_link
        date = request.date_text(seconds_ago=number)
        wanted = random.Random(number).choices(self._items, k=self._prepared(READS_PER_SECOND))
        return [request.read_item(server.host, server.key, link, item.id, item.pk, date) for item in wanted]

    def _run(
        self,
        name: str,
        requests: list[bytes],
        status: int,
        others: tuple[tuple[int, int], ...] = (),
        server: PleiadServer | None = None,
    ) -> Measure:
        server = server or self._server
        return self._load.run(
            Job(
                name=name,
                port=server.port,
                server_pid=server.pid,
                others=others,
                database_pid=self._database_pid,
                requests=requests,
                statuses=(status,),
                connections=self._settings.connections,
                seconds=self._settings.seconds,
                warmup_seconds=WARMUP_SECONDS,
                repeat=status == 200,
            )
        )
