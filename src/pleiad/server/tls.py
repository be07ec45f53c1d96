"""TLS in memory, between the socket and the protocol that is spoken inside.

Plain and encrypted clients share each port: `FirstBytes` tells them apart and hands a TLS connection over to this. It
is not `loop.start_tls`, which cannot take over a connection whose first bytes were already read.

Invariants
- The protocol above TLS sees the same calls in the same order as above a socket.
- Reading pauses at the socket until all that was read is decrypted, so at most one read of ciphertext waits in memory;
  the library is given it in small pieces, since its buffers never become smaller again.
- Writing pauses when the socket's buffer is full, which the protocol learns from the socket's own signals.
- A handshake that does not finish in time is cut.
- After our goodbye nothing is decrypted any more; the socket is read on only where the client shall hear it.
- One step of one handshake is done in a turn of the loop: each costs a signature, and a flood of them must not hold up
  the connections there are. Till then the connection is not read, so at most one read waits here too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable
from typing import Any, cast

from pleiad.server.connections import Connection, ConnectionTable

TLS_FIRST_BYTE = 0x16
"""A handshake record; no HTTP request can begin with it."""
TLS_SECOND_BYTE = 0x03
"""The major version of every TLS there is."""
HANDSHAKE_SECONDS_MAX = 10.0
RECORD_BYTES = 16 * 1024
"""What TLS encrypts as one piece, and so the most that is there to be read at once."""
FED_BYTES = 2 * RECORD_BYTES
"""What the library is given of ciphertext at once."""

_NOTHING = memoryview(b"")

_log = logging.getLogger("pleiad.server")


class TlsConnection(Connection):
    """The protocol of a socket's transport below, the transport of another protocol above."""

    def __init__(
        self,
        table: ConnectionTable,
        socket: asyncio.Transport,
        context: ssl.SSLContext,
        above: Callable[[], Connection],
    ) -> None:
        self._table = table
        self._socket = socket
        self._incoming = ssl.MemoryBIO()
        # what was read and not yet given to the library
        self._unread = _NOTHING
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._make_above = above
        self._above: asyncio.Protocol | None = None
        self._unsent: list[bytes] = []
        self._reading = False
        self._read_due = False
        self._shake_due = False
        self._paused = False
        self._is_socket_paused = False
        self._closing = False
        self._is_deaf = False
        self._made_at = table.now

    # -- below: the socket's callbacks -----------------------------------------------------------

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._table.remove(self)
        if self._above is not None:
            self._above.connection_lost(exc)

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        if self._closing or self._is_deaf:
            return
        if self._unread or len(data) > FED_BYTES:
            self._unread = memoryview(bytes(self._unread) + data)
        else:
            self._incoming.write(data)
        if self._above is not None:
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
        if self._above is not None:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        if self._above is not None:
            self._above.resume_writing()

    def _feed(self) -> bool:
        """Give the library, which has used up what it had, some more of what was read; false when there is none."""
        if not self._unread:
            return False
        self._incoming.write(self._unread[:FED_BYTES])
        self._unread = self._unread[FED_BYTES:] or _NOTHING
        return True

    def _shake_hands(self) -> bool:
        """One step of the handshake; true once it is done and the protocol above is connected."""
        try:
            while True:
                try:
                    self._tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    self._flush()
                    if not self._feed():
                        return False
        except ssl.SSLError as error:
            _log.debug("a TLS handshake failed: %s", error)
            self._flush()
            self._closing = True
            self._socket.close()
            return False
        self._flush()
        above = self._make_above()
        self._above = above
        self._table.replace(self, above)
        above.connection_made(_TlsTransport(self))
        return True

    def _read(self) -> None:
        """Decrypt and deliver until there is nothing more or the protocol above pauses."""
        if self._above is None or self._reading:
            return
        self._reading = True
        try:
            while not self._paused and not self._closing and not self._is_deaf:
                if not self._incoming.pending and not self._unread and not self._tls.pending():
                    self._flush()
                    break  # the library would say so too, by an exception
                try:
                    data = self._tls.read(RECORD_BYTES)
                except ssl.SSLWantReadError:
                    if self._feed():
                        continue
                    self._flush()
                    break
                if not data:
                    self.close()
                    return
                # Asked for each time: the first bytes may hand the connection over to another protocol.
                self._above.data_received(data)
        except ssl.SSLZeroReturnError:
            self.close()
        except ssl.SSLError as error:
            _log.debug("a TLS connection broke: %s", error)
            self._flush()
            self._closing = True
            self._socket.close()
        finally:
            self._reading = False
        if not self._paused:
            self._resume_socket()

    def _resume_socket(self) -> None:
        if self._is_socket_paused and not self._socket.is_closing():
            self._is_socket_paused = False
            self._socket.resume_reading()

    def _read_later(self) -> None:
        self._read_due = False
        if not self._closing:
            self._read()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._socket.is_closing():
            self._socket.write(self._outgoing.read())

    # -- above: what the protocol's transport does -------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._closing or self._is_deaf or not data:
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

    def speak_to(self, protocol: asyncio.BaseProtocol) -> None:
        """Another protocol is spoken inside from now on."""
        self._above = cast(asyncio.Protocol, protocol)

    @property
    def spoken_to(self) -> asyncio.BaseProtocol:
        return self if self._above is None else self._above

    def close(self) -> None:
        """Say goodbye, send what is buffered, close; the client's own goodbye is not waited for."""
        if self._closing:
            return
        self._say_goodbye()
        self._closing = True
        self._socket.close()

    def write_eof(self) -> None:
        """Say goodbye and leave the client the time to hear it: what it still sends is thrown away."""
        if self._closing:
            return
        self._say_goodbye()
        if self._socket.can_write_eof() and not self._socket.is_closing():
            self._socket.write_eof()

    def _say_goodbye(self) -> None:
        if not self._is_deaf:
            self._is_deaf = True
            self._unread = _NOTHING
            # It complains that the client's goodbye is missing; ours is in the buffer by then.
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()

    def pause_reading(self) -> None:
        self._paused = True
        if not self._is_socket_paused and not self._socket.is_closing():
            self._is_socket_paused = True
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._paused = False
        if not self._read_due:
            self._read_due = True
            self._table.loop.call_soon(self._read_later)

    @property
    def is_closing(self) -> bool:
        return self._closing or self._socket.is_closing()

    def extra_info(self, name: str, default: Any = None) -> Any:
        if name == "unread_bytes":
            return self._incoming.pending + len(self._unread)
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
    """The transport a protocol writes to when its connection is encrypted."""

    def __init__(self, connection: TlsConnection) -> None:
        super().__init__()
        self._connection = connection

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._connection.extra_info(name, default)

    def is_closing(self) -> bool:
        return self._connection.is_closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._connection.speak_to(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._connection.spoken_to

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._connection.write(bytes(data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._connection.write_eof()

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
