"""One script process as the server sees it: frames to it, frames from it, and its end.

A process is asked from the event loop or, where a query calls functions, from a thread; never from both at once. When
it does not answer in time it is killed: whoever leased it gets an error of the table and gives it back dead.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.script import worker

_DIRECTORY = Path(__file__).parent
_KILL_GRACE_SECONDS = 1.0
"""How long after its limit a process is waited for: it ends itself before."""
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
        ours, theirs = socket.socketpair()
        self.is_alive = True
        self._socket = ours
        self._limits = limits
        self._reply_bytes_max = limits.script_memory_bytes + _REPLY_BYTES_AROUND
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(_DIRECTORY / "worker.py")],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
            )
        settings = {
            "prelude": (_DIRECTORY / "prelude.js").read_text(encoding="utf-8"),
            "memory_bytes": limits.script_memory_bytes,
            "stack_bytes": limits.script_stack_bytes,
        }
        ours.sendall(_frame(worker.FRESH, json.dumps(settings).encode(), 0))
        ours.setblocking(False)

    @property
    def id(self) -> int:
        return self._process.pid

    async def ask(self, command: int, text: bytes, seconds: float) -> Any:
        """What the script answers to a command, as JSON; a limit it met is an error of the table."""
        loop = asyncio.get_running_loop()
        buffer = bytearray()
        try:
            async with asyncio.timeout(seconds + _KILL_GRACE_SECONDS):
                await loop.sock_sendall(self._socket, _frame(command, text, seconds))
                while (reply := self._reply_in(buffer)) is None:
                    part = await loop.sock_recv(self._socket, _CHUNK_BYTES)
                    if not part:
                        raise self._ended(seconds)
                    buffer += part
        except TimeoutError:
            self.kill()
            raise _out_of_time(self._limits) from None
        except OSError:
            raise self._ended(seconds) from None
        except BaseException:
            self.kill()
            raise
        return self._value(reply)

    def ask_blocking(self, command: int, text: bytes, seconds: float) -> Any:
        """The same from a thread."""
        buffer = bytearray()
        ends_at = time.monotonic() + seconds + _KILL_GRACE_SECONDS
        try:
            self._socket.settimeout(seconds + _KILL_GRACE_SECONDS)
            self._socket.sendall(_frame(command, text, seconds))
            while (reply := self._reply_in(buffer)) is None:
                self._socket.settimeout(max(ends_at - time.monotonic(), 0.001))
                part = self._socket.recv(_CHUNK_BYTES)
                if not part:
                    raise self._ended(seconds)
                buffer += part
            self._socket.setblocking(False)
        except TimeoutError:
            self.kill()
            raise _out_of_time(self._limits) from None
        except OSError:
            raise self._ended(seconds) from None
        return self._value(reply)

    def refresh(self) -> None:
        """Has the next script find a context of its own."""
        try:
            self._socket.send(_frame(worker.FRESH, b"", 0))
        except OSError:
            self.kill()

    def kill(self) -> None:
        """Ends the process at once; killing it again does nothing."""
        if self.is_alive:
            self.is_alive = False
            self._socket.close()
            self._process.kill()
            self._process.wait()

    def _reply_in(self, buffer: bytearray) -> Reply | None:
        """The reply in what was received so far, when it is whole."""
        if len(buffer) < worker.REPLY.size:
            return None
        ending, length = worker.REPLY.unpack_from(buffer)
        if length > self._reply_bytes_max:
            self.kill()
            raise errors.SCRIPT_LIMIT(reason="it gave more than its memory can hold.")
        end = worker.REPLY.size + length
        return Reply(ending, bytes(buffer[worker.REPLY.size : end])) if len(buffer) >= end else None

    def _ended(self, seconds: float) -> PleiadError:
        """The error of a process that ended by itself: by its alarm, or because the engine broke."""
        self.kill()
        by_alarm = self._process.returncode == -14
        return _out_of_time(self._limits) if by_alarm else errors.SCRIPT_LIMIT(reason="its process ended.")

    def _value(self, reply: Reply) -> Any:
        limits = self._limits
        if reply.ending == worker.VALUE:
            try:
                return json.loads(reply.text)
            except ValueError:
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
