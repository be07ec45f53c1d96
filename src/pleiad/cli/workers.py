"""`pleiad serve --workers N`: a small process above N servers on one port, which it starts, watches and ends.

The servers are forked from it and share nothing but a directory (`server/worker_place.py`) and the database. The system
divides connections among them, each by a socket of its own on the same port, so one that dies takes its own
connections along and nobody else's.

Invariants
- A worker that dies is started again alone: at once when it had worked for a while, else after a pause that doubles.
- No worker outlives the process above it: each holds one end of a socket and drains when the other end is gone.
- `--load` and `--sample` run once, in the first worker, before the others start and anybody is told of readiness.
- A start that fails ends all of it with the sentence of the worker that failed; later on it is logged and tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import orjson

from pleiad.cli.serving import REFUSALS, banner, say
from pleiad.node import DRAIN_SECONDS, Node
from pleiad.server.lifecycle import (
    closed_terminal_check,
    on_hangup,
    run,
    settle_garbage_collector,
    wait_for_stop,
)
from pleiad.server.worker_place import WorkerPlace, WorkersState
from pleiad.settings import SQLITE, Settings, SettingsError

_log = logging.getLogger(__name__)

PAUSE_SECONDS_MIN = 0.25
PAUSE_SECONDS_MAX = 30.0
STEADY_SECONDS = 10.0
"""A worker that lived so long is started again without a pause."""
_END_SECONDS = DRAIN_SECONDS + 20.0
"""After so long a worker that was told to end is killed."""
_MESSAGE_BYTES_MAX = 1 << 16
_ENDING = {signal.SIGTERM, signal.SIGINT}
_HANDLED = {*_ENDING, signal.SIGHUP, signal.SIGCHLD} if sys.platform != "win32" else _ENDING


def check(settings: Settings) -> None:
    """Refuses what workers cannot serve, with a sentence for the operator."""
    if not sys.platform.startswith("linux"):
        raise SettingsError("--workers needs Linux, which divides the connections of a port among processes")
    if settings.store == SQLITE:
        raise SettingsError(
            "with SQLite one process owns the data: to serve with several workers, use PostgreSQL "
            "(--store postgresql://...)"
        )


@dataclass(slots=True)
class _Worker:
    number: int
    started_at: float = 0.0
    process_id: int | None = None
    pipe: socket.socket | None = None
    is_ready: bool = False
    refusal: str = ""
    failures: int = 0
    due_at: float | None = None
    """When it is started again."""


class Supervisor:
    """The process above the workers."""

    def __init__(
        self,
        settings: Settings,
        count: int,
        sample: bool,
        shows_link: bool,
        logging_on: Callable[[tuple[str, ...]], AbstractContextManager[None]],
        logged: tuple[str, ...],
    ) -> None:
        check(settings)
        self._settings = settings
        self._sample = sample
        self._shows_link = shows_link
        self._logging_on = logging_on
        self._logged = logged
        self._workers = [_Worker(number) for number in range(count)]
        self._selector = selectors.DefaultSelector()
        self._signals: list[int] = []
        self._is_terminal_closed = closed_terminal_check()
        self._banner = ""
        self._is_serving = False
        self._ends_at: float | None = None
        self._failure = ""
        self._restarts = 0
        self._held: list[socket.socket] = []
        self._state = WorkersState(wanted=0, running=0, restarts=0)

    def run(self) -> None:
        """Serves until it is told to stop. SettingsError when the workers cannot start."""
        self._settings.check_ports()
        with self._logging_on(()):  # without a thread, which would not be there after a fork
            self._run()
        if self._failure:
            raise SettingsError(self._failure)

    def _run(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="pleiad-"))
        woken, wakes = socket.socketpair()
        woken.setblocking(False)
        wakes.setblocking(False)
        try:
            self._settings = self._prepared(self._settings)
            self._selector.register(woken, selectors.EVENT_READ, None)
            before = {number: signal.signal(number, self._note) for number in _HANDLED}
            signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
            try:
                self._supervise(woken)
            finally:
                signal.set_wakeup_fd(-1)
                for number, handler in before.items():
                    signal.signal(number, handler)
        finally:
            self._kill_all()
            shutil.rmtree(self._directory, ignore_errors=True)
            for held in self._held:
                held.close()

    def _prepared(self, settings: Settings) -> Settings:
        """The settings of workers: free ports found and held, and one directory for the certificate of all."""
        ports = {name: port or self._free_port() for name, port in settings.listening().items()}
        port = ports.pop("nosql")
        data = settings.data
        if data is None:
            data = self._directory / "data"
        return dataclasses.replace(settings, port=port, ports=ports, heads=(), data=data)

    def _free_port(self) -> int:
        held = socket.socket(socket.AF_INET6 if ":" in self._settings.host else socket.AF_INET)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((self._settings.host, 0))
        self._held.append(held)
        return int(held.getsockname()[1])

    # -- watching ---------------------------------------------------------------------------------------

    def _note(self, number: int, frame: object) -> None:
        self._signals.append(number)

    def _supervise(self, woken: socket.socket) -> None:
        self._start(self._workers[0])
        while any(worker.process_id is not None for worker in self._workers) or self._ends_at is None:
            for key, _ in self._selector.select(self._patience()):
                if key.data is None:
                    with contextlib.suppress(BlockingIOError):
                        woken.recv(4096)
                else:
                    self._hear(key.data)
            self._heed_signals()
            self._reap()
            self._go_on()
            self._keep_state()
        if self._is_serving:
            say("Stopped.")
        elif not self._failure:
            say("Stopped before it had started.")

    def _patience(self) -> float | None:
        times = [worker.due_at for worker in self._workers if worker.due_at is not None]
        if self._ends_at is not None:
            times.append(self._ends_at)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _heed_signals(self) -> None:
        heard, self._signals = self._signals, []
        for number in heard:
            if number in _ENDING and self._ends_at is None:
                if self._is_serving:
                    say(f"{signal.Signals(number).name}: finishing running requests ...")
                self._end()
            elif number in _ENDING:
                self._ends_at = time.monotonic()  # told once more: no longer
            elif number == signal.SIGHUP and self._is_terminal_closed():
                os.kill(os.getpid(), signal.SIGTERM)
            elif number == signal.SIGHUP:
                for worker in self._workers:
                    if worker.process_id is not None and worker.is_ready:
                        os.kill(worker.process_id, signal.SIGHUP)
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            self._kill_all()

    def _end(self) -> None:
        self._ends_at = time.monotonic() + _END_SECONDS
        for worker in self._workers:
            worker.due_at = None
            if worker.process_id is not None:
                os.kill(worker.process_id, signal.SIGTERM)

    def _kill_all(self) -> None:
        for worker in self._workers:
            if worker.process_id is not None:
                os.kill(worker.process_id, signal.SIGKILL)
                os.waitpid(worker.process_id, 0)
                self._forget(worker)

    def _hear(self, worker: _Worker) -> None:
        """Takes what a worker says: one message, or its end, which is noticed elsewhere too."""
        assert worker.pipe is not None
        message = worker.pipe.recv(_MESSAGE_BYTES_MAX)
        if not message:
            self._selector.unregister(worker.pipe)
            return
        said = orjson.loads(message)
        worker.refusal = said.get("refused", "")
        if "ready" in said:
            worker.is_ready = True
            self._banner = self._banner or said["ready"]

    def _reap(self) -> None:
        for worker in self._workers:
            if worker.process_id is None:
                continue
            ended, status = os.waitpid(worker.process_id, os.WNOHANG)
            if not ended:
                continue
            if worker.pipe is not None and worker.pipe in self._selector.get_map():
                self._hear(worker)  # its last words
            was_ready = worker.is_ready
            self._forget(worker)
            if self._ends_at is None:
                self._replace(worker, status, was_ready)

    def _forget(self, worker: _Worker) -> None:
        if worker.pipe is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(worker.pipe)
            worker.pipe.close()
        worker.pipe, worker.process_id, worker.is_ready = None, None, False

    def _replace(self, worker: _Worker, status: int, was_ready: bool) -> None:
        """Has a worker that has died started again, or all of them ended where the first start failed."""
        how = f"signal {-code}" if (code := os.waitstatus_to_exitcode(status)) < 0 else f"exit code {code}"
        if not self._is_serving:
            self._failure = worker.refusal or f"a worker ended while it started, with {how}"
            self._end()
            return
        lived_seconds = time.monotonic() - worker.started_at
        worker.failures = 0 if was_ready and lived_seconds >= STEADY_SECONDS else worker.failures + 1
        pause_seconds = 0.0
        if worker.failures > 1:
            pause_seconds = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS_MIN * 2 ** (worker.failures - 2))
        worker.due_at = time.monotonic() + pause_seconds
        self._restarts += 1
        _log.error(
            "worker %d ended with %s%s; it is started again%s",
            worker.number + 1,
            how,
            f" ({worker.refusal})" if worker.refusal else "",
            f" in {pause_seconds:g} seconds" if pause_seconds else "",
        )

    def _go_on(self) -> None:
        """Starts who is due, and tells of readiness when all are ready for the first time."""
        if self._ends_at is not None:
            return
        if not self._is_serving and self._workers[0].is_ready:
            for worker in self._workers[1:]:
                if worker.process_id is None:
                    self._start(worker)
            if all(worker.is_ready for worker in self._workers):
                self._is_serving = True
                say(
                    self._banner.replace(
                        "\n  stop  ", f"\n  workers            {len(self._workers)}\n  stop  "
                    )
                )
        now = time.monotonic()
        for worker in self._workers:
            if worker.due_at is not None and worker.due_at <= now:
                self._start(worker)

    def _keep_state(self) -> None:
        state = WorkersState(
            wanted=len(self._workers),
            running=sum(worker.is_ready for worker in self._workers),
            restarts=self._restarts,
        )
        if state != self._state:
            self._state = state
            state.keep(self._directory)

    # -- starting ---------------------------------------------------------------------------------------

    def _start(self, worker: _Worker) -> None:
        own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        worker.started_at, worker.due_at, worker.refusal = time.monotonic(), None, ""
        # A signal between the fork and the handlers of the child would be noted there, and lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        try:
            process_id = os.fork()
            if process_id == 0:
                own.close()
                self._become(worker, its)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
        its.close()
        worker.process_id, worker.pipe = process_id, own
        self._selector.register(own, selectors.EVENT_READ, worker)

    def _become(self, worker: _Worker, pipe: socket.socket) -> None:
        """What a forked process does until its end; it returns to nobody."""
        code = 1
        try:
            os.setpgid(0, 0)  # Ctrl-C is told to the process above, which tells it on
            signal.set_wakeup_fd(-1)
            for number in _HANDLED:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
            self._selector.close()
            for other in self._workers:
                if other.pipe is not None:
                    other.pipe.close()
            logging.getLogger().handlers.clear()
            with self._logging_on(self._logged):
                code = self._work(worker, pipe)
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _work(self, worker: _Worker, pipe: socket.socket) -> int:
        is_first = worker.number == 0 and not self._is_serving
        settings = self._settings if is_first else dataclasses.replace(self._settings, load=None)
        place = WorkerPlace(number=worker.number, count=len(self._workers), directory=self._directory)
        try:
            node = Node(settings, place)
            run(self._serve(node, pipe, is_first))
        except (*REFUSALS, OSError) as error:
            pipe.send(orjson.dumps({"refused": str(error)[:4096]}))
            return 1
        return 0

    async def _serve(self, node: Node, pipe: socket.socket, is_first: bool) -> None:
        loop = asyncio.get_running_loop()
        pipe.setblocking(False)
        # There is nothing to be told: what is received is the end of who would tell it.
        orphaned = loop.create_task(loop.sock_recv(pipe, 1))
        ends = {loop.create_task(wait_for_stop(loop)), orphaned}
        await asyncio.sleep(0)
        on_hangup(node.reload)
        node.tell = say
        starting = loop.create_task(node.start())
        await asyncio.wait({starting, *ends}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
            return
        await starting
        if is_first and self._sample:
            await node.load_sample()
        settle_garbage_collector()
        text = banner(node, node.new_link() if self._shows_link else None) if is_first else ""
        await loop.sock_sendall(pipe, orjson.dumps({"ready": text}))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        await node.stop()
        if orphaned.done():
            shutil.rmtree(self._directory, ignore_errors=True)
