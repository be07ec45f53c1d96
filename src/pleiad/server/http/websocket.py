"""WebSocket: the handshake, and its frames as messages of a conversation.

Frames are read and written by wsproto, which keeps no socket and no clock. No extension is agreed on: compressed frames
would let a small message become an immense one.

Invariants
- A message has at most as many bytes as `accept` was told; one that becomes larger is refused while it is read, with
  status 1009, whatever its frames say of their length.
- Pings are answered at once, in the order of what else is said. An idle client is pinged, and closed when it does not
  answer.
- A client's goodbye is answered with ours; ours is said before the server closes.
"""

from __future__ import annotations

import base64
import hashlib
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable

from wsproto.connection import Connection as Frames
from wsproto.connection import ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.frame_protocol import CloseReason

from pleiad import errors
from pleiad.server.connections import ConnectionTable
from pleiad.server.conversation import Conversation, Message, Refusal, Talk
from pleiad.server.http.message import Request, Response, SwitchedResponse

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES = 16
_VERSION = "13"
_OTHER_VERSION = b"Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n"


def is_offered(request: Request) -> bool:
    """Whether a request offers WebSocket."""
    tokens = [token.strip().lower() for token in request.header(b"connection").split(",")]
    return request.header(b"upgrade").lower() == "websocket" and "upgrade" in tokens


def accept(
    request: Request,
    begin: Callable[[Conversation], Talk],
    message_bytes_max: int,
    subprotocols: Iterable[str] = (),
    concurrent_max: int = 1,
) -> Response:
    """The answer to an offer of WebSocket: from then on `begin` says what answers the messages.

    The first of the client's subprotocols that is among these is agreed on. Raises when it is no whole offer; a version
    that is not spoken here is answered with the one that is. Who may come, and from which page (`Origin`), the caller
    has decided before.
    """
    if not is_offered(request) or request.method != "GET" or request.is_http_1_0:
        raise errors.BAD_REQUEST(
            reason="A WebSocket is opened by a GET with 'Connection: Upgrade' and 'Upgrade: websocket'."
        )
    if request.header(b"sec-websocket-version") != _VERSION:
        return Response(426, _OTHER_VERSION)
    key = request.headers.get(b"sec-websocket-key", b"").strip()
    if not _is_key(key):
        raise errors.BAD_REQUEST(reason="'Sec-WebSocket-Key' must be 16 bytes in base64.")
    proof = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
    headers = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %b\r\n" % proof
    wanted = [name.strip() for name in request.header(b"sec-websocket-protocol").split(",")]
    known = set(subprotocols)
    agreed = next((name for name in wanted if name in known), None)
    if agreed is not None:
        headers += b"Sec-WebSocket-Protocol: %b\r\n" % agreed.encode("latin-1")

    def connect(table: ConnectionTable, secure: bool) -> Conversation:
        return Conversation(table, WebSocketCodec(message_bytes_max), begin, secure, concurrent_max)

    return SwitchedResponse(headers, connect)


def _is_key(key: bytes) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except Base64Error:
        return False


class WebSocketCodec:
    """The frames of one connection: text messages are str, binary ones bytes."""

    def __init__(self, message_bytes_max: int) -> None:
        self._frames = Frames(ConnectionType.SERVER)
        self._message_bytes_max = message_bytes_max
        self._part = bytearray()
        self.is_in_part = False
        self.is_over = False

    @property
    def held_bytes(self) -> int:
        return len(self._part)

    def read(self, data: bytes) -> tuple[list[Message], bytes]:
        if self.is_over:
            return [], b""
        self._frames.receive_data(data)
        messages: list[Message] = []
        reply = b""
        for event in self._frames.events():
            if isinstance(event, TextMessage | BytesMessage):
                self._take(event, messages)
            elif isinstance(event, Ping):
                reply += self._say(event.response())
            elif isinstance(event, CloseConnection):
                if self._frames.state is ConnectionState.OPEN:
                    # Not the client's word but the library's: what was read is no WebSocket.
                    raise Refusal(reply + self._close(event.code, event.reason))
                if self._frames.state is ConnectionState.REMOTE_CLOSING:
                    reply += self._frames.send(event.response())
                self.is_over = True
        return messages, reply

    def _take(self, event: TextMessage | BytesMessage, messages: list[Message]) -> None:
        """Add a piece of a message, and the message where it is whole."""
        is_text = isinstance(event, TextMessage)
        self._part += event.data.encode() if isinstance(event, TextMessage) else event.data
        if len(self._part) > self._message_bytes_max:
            raise Refusal(
                self._close(CloseReason.MESSAGE_TOO_BIG, f"at most {self._message_bytes_max} bytes")
            )
        self.is_in_part = not event.message_finished
        if event.message_finished:
            messages.append(self._part.decode() if is_text else bytes(self._part))
            self._part = bytearray()

    def forget(self) -> None:
        self._part = bytearray()

    def write(self, message: Message) -> bytes:
        if isinstance(message, str):
            return self._say(TextMessage(data=message))
        return self._say(BytesMessage(data=message))

    def probe(self) -> bytes:
        return self._say(Ping())

    def goodbye(self) -> bytes:
        return self._close(CloseReason.GOING_AWAY, None)

    def no_room(self) -> bytes:
        return self._close(CloseReason.TRY_AGAIN_LATER, None)

    def failure(self) -> bytes:
        return self._close(CloseReason.INTERNAL_ERROR, None)

    def _close(self, code: int, reason: str | None) -> bytes:
        return self._say(CloseConnection(code=code, reason=reason))

    def _say(self, event: Event) -> bytes:
        """A frame; nothing once a goodbye was said."""
        if self._frames.state is not ConnectionState.OPEN:
            return b""
        return bytes(self._frames.send(event))
