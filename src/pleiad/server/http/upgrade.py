"""Offers of another protocol in the header block of a request."""

from __future__ import annotations

from collections.abc import Mapping

_LINES_OF_OFFERS = (b"upgrade", b"connection", b"http2-settings")


def is_websocket(method: bytes, headers: Mapping[bytes, bytes]) -> bool:
    """Whether WebSocket is offered, to a request that may be answered so."""
    return method == b"GET" and headers.get(b"upgrade", b"").strip().lower() == b"websocket"


def without_offer(method: bytes, target: bytes, headers: Mapping[bytes, bytes]) -> bytes:
    """The header block of a request as if it had not offered anything."""
    lines = [b"%b %b HTTP/1.1\r\n" % (method, target)]
    lines += [b"%b: %b\r\n" % pair for pair in headers.items() if pair[0] not in _LINES_OF_OFFERS]
    return b"".join([*lines, b"\r\n"])
