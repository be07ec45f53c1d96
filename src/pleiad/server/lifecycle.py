"""Start, drain and stop a server; choose the event loop; settle the garbage collector.

A `Server` belongs to the running loop that started it, be it the loop of a process or of a thread. It handles
no signals and touches no global state, so that tests may run several in one process; what is global (the
loop policy, the collector, signals) stands in functions of its own that a process calls if it wants them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import ssl
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pleiad.limits import Limits
from pleiad.server.certificate import Certificate, ensure_certificate
from pleiad.server.connections import ConnectionTable
from pleiad.server.first_bytes import FirstBytes
from pleiad.server.listener import Listener, WireProtocol

try:
    import uvloop
except ImportError:  # there is none for Windows
    uvloop = None  # type: ignore[assignment]

T = TypeVar("T")
_log = logging.getLogger(__name__)

BACKLOG_CONNECTIONS = 4096
ABORT_SECONDS = 5.0
COLLECT_AFTER_ALLOCATIONS = 50_000
_PORTS_TRIED_MAX = 20


class Server:
    """Listeners that share limits, memory, draining and a certificate.

    With a TLS directory each of them speaks TLS on its port too, by the certificate that is there or is made there, or
    by one that is given. Servers that share ports get connections in turn from the system.
    """

    def __init__(
        self,
        limits: Limits,
        listeners: Sequence[Listener],
        tls_directory: Path | None = None,
        extra_hosts: Iterable[str] = (),
        certificate: Certificate | None = None,
        shares_ports: bool = False,
    ) -> None:
        self._limits = limits
        self._shares_ports = shares_ports
        self._listeners = tuple(listeners)
        self._tls_directory = tls_directory
        self._extra_hosts = tuple(extra_hosts)
        self._certificate = certificate
        self._context: ssl.SSLContext | None = None
        self._certificate_state: tuple[int, ...] = ()
        self._certificate_seen: tuple[int, ...] = ()
        self._table: ConnectionTable | None = None
        self._sockets: list[asyncio.Server] = []
        self.ports: dict[str, int] = {}
        """The port in use of each listener, by its name; differs from the one asked for when that was 0."""

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self.ports[self._listeners[0].name]

    def address(self, name: str) -> str:
        """Where clients reach a listener."""
        (listener,) = [each for each in self._listeners if each.name == name]
        return listener.address(self.ports[name])

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return 0 if self._table is None else len(self._table)

    async def start(self) -> None:
        """Listen. Raises OSError when an address is taken, ValueError when the certificate is unusable."""
        if self._table is not None:
            raise RuntimeError("the server has been started already")
        if self._certificate is not None:
            self.load_certificate()
        elif self._tls_directory is not None:
            self._certificate = ensure_certificate(self._tls_directory, self._extra_hosts)
            self._use(self._certificate)
        table = ConnectionTable(self._limits, asyncio.get_running_loop())
        for protocol in {id(each): each for each in self._protocols()}.values():
            protocol.begin(table)
        try:
            for listener in self._listeners:
                await self._listen(listener, table)
        except BaseException:
            self._close_sockets()
            raise
        self._table = table
        table.start_clock()

    def _protocols(self) -> Iterable[WireProtocol]:
        return (protocol for listener in self._listeners for protocol in listener.protocols)

    def load_certificate(self) -> None:
        """Takes the certificate from its files for connections to come; ValueError when it cannot be used."""
        if self._certificate is None:
            return
        self._certificate_state = self._certificate_seen = self._certificate.state()
        self._certificate.proved()
        try:
            self._use(self._certificate)
        except (ssl.SSLError, OSError) as error:
            raise ValueError(f"the TLS certificate cannot be read: {error}") from error

    def _use(self, certificate: Certificate) -> None:
        self._certificate_state = self._certificate_seen = certificate.state()
        self._context = certificate.server_context()

    def has_new_certificate(self) -> bool:
        """Whether the files are others than those looked at last, and have been for two looks: of two files one is
        replaced before the other."""
        if self._certificate is None:
            return False
        before, self._certificate_seen = self._certificate_seen, self._certificate.state()
        return self._certificate_seen != self._certificate_state and self._certificate_seen == before

    async def _listen(self, listener: Listener, table: ConnectionTable) -> None:
        async def listen(port: int) -> asyncio.Server:
            return await table.loop.create_server(
                lambda: FirstBytes(table, listener.protocols, self._context, plain=listener.plain),
                listener.host,
                port,
                backlog=BACKLOG_CONNECTIONS,
                reuse_port=self._shares_ports or None,
            )

        opened = await listen(listener.port)
        ports = [socket.getsockname()[1] for socket in opened.sockets]
        tried = 0
        while len(set(ports)) > 1:
            # A name with several addresses and a free port wanted: all of them shall have the same one, which may be
            # free at the first of them only.
            opened.close()
            tried += 1
            try:
                opened = await listen(ports[0])
            except OSError as error:
                if error.errno != errno.EADDRINUSE or tried == _PORTS_TRIED_MAX:
                    raise
                opened = await listen(0)
            ports = [socket.getsockname()[1] for socket in opened.sockets]
        self._sockets.append(opened)
        self.ports[listener.name] = ports[0]

    def _close_sockets(self) -> list[asyncio.Server]:
        closed, self._sockets = self._sockets, []
        for opened in closed:
            opened.close()
        return closed

    async def drain(self, seconds: float) -> None:
        """Stop: accept nothing more, close idle connections, let running requests finish, cut what is left.

        Returns when every connection is closed, at the latest a moment after that many seconds.
        """
        table = self._table
        closed = self._close_sockets()
        if table is None or not closed:
            return
        table.drain()
        if not await _happens(table.emptied, seconds):
            table.abort()
            await _happens(table.emptied, ABORT_SECONDS)
        table.stop_clock()
        for opened in closed:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(opened.wait_closed(), ABORT_SECONDS)


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


def new_loop() -> asyncio.AbstractEventLoop:
    """A new event loop of the fast kind where there is one."""
    if uvloop is not None:
        return uvloop.new_event_loop()
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_note_failure)
    return loop


def _note_failure(loop: asyncio.AbstractEventLoop, failure: dict[str, Any]) -> None:
    """What a loop does with failures, except that it does not log each connection it has no descriptor for."""
    error = failure.get("exception")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        _log.debug("no descriptor for a connection: %s", error)
    else:
        loop.default_exception_handler(failure)


def install_loop() -> None:
    """Make the fast kind of event loop the default of this process, where there is one."""
    if uvloop is not None:
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a new event loop of the fast kind."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


async def wait_for_stop(loop: asyncio.AbstractEventLoop) -> str:
    """Wait until the process is told to stop; the name of the signal (``SIGTERM`` or ``SIGINT``).

    Signals reach the main thread only: in another thread this waits until it is cancelled. The handlers are
    taken back afterwards, so a second Ctrl-C ends a process whose drain takes too long.
    """
    stopped: asyncio.Future[str] = loop.create_future()

    def stop(name: str) -> None:
        if not stopped.done():
            stopped.set_result(name)

    if threading.current_thread() is not threading.main_thread():
        return await stopped
    names = ("SIGTERM", "SIGINT")
    before = {name: signal.getsignal(getattr(signal, name)) for name in names}
    for name in names:
        number = getattr(signal, name)
        if sys.platform == "win32":  # its loops take no signal handlers
            signal.signal(number, lambda *_, name=name: loop.call_soon_threadsafe(stop, name))
        else:
            loop.add_signal_handler(number, stop, name)
    try:
        return await stopped
    finally:
        for name in names:
            number = getattr(signal, name)
            if sys.platform != "win32":
                loop.remove_signal_handler(number)
            signal.signal(number, before[name])


def on_hangup(callback: Callable[[], None]) -> None:
    """Have a callback called when the process gets SIGHUP, where there is such a signal."""
    if sys.platform != "win32":
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, callback)


def closed_terminal_check() -> Callable[[], bool]:
    """A question for who gets SIGHUP: has the terminal that this process was started on been closed since?

    That is told by the same signal, which otherwise asks a server to read its files anew.
    """
    terminal = next(filter(os.isatty, range(3)), None)
    return lambda: terminal is not None and not os.isatty(terminal)


def settle_garbage_collector() -> None:
    """Leave what start-up made out of every later collection, and collect less often.

    For a process that is a server; it changes the collector of the whole process.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER_ALLOCATIONS, 20, 20)
