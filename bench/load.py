"""The load generator: a process of its own that sends prepared requests and measures the answers.

Invariants
- Each connection has one request in flight, or as many as the job says where frames are sent, and stays open for the
  whole round.
- The clock starts after all connections are open and the warm-up has passed; it is read once per response.
- Requests go out in list order over all connections. A list is either repeated or, for writes, sent once.
- CPU time of server, database and generator is taken over the same window as the rate, so that a saturated server
  (server near 100 %) can be told from a starved one (generator near 100 %).

Limits: responses must carry ``Content-Length`` or come in chunks. Certificates are not looked at. Answers
in frames must begin with the tokens PayloadPresent and TransportRequestID, as Pleiad writes them.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import multiprocessing
import ssl
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from types import TracebackType
from typing import NamedTuple, cast

from bench.process import LOOPBACK, client_cores, cpu_seconds_of_all, pinned

_DRAIN_SECONDS = 60.0
_LOOK_SECONDS = 0.02
_LENGTH_NAMES = (b"\r\ncontent-length: ", b"\r\nContent-Length: ")
_BODILESS = (b"204", b"304")
_LAST_CHUNK = b"\r\n0\r\n\r\n"
NUMBER_AT = 27
"""Where the number of a request stands in its frame, whose first token it has to be."""
_ANSWER_HEAD_BYTES = 35


class LoadError(Exception):
    """A round that measured nothing meaningful: wrong statuses, lost connections, a server that is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One round of load on one server."""

    name: str
    port: int
    server_pid: int
    requests: Sequence[bytes]
    statuses: tuple[int, ...]  # the acceptable ones
    connections: int
    seconds: float
    warmup_seconds: float = 0.3
    others: tuple[tuple[int, int], ...] = ()  # further servers as (port, pid), which connections go round
    database_pid: int = 0  # a database beside the server, whose CPU time is taken too
    tls: bool = False
    context: bytes = b""  # the first frame of a connection, where the requests are frames of direct mode
    in_flight: int = 1  # on each connection; more than one of frames only
    answers_min: int = 1  # the window is longer where so many have not come in it
    repeat: bool = True  # False: each request is sent once, and the round ends early when all are answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What one round showed. CPU figures are seconds used within the window of ``seconds``."""

    name: str
    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    statuses: dict[int, int]
    server_cpu_seconds: float
    client_cpu_seconds: float
    database_cpu_seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Responses per second."""
        return self.requests / self.seconds


class _Round:
    """What the connections of one round share: the requests still to send and the answers counted so far."""

    def __init__(self, job: Job) -> None:
        requests = itertools.cycle(job.requests) if job.repeat else iter(job.requests)
        self.take: Callable[[], bytes] = requests.__next__
        self.latencies: list[float] = []
        self.statuses: defaultdict[bytes, int] = defaultdict(int)
        self.expected = frozenset(str(status).encode() for status in job.statuses)
        self.problem = ""
        self.stopping = False
        self.busy = 0
        self.idle = asyncio.Event()

    def rest(self) -> None:
        """One connection has nothing more to send."""
        self.busy -= 1
        if self.busy == 0:
            self.idle.set()

    def fail(self, problem: str) -> None:
        """Keep the first thing that went wrong and end the round."""
        self.problem = self.problem or problem
        self.stopping = True
        self.idle.set()


class _Client(asyncio.Protocol):
    """One keep-alive connection that sends the next request as soon as the last one is answered."""

    def __init__(self, load: _Round) -> None:
        self._load = load
        self._transport: asyncio.WriteTransport | None = None
        self._buffer = b""
        self._sent_at = 0.0
        self._in_flight = False
        self._length_name = _LENGTH_NAMES[0]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._in_flight:
            self._load.fail(f"the server closed a connection with a request in flight ({exc})")

    def close(self) -> None:
        """Give the connection up, whatever is in flight."""
        self._in_flight = False
        if self._transport is not None:
            self._transport.abort()

    def send(self) -> None:
        """Send the next request, or rest when the round is over or everything has been sent."""
        load = self._load
        try:
            request = None if load.stopping else load.take()
        except StopIteration:
            request = None
        if request is None or self._transport is None:
            self._in_flight = False
            load.rest()
            return
        self._in_flight = True
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
        head_end = data.find(b"\r\n\r\n")
        if head_end < 0:
            self._buffer = data
            return
        status = data[9:12]
        length_at = data.find(self._length_name, 0, head_end)
        if length_at < 0:
            length_at = self._search_length(data, head_end)
        if length_at >= 0:
            length_at += len(self._length_name)
            body_bytes = int(data[length_at : data.find(b"\r", length_at)])
            if len(data) < head_end + 4 + body_bytes:
                self._buffer = data
                return
        elif _is_chunked(data[:head_end]):
            if not data.endswith(_LAST_CHUNK):  # one request in flight: what ends so ends the answer
                self._buffer = data
                return
        elif status not in _BODILESS:
            self._load.fail("a response came without its length")
        self._buffer = b""
        load = self._load
        load.latencies.append(time.perf_counter() - self._sent_at)
        load.statuses[status] += 1
        if status not in load.expected:
            load.fail(f"status {status.decode()}: {data[head_end + 4 :][:400].decode(errors='replace')}")
        self.send()

    def _search_length(self, data: bytes, head_end: int) -> int:
        """Where the length stands, in whichever spelling, which is then looked for first; -1 if absent."""
        for name in _LENGTH_NAMES:
            at = data.find(name, 0, head_end)
            if at >= 0:
                self._length_name = name
                return at
        return -1


def _is_chunked(head: bytes) -> bool:
    return b"\r\ntransfer-encoding: chunked" in head.lower()


class _FrameClient(asyncio.Protocol):
    """One connection of direct mode that keeps as many requests in flight as it is told to send at first."""

    def __init__(self, load: _Round, context: bytes) -> None:
        self._load = load
        self._context = context
        self._transport: asyncio.WriteTransport | None = None
        self._buffer = b""
        self._sent_at: dict[bytes, float] = {}
        self.ready = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._transport.write(self._context)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._sent_at:
            self._load.fail(f"the server closed a connection with a request in flight ({exc})")

    def close(self) -> None:
        """Give the connection up, whatever is in flight."""
        self._sent_at.clear()
        if self._transport is not None:
            self._transport.abort()

    def send(self) -> None:
        """Send the next request, or rest when the round is over or everything has been sent."""
        load = self._load
        try:
            request = None if load.stopping else load.take()
        except StopIteration:
            request = None
        if request is None or self._transport is None:
            load.rest()
            return
        self._sent_at[request[NUMBER_AT : NUMBER_AT + 4]] = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data
        at, size = 0, len(data)
        while size - at >= _ANSWER_HEAD_BYTES:
            end = at + int.from_bytes(data[at : at + 4], "little")
            if self.ready.done() and data[at + 27]:
                if size < end + 4:
                    break
                end += 4 + int.from_bytes(data[end : end + 4], "little")
            if size < end:
                break
            self._take(data[at:end])
            at = end
        self._buffer = data[at:]

    def _take(self, answer: bytes) -> None:
        if not self.ready.done():
            self.ready.set_result(None)
            return
        load = self._load
        load.latencies.append(time.perf_counter() - self._sent_at.pop(answer[31:35]))
        status = b"%d" % int.from_bytes(answer[4:8], "little")
        load.statuses[status] += 1
        if status not in load.expected:
            load.fail(f"status {status.decode()}: {answer[-400:].decode(errors='replace')}")
        self.send()


async def _connected(job: Job, load: _Round, port: int) -> _Client | _FrameClient:
    """A connection that is ready to send."""
    context = None
    if job.tls:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    loop = asyncio.get_running_loop()
    if not job.context:
        _, client = await loop.create_connection(lambda: _Client(load), LOOPBACK, port, ssl=context)
        return client
    _, frames = await loop.create_connection(
        lambda: _FrameClient(load, job.context), LOOPBACK, port, ssl=context
    )
    await frames.ready
    return frames


async def _run(job: Job) -> Measure:
    load = _Round(job)
    clients = []
    servers = ((job.port, job.server_pid), *job.others)
    for number in range(job.connections):
        port = servers[number % len(servers)][0]
        clients.append(await _connected(job, load, port))
    load.busy = len(clients) * job.in_flight
    for client in clients:
        for _ in range(job.in_flight):
            client.send()
    if job.warmup_seconds > 0:
        await _wait(load.idle, job.warmup_seconds)
        load.latencies.clear()
        load.statuses.clear()
    before = _times(job)
    await _wait(load.idle, job.seconds)
    ends_at = before.clock + _DRAIN_SECONDS
    while len(load.latencies) < job.answers_min and not load.idle.is_set() and time.perf_counter() < ends_at:
        await _wait(load.idle, _LOOK_SECONDS)
    after = _times(job)
    latencies, statuses = sorted(load.latencies), dict(load.statuses)
    load.stopping = True
    await _wait(load.idle, _DRAIN_SECONDS)
    drained = load.idle.is_set()
    for client in clients:
        client.close()
    if load.problem:
        raise LoadError(f"{job.name}: {load.problem}")
    if not drained or not latencies:
        raise LoadError(f"{job.name}: the server left requests without an answer")
    return Measure(
        name=job.name,
        requests=len(latencies),
        seconds=after.clock - before.clock,
        p50_ms=quantile_ms(latencies, 0.50),
        p99_ms=quantile_ms(latencies, 0.99),
        max_ms=latencies[-1] * 1000,
        statuses={int(status): count for status, count in statuses.items()},
        server_cpu_seconds=after.server - before.server,
        client_cpu_seconds=after.client - before.client,
        database_cpu_seconds=after.database - before.database,
    )


class _Times(NamedTuple):
    """The clock and the CPU seconds used so far at one moment."""

    clock: float
    server: float
    client: float
    database: float


def _times(job: Job) -> _Times:
    pids = (job.server_pid, *(pid for _, pid in job.others))
    database = cpu_seconds_of_all(job.database_pid) if job.database_pid else 0.0
    return _Times(time.perf_counter(), sum(map(cpu_seconds_of_all, pids)), time.process_time(), database)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def quantile_ms(ordered: list[float], quantile: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * quantile))] * 1000


def _serve_jobs(pipe: Pipe) -> None:
    """The generator process: take jobs from the pipe and answer each with a measure or an error text."""
    try:
        import uvloop

        new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    except ImportError:
        new_loop = asyncio.new_event_loop
    gc.disable()
    while True:
        try:
            job: Job | None = pipe.recv()
        except EOFError:
            return
        if job is None:
            return
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                pipe.send(runner.run(_run(job)))
        except (LoadError, OSError) as error:
            pipe.send(f"{error}" if isinstance(error, LoadError) else f"{job.name}: {error}")
        except Exception:
            pipe.send(f"{job.name}: {traceback.format_exc()}")
        del job
        gc.collect()


class LoadProcess:
    """The generator process, for the time of a ``with`` block."""

    def __enter__(self) -> LoadProcess:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve_jobs, args=(theirs,), daemon=True)
        with pinned(client_cores()):
            self._process.start()
        theirs.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.close()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()

    def run(self, job: Job) -> Measure:
        """One round. Raises LoadError when the answers were not the acceptable ones."""
        self._pipe.send(job)
        limit_seconds = job.warmup_seconds + job.seconds + _DRAIN_SECONDS + 30
        if not self._pipe.poll(limit_seconds):
            raise LoadError(f"{job.name}: the load generator gave no result within {limit_seconds:.0f} s")
        try:
            answer: Measure | str = self._pipe.recv()
        except EOFError:
            raise LoadError(f"{job.name}: the load generator ended") from None
        if isinstance(answer, str):
            raise LoadError(answer)
        return answer
