"""The frames of one connection in direct mode: cut out of its bytes, the first one answered, the others handed on.

How long a frame is turns out in steps: its length stands first, whether a payload follows is among its tokens, and the
payload's length stands before the payload.

Invariants
- The first frame is a context request, and is answered here; without it nothing else is read.
- A frame has at most `Limits.header_bytes`, as the headers of HTTP have; a payload at most `Limits.request_bytes`. One
  that is larger, up to `Limits.direct_discarded_bytes`, is read away, for its client waits for the answer that says so.
- A request whose payload is still to come is shown to the gate; who may not send it is answered so after the payload is
  read away too.
- Beyond these, and where bytes are no frame, the connection ends: what follows could not be read either.
- No more is kept than has come: no length makes room for anything.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum

import orjson

from pleiad import errors
from pleiad.heads.nosql.direct.failure import failure_frame
from pleiad.heads.nosql.direct.headers import REQUEST_TABLE
from pleiad.limits import Limits
from pleiad.server.conversation import PlainCodec, Refusal
from pleiad.wire.rntbd import BadFrame
from pleiad.wire.rntbd.activity_id import ACTIVITY_ID_BYTES
from pleiad.wire.rntbd.context import ContextFrame, read_context_request, write_context_response
from pleiad.wire.rntbd.frame import HEAD_BYTES, LENGTH_BYTES, Frame, request_of
from pleiad.wire.rntbd.request_tokens import RequestToken

SERVER_AGENT = b"Pleiad"
SERVER_VERSION = b"2.14.0.0"
"""As the header x-ms-serviceversion has it."""
FRAME_BYTES = 300
"""What a frame takes in memory beside its bytes."""
TOKEN_BYTES = 100
"""What each of its tokens takes."""

_LENGTH_AT = struct.Struct("<I").unpack_from
_REFUSED_STATUS = 400
_ACTIVITY_ID_AT = HEAD_BYTES - ACTIVITY_ID_BYTES


class Asked:
    """A request that has come; its length is what it takes in memory."""

    __slots__ = ("_bytes", "frame", "refusal")

    def __init__(self, frame: Frame, size_bytes: int, refusal: bytes = b"") -> None:
        self.frame = frame
        self.refusal = refusal
        """The answer where there is no other; the frame is then without its payload."""
        self._bytes = size_bytes

    def __len__(self) -> int:
        return self._bytes


class _Part(Enum):
    """What comes next."""

    LENGTH = "length"
    FRAME = "frame"
    PAYLOAD_LENGTH = "payload length"
    PAYLOAD = "payload"
    DISCARDED = "discarded"


class DirectCodec(PlainCodec):
    """The frames of one connection."""

    def __init__(self, limits: Limits) -> None:
        self._frame_bytes_max = limits.header_bytes
        self._payload_bytes_max = limits.request_bytes
        self._discarded_bytes_max = max(limits.request_bytes, limits.direct_discarded_bytes)
        self.context: ContextFrame | None = None
        """What the client said it is, once it has."""
        self._held = bytearray()
        self._next = _Part.LENGTH
        self._wanted_bytes = LENGTH_BYTES
        """What there has to be before the next part is read."""
        self._frame: Frame | None = None
        """The request whose payload is awaited."""
        self._frame_bytes = 0
        self.admit: Callable[[Frame], bytes | None] = lambda frame: None
        """The gate."""
        self._is_admitted = False
        self._refusal = b""
        self._discarded_bytes_left = 0

    @property
    def held_bytes(self) -> int:
        return len(self._held) + self._frame_bytes

    @property
    def is_in_part(self) -> bool:
        return bool(self._held) or self._frame is not None or self.context is None

    # -- reading -----------------------------------------------------------------------------------

    def read(self, data: bytes) -> tuple[list[Asked], bytes]:
        asked: list[Asked] = []
        if self._next is _Part.LENGTH and not self._held and self.context is not None:
            size = len(data)
            if HEAD_BYTES <= size <= self._frame_bytes_max and _LENGTH_AT(data)[0] == size:
                self._take_frame(data, asked)  # what nearly every read of the socket gives
                return asked, b""
        if self._held:
            self._held += data
            if len(self._held) < self._wanted_bytes:
                return [], b""
            data, self._held = bytes(self._held), bytearray()
        reply = b""
        at = 0
        size = len(data)
        while size - at >= self._wanted_bytes:
            end = at + self._wanted_bytes
            part = self._next
            if part is _Part.LENGTH:
                length = _LENGTH_AT(data, at)[0]
                if not HEAD_BYTES <= length <= self._frame_bytes_max:
                    raise Refusal
                end = at + length
                if end > size or self.context is None:
                    self._await(_Part.FRAME, length)  # a frame has its length in it
                    continue
                self._take_frame(data[at:end], asked)
            elif part is _Part.FRAME:
                if self.context is None:
                    reply = self._begin(data[at:end])
                else:
                    self._take_frame(data[at:end], asked)
            elif part is _Part.PAYLOAD_LENGTH:
                self._take_payload_length(int.from_bytes(data[at:end], "little"))
            elif part is _Part.PAYLOAD:
                self._take_payload(data[at:end], asked)
            else:
                end = min(size, at + self._discarded_bytes_left)
                self._discard(end - at, asked)
            at = end
        if at < size:
            self._held += data[at:]
        if self._next is _Part.PAYLOAD and not self._is_admitted:
            self._ask_gate()
        return asked, reply

    def _await(self, part: _Part, wanted_bytes: int = LENGTH_BYTES) -> None:
        self._next = part
        self._wanted_bytes = wanted_bytes

    def _begin(self, data: bytes) -> bytes:
        """Take the context request; the answer to it."""
        activity_id = data[_ACTIVITY_ID_AT:HEAD_BYTES]
        try:
            context = read_context_request(data)
        except BadFrame as error:
            words = orjson.dumps({"code": "BadRequest", "message": str(error)})
            raise Refusal(_opening(_REFUSED_STATUS, activity_id, b"", words)) from None
        self.context = context
        self._await(_Part.LENGTH)
        return _opening(200, activity_id, context.client_version)

    def _take_frame(self, data: bytes, asked: list[Asked]) -> None:
        try:
            frame = request_of(data, REQUEST_TABLE)
        except BadFrame:
            raise Refusal from None
        size_bytes = len(data) + FRAME_BYTES + TOKEN_BYTES * (len(frame.tokens) + len(frame.texts))
        if frame.tokens[RequestToken.PAYLOAD_PRESENT]:
            self._frame, self._frame_bytes = frame, size_bytes
            self._await(_Part.PAYLOAD_LENGTH)
        else:
            asked.append(Asked(frame, size_bytes))
            self._next, self._wanted_bytes = _Part.LENGTH, LENGTH_BYTES

    def _take_payload_length(self, length: int) -> None:
        if length > self._discarded_bytes_max:
            raise Refusal
        if length > self._payload_bytes_max:
            assert self._frame is not None
            error = errors.ITEM_TOO_LARGE(size=length, limit=self._payload_bytes_max)
            self._await_discarded(length, failure_frame(self._frame, error))
        else:
            self._await(_Part.PAYLOAD, length)

    def _ask_gate(self) -> None:
        """Ask about a request of which the payload is still to come."""
        assert self._frame is not None
        self._is_admitted = True
        refusal = self.admit(self._frame)
        if refusal is not None:
            self._await_discarded(self._wanted_bytes - len(self._held), refusal)
            self._held = bytearray()

    def _await_discarded(self, size_bytes: int, refusal: bytes) -> None:
        self._discarded_bytes_left = size_bytes
        self._refusal = refusal
        self._await(_Part.DISCARDED, 1)

    def _take_payload(self, payload: bytes, asked: list[Asked]) -> None:
        assert self._frame is not None
        self._end(Asked(self._frame._replace(payload=payload), self._frame_bytes + len(payload)), asked)

    def _discard(self, size_bytes: int, asked: list[Asked]) -> None:
        assert self._frame is not None
        self._discarded_bytes_left -= size_bytes
        if not self._discarded_bytes_left:
            self._end(Asked(self._frame, self._frame_bytes, self._refusal), asked)

    def _end(self, request: Asked, asked: list[Asked]) -> None:
        asked.append(request)
        self._frame = None
        self._frame_bytes = 0
        self._is_admitted = False
        self._refusal = b""
        self._await(_Part.LENGTH)

    def forget(self) -> None:
        self._held = bytearray()
        self._frame = None
        self._frame_bytes = 0


def _opening(status: int, activity_id: bytes, client_version: bytes, words: bytes = b"") -> bytes:
    return write_context_response(status, activity_id, client_version, SERVER_AGENT, SERVER_VERSION, words)
