"""What a bystander feels: point reads on connections of their own beside an attack, and the memory of the server.

The reader is a process of its own. It sends a read every `TICK_SECONDS`, due at fixed moments: a stall of a second
counts as all the reads that should have been answered in it, not as one. From each delay the time is taken away
during which the kernel let the server's loop or the reader wait for a processor, as `/proc` counts it, so that other
work on the machine is not held against the server. Both figures are kept.
"""

from __future__ import annotations

import bisect
import multiprocessing
import os
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from types import TracebackType

from attack.target import Target
from attack.wire import Connection, NoAnswerError
from bench.process import resident_mb

TICK_SECONDS = 0.01
SAMPLE_SECONDS = 0.05
STALL_SECONDS_NOTED = 0.1
_READ_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Stall:
    """A read that waited: from when, on the clock all processes share, how long, and how long by the server's doing."""

    began_at: float
    wall_ms: float
    own_ms: float


@dataclass(slots=True)
class Reads:
    """All reads of one watch."""

    count: int = 0
    failed: int = 0
    """Answers that were no 200, and reads that got none."""
    wall_ms: list[float] = field(default_factory=list)
    own_ms: list[float] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)

    def p99_ms(self, wall: bool = False) -> float:
        """What 99 of 100 reads did not pass."""
        values = sorted(self.wall_ms if wall else self.own_ms)
        return values[min(len(values) - 1, int(len(values) * 0.99))] if values else 0.0

    def longest_ms(self, wall: bool = False) -> float:
        """The longest of all."""
        return max(self.wall_ms if wall else self.own_ms, default=0.0)

    def worst(self) -> Stall | None:
        """The longest stall by the server's doing, where one was noted."""
        return max(self.stalls, key=lambda stall: stall.own_ms, default=None)


def _waited_seconds(pid: int | str) -> float:
    """How long the first thread of a process has waited for a processor while it could have run."""
    try:
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


class _Waits:
    """The waiting time of server and reader as it grew, to be asked for any moment of the past."""

    def __init__(self, server_pid: int) -> None:
        self._pids = (server_pid, os.getpid())
        self._moments: list[float] = []
        self._waited: list[float] = []

    def note(self) -> float:
        """The sum at this moment."""
        waited = sum(map(_waited_seconds, self._pids))
        self._moments.append(time.monotonic())
        self._waited.append(waited)
        return waited

    def at(self, moment: float) -> float:
        """The sum at the last moment noted before."""
        place = bisect.bisect_right(self._moments, moment) - 1
        return self._waited[max(0, place)]


def _read_on(pipe: Pipe, port: int, server_pid: int, requests: list[bytes]) -> None:
    """The reader: reads until the pipe says stop, then sends what it measured."""
    reads, waits = Reads(), _Waits(server_pid)
    connection = Connection(port, seconds=_READ_SECONDS)
    pipe.send("ready")
    waits.note()
    due = time.monotonic()
    number = 0
    while not pipe.poll():
        now = time.monotonic()
        if now < due:
            time.sleep(due - now)
        try:
            ok = connection.exchange(requests[number % len(requests)]).status == 200
        except NoAnswerError:
            ok = False
            time.sleep(TICK_SECONDS)
        number += 1
        ended = time.monotonic()
        waited = waits.note() - waits.at(due)
        wall = ended - due
        own = max(0.0, wall - waited)
        reads.count += 1
        reads.failed += not ok
        reads.wall_ms.append(wall * 1000)
        reads.own_ms.append(own * 1000)
        if wall > STALL_SECONDS_NOTED:
            reads.stalls.append(Stall(due, wall * 1000, own * 1000))
        due += TICK_SECONDS
    pipe.recv()
    pipe.send(reads)


class Watch:
    """A reader and a look at the memory, for the time of a `with` block; figures are there after it."""

    def __init__(self, target: Target, requests: list[bytes]) -> None:
        self._target = target
        self._requests = requests
        self.reads = Reads()
        self.peak_mb = 0.0
        self._ended = threading.Event()

    def __enter__(self) -> Watch:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._reader = context.Process(
            target=_read_on, args=(theirs, self._target.port, self._target.pid, self._requests), daemon=True
        )
        self._reader.start()
        theirs.close()
        self._pipe.recv()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        return self

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.peak_mb = max(self.peak_mb, resident_mb(self._target.pid))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._sampler.join()
        try:
            self._pipe.send("stop")
            if self._pipe.poll(_READ_SECONDS):
                self.reads = self._pipe.recv()
        except (OSError, EOFError):
            self.reads.failed += 1
        self._reader.join(timeout=5)
        if self._reader.is_alive():
            self._reader.kill()
