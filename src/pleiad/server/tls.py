"""HTTP and HTTPS on one port: the first byte of a connection decides.

A TLS connection opens with the byte 0x16, which no HTTP request can begin with. `FirstByte` looks at it and
then steps out of the way: a plain connection is handed to the HTTP protocol itself and costs nothing more; a
TLS connection gets a `TlsConnection`, which runs TLS in memory between the socket and the same protocol
(`loop.start_tls` cannot take over a connection whose first bytes were already read).

Invariants
- The protocol above TLS sees the same calls in the same order as above a socket.
- Reading pauses at the socket, so at most one read of ciphertext waits in memory; writing pauses when the
  socket's buffer is full, which the protocol learns from the socket's own signals.
- A handshake that does not finish in time is cut.
- One step of one handshake is done in a turn of the loop: each costs a signature, and a flood of them must not hold up
  the connections there are. Till then the connection is not read, so at most one read waits here too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from typing import Any, cast

from pleiad import errors
from pleiad.server.certificate import ensure_certificate
from pleiad.server.connections import ConnectionTable, address_of
from pleiad.server.descriptors import descriptor_of
from pleiad.server.memory import RETRY_AFTER_MS
from pleiad.server.message import KEEP_LINE_CLOSE, error_response
from pleiad.server.protocol import HttpProtocol

__all__ = ["FirstByte", "TlsConnection", "ensure_certificate"]

TLS_FIRST_BYTE = 0x16
HANDSHAKE_SECONDS_MAX = 10.0
REFUSAL_SECONDS = 1.0
READ_BYTES = 64 * 1024
RECORD_BYTES = 16 * 1024
"""What TLS encrypts as one piece."""

_log = logging.getLogger("pleiad.server")


class FirstByte(asyncio.Protocol):
    """The protocol of a connection until its first byte, and of one over the limit until its refusal."""

    def __init__(self, table: ConnectionTable, context: ssl.SSLContext | None) -> None:
        self._table = table
        self._context = context
        self._transport: asyncio.Transport | None = None
        self._refused = False
        self._made_at = table.now

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
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
        if self._refused:
            self._refuse(encrypted=data[0] == TLS_FIRST_BYTE)
        elif data[0] == TLS_FIRST_BYTE and self._context is not None:
            tls = TlsConnection(self._table, transport, self._context)
            self._table.replace(self, tls)
            transport.set_protocol(tls)
            tls.data_received(data)
        else:
            http = HttpProtocol(self._table, secure=False)
            self._table.replace(self, http)
            transport.set_protocol(http)
            http.connection_made(transport)
            http.data_received(data)

    def _refuse(self, encrypted: bool) -> None:
        """Say 503 to whom it can be said without a handshake, and close."""
        transport = cast(asyncio.Transport, self._transport)
        if not encrypted:
            response = error_response(
                errors.UNAVAILABLE(
                    reason="The server has reached its limit of connections.", retry_after_ms=RETRY_AFTER_MS
                )
            )
            head = self._table.head(response.status)
            length = b"Content-Length: %d\r\n" % len(response.body)
            transport.write(head + length + response.headers + KEEP_LINE_CLOSE + b"\r\n" + response.body)
        transport.close()

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


class TlsConnection(asyncio.Protocol):
    """TLS in memory: the protocol of a socket's transport below, the transport of an HTTP protocol above."""

    def __init__(self, table: ConnectionTable, socket: asyncio.Transport, context: ssl.SSLContext) -> None:
        self._table = table
        self._socket = socket
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._http: HttpProtocol | None = None
        self._unsent: list[bytes] = []
        self._reading = False
        self._read_due = False
        self._shake_due = False
        self._paused = False
        self._closing = False
        self._made_at = table.now

    # -- below: the socket's callbacks -----------------------------------------------------------

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._table.remove(self)
        if self._http is not None:
            self._http.connection_lost(exc)

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self._incoming.write(data)
        if self._http is not None:
            self._deliver()
        elif not self._shake_due:
            self._shake_due = True
            self._socket.pause_reading()
            self._table.shake_later(self)

    def shake(self) -> None:
        """Do the next step of the handshake, and go on when it was the last."""
        self._shake_due = False
        if self._closing or self._socket.is_closing():
            return
        self._socket.resume_reading()
        if self._shake_hands():
            self._deliver()

    def _deliver(self) -> None:
        if self._unsent:
            unsent, self._unsent = self._unsent, []
            self.write(b"".join(unsent))
        self._read()

    def pause_writing(self) -> None:
        if self._http is not None:
            self._http.pause_writing()

    def resume_writing(self) -> None:
        if self._http is not None:
            self._http.resume_writing()

    def _shake_hands(self) -> bool:
        """One step of the handshake; true once it is done and the protocol above is connected."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except ssl.SSLError as error:
            _log.debug("a TLS handshake failed: %s", error)
            self._flush()
            self._closing = True
            self._socket.close()
            return False
        self._flush()
        http = HttpProtocol(self._table, secure=True)
        self._http = http
        self._table.replace(self, http)
        http.connection_made(_TlsTransport(self))
        return True

    def _read(self) -> None:
        """Decrypt and deliver until there is nothing more or the protocol above pauses."""
        http = self._http
        if http is None or self._reading:
            return
        self._reading = True
        try:
            while not self._paused and not self._closing:
                data = self._tls.read(READ_BYTES)
                if not data:
                    self.close()
                    return
                http.data_received(data)
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLZeroReturnError:
            self.close()
        except ssl.SSLError as error:
            _log.debug("a TLS connection broke: %s", error)
            self._flush()
            self._closing = True
            self._socket.close()
        finally:
            self._reading = False

    def _read_later(self) -> None:
        self._read_due = False
        if not self._closing:
            self._read()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._socket.is_closing():
            self._socket.write(self._outgoing.read())

    # -- above: what the protocol's transport does -------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._closing or not data:
            return
        if self._unsent:
            self._unsent.append(data)
            return
        view = memoryview(data)
        encrypted: list[bytes] = []
        try:
            while view:
                view = view[self._tls.write(view[:RECORD_BYTES]) :]
                # Taken out at once: the library's buffer never becomes smaller again.
                encrypted.append(self._outgoing.read())
        except ssl.SSLWantReadError:
            self._unsent.append(bytes(view))
        except ssl.SSLError as error:
            _log.debug("a TLS connection broke: %s", error)
            self._closing = True
            self._socket.abort()
            return
        if encrypted and not self._socket.is_closing():
            self._socket.write(encrypted[0] if len(encrypted) == 1 else b"".join(encrypted))
        self._flush()

    def close(self) -> None:
        """Say goodbye, send what is buffered, close; the client's own goodbye is not waited for."""
        if self._closing:
            return
        self._closing = True
        # It complains that the client's goodbye is missing; ours is in the buffer by then.
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        self._flush()
        self._socket.close()

    def pause_reading(self) -> None:
        self._paused = True
        if not self._socket.is_closing():
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._paused = False
        if not self._socket.is_closing():
            self._socket.resume_reading()
        if not self._read_due:
            self._read_due = True
            self._table.loop.call_soon(self._read_later)

    @property
    def is_closing(self) -> bool:
        return self._closing or self._socket.is_closing()

    def extra_info(self, name: str, default: Any = None) -> Any:
        if name == "unread_bytes":
            return self._incoming.pending
        return self._tls if name == "ssl_object" else self._socket.get_extra_info(name, default)

    @property
    def unsent_bytes(self) -> int:
        return self._socket.get_write_buffer_size() + sum(map(len, self._unsent))

    # -- the connection table's view, until the handshake is done ---------------------------------

    def sweep(self, now: float) -> None:
        if now - self._made_at > min(HANDSHAKE_SECONDS_MAX, self._table.limits.request_read_seconds):
            self.abort()

    def drain(self) -> None:
        self.abort()

    def abort(self) -> None:
        self._closing = True
        self._socket.abort()


class _TlsTransport(asyncio.Transport):
    """The transport an HTTP protocol writes to when its connection is encrypted."""

    def __init__(self, connection: TlsConnection) -> None:
        super().__init__()
        self._connection = connection

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._connection.extra_info(name, default)

    def is_closing(self) -> bool:
        return self._connection.is_closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._connection.write(bytes(data))

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self._connection.unsent_bytes

    def pause_reading(self) -> None:
        self._connection.pause_reading()

    def resume_reading(self) -> None:
        self._connection.resume_reading()

    def close(self) -> None:
        self._connection.close()

    def abort(self) -> None:
        self._connection.abort()
