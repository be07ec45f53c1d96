"""Connections: running out of descriptors, slow senders, one address that takes them all; and getting well again.

The server gets a small limit of descriptors, as many systems give. Floods come from one loopback address, honest
clients from another; the store must keep the files it needs, and when the flood is over everything works as before.
"""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

from attack.ground import key_header, make_container, put
from attack.report import Outcome
from attack.settings import Settings
from attack.target import MASTER, Launch, Target, is_well, serving
from attack.wire import LOOPBACK, Connection, NoAnswerError, path_of, request_bytes

HONEST = "127.0.0.2"
"""Another address of this machine, which no flood comes from."""
OPEN_FILES = 1024
CONTAINERS = 30
READ_SECONDS = 3.0
GRACE_SECONDS = 4.0
BRIEF_PATIENCE_SECONDS = 10.0
"""How long an honest client of a short run tries again; a long run wants the first answer to be a good one."""


def run(settings: Settings, store: str, data: Path) -> Outcome:
    """Each flood on one server: held, looked at from the honest address, let go, and looked at again."""
    outcome = Outcome(name="connections", store=store.partition(":")[0])
    read_seconds = 1.0 if settings.brief else READ_SECONDS
    limits = {"request_read_seconds": read_seconds, "idle_seconds": 20.0}
    launch = Launch(data=data / "connections", store=store, limits=limits, open_files=OPEN_FILES)
    with serving(launch) as target:
        connection = target.connect()
        for number in range(CONTAINERS):
            container = make_container(connection, f"c{number}")
            put(connection, container, {"id": "1", "pk": "a"})
        connection.close()
        _restart_would_open_files(outcome, target)
        names = ("silent connections", "headers without end") if settings.brief else _FLOODS
        for name in names:
            patience_seconds = BRIEF_PATIENCE_SECONDS if settings.brief else 0.0
            _flood(outcome, target, name, settings.flood_connections, read_seconds, patience_seconds)
        outcome.took_tracebacks(target.tracebacks(), target.said())
    return outcome


_FLOODS: dict[str, bytes] = {
    "silent connections": b"",
    "half a request line": b"GET /dbs HT",
    "headers without end": b"GET /dbs HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n",
    "half a TLS greeting": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"r" * 20,
    "a body that does not come": b"POST /dbs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
}


def _flood(
    outcome: Outcome, target: Target, name: str, count: int, read_seconds: float, patience_seconds: float
) -> None:
    greeting = _FLOODS[name]
    held: list[socket.socket] = []
    refused = 0
    for _ in range(count):
        try:
            one = socket.create_connection((LOOPBACK, target.port), timeout=1.0)
            one.setblocking(False)
            if greeting:
                one.send(greeting)
            held.append(one)
        except OSError:
            refused += 1
            if refused > 20:
                break
    outcome.requests += len(held) + refused
    time.sleep(0.3)
    _honest(outcome, target, f"while {len(held)} connections are held ({name})", patience_seconds)
    _is_said(outcome, held, name)
    if greeting and not greeting.startswith(b"\x16"):
        _times_out(outcome, held, name, read_seconds * 3 + GRACE_SECONDS)
    for one in held:
        with contextlib.suppress(OSError):
            one.close()
    if not is_well(target):
        outcome.breaks(f"after '{name}' the server serves nobody any more")
    _honest(outcome, target, f"after '{name}'", patience_seconds)


def _honest(outcome: Outcome, target: Target, when: str, patience_seconds: float) -> None:
    """A client at another address reads and writes in many containers, some of which have to be opened."""
    deadline = time.monotonic() + patience_seconds
    for number in range(0, CONTAINERS, 3):
        segments = ["dbs", "ground", "colls", f"c{number}", "docs"]
        read = request_bytes(
            "GET", path_of([*segments, "1"]), {**MASTER.headers("GET", [*segments, "1"]), **key_header("a")}
        )
        fields = {**MASTER.headers("POST", segments), **key_header("a"), "x-ms-documentdb-is-upsert": "True"}
        write = request_bytes("POST", path_of(segments), fields, b'{"id":"2","pk":"a"}')
        for what, data in (("read", read), ("write", write)):
            while (status := _from_elsewhere(target, data)) in (0, 503) and time.monotonic() < deadline:
                time.sleep(0.2)
            outcome.answered(status, f"a {what} {when}")
            if status not in (200, 201):
                outcome.breaks(f"a {what} from another address {when} -> {status or 'no answer'}")
                return


def _from_elsewhere(target: Target, data: bytes) -> int:
    connection = Connection(target.port, seconds=5.0)
    try:
        plain = socket.create_connection((LOOPBACK, target.port), timeout=5.0, source_address=(HONEST, 0))
        connection.adopt(plain)
        plain.sendall(data)
        return connection.read().status
    except (OSError, NoAnswerError):
        return 0
    finally:
        connection.close()


def _is_said(outcome: Outcome, held: list[socket.socket], name: str) -> None:
    """Connections beyond the cap are answered with 503 or closed; none of the answers is a 500."""
    for one in held[-50:]:
        with contextlib.suppress(OSError):
            data = one.recv(4096)
            if data.startswith(b"HTTP/1.1 500"):
                outcome.errors_500 += 1
                outcome.breaks(f"500 in the flood '{name}'")


def _times_out(outcome: Outcome, held: list[socket.socket], name: str, seconds: float) -> None:
    """A request that is not sent in time is given up, so that its place is free again."""
    if not held:
        return
    deadline = time.monotonic() + seconds
    first = held[0]
    first.settimeout(0.5)
    while time.monotonic() < deadline:
        try:
            if not first.recv(4096):
                return
        except TimeoutError:
            continue
        except OSError:
            return
    outcome.breaks(f"'{name}': a request that never ends was kept for more than {seconds:.0f} s")


def _restart_would_open_files(outcome: Outcome, target: Target) -> None:
    """The descriptors the server may have: as many as the system allows it, not the fewer it was started with."""
    limits = Path(f"/proc/{target.pid}/limits").read_text()
    line = next(line for line in limits.splitlines() if line.startswith("Max open files"))
    soft, hard = line.split()[3:5]
    if soft != hard:
        outcome.breaks(f"the server left its limit of descriptors at {soft} of {hard}")
