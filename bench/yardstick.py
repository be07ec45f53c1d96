"""The yardstick: Pleiad's own HTTP loop answering a constant, as a process of its own.

It shows what a request costs on this machine before any routing, authentication, storage or charging; point
reads are judged as a share of it. The answer has the shape of a point read: 15 headers and 1 KB of JSON.

``--bare`` answers each packet without parsing it at all. That is faster than any HTTP server in Python, and
shows how many requests the load generator itself can send: its ceiling must lie well above the yardstick.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bench.items import items
from bench.load import LoadError
from bench.process import BUILD, LOOPBACK, start, stop
from pleiad.limits import Limits
from pleiad.server.http.message import Request, Response, render_headers
from pleiad.server.http.site import HttpSite
from pleiad.server.lifecycle import Server, run, settle_garbage_collector, wait_for_stop
from pleiad.server.listener import Listener

_READY_SECONDS = 15.0
BODY = items("yardstick", 1)[0].body
# The loop itself adds Server, Date, Content-Length and Connection: with these, 15 headers.
HEADERS = render_headers(
    (
        ("Content-Type", "application/json"),
        ("Cache-Control", "no-store, no-cache"),
        ("x-ms-request-charge", "1.00"),
        ("x-ms-activity-id", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
        ("x-ms-session-token", "0:-1#12345"),
        ("etag", '"00000000-0000-0000-0000-000000000001"'),
        ("lsn", "12345"),
        ("x-ms-item-lsn", "12345"),
        ("x-ms-alt-content-path", "dbs/bench/colls/read"),
        ("x-ms-content-path", "AbCdEfGhIjK="),
        ("x-ms-documentdb-partitionkeyrangeid", "0"),
    )
)
BARE_ANSWER = (
    b"HTTP/1.1 200 OK\r\nServer: Pleiad\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
    + HEADERS
    + b"Content-Length: %d\r\nConnection: keep-alive\r\n\r\n" % len(BODY)
    + BODY
)
_LISTENING = re.compile(r"listening on (\d+)")


@dataclass(frozen=True, slots=True)
class YardstickServer:
    """A running yardstick: where it listens and which process it is."""

    port: int
    pid: int


@contextlib.contextmanager
def yardstick_server(bare: bool = False) -> Iterator[YardstickServer]:
    """A yardstick process that accepts connections, for the time of a ``with`` block."""
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as directory:
        log_path = Path(directory) / "yardstick.log"
        arguments = [sys.executable, "-m", "bench.yardstick", *(["--bare"] if bare else [])]
        with log_path.open("wb") as log:
            child = start(arguments, log)
        try:
            yield YardstickServer(_wait_for_port(child, log_path), child.pid)
        finally:
            stop(child)


def _wait_for_port(child: subprocess.Popen[bytes], log_path: Path) -> int:
    """The port the child says it listens on, once it has said so."""
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        text = log_path.read_text(errors="replace")
        if found := _LISTENING.search(text):
            return int(found[1])
        if child.poll() is not None or time.monotonic() > deadline:
            raise LoadError(f"the yardstick did not start:\n{text}")
        time.sleep(0.05)


async def _answer(request: Request) -> Response:
    return Response(200, HEADERS, BODY)


class _BareAnswer(asyncio.Protocol):
    """Answers every packet; right for a client that sends one small request at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(BARE_ANSWER)


async def _serve(bare: bool) -> None:
    loop = asyncio.get_running_loop()
    if bare:
        listener = await loop.create_server(_BareAnswer, LOOPBACK, 0)
        port = listener.sockets[0].getsockname()[1]
    else:
        server = Server(
            Limits(), [Listener(name="http", host=LOOPBACK, port=0, protocols=(HttpSite(_answer),))]
        )
        await server.start()
        port = server.port
    settle_garbage_collector()
    print(f"listening on {port}", flush=True)
    await wait_for_stop(loop)


if __name__ == "__main__":
    run(_serve("--bare" in sys.argv[1:]))
