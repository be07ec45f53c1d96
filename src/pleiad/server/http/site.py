"""HTTP on a listener: what answers there, and what its connections share."""

from __future__ import annotations

from pleiad import errors
from pleiad.server.connections import ConnectionTable
from pleiad.server.http.failures import HTTPS_ONLY
from pleiad.server.http.message import (
    KEEP_LINE_CLOSE,
    Answer,
    Gate,
    Handler,
    Request,
    Response,
    error_response,
)
from pleiad.server.http.protocol import HttpProtocol
from pleiad.server.http.status_lines import StatusLines
from pleiad.server.listener import Recognition
from pleiad.server.memory import RETRY_AFTER_MS

_LINE_BREAKS = b"\r\n"


class HttpSite:
    """A handler, its gate, and whether clients may leave HTTP here.

    With a gate, callers are asked for it before their bodies are read. With `switches`, an offer of WebSocket reaches
    the handler, which may answer with `websocket.accept`; any other offer is read as if it had not been made. With
    `plain_paths`, requests without TLS are refused but for these paths.
    """

    def __init__(
        self,
        handler: Handler,
        gate: Gate | None = None,
        switches: bool = False,
        plain_paths: frozenset[bytes] | None = None,
    ) -> None:
        if plain_paths is not None:
            handler, gate = _encrypted(handler, gate, plain_paths)
        self.handler = handler
        self.gate = gate
        self.switches = switches
        self.lines = StatusLines()

    def begin(self, table: ConnectionTable) -> None:
        table.each_second(self.lines.renew)

    def recognises(self, first: bytes, secure: bool) -> Recognition:
        """A method is of letters, and an empty line or two may stand before it."""
        is_text = first[0] >= 0x20 or first[0] in _LINE_BREAKS
        return Recognition.YES if is_text else Recognition.NO

    def connect(self, table: ConnectionTable, secure: bool) -> HttpProtocol:
        return HttpProtocol(table, secure, self)

    def refusal(self) -> bytes:
        response = error_response(
            errors.UNAVAILABLE(
                reason="The server has reached its limit of connections.", retry_after_ms=RETRY_AFTER_MS
            )
        )
        lines = self.lines.made.get(response.status) or self.lines.make(response.status)
        length = b"Content-Length: %d\r\n" % len(response.body)
        return lines + length + response.headers + KEEP_LINE_CLOSE + b"\r\n" + response.body


def _encrypted(
    handler: Handler, gate: Gate | None, plain_paths: frozenset[bytes]
) -> tuple[Handler, Gate | None]:
    """A handler and its gate, behind a refusal of what comes without TLS."""

    def refusal(request: Request) -> Response | None:
        if request.secure or request.target.partition(b"?")[0] in plain_paths:
            return None
        return error_response(HTTPS_ONLY())

    def handle(request: Request) -> Answer:
        return refusal(request) or handler(request)

    def admit(request: Request) -> Response | None:
        return refusal(request) or (None if gate is None else gate(request))

    return handle, admit
