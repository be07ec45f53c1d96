"""The program of a script process: it runs JavaScript for the server that started it, and can do nothing else.

It is started by its path, alone, with an empty environment and one socket, its standard input. Requests and replies
are frames on that socket; the first reply tells which walls are up (`walls.py`), and that the engine runs behind them.
Each script gets a context of its own, made before it is needed. A script that cannot be
interrupted, because it is inside a long call of the engine itself, is ended with the process by an alarm.

Invariants:
- no Python function is known to any context, so that time, memory and stack limits hold and there is no way out;
- nothing of a client is read before the walls are up;
- a context is never used for a second script.
"""

from __future__ import annotations

import importlib.util
import json
import select
import signal
import socket
import struct
import time
from pathlib import Path
from typing import Any

REQUEST = struct.Struct("!BdI")
"""Command, the seconds it may take, and the length of the text behind it."""
REPLY = struct.Struct("!BI")
"""How it ended, and the length of the text behind it."""

FRESH, START, RESUME, DEFINE, CALL = range(5)
VALUE, OUT_OF_TIME, OUT_OF_MEMORY, STACK_OVERFLOW, BROKEN = range(5)

ALARM_GRACE_SECONDS = 0.5
_NAMES = {START: "start", RESUME: "resume", DEFINE: "define", CALL: "call"}
_CHUNK_BYTES = 1 << 20
_SPARE_CONTEXTS = 2


class Sandbox:
    """One context for one script."""

    def __init__(self, settings: dict[str, Any]) -> None:
        # Imported here, since the server reads this module for its frames and has no use for the engine; and without
        # the package around it, which starts a thread that no wall would stand around.
        import _quickjs

        self._errors = (_quickjs.StackOverflow, _quickjs.JSException)
        self._context = _quickjs.Context()
        self._context.set_max_stack_size(settings["stack_bytes"])
        self._host = self._context.eval(settings["prelude"])
        self._context.set_memory_limit(settings["memory_bytes"])

    def run(self, command: int, text: str, seconds: float) -> tuple[int, str]:
        """Runs one command and everything it set off; says how that ended."""
        ends_at = time.monotonic() + seconds
        self._context.set_time_limit(seconds)
        try:
            answer = self._host(_NAMES[command], text)
            if command in (START, RESUME) and self._context.execute_pending_job():
                while self._context.execute_pending_job():
                    if time.monotonic() > ends_at:
                        return OUT_OF_TIME, ""
                answer = self._host("drain", "")
        except self._errors as error:
            return _ending_of(str(error))
        except (TypeError, UnicodeError, SystemError):
            answer = None
        return (VALUE, answer) if isinstance(answer, str) else (BROKEN, "the script spoiled its own answer")


def _ending_of(text: str) -> tuple[int, str]:
    if "Maximum call stack size exceeded" in text.partition("\n")[0]:
        return STACK_OVERFLOW, ""
    if text.startswith("InternalError: interrupted"):
        return OUT_OF_TIME, ""
    # Without memory even for its error, the engine throws null.
    if "out of memory" in text or text == "null\n":
        return OUT_OF_MEMORY, ""
    return BROKEN, text


def _confine(settings: dict[str, Any]) -> list[str]:
    """Takes away what the engine does not need, should a script ever break out of it; what holds of that."""
    place = importlib.util.spec_from_file_location("walls", Path(__file__).with_name("walls.py"))
    assert place is not None
    assert place.loader is not None
    walls = importlib.util.module_from_spec(place)
    place.loader.exec_module(walls)
    holding: list[str] = walls.put_up(settings["memory_bytes"], frozenset(settings["walls"]))
    return holding


class Channel:
    """Frames from the server, read in as few calls as they come in; the process ends when the server is gone."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._received = bytearray()

    def has_request(self) -> bool:
        """Whether a request is here, or at least begins to be."""
        return bool(self._received) or bool(select.select([self._socket], [], [], 0)[0])

    def request(self) -> tuple[int, float, bytes]:
        """The next command, its seconds and its text."""
        command, seconds, length = REQUEST.unpack(self._take(REQUEST.size))
        return command, seconds, self._take(length)

    def reply(self, ending: int, text: bytes) -> None:
        self._socket.sendall(REPLY.pack(ending, len(text)) + text)

    def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            part = self._socket.recv(_CHUNK_BYTES)
            if not part:
                raise SystemExit(0)
            self._received += part
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken


class Alarm:
    """Ends the process when a script does not come to its end."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self, seconds: float) -> None:
        """Sets the alarm unless it is set: one lasts for all rounds of a script, which share their time."""
        if not self._is_set:
            self._is_set = True
            signal.setitimer(signal.ITIMER_REAL, seconds + ALARM_GRACE_SECONDS)

    def clear(self) -> None:
        if self._is_set:
            self._is_set = False
            signal.setitimer(signal.ITIMER_REAL, 0)


def main() -> None:
    """Serves requests until the socket is closed; while none waits, contexts are made for the next ones."""
    # The server decides when this process ends; a key pressed for the server is not meant for it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=0))
    settings = json.loads(channel.request()[2])
    spare = [Sandbox(settings)]  # loads the engine, while there still are files
    holding = _confine(settings)
    spare.append(Sandbox(settings))
    channel.reply(VALUE, json.dumps(holding).encode())
    sandbox: Sandbox | None = None
    alarm = Alarm()
    while True:
        if sandbox is None and len(spare) < _SPARE_CONTEXTS and not channel.has_request():
            spare.append(Sandbox(settings))
            continue
        command, seconds, text = channel.request()
        if command == FRESH:
            alarm.clear()
            sandbox = None
            continue
        if sandbox is None:
            sandbox = spare.pop() if spare else Sandbox(settings)
        alarm.set(seconds)
        ending, answer = sandbox.run(command, text.decode(), seconds)
        if command in (DEFINE, CALL):
            alarm.clear()
        channel.reply(ending, answer.encode())


if __name__ == "__main__":
    main()
