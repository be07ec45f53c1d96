"""What a bystander feels: point reads on connections of their own beside an attack, and the memory of the server.

The reader is a process of its own. It wants to send a read every `TICK_SECONDS`; while one waits for its answer the
others cannot be sent, so for each of them the time it would have waited is counted too: a stall of a second is a
hundred slow reads, not one. From each delay the time is taken away during which the kernel let the server's loop or the
reader wait for a processor, as `/proc` counts it, so that other work on the machine is not held against the server.
Both figures are kept.
"""

from __future__ import annotations

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
KILLED_MB = 3000.0
"""A server that takes so much is ended for the sake of the machine; its promise broke long before."""
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

    def note(self, began_at: float, wall: float, own: float, ok: bool) -> None:
        """Takes a read, and those that could not be sent while it waited."""
        self.count += 1
        self.failed += not ok
        for seconds, found in ((wall, self.wall_ms), (own, self.own_ms)):
            found += [
                (seconds - late * TICK_SECONDS) * 1000 for late in range(1 + int(seconds / TICK_SECONDS))
            ]
        if wall > STALL_SECONDS_NOTED:
            self.stalls.append(Stall(began_at, wall * 1000, own * 1000))

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


def _read_on(pipe: Pipe, port: int, server_pid: int, requests: list[bytes]) -> None:
    """The reader: reads until the pipe says stop, then sends what it measured."""
    reads, own_pid = Reads(), os.getpid()
    connection = Connection(port, seconds=_READ_SECONDS)
    pipe.send("ready")
    due = time.monotonic()
    number = 0
    while not pipe.poll():
        time.sleep(max(0.0, due - time.monotonic()))
        waited = _waited_seconds(server_pid) + _waited_seconds(own_pid)
        began_at = time.monotonic()
        try:
            ok = connection.exchange(requests[number % len(requests)]).status == 200
        except NoAnswerError:
            ok = False
        wall = time.monotonic() - began_at
        waited = _waited_seconds(server_pid) + _waited_seconds(own_pid) - waited
        number += 1
        reads.note(began_at, wall, max(0.0, wall - waited), ok)
        due = max(due + TICK_SECONDS, time.monotonic())
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
            if self.peak_mb > KILLED_MB and self._target.is_running:
                # A server without an end to its memory would take that of everything else on the machine.
                self._target.kill()

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
