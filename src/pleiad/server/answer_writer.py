"""Answers into bytes, and the bytes to the transport for as long as the client reads.

Invariants
- Nothing is written after the transport began to close.
- The transport is given no more than it can send: what is left of a long answer stays here, in pieces that go one by
  one. There is such a rest only while writing is paused.
"""

from __future__ import annotations

import asyncio
from collections import deque

from pleiad.server.connections import ConnectionTable
from pleiad.server.memory import SEND_BYTES
from pleiad.server.message import Response
from pleiad.server.request_reader import RequestReader


class AnswerWriter(RequestReader):
    """The writing half of a connection, on top of its reading half."""

    __slots__ = (
        "_is_last_said",
        "_linger_at",
        "_lost",
        "_rest",
        "_table",
        "_transport",
        "_unsent",
        "_write_paused",
    )

    def __init__(self, table: ConnectionTable, secure: bool) -> None:
        super().__init__(table.limits, secure, table)
        self._table = table
        self._transport: asyncio.Transport | None = None
        # answers of this turn of the loop, and what is left of earlier ones
        self._unsent = b""
        self._rest: deque[bytes] = deque()
        self._is_last_said = False
        self._linger_at: float | None = None
        self._write_paused = False
        self._lost = False

    @property
    def unsent_bytes(self) -> int:
        """What waits in memory to be sent."""
        buffered_bytes = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return buffered_bytes + sum(map(len, self._rest))

    def send(self) -> None:
        """Write the answers of this turn of the loop."""
        data, self._unsent = self._unsent, b""
        if data:
            self._write(data)
            if self._write_paused and not self._lost:
                self._table.memory.note_unsent(self, self._table.now)

    def _render(self, method: str, response: Response, keep_line: bytes) -> bytes:
        status = response.status
        head = self._table.heads.get(status) or self._table.head(status)
        if status == 204 or status == 304:
            return b"%b%b%b\r\n" % (head, response.headers, keep_line)
        body = response.body
        length = len(body)
        if method == "HEAD":
            body = b""
        return b"%bContent-Length: %d\r\n%b%b\r\n%b" % (head, length, response.headers, keep_line, body)

    def _write(self, data: bytes) -> None:
        transport = self._transport
        if self._lost or self._is_last_said or transport is None or transport.is_closing():
            return
        if len(data) <= SEND_BYTES and not self._rest:
            transport.write(data)
            return
        # A transport keeps the whole of what it was given until the last byte of it is sent.
        self._rest.extend([data[start : start + SEND_BYTES] for start in range(0, len(data), SEND_BYTES)])
        self._send_rest()

    def _send_rest(self) -> None:
        """Write what is left of the answers, for as long as the client reads."""
        transport = self._transport
        while self._rest and not self._write_paused and transport is not None and not transport.is_closing():
            transport.write(self._rest.popleft())

    def _end(self) -> None:
        """Everything is written: close, or leave a client that was refused the time to read it."""
        transport = self._transport
        if transport is None or self._lost:
            return
        if self._linger_at is None:
            transport.close()
        elif transport.can_write_eof():
            transport.write_eof()

    def abort(self) -> None:
        if self._transport is not None and not self._lost:
            self._transport.abort()
