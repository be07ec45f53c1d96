"""From HTTP to another protocol: offers in the header blocks of requests, and what becomes of the connection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import httptools

from pleiad.server.connections import Connection, ConnectionTable
from pleiad.server.http.intake import Intake
from pleiad.server.http.message import SwitchedResponse

if TYPE_CHECKING:
    from pleiad.server.http.site import HttpSite

_LINES_OF_OFFERS = (b"upgrade", b"connection", b"http2-settings")


class Switch(Intake, Connection):
    """A connection that may leave HTTP. While an offer waits for its answer, what follows it is held and not parsed."""

    __slots__ = ("_site", "_switching")

    def __init__(self, table: ConnectionTable, secure: bool, site: HttpSite) -> None:
        super().__init__(table, secure, site.lines)
        self._site = site
        self._switching = False

    @abstractmethod
    def _feed(self, data: bytes) -> None:
        """Parse one slice and answer what it completes."""

    def _take_offer(self, rest: bytes) -> None:
        """A client offers to speak another protocol: have the handler decide, or read on as if it had not.

        The parser regards everything after such a header block as foreign, so a new one reads what follows.
        """
        method = self._parser.get_method() if self._parser is not None else b""
        if self._site.switches and _is_websocket(method, self._request_headers) and not self._body:
            self._queue.append(self._request_in_part())
            self._stop_parsing()
            self._switching = True
            self._held = rest
            self._pause()
            self._schedule_turn()
            return
        version = b"HTTP/1.0" if self._is_http_1_0 else b"HTTP/1.1"
        line = b"%b %b %b\r\n%b" % (method, self._target, version, self._keep_line)
        head = line + _without_offer(self._request_headers)
        self._parser = httptools.HttpRequestParser(self)
        self._forget_request()
        self._feed(head + rest)

    def _switch(self, response: SwitchedResponse) -> None:
        """Leave the connection to another protocol."""
        self.send()
        transport = self._transport
        if self._rest or transport is None:
            self.abort()  # the answers before it are not read, and no client offers before it has read them
            return
        self._write(b"HTTP/1.1 101 Switching Protocols\r\n%b\r\n" % response.headers)
        first = self._held
        is_write_paused = self._write_paused
        self._drop_requests()
        self._forget_unsent()
        connection = response.connect(self._table, self._secure)
        self._table.replace(self, connection)
        transport.set_protocol(connection)
        connection.connection_made(transport)
        if is_write_paused:
            connection.pause_writing()
        elif not transport.is_closing():
            transport.resume_reading()
        if first and not transport.is_closing():
            connection.data_received(first)

    def _decline(self) -> None:
        """The offer was answered in HTTP: read on."""
        self._switching = False
        self._parser = httptools.HttpRequestParser(self)


def _is_websocket(method: bytes, headers: Mapping[bytes, bytes]) -> bool:
    """Whether WebSocket is offered, to a request that may be answered so."""
    return method == b"GET" and headers.get(b"upgrade", b"").strip().lower() == b"websocket"


def _without_offer(headers: Mapping[bytes, bytes]) -> bytes:
    """The headers of a request as if it had not offered anything, and what ends them."""
    lines = [b"%b: %b\r\n" % pair for pair in headers.items() if pair[0] not in _LINES_OF_OFFERS]
    return b"".join([*lines, b"\r\n"])
