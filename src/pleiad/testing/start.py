"""`pleiad.start()`: a real server until it is stopped, in this process or in one of its own."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from pleiad.account.keys import EMULATOR_KEY
from pleiad.engine.consistency import BY_OPTION
from pleiad.head_ports import BY_NAME, NOSQL, chosen, named
from pleiad.limits import Limits
from pleiad.node import Node
from pleiad.server.lifecycle import new_loop
from pleiad.settings import SQLITE, Settings
from pleiad.testing.checkpoint import NO_CHECKPOINTS, Checkpoints
from pleiad.testing.faults import Fault, Faults

CONNECTION_STRING_VARIABLE = "PLEIAD_CONNECTION_STRING"
_START_SECONDS = 20.0


class RunningServer:
    """A server that answers: what a client needs to reach it, and what a test wants from it.

    Used in a with-block it stops with it.
    """

    def __init__(
        self,
        endpoint: str,
        key: str,
        port: int,
        process_id: int | None,
        ports: Mapping[str, int] | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.key = key
        self.port = port
        self.ports = ports or {}
        """The port of each head that is on."""
        self._process_id = process_id
        self._checkpoints = checkpoints
        self._life = contextlib.ExitStack()

    def __repr__(self) -> str:
        return f"RunningServer({self.endpoint!r})"

    def __enter__(self) -> RunningServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def lives(self, life: contextlib.ExitStack) -> RunningServer:
        """Gives the server what ends with it; without a call of `stop` it ends with this process."""
        self._life = life
        atexit.register(self.stop)
        return self

    def stop(self) -> None:
        """Lets running requests finish, stops the server and removes temporary data; once more does nothing.

        A server that was not started here goes on.
        """
        atexit.unregister(self.stop)
        self._life.close()

    @property
    def process_id(self) -> int:
        if self._process_id is None:
            raise RuntimeError("the server was not started here, so its process is not known")
        return self._process_id

    @property
    def connection_string(self) -> str:
        return f"AccountEndpoint={self.endpoint};AccountKey={self.key};"

    @property
    def faults(self) -> Faults:
        """Faults on demand: `server.faults.add(429, count=3)`."""
        return Faults(self.endpoint, self.key)

    def throttled(
        self,
        database: str,
        container: str,
        *,
        count: int | None = None,
        operation: str | None = None,
        retry_after_ms: int = 1,
    ) -> Fault:
        """Answers every request on items of a container with 429, until the with-block ends or `remove` is called.

        With a `count`, the next so many of them; with an `operation`, only these. Clients are told to try again after
        `retry_after_ms`.
        """
        return self.faults.add(
            429,
            count=count,
            share=1.0 if count is None else None,
            database=database,
            container=container,
            operation=operation,
            retry_after_ms=retry_after_ms,
        )

    def checkpoint(self) -> None:
        """Remembers the whole account as it is now, in place of what was remembered before.

        Only of a server with temporary data in this process. Faults end.
        """
        self._remembering().make()

    def rollback(self) -> None:
        """Puts the account back to where the last checkpoint was, as often as one likes; connections stay open.

        Clients go on as they are: what they have since made is not there, and no rid is used again. Feeds of changes
        have to begin anew. Faults end.
        """
        self._remembering().return_to()

    def _remembering(self) -> Checkpoints:
        if self._checkpoints is None:
            raise RuntimeError(NO_CHECKPOINTS)
        return self._checkpoints


def named_server() -> RunningServer | None:
    """The server that the variable PLEIAD_CONNECTION_STRING names, if there is one; ValueError when it names none."""
    given = os.environ.get(CONNECTION_STRING_VARIABLE)
    if not given:
        return None
    from urllib.parse import urlsplit

    from pleiad.client.connection_string import parse

    found = parse(given)
    parts = urlsplit(found.endpoint)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return RunningServer(found.endpoint.rstrip("/"), found.key or EMULATOR_KEY, port, None, {NOSQL: port})


def start(
    *,
    data: str | os.PathLike[str] | None = None,
    store: str = SQLITE,
    port: int = 0,
    key: str = EMULATOR_KEY,
    limits: str | Limits = "default",
    consistency: str = "session",
    child_process: bool = False,
    throttle: str = "observe",
    heads: str | Sequence[str] = (),
    direct: bool = True,
    load: str | os.PathLike[str] | None = None,
) -> RunningServer:
    """Starts a server that runs until the end of a with-block, or until its `stop` is called.

    Without `data` everything is temporary. `limits` is a profile's name or file, or a `Limits` (in process only).
    `store` is a PostgreSQL database that shall keep the items, `postgresql://user@host/database`; they stay there.
    `heads` are further heads, by name, or `"all"`; each has a free port, which is in `ports`. NoSQL is always on.
    Without `direct` clients in direct mode are told to use gateway mode.
    `load` is a folder whose containers are there from the start, as `pleiad serve --load` takes it.
    `consistency` is the account's level, from `eventual` to `strong`.
    With `throttle="enforce"` requests beyond the throughput of their container get 429, as they do from `pleiad serve`;
    tests of anything else need not wait for that, so the default only counts.
    A child process costs a few tenths of a second more and can be killed without harm to the tests.
    """
    if consistency not in BY_OPTION:
        raise ValueError(f"there is no consistency level '{consistency}' (levels: {', '.join(BY_OPTION)})")
    starter = _in_child_process if child_process else _in_this_process
    given = Path(data) if data is not None else None
    ports = {head: 0 for head in named([heads] if isinstance(heads, str) else heads) if head != NOSQL}
    chosen((), ports)
    folder = Path(load) if load is not None else None
    with contextlib.ExitStack() as life:
        server = life.enter_context(
            starter(given, store, port, ports, key, limits, consistency, throttle, direct, folder)
        )
        return server.lives(life.pop_all())


@contextlib.contextmanager
def _in_this_process(
    data: Path | None,
    store: str,
    port: int,
    ports: Mapping[str, int],
    key: str,
    limits: str | Limits,
    consistency: str,
    throttle: str,
    direct: bool,
    load: Path | None,
) -> Iterator[RunningServer]:
    from pleiad.limits import load as load_limits

    profile = load_limits(limits) if isinstance(limits, str) else limits
    settings = Settings(
        data=data,
        store=store,
        port=port,
        ports=ports,
        key=key,
        limits=profile,
        consistency=BY_OPTION[consistency],
        throttle=throttle,
        direct=direct,
        load=load,
    )
    node = Node(settings)
    loop = new_loop()
    thread = threading.Thread(target=loop.run_forever, name="pleiad-server", daemon=True)
    thread.start()
    try:
        # A folder takes as long as it is large.
        asyncio.run_coroutine_threadsafe(node.start(), loop).result(_START_SECONDS if load is None else None)
        checkpoints = Checkpoints(node, loop) if data is None and store == SQLITE else None
        try:
            found = node.server.ports
            endpoint = f"http://localhost:{found[NOSQL]}"
            yield RunningServer(endpoint, key, found[NOSQL], os.getpid(), dict(found), checkpoints)
        finally:
            if checkpoints is not None:
                checkpoints.remove()
            asyncio.run_coroutine_threadsafe(node.stop(), loop).result(_START_SECONDS)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextlib.contextmanager
def _in_child_process(
    data: Path | None,
    store: str,
    port: int,
    ports: Mapping[str, int],
    key: str,
    limits: str | Limits,
    consistency: str,
    throttle: str,
    direct: bool,
    load: Path | None,
) -> Iterator[RunningServer]:
    if not isinstance(limits, str):
        raise TypeError("a server in a child process takes its limits by profile name or file")
    words = ["serve", "--port", str(port), "--limits", limits]
    for head, head_port in ports.items():
        words += [BY_NAME[head].option, str(head_port)]
    words += ["--consistency", consistency, "--throttle", throttle]
    words += [] if direct else ["--no-direct"]
    words += ["--ephemeral"] if data is None else ["--data", str(data)]
    words += [] if load is None else ["--load", str(load)]
    # The environment keeps a key and a password out of the list of processes.
    process = _command(words, {**os.environ, "PLEIAD_KEY": key, "PLEIAD_STORE": store})
    try:
        endpoint, found = _banner(process)
        yield RunningServer(endpoint, key, found[NOSQL], process.pid, found)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_START_SECONDS)
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _command(words: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    """The command `pleiad` in a process of its own, whose output is read here."""
    command = [sys.executable, "-m", "pleiad", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def _banner(process: subprocess.Popen[str]) -> tuple[str, dict[str, int]]:
    """Reads the banner until it has named the endpoint and the ports; who gives up says why on standard error."""
    assert process.stdout is not None
    endpoint = ""
    for line in process.stdout:
        words = line.split()
        if words[:1] == ["endpoint"]:
            endpoint = words[1].rstrip("/")
        elif words[:1] == ["heads"]:
            return endpoint, {
                name: int(port.rstrip(",")) for name, port in zip(words[1::2], words[2::2], strict=True)
            }
    raise RuntimeError(f"the server did not start (exit code {process.wait()})")
