"""One script process as the server sees it: frames to it, frames from it, and its end.

A process begins with a reply of its own: which walls are up around it. Where it ends before that, because it cannot
work behind them on this machine, it is started again behind the few that every platform has.

A process is asked from the event loop, one command at a time. When it does not answer in time it is killed: whoever
leased it gets an error of the table and gives it back dead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.script import walls, worker

_DIRECTORY = Path(__file__).parent
_PROGRAM = str(_DIRECTORY / "worker.py")
_log = logging.getLogger(__name__)
_NOT_HERE = (
    "Stored procedures, triggers and user-defined functions need a server on Linux or macOS: "
    "on Windows their processes cannot be shut in."
)
_KILL_GRACE_SECONDS = 1.0
"""How long after its limit a process is waited for: it ends itself before."""
_REAP_SECONDS = 1.0
_START_SECONDS = 20.0
_REPLY_RESPONSES = 4
"""A reply holds one response, or operations and their documents: as text in text, so each may be twice as long."""
_REPLY_BYTES_AROUND = 1024 * 1024
_CHUNK_BYTES = 256 * 1024


class Reply(NamedTuple):
    """How a command ended, and its text."""

    ending: int
    text: bytes


class ScriptProcess:
    """A running script process."""

    def __init__(self, limits: Limits) -> None:
        """Starts the process; call it from a thread, since that takes a moment."""
        if sys.platform == "win32":
            raise errors.UNAVAILABLE(reason=_NOT_HERE)
        self.is_alive = True
        self._limits = limits
        self._loop: asyncio.AbstractEventLoop | None = None
        self._received = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self._reply_bytes_max = _REPLY_RESPONSES * limits.response_bytes + _REPLY_BYTES_AROUND
        self.walls: tuple[str, ...] = ()
        """What was taken from the process, by the names of `walls.py`."""
        for wanted in (walls.ALL, walls.FEWEST):
            if self._start(wanted):
                return
            self._end()
            _log.warning("a script process did not start behind the walls %s", ", ".join(sorted(wanted)))
        raise errors.UNAVAILABLE(reason="No script process could be started.")

    def _start(self, wanted: frozenset[str]) -> bool:
        """Starts the process and waits for its first reply."""
        limits = self._limits
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", _PROGRAM],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        settings = {
            "prelude": (_DIRECTORY / "prelude.js").read_text(encoding="utf-8"),
            "memory_bytes": limits.script_memory_bytes,
            "stack_bytes": limits.script_stack_bytes,
            "walls": sorted(wanted),
        }
        received = bytearray()
        try:
            self._socket.settimeout(_START_SECONDS)
            self._socket.sendall(_frame(worker.FRESH, orjson.dumps(settings), 0))
            while (reply := self._reply_in(received)) is None:
                part = self._socket.recv(_CHUNK_BYTES)
                if not part:
                    return False
                received += part
        except OSError:
            return False
        self._socket.setblocking(False)
        self.walls = tuple(orjson.loads(reply.text))
        return True

    @property
    def id(self) -> int:
        return self._process.pid

    async def ask(self, command: int, text: bytes, seconds: float) -> Any:
        """What the script answers to a command, as JSON; a limit it met is an error of the table."""
        loop = asyncio.get_running_loop()
        # The end of the process is the end of the socket, so whoever waits for an answer is woken.
        watchdog = loop.call_later(seconds + _KILL_GRACE_SECONDS, self._process.kill)
        try:
            self._attach(loop)
            await self._send(loop, _frame(command, text, seconds))
            while (reply := self._reply_in(self._received)) is None:
                self._waiter = loop.create_future()
                await self._waiter
            self._received.clear()
        except OSError:
            raise await self._ended() from None
        except BaseException:
            self.kill()
            raise
        finally:
            watchdog.cancel()
        return self._value(reply)

    def _attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Has the loop watch the socket; it goes on doing so, since to begin and to end costs system calls."""
        if self._loop is None:
            self._loop = loop
            loop.add_reader(self._socket.fileno(), self._take_part)

    def _detach(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._loop = None

    def _take_part(self) -> None:
        try:
            part = self._socket.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        self._received += part
        waiter, self._waiter = self._waiter, None
        if not part:
            self._detach()
        if waiter is None:
            if not part:
                self.kill()
        elif not waiter.done():
            if part:
                waiter.set_result(None)
            else:
                waiter.set_exception(ConnectionResetError())

    async def _send(self, loop: asyncio.AbstractEventLoop, frame: bytes) -> None:
        """Sends a frame: at once where the socket has room for it, which it nearly always has."""
        try:
            sent = self._socket.send(frame)
        except BlockingIOError:
            sent = 0
        if sent < len(frame):
            await loop.sock_sendall(self._socket, memoryview(frame)[sent:])

    def refresh(self) -> None:
        """Has the next script find a context of its own; until then the loop sees it when the process dies."""
        self._attach(asyncio.get_running_loop())
        try:
            self._socket.send(_frame(worker.FRESH, b"", 0))
        except OSError:
            self.kill()

    def kill(self) -> None:
        """Ends the process at once; killing it again does nothing."""
        if self.is_alive:
            self.is_alive = False
            self._detach()
            self._end()

    def wait(self) -> None:
        """Returns when a killed process is gone."""
        self._process.wait()

    def _end(self) -> None:
        self._socket.close()
        # It may belong to another user now; without its socket it ends by itself.
        with contextlib.suppress(PermissionError):
            self._process.kill()
        # The kernel takes its time to clear away what a process had; no loop waits for that.
        threading.Thread(target=self._process.wait, name="end of a script process", daemon=True).start()

    def _reply_in(self, buffer: bytearray) -> Reply | None:
        """The reply in what was received so far, when it is whole."""
        if len(buffer) < worker.REPLY.size:
            return None
        ending, length = worker.REPLY.unpack_from(buffer)
        if length > self._reply_bytes_max:
            self.kill()
            raise errors.SCRIPT_LIMIT(reason="it gave more than its memory can hold.")
        end = worker.REPLY.size + length
        return (
            Reply(ending, bytes(memoryview(buffer)[worker.REPLY.size : end])) if len(buffer) >= end else None
        )

    async def _ended(self) -> PleiadError:
        """The error of a process that ended: by its alarm or our watchdog, or because the engine broke."""
        # A socket that is closed is seen before the end of its process, by up to half a second.
        try:
            ending = await asyncio.to_thread(self._process.wait, _REAP_SECONDS)
        except subprocess.TimeoutExpired:
            ending = -signal.SIGKILL
        finally:
            self.kill()
        by_time = ending in (-signal.SIGALRM, -signal.SIGKILL)
        return _out_of_time(self._limits) if by_time else errors.SCRIPT_LIMIT(reason="its process ended.")

    def _value(self, reply: Reply) -> Any:
        limits = self._limits
        if reply.ending == worker.VALUE:
            try:
                return orjson.loads(reply.text)
            except orjson.JSONDecodeError:
                raise errors.SCRIPT_FAILED(reason="the script gave no valid JSON.") from None
        if reply.ending == worker.OUT_OF_TIME:
            raise _out_of_time(limits)
        if reply.ending == worker.OUT_OF_MEMORY:
            raise errors.SCRIPT_LIMIT(
                reason=f"it needs more than {limits.script_memory_bytes} bytes of memory."
            )
        if reply.ending == worker.STACK_OVERFLOW:
            raise errors.SCRIPT_LIMIT(reason="Maximum call stack size exceeded.")
        raise errors.SCRIPT_FAILED(reason=reply.text.decode(errors="replace"))


def _frame(command: int, text: bytes, seconds: float) -> bytes:
    return worker.REQUEST.pack(command, seconds, len(text)) + text


def _out_of_time(limits: Limits) -> PleiadError:
    return errors.REQUEST_TIMEOUT(
        reason=f"The script was stopped: it took more than {limits.operation_seconds:g} seconds."
    )
