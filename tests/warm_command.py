"""`pleiad` as a command that shells and other programs run, in processes that have loaded its modules already.

What `warm_process` is for servers that a test starts itself, this is for command lines: `warm_command.words()` is to be
put before the arguments, and `warm_command.program(folder)` makes a program `pleiad` of it. A small client hands its
streams, directory and environment over to a server, which is forked for each command; signals go to the command, its
exit code comes back, and it does not outlive the client.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import marshal
import multiprocessing
import os
import selectors
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from pleiad.cli.main import main
from tests.project import ROOT
from tests.warm_process import CONTEXT

_CLIENT = ROOT / "tests" / "warm_client.py"
_HEAD_BYTES = 8


def words() -> list[str]:
    """What runs `pleiad` with the arguments behind it."""
    return [sys.executable, "-I", "-S", str(_CLIENT), str(_address())]


def program(folder: Path) -> Path:
    """A program `pleiad` in a folder, for shells that have it in their PATH."""
    made = folder / "pleiad"
    made.write_text(f'#!/bin/sh\nexec {shlex.join(words())} "$@"\n')
    made.chmod(0o755)
    return made


@functools.cache
def _address() -> Path:
    """Where the server of this process listens; it ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="pleiad-warm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = folder / "socket"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(address))
    listening.listen()
    CONTEXT.Process(target=_serve, args=(listening,), daemon=True).start()
    listening.close()
    return address


def _serve(listening: socket.socket) -> None:
    """Starts a process for each command, and tells each client how its command ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    woken, waking = socket.socketpair()
    waking.setblocking(False)
    signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    parent = multiprocessing.parent_process()
    assert parent is not None
    clients: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for each in (listening, woken, parent.sentinel):
            selector.register(each, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is listening:
                    client, _ = listening.accept()
                    process = _start(client)
                    clients[process] = client
                    selector.register(client, selectors.EVENT_READ, process)
                elif key.fileobj is woken:
                    woken.recv(4_096)
                    for process, status in _ended():
                        client = clients.pop(process)
                        selector.unregister(client)
                        _tell(client, status)
                elif key.fileobj == parent.sentinel:
                    for process in clients:
                        os.kill(process, signal.SIGKILL)
                    return
                elif key.data in clients:
                    _pass_on(clients[key.data], key.data)


def _ended() -> list[tuple[int, int]]:
    """The processes that ended, each with its exit code or the signal as a number below 0."""
    found: list[tuple[int, int]] = []
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if process == 0:
            return found
        found.append((process, os.waitstatus_to_exitcode(status)))


def _tell(client: socket.socket, status: int) -> None:
    with client, contextlib.suppress(OSError):
        client.sendall(status.to_bytes(4, "big", signed=True))


def _pass_on(client: socket.socket, process: int) -> None:
    """A signal that the client got, or the end of a client that is gone."""
    try:
        numbers = client.recv(64)
    except OSError:
        numbers = b""
    for number in numbers or [signal.SIGKILL]:
        os.kill(process, number)


def _start(client: socket.socket) -> int:
    """The process of a command that a client asks for."""
    head, streams, _, _ = socket.recv_fds(client, _HEAD_BYTES, 3)
    length, request = int.from_bytes(head, "big"), b""
    while len(request) < length:
        request += client.recv(length - len(request))
    process = os.fork()
    if process == 0:
        _become(streams, *marshal.loads(request))
    for stream in streams:
        os.close(stream)
    return process


def _become(
    streams: Sequence[int], arguments: list[str], directory: str, environment: dict[str, str]
) -> NoReturn:
    """What a fresh interpreter would be for the command."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.argv = ["pleiad", *arguments]
    status: object = 0
    try:
        main()
    except SystemExit as error:
        status = error.code
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(status if isinstance(status, int) else 1 if status else 0)
