"""A connection until its first bytes have told what is spoken on it, and one over the limit until its refusal.

A TLS connection opens with the bytes 0x16 0x03: it gets a `TlsConnection`, inside of which the protocols are asked
again. Otherwise the first protocol of the listener that knows the bytes takes the connection over, and this object
steps out of the way: the protocol speaks to the socket itself, and the choice costs nothing more.

Invariants
- No byte is lost or seen twice by the protocol that takes over.
- At most `FIRST_BYTES_MAX` bytes and one read are kept, for no longer than a request may take to be sent.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from typing import cast

from pleiad.server.connections import Connection, ConnectionTable, address_of
from pleiad.server.descriptors import descriptor_of
from pleiad.server.listener import FIRST_BYTES_MAX, Recognition, WireProtocol
from pleiad.server.tls import TLS_FIRST_BYTE, TLS_SECOND_BYTE, TlsConnection

REFUSAL_SECONDS = 1.0


class FirstBytes(Connection):
    """Speaks for a connection, plain or inside TLS, that has not said yet what it is."""

    def __init__(
        self,
        table: ConnectionTable,
        protocols: Sequence[WireProtocol],
        context: ssl.SSLContext | None,
        secure: bool = False,
        plain: Sequence[WireProtocol] | None = None,
    ) -> None:
        self._table = table
        self._inside_tls = protocols
        self._protocols = protocols if plain is None else plain
        self._context = None if secure else context
        self._secure = secure
        self._transport: asyncio.Transport | None = None
        self._refused = False
        self._first = b""
        self._made_at = table.now

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._secure:
            return  # it has its place since before the handshake
        address = address_of(transport)
        if self._table.draining:
            self._transport.abort()
        elif self._table.has_place(address, descriptor_of(transport)):
            self._table.add(self, address)
        elif self._table.refuses_silently(address):
            self._transport.abort()
        else:
            self._refused = True
            self._table.add_refusal(self, address)

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.remove(self)

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        first = self._first + data
        if not self._refused and len(self._protocols) == 1 and first[0] != TLS_FIRST_BYTE:
            self._hand_over(transport, self._protocols[0].connect(self._table, self._secure), first)
            return
        spoken = self._spoken(first)
        if spoken is None and self._protocols:
            self._first = first
        elif spoken is None:
            transport.abort()  # it is spoken inside TLS only
        elif self._refused:
            if isinstance(spoken, ssl.SSLContext):
                transport.close()  # a word would take a handshake
            else:
                transport.write(spoken.refusal())
                transport.close()
        elif isinstance(spoken, ssl.SSLContext):
            tls = TlsConnection(self._table, transport, spoken, self._above_tls)
            self._table.replace(self, tls)
            transport.set_protocol(tls)
            tls.data_received(first)
        else:
            self._hand_over(transport, spoken.connect(self._table, self._secure), first)

    def _spoken(self, first: bytes) -> WireProtocol | ssl.SSLContext | None:
        """What the first bytes are: a protocol, or TLS by its context; None while it takes more to tell."""
        may_be_tls = self._context is not None and first[0] == TLS_FIRST_BYTE
        if may_be_tls and (len(first) == 1 or first[1] == TLS_SECOND_BYTE):
            return self._context if len(first) > 1 else None
        for protocol in self._protocols:
            known = protocol.recognises(first, self._secure)
            if known is Recognition.YES:
                return protocol
            if known is Recognition.UNSURE and len(first) < FIRST_BYTES_MAX:
                return None
        if may_be_tls:
            return self._context
        return self._protocols[-1] if self._protocols else None

    def _above_tls(self) -> Connection:
        """What speaks inside TLS: the only protocol there is, or this question once more."""
        if len(self._inside_tls) == 1:
            return self._inside_tls[0].connect(self._table, secure=True)
        return FirstBytes(self._table, self._inside_tls, None, secure=True)

    def _hand_over(self, transport: asyncio.Transport, connection: Connection, first: bytes) -> None:
        self._table.replace(self, connection)
        transport.set_protocol(connection)
        connection.connection_made(transport)
        connection.data_received(first)

    def sweep(self, now: float) -> None:
        age_seconds = now - self._made_at
        if self._refused:
            if age_seconds > REFUSAL_SECONDS:
                self.abort()
        elif age_seconds > min(self._table.idle_seconds, self._table.limits.request_read_seconds):
            self.abort()

    def drain(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
