"""The frames of requests and of answers.

A frame is its length, a head of twenty bytes, and tokens; behind it, and not in its length, come the length of the
payload and the payload, if the token PayloadPresent says that there is one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pleiad.wire.rntbd import BadFrame, UnwritableToken
from pleiad.wire.rntbd.activity_id import ACTIVITY_ID_BYTES
from pleiad.wire.rntbd.request_tokens import REQUEST_TOKENS, RequestToken
from pleiad.wire.rntbd.response_tokens import RESPONSE_TOKENS, ResponseToken
from pleiad.wire.rntbd.token import TokenTable, TokenValue

LENGTH_BYTES = 4
HEAD_BYTES = 24
"""The least length of a frame: its length, two numbers and the activity id."""

REQUEST_HEAD = struct.Struct("<IHH16s")
RESPONSE_HEAD = struct.Struct("<II16s")
_LENGTH = struct.Struct("<I")

_REQUEST_PAYLOAD_PRESENT = RequestToken.PAYLOAD_PRESENT
_RESPONSE_PAYLOAD_PRESENT = ResponseToken.PAYLOAD_PRESENT
_IS_PRESENT = tuple(RESPONSE_TOKENS.write({_RESPONSE_PAYLOAD_PRESENT: present}) for present in (0, 1))


_NO_TEXTS: Mapping[bytes, bytes] = MappingProxyType({})


class Frame(NamedTuple):
    """A request."""

    resource_type: int
    operation_type: int
    activity_id: bytes
    tokens: dict[int, TokenValue]
    payload: bytes = b""
    texts: Mapping[bytes, bytes] = _NO_TEXTS
    """The tokens that its table has read apart, by the names they have there."""

    @property
    def has_payload(self) -> bool:
        """Whether a payload follows the tokens, and its length before it."""
        return self.tokens[_REQUEST_PAYLOAD_PRESENT] == 1


class ResponseFrame(NamedTuple):
    """An answer."""

    status: int
    activity_id: bytes
    tokens: dict[int, TokenValue]
    payload: bytes = b""

    @property
    def has_payload(self) -> bool:
        """Whether a payload follows the tokens, and its length before it."""
        return self.tokens[_RESPONSE_PAYLOAD_PRESENT] == 1


# -- requests --------------------------------------------------------------------------------------


def read_request(data: bytes, payload: bytes = b"") -> Frame:
    """The request in these bytes, head and tokens and no more; its payload came behind them."""
    check_length(data)
    frame = request_of(data, REQUEST_TOKENS)
    _check_payload(frame.tokens[_REQUEST_PAYLOAD_PRESENT], payload)
    return frame._replace(payload=payload)


def request_of(data: bytes, table: TokenTable) -> Frame:
    """The same by a table for requests, of bytes that are known to be as many as the frame says, and of no payload."""
    _, resource_type, operation_type, activity_id = REQUEST_HEAD.unpack_from(data)
    texts: dict[bytes, bytes] = {}
    tokens = table.read(data, HEAD_BYTES, texts)
    present = tokens.get(_REQUEST_PAYLOAD_PRESENT)
    if present != 0 and present != 1:
        _check_payload(present, b"")
    return Frame(resource_type, operation_type, activity_id, tokens, b"", texts)


def write_request(
    resource_type: int,
    operation_type: int,
    activity_id: bytes,
    tokens: Mapping[int, TokenValue],
    payload: bytes = b"",
) -> bytes:
    """A request with its payload, its tokens by their numbers as clients write them."""
    present = {**tokens, _REQUEST_PAYLOAD_PRESENT: int(bool(payload))}
    written = REQUEST_TOKENS.write(dict(sorted(present.items())))
    _check_activity_id(activity_id)
    head = REQUEST_HEAD.pack(HEAD_BYTES + len(written), resource_type, operation_type, activity_id)
    return head + written + with_length(payload)


# -- answers ---------------------------------------------------------------------------------------


def write_response(
    status: int, activity_id: bytes, tokens: Mapping[int, TokenValue], payload: bytes = b""
) -> bytes:
    """An answer with its payload. PayloadPresent is not among the tokens: it follows from the payload.

    Raises `UnwritableToken` for a value that its token cannot hold, such as a String beyond `STRING_BYTES_MAX`.
    """
    _check_activity_id(activity_id)
    if _RESPONSE_PAYLOAD_PRESENT in tokens:
        raise UnwritableToken("whether there is a payload follows from the payload")
    return response_of(status, activity_id, RESPONSE_TOKENS.write(tokens), payload)


def response_of(status: int, activity_id: bytes, written: bytes, payload: bytes) -> bytes:
    """An answer whose tokens are written already, all but PayloadPresent."""
    present = _IS_PRESENT[1 if payload else 0]
    length = HEAD_BYTES + len(present) + len(written)
    head = RESPONSE_HEAD.pack(length, status, activity_id)
    if payload:
        return b"".join((head, present, written, _LENGTH.pack(len(payload)), payload))
    return head + present + written


def read_response(data: bytes, payload: bytes = b"") -> ResponseFrame:
    """The answer in these bytes, head and tokens and no more; its payload came behind them."""
    check_length(data)
    _, status, activity_id = RESPONSE_HEAD.unpack_from(data)
    tokens = RESPONSE_TOKENS.read(data, HEAD_BYTES)
    _check_payload(tokens.get(_RESPONSE_PAYLOAD_PRESENT), payload)
    return ResponseFrame(status, activity_id, tokens, payload)


def check_length(data: bytes) -> None:
    """Whether these bytes are one whole frame by its own length."""
    if len(data) < HEAD_BYTES:
        raise BadFrame(f"a frame has {HEAD_BYTES} bytes at least, and this one {len(data)}")
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    if length != len(data):
        raise BadFrame(f"the frame says to have {length} bytes and has {len(data)}")


def _check_payload(present: TokenValue | None, payload: bytes) -> None:
    if present is None:
        raise BadFrame("the frame does not say whether a payload follows")
    if present not in (0, 1):
        raise BadFrame(f"PayloadPresent is 0 or 1, not {present!r}")
    if payload and not present:
        raise BadFrame("the frame has a payload and says that it has none")


def _check_activity_id(activity_id: bytes) -> None:
    if len(activity_id) != ACTIVITY_ID_BYTES:
        raise UnwritableToken(f"an activity id has {ACTIVITY_ID_BYTES} bytes")


def with_length(payload: bytes) -> bytes:
    """A payload as it stands behind its frame; nothing when it is empty."""
    return _LENGTH.pack(len(payload)) + payload if payload else b""
