"""Starting, draining, stopping."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pleiad.limits import Limits
from pleiad.server.http.message import Request, Response
from pleiad.server.lifecycle import run, wait_for_stop
from tests.rooms.server.conftest import http_server
from tests.waiting import SECONDS_MAX, Latch, forever, wait_until

Serve = Callable[..., Any]
GET = b"GET / HTTP/1.1\r\n\r\n"


async def echo(request: Request) -> Response:
    return Response(200, b"", request.target)


def test_port_zero_gives_a_free_port_on_every_address_of_the_name() -> None:
    async def main() -> None:
        server = http_server(echo, Limits(), "localhost")
        await server.start()
        assert server.port != 0
        reader, writer = await asyncio.open_connection("localhost", server.port)
        writer.write(GET)
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()
        await server.drain(1)

    run(main())


def test_a_port_that_is_free_at_one_address_of_the_name_only_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listen = asyncio.BaseEventLoop.create_server
    addresses: Any = ["127.0.0.1", "127.0.0.2"]
    held: list[socket.socket] = []

    async def listen_late(loop: Any, factory: Any, host: Any, port: int, **named: Any) -> Any:
        if port and len(held) < 3:
            held.append(socket.create_server((addresses[1], port)))
        return await listen(loop, factory, host, port, **named)

    async def main() -> None:
        server = http_server(echo, Limits(), addresses)
        await server.start()
        for address in addresses:
            socket.create_connection((address, server.port), timeout=SECONDS_MAX).close()
        await server.drain(1)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_server", listen_late)
    try:
        asyncio.run(main())
        assert len(held) == 3
    finally:
        for each in held:
            each.close()


def test_a_taken_port_is_an_os_error() -> None:
    async def main() -> None:
        first = http_server(echo, Limits())
        await first.start()
        with pytest.raises(OSError):
            await http_server(echo, Limits(), port=first.port).start()
        await first.drain(0)

    run(main())


def test_drain_finishes_running_requests_and_closes_idle_connections(serve: Serve) -> None:
    latch = Latch()

    async def answer(request: Request) -> Response:
        if request.raw_path == b"/busy":
            await latch.passed()
        return Response(200, b"", request.target)

    running = serve(answer)
    idle = running.connect().send(GET)
    assert idle.read().status == 200
    busy = running.connect().send(b"GET /busy HTTP/1.1\r\n\r\nGET /last HTTP/1.1\r\n\r\n")
    unspoken = running.connect()
    assert wait_until(lambda: running.server.connections == 3 and running.tasks() > 0)
    draining = asyncio.run_coroutine_threadsafe(running.server.drain(SECONDS_MAX), running.loop)
    assert idle.is_closed_by_server()
    assert unspoken.is_closed_by_server()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", running.server.port), timeout=1)
    latch.open()
    first, last = busy.read(), busy.read()
    assert (first.body, "connection" in first.headers) == (b"/busy", False)
    assert (last.body, last.headers["connection"]) == (b"/last", "close")
    assert busy.is_closed_by_server()
    draining.result(SECONDS_MAX)
    assert running.server.connections == 0


def test_drain_cuts_what_does_not_finish_in_time(serve: Serve) -> None:
    cancelled = threading.Event()

    async def hang(request: Request) -> Response:
        try:
            await forever()
        finally:
            cancelled.set()
        return Response(200)

    running = serve(hang)
    client = running.connect().send(GET)
    assert wait_until(lambda: running.tasks() > 0)
    running.call(running.server.drain(0.1))
    assert client.is_closed_by_server()
    assert cancelled.wait(SECONDS_MAX)
    assert running.tasks() == 0


def test_drain_before_start_and_twice_is_harmless(serve: Serve) -> None:
    running = serve(echo)
    running.call(http_server(echo, Limits()).drain(1))
    assert running.connect().send(GET).read().status == 200, "another server was drained"
    for _ in range(2):
        running.call(running.server.drain(1))
        assert (running.server.connections, running.tasks()) == (0, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_the_process_learns_which_signal_stopped_it(name: str) -> None:
    async def main() -> str:
        loop = asyncio.get_running_loop()
        loop.call_later(0.05, os.kill, os.getpid(), getattr(signal, name))
        return await asyncio.wait_for(wait_for_stop(loop), SECONDS_MAX)

    before = signal.getsignal(getattr(signal, name))
    assert run(main()) == name
    assert signal.getsignal(getattr(signal, name)) == before


def test_settling_the_garbage_collector_freezes_what_exists() -> None:
    script = (
        "import gc; from pleiad.server.lifecycle import settle_garbage_collector as settle; settle(); "
        "assert gc.get_freeze_count() > 1000 and gc.get_threshold()[0] > 10_000"
    )
    frozen = gc.get_freeze_count()
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
    assert gc.get_freeze_count() <= frozen  # what was frozen may have ended meanwhile
