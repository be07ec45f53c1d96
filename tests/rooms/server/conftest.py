"""A real server on a real loop in a thread, and raw sockets to speak to it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import select
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pleiad.limits import Limits
from pleiad.server.http.message import Gate, Handler
from pleiad.server.http.site import HttpSite
from pleiad.server.lifecycle import Server, new_loop
from pleiad.server.listener import Listener, WireProtocol
from tests.coroutines import LoopThread
from tests.waiting import SECONDS_MAX, wait_until

T = TypeVar("T")

LIMITS = Limits()


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """A raw connection that reads one response at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.buffer = b""

    def send(self, data: bytes) -> Client:
        self.socket.sendall(data)
        return self

    def _more(self) -> bytes:
        data = self.socket.recv(65536)
        self.buffer += data
        return data

    def read_head(self) -> tuple[int, dict[str, str]]:
        while b"\r\n\r\n" not in self.buffer:
            if not self._more():
                raise EOFError(f"the connection ended after {self.buffer!r}")
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return int(status_line.split(" ")[1]), headers

    def read(self, with_body: bool = True) -> Answer:
        status, headers = self.read_head()
        length = int(headers.get("content-length", "0")) if with_body else 0
        while len(self.buffer) < length:
            if not self._more():
                raise EOFError("the connection ended inside a body")
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return Answer(status, headers, body)

    def has_news(self) -> bool:
        """Whether the server sent something or closed the connection; waits for neither."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def is_closed_by_server(self) -> bool:
        """Wait for the end of the stream; false if something else comes first or nothing comes."""
        try:
            return not self.buffer and self.socket.recv(65536) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


class Running:
    """A server that runs in a thread of its own."""

    def __init__(self, thread: LoopThread, limits: Limits, tls: Path | None) -> None:
        self.thread = thread
        self.loop = thread.loop
        self.limits = limits
        self.tls = tls
        self.server: Server
        self.clients: list[socket.socket] = []

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.thread.ask(coroutine)

    def pass_time(self, seconds: float) -> None:
        """Lets time pass for the connections of the server, at once; what is to happen before it has to be seen."""

        async def turn_the_clock() -> None:
            assert self.server._table is not None
            self.server._table.pass_time(seconds)

        self.call(turn_the_clock())

    def pass_time_until(self, holds: Callable[[], object], seconds: float) -> None:
        """Lets so much time pass again and again, until something holds: for what is not seen before it happens."""

        def holds_later() -> object:
            self.pass_time(seconds)
            return holds()

        assert wait_until(holds_later)

    def held_bytes(self) -> tuple[int, int, int]:
        """What connections hold: of heads, of bodies, and of answers that are not sent yet."""
        assert self.server._table is not None
        memory = self.server._table.memory
        return memory.heads_bytes, memory.bodies_bytes, memory.unsent_bytes

    def tasks(self) -> int:
        """How many tasks are alive on the server's loop, this question's own not counted."""

        async def count() -> int:
            return len(asyncio.all_tasks()) - 1

        return self.call(count())

    def connect(self, seconds: float = SECONDS_MAX, listener: int = 0) -> Client:
        port = self.server.ports[str(listener)]
        connection = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.clients.append(connection)
        return Client(connection)

    def connect_tls(self, seconds: float = SECONDS_MAX) -> Client:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", self.server.port), timeout=seconds)
        self.clients.append(plain)
        secure = context.wrap_socket(plain, server_hostname="localhost")
        self.clients.append(secure)
        return Client(secure)


Serve = Callable[..., Running]


def http_server(handler: Handler, limits: Limits, host: str = "127.0.0.1", port: int = 0) -> Server:
    """A server with one listener that speaks HTTP."""
    return Server(limits, [Listener(name="http", host=host, port=port, protocols=(HttpSite(handler),))])


@pytest.fixture(scope="session")
def tls_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture
def serve(serve_listeners: Serve) -> Serve:
    """Start servers of HTTP: `serve(handler, tls=True, idle_seconds=1.0)` with any limit changed by name."""

    def start(handler: Handler, tls: bool = False, gate: Gate | None = None, **limits: Any) -> Running:
        return serve_listeners([HttpSite(handler, gate)], tls=tls, **limits)

    return start


@pytest.fixture(params=["fast loop", "standard loop"])
def serve_listeners(request: pytest.FixtureRequest, tls_directory: Path) -> Iterator[Serve]:
    """Start servers: for each list of protocols a listener on a free port, called by its number."""
    started: list[Running] = []
    make_loop = new_loop if request.param == "fast loop" else asyncio.new_event_loop

    def start(
        *listeners: Sequence[WireProtocol],
        tls: bool = False,
        plain: tuple[WireProtocol, ...] | None = None,
        **limits: Any,
    ) -> Running:
        changed = dataclasses.replace(LIMITS, **limits)
        running = Running(LoopThread(make_loop), changed, tls_directory if tls else None)
        started.append(running)

        async def begin() -> None:
            running.server = Server(
                changed,
                [
                    Listener(
                        name=str(number), host="127.0.0.1", port=0, protocols=tuple(protocols), plain=plain
                    )
                    for number, protocols in enumerate(listeners)
                ],
                running.tls,
            )
            await running.server.start()

        running.call(begin())
        return running

    yield start
    for running in started:
        for client in running.clients:
            with contextlib.suppress(OSError):
                client.close()
        running.call(running.server.drain(0.2))
        running.thread.close()
