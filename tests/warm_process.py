"""`pleiad` in a process of its own that has loaded its modules already.

A fresh interpreter takes half a second of a processor to load a server, and a run of the tests starts hundreds of them.
Here a process that has them, and no thread, is forked each time. Tests of the start itself, of standard streams that
are closed and of what kills a process early take a fresh interpreter.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import TextIO

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["pleiad.cli.main", "pleiad.cli.serve", "pleiad.store.postgres.store"])


def _run(
    arguments: list[str], environment: dict[str, str], output: Connection, complaints: Connection | None
) -> None:
    """What the new process does: the command with these arguments, environment and standard streams."""
    for stream, number in ((output, 1), (complaints, 2)):
        if stream is not None:
            os.dup2(stream.fileno(), number)
            stream.close()
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.argv = ["pleiad", *arguments]
    from pleiad.cli.main import main

    main()


def _piped() -> tuple[TextIO, Connection]:
    reading, writing = CONTEXT.Pipe(duplex=False)
    stream = os.fdopen(os.dup(reading.fileno()), encoding="utf-8")
    reading.close()
    return stream, writing


class WarmProcess:
    """A running command; used like a `subprocess.Popen` with its outputs in pipes."""

    def __init__(
        self, arguments: Sequence[object], environment: Mapping[str, str], with_complaints: bool = True
    ) -> None:
        """Without complaints these go where those of the tests go."""
        self.stderr: TextIO | None = None
        complaints: Connection | None = None
        self.stdout, output = _piped()
        if with_complaints:
            self.stderr, complaints = _piped()
        words = [str(word) for word in arguments]
        self._process = CONTEXT.Process(target=_run, args=(words, dict(environment), output, complaints))
        self._process.start()
        output.close()
        if complaints is not None:
            complaints.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("pleiad", timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.exitcode is None:
            # It may have ended, and its exit code be on the way.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What is still written to both outputs until the end."""
        complaints: list[str] = []
        listener = threading.Thread(target=lambda: complaints.append(_rest(self.stderr)), daemon=True)
        listener.start()
        said = _rest(self.stdout)
        listener.join()
        self.wait(timeout)
        return said, complaints[0]


def warm_command(words: list[str], environment: dict[str, str]) -> WarmProcess:
    """For `pleiad.start(child_process=True)`."""
    return WarmProcess(words, environment, with_complaints=False)


def _rest(stream: TextIO | None) -> str:
    """All that is left to read; nothing of what was closed."""
    if stream is None or stream.closed:
        return ""
    with stream:
        return stream.read()
