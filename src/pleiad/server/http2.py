"""HTTP/2, which is not spoken here: how to say so to a client that begins with it on a plain connection.

A client with prior knowledge sends its preface without asking. It understands frames only, so the answer is in
frames: our settings, which must come first, and a GOAWAY that asks for HTTP/1.1. What the client still sends is then
read and thrown away for a moment, since a connection that is closed with bytes unread is reset, and a reset client
does not see the answer.
"""

from __future__ import annotations

PREFACE_METHOD = b"PRI"
"""What the preface has in the place of a method; no HTTP/1.1 request has it."""

_SETTINGS_EMPTY = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_HTTP_1_1_REQUIRED = 13
_GOAWAY = (
    b"\x00\x00\x08\x07\x00\x00\x00\x00\x00" + b"\x00\x00\x00\x00" + _HTTP_1_1_REQUIRED.to_bytes(4, "big")
)

FAREWELL = _SETTINGS_EMPTY + _GOAWAY
