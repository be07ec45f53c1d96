"""HTTP/2, which is not spoken here: how to say so to a client that begins with it on a plain connection.

A client with prior knowledge sends its preface without asking, and understands frames only, so the answer is in frames:
our settings at once, and when its first request is there, a reset of that request that asks for HTTP/1.1, and a GOAWAY
that says the same. Not earlier: a client whose connection goes before its request is on the way sees a failure of the
network and not the answer. What it still sends is then read and thrown away for a moment, since a connection that is
closed with bytes unread is reset, and a reset client does not see the answer either.
"""

from __future__ import annotations

PREFACE_METHOD = b"PRI"
"""What the preface has in the place of a method; no HTTP/1.1 request has it."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD_BYTES = 9
_HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY = 1, 3, 4, 7
_HTTP_1_1_REQUIRED = (13).to_bytes(4, "big")


def _frame(kind: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, 0)) + stream.to_bytes(4, "big") + payload


SETTINGS = _frame(_SETTINGS, 0)
"""What a server has to say first: nothing in particular."""


def farewell(stream: int) -> bytes:
    """The answer to the request on a stream; 0 for none in particular."""
    reset = _frame(_RST_STREAM, stream, _HTTP_1_1_REQUIRED) if stream else b""
    return reset + _frame(_GOAWAY, 0, stream.to_bytes(4, "big") + _HTTP_1_1_REQUIRED)


def behind_preface(data: bytes) -> bytes:
    """What follows the preface, of which the last bytes are in the data."""
    for begun in range(len(_PREFACE)):
        rest = _PREFACE[begun:]
        if data.startswith(rest):
            return data[len(rest) :]
    return b""  # it stood behind another request, which no client does


class FirstRequest:
    """Looks through the frames of a client for its first request; keeps nothing but the head of a frame."""

    __slots__ = ("_head", "_payload_left_bytes")

    def __init__(self) -> None:
        self._head = b""
        self._payload_left_bytes = 0

    def find(self, data: bytes) -> int | None:
        """The stream of the first request if its frame begins in the data or began before, else None."""
        at = 0
        while at < len(data):
            skipped = min(self._payload_left_bytes, len(data) - at)
            self._payload_left_bytes -= skipped
            at += skipped
            more = data[at : at + _HEAD_BYTES - len(self._head)]
            self._head += more
            at += len(more)
            if len(self._head) == _HEAD_BYTES:
                stream = int.from_bytes(self._head[5:], "big") % 2**31
                if self._head[3] == _HEADERS:
                    return stream
                self._payload_left_bytes = int.from_bytes(self._head[:3], "big")
                self._head = b""
        return None
