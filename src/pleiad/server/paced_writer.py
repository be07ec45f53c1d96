"""Bytes to a transport, for as long as the client reads.

Invariants
- Nothing is written after the transport began to close, or after the last word was said.
- The transport is given no more than it can send: what is left of a long answer stays here, in pieces that go one by
  one. There is such a rest only while writing is paused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from pleiad.server.connections import ConnectionTable
from pleiad.server.memory import SEND_BYTES


class PacedWriter:
    """The writing half of a connection."""

    __slots__ = (
        "_is_last_said",
        "_linger_at",
        "_lost",
        "_rest",
        "_resumed",
        "_stalled_at",
        "_table",
        "_transport",
        "_unsent",
        "_write_paused",
    )

    def __init__(self, table: ConnectionTable) -> None:
        self._table = table
        self._transport: asyncio.Transport | None = None
        # answers of this turn of the loop, and what is left of earlier ones
        self._unsent = b""
        self._rest: deque[bytes] = deque()
        self._is_last_said = False
        self._linger_at: float | None = None
        self._write_paused = False
        self._stalled_at = table.now
        self._resumed: asyncio.Future[None] | None = None
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

    def _pause_writing(self) -> None:
        """The client does not read as fast as it is answered."""
        self._write_paused = True
        self._stalled_at = self._table.now
        self._table.memory.note_unsent(self, self._table.now)

    def _resume_writing(self) -> bool:
        """The client has read: write the rest; whether there is none any more."""
        self._write_paused = False
        self._send_rest()
        if self._write_paused:
            self._table.memory.note_unsent(self, self._table.now)
            return False
        self._table.memory.forget_unsent(self)
        if self._is_last_said:
            self._end()
        self._wake()
        return True

    async def _client_reads(self) -> None:
        """Wait until everything is written, or nothing more can be."""
        while self._write_paused and not self._lost:
            if self._resumed is None:
                self._resumed = self._table.loop.create_future()
            await asyncio.shield(self._resumed)

    def _wake(self) -> None:
        if self._resumed is not None:
            self._resumed.set_result(None)
            self._resumed = None

    def _forget_unsent(self) -> None:
        """The connection is lost."""
        self._lost = True
        self._table.memory.forget_unsent(self)
        self._rest.clear()
        self._wake()

    def _end(self) -> None:
        """Everything is written: close, or leave a client that was refused the time to read it."""
        transport = self._transport
        if transport is None or self._lost:
            return
        if self._linger_at is None:
            transport.close()
        elif transport.can_write_eof():
            # The client may have gone a moment ago, which the loop is yet to hear of.
            with contextlib.suppress(OSError):
                transport.write_eof()

    def abort(self) -> None:
        if self._transport is not None and not self._lost:
            self._transport.abort()
