"""`pleiad.start()`: a real server for the length of a with-block, in this process or in one of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pleiad.account.keys import EMULATOR_KEY
from pleiad.engine.consistency import BY_OPTION
from pleiad.head_ports import BY_NAME, NOSQL, chosen, named
from pleiad.limits import Limits
from pleiad.node import SQLITE, Node, Settings
from pleiad.server.lifecycle import new_loop
from pleiad.testing.faults import Faults

_START_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that answers: what a client needs to reach it."""

    endpoint: str
    key: str
    port: int
    process_id: int
    ports: Mapping[str, int] = field(default_factory=dict)
    """The port of each head that is on."""

    @property
    def connection_string(self) -> str:
        return f"AccountEndpoint={self.endpoint};AccountKey={self.key};"

    @property
    def faults(self) -> Faults:
        """Faults on demand: `server.faults.add(429, count=3)`."""
        return Faults(self.endpoint, self.key)


@contextlib.contextmanager
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
) -> Iterator[RunningServer]:
    """Runs a server until the end of the with-block.

    Without `data` everything is temporary. `limits` is a profile's name or file, or a `Limits` (in process only).
    `store` is a PostgreSQL database that shall keep the items, `postgresql://user@host/database`; they stay there.
    `heads` are further heads, by name, or `"all"`; each has a free port, which is in `ports`. NoSQL is always on.
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
    with starter(given, store, port, ports, key, limits, consistency, throttle) as server:
        yield server


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
) -> Iterator[RunningServer]:
    from pleiad.limits import load

    profile = load(limits) if isinstance(limits, str) else limits
    settings = Settings(
        data=data,
        store=store,
        port=port,
        ports=ports,
        key=key,
        limits=profile,
        consistency=BY_OPTION[consistency],
        throttle=throttle,
    )
    node = Node(settings)
    loop = new_loop()
    thread = threading.Thread(target=loop.run_forever, name="pleiad-server", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(node.start(), loop).result(_START_SECONDS)
        try:
            found = node.server.ports
            yield RunningServer(
                f"http://localhost:{found[NOSQL]}", key, found[NOSQL], os.getpid(), dict(found)
            )
        finally:
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
) -> Iterator[RunningServer]:
    if not isinstance(limits, str):
        raise TypeError("a server in a child process takes its limits by profile name or file")
    command = [sys.executable, "-m", "pleiad", "serve", "--port", str(port), "--limits", limits]
    for head, head_port in ports.items():
        command += [BY_NAME[head].option, str(head_port)]
    command += ["--consistency", consistency, "--throttle", throttle]
    command += ["--ephemeral"] if data is None else ["--data", str(data)]
    # The environment keeps a key and a password out of the list of processes.
    settings = {"PLEIAD_KEY": key, "PLEIAD_STORE": store}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **settings})
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
