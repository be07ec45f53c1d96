"""What crosses the seam between the protocol loop and a handler: a request, a response, and rendered headers.

A request is whole when a handler sees it (its body has been read), and its header names are lower-case bytes.
A response carries its header lines already rendered, because heads render them from one template; the loop
adds the status line, ``Server``, ``Date``, ``Content-Length`` or ``Transfer-Encoding``, and ``Connection``, and nothing
else may.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from pleiad.errors import PleiadError
from pleiad.server.connections import Connection, ConnectionTable
from pleiad.server.http.failures import NAMES, status_of

KEEP_LINE_NONE = b""
"""A persistent connection whose client did not speak of it needs no ``Connection`` line."""
KEEP_LINE_ALIVE = b"Connection: keep-alive\r\n"
KEEP_LINE_CLOSE = b"Connection: close\r\n"


@dataclass(slots=True, eq=False)
class Request:
    """One request, read completely. ``target`` is the path and query exactly as received."""

    method: str
    target: bytes
    headers: dict[bytes, bytes]
    body: bytes = b""
    secure: bool = False
    peer: str = ""
    keep_line: bytes = KEEP_LINE_NONE
    is_http_1_0: bool = False
    """Whether the client speaks HTTP/1.0, which knows no body in chunks."""
    proof: object = None
    """What the gate has found out about the caller, where it was asked; see `Gate`."""
    is_alone: bool = False
    """Whether the server has had requests of this connection only lately, and has no other to answer."""

    @property
    def raw_path(self) -> bytes:
        """The target without its query, still percent-encoded; of an absolute URL only the path."""
        path = self.target
        if b"?" in path:
            path = path.partition(b"?")[0]
        if path[:1] == b"/" or b"://" not in path:
            return path
        return b"/" + path.partition(b"://")[2].partition(b"/")[2]

    @property
    def query(self) -> bytes:
        """What follows the first question mark, still percent-encoded; empty when there is none."""
        return self.target.partition(b"?")[2]

    def header(self, name: bytes, default: str = "") -> str:
        """The value of a header given by its lower-case name, without surrounding blanks; never raises."""
        value = self.headers.get(name)
        return default if value is None else value.strip().decode("latin-1")


class ConnectionCut(Exception):
    """Raised by a handler that wants the connection closed without an answer to this request."""


@dataclass(slots=True, eq=False)
class Response:
    """A status, rendered header lines (each ending in CR LF; see `render_headers`) and a body."""

    status: int
    headers: bytes = b""
    body: bytes = b""


class StreamedResponse(Response):
    """An answer whose body is made while it is sent.

    The head goes out with the first chunk, so a failure before it is an answer of its own; one after it can only cut
    the connection, which the client sees as a body without its end. The next chunk is asked for when the client has
    read most of the last ones. All of it must be over within `seconds`.
    """

    __slots__ = ("chunks", "seconds")

    def __init__(
        self, status: int, headers: bytes, chunks: AsyncGenerator[bytes, None], seconds: float
    ) -> None:
        super().__init__(status, headers)
        self.chunks = chunks
        self.seconds = seconds


class SwitchedResponse(Response):
    """The answer 101 to an offer: from its last byte on the connection is another protocol's.

    Only a request that a site keeps for this (`HttpSite.switches`) can be answered so.
    """

    __slots__ = ("connect",)

    def __init__(self, headers: bytes, connect: Callable[[ConnectionTable, bool], Connection]) -> None:
        super().__init__(101, headers)
        self.connect = connect


@dataclass(slots=True, eq=False)
class Pending:
    """An answer that waits for one future and for nothing else, so that it needs no task.

    Whoever has it calls `end` when the future is done, once and whether or not somebody still wants the answer.
    """

    future: asyncio.Future[Any]
    end: Callable[[], Response | Coroutine[Any, Any, Response]]
    """What the answer is then."""

    def __await__(self) -> Generator[Any, Any, Response]:
        return self._whole().__await__()

    async def _whole(self) -> Response:
        try:
            await asyncio.wait([self.future])
        except asyncio.CancelledError:
            self.future.add_done_callback(lambda _: self.drop())
            raise
        said = self.end()
        return said if isinstance(said, Response) else await said

    def drop(self) -> None:
        """Ends it where nobody wants the answer any more."""
        said = self.end()
        if not isinstance(said, Response):
            said.close()


Answer = Response | Pending | Coroutine[Any, Any, Response]
"""An answer that is there, or what it has to wait for."""
Handler = Callable[[Request], Answer]
"""Answers a request: at once, or where something has to be waited for by that."""
Gate = Callable[[Request], Response | None]
"""Whether a request whose headers are complete may send its body: None, or the refusal.

It is asked only where the body did not come with the headers, and must not wait. What it found out it leaves in
`proof`, and the handler finds it there.
"""

_JSON_TYPE = b"Content-Type: application/json\r\n"
_NAME_CHARACTERS = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def render_headers(pairs: Iterable[tuple[str, str]]) -> bytes:
    """Header lines from names and values.

    A line break or another control character in a value would let it forge further headers, and a name
    outside the grammar could do the same: both raise ValueError. Characters beyond Latin-1 become ``?``.
    """
    lines: list[str] = []
    for name, value in pairs:
        if not name or not _NAME_CHARACTERS.issuperset(name):
            raise ValueError(f"{name!r} is not a header name")
        if not value.isprintable() and any((c < " " and c != "\t") or c == "\x7f" for c in value):
            raise ValueError(f"the value of the header {name} holds a control character")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode("latin-1", "replace")


def error_response(error: PleiadError) -> Response:
    """The JSON answer to a failure of the transport itself."""
    body = orjson.dumps({"code": NAMES[status_of(error)], "message": error.message})
    headers = _JSON_TYPE
    if error.retry_after_ms is not None:
        seconds = -(-error.retry_after_ms // 1000)
        headers += b"x-ms-retry-after-ms: %d\r\nRetry-After: %d\r\n" % (error.retry_after_ms, seconds)
    return Response(status_of(error), headers, body)
