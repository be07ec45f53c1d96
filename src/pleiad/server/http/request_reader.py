"""Requests out of bytes: what the HTTP parser calls while it reads, and the request it is in the middle of.

Invariants
- Parser callbacks only collect: a request that is whole is put into the queue, a refusal is raised through the parser.
- Nothing of a request is kept here once it is whole.
- A head is refused when it is larger than `Limits.header_bytes` or has more lines than `HEADER_LINES_MAX`.
"""

from __future__ import annotations

import re
from collections import deque

import httptools

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.server.connections import ConnectionTable
from pleiad.server.http.failures import HEADERS_TOO_LARGE, HEADERS_TOO_MANY
from pleiad.server.http.message import KEEP_LINE_ALIVE, KEEP_LINE_CLOSE, KEEP_LINE_NONE, Request, Response
from pleiad.server.paced_writer import PacedWriter

HEADER_LINES_MAX = 256
HEADER_LINE_BYTES = 160
"""What a header line takes in memory beside its text: two objects and a place in a table."""

_METHODS = {
    name.encode(): name for name in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE")
}
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_NO_HEADERS: dict[bytes, bytes] = {}
_SAID_ONCE = {b"host": "host", b"transfer-encoding": "transfer encoding"}
"""What two servers in a row might read differently. The parser itself takes one length of a body only."""


def refusal_of(error: httptools.HttpParserError) -> PleiadError:
    """What to answer when the parser stopped: a callback's own refusal, or that this is not HTTP."""
    if isinstance(error, httptools.HttpParserCallbackError):
        cause = error.__context__
        if not isinstance(cause, PleiadError):
            raise error
        return cause
    return errors.BAD_REQUEST(reason=f"The request is not valid HTTP: {error}.")


def with_escaped_target(data: bytes) -> bytes:
    """A slice that begins in the first line of a request, with the letters beyond ASCII in that percent-encoded.

    Some clients write names into paths as they are, in UTF-8, which the parser takes for no path at all.
    """
    end = data.find(b"\r\n")
    line = data if end < 0 else data[:end]
    if line.isascii():
        return data
    return _BEYOND_ASCII.sub(lambda found: b"%%%02X" % found[0][0], line) + data[len(line) :]


class RequestReader(PacedWriter):
    """The reading half of a connection, above its writing half; others feed the parser and mind the time."""

    __slots__ = (
        "_begun_at",
        "_body",
        "_expects",
        "_feed_bytes",
        "_headers",
        "_in_request",
        "_is_head_whole",
        "_is_http_1_0",
        "_is_line_open",
        "_keep_line",
        "_limits",
        "_parser",
        "_peer",
        "_proof",
        "_queue",
        "_quiet_bytes",
        "_request_headers",
        "_secure",
        "_target",
        "_upgrading",
    )

    def __init__(self, table: ConnectionTable, secure: bool) -> None:
        super().__init__(table)
        self._limits = table.limits
        self._secure = secure
        self._peer = ""
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        # the request being read
        self._in_request = False
        self._begun_at = table.now
        self._is_head_whole = False
        self._target = b""
        self._headers = self._request_headers = _NO_HEADERS
        self._body: bytes | bytearray = b""
        self._proof: object = None
        self._keep_line = KEEP_LINE_NONE
        self._expects = False
        self._is_http_1_0 = False
        self._is_line_open = False
        self._upgrading = False
        self._feed_bytes = 0
        self._quiet_bytes = 0
        # requests read; a response among them, or bytes that are none, is a refusal and the last
        self._queue: deque[Request | Response | bytes] = deque()

    def _stop_parsing(self) -> None:
        self._parser = None
        self._forget_request()

    def _forget_request(self) -> None:
        self._in_request = False
        self._target = self._body = b""
        self._headers = self._request_headers = _NO_HEADERS
        self._proof = None

    def _request_in_part(self) -> Request:
        """The request being read, without its body: what can be said of it when its head is whole."""
        assert self._parser is not None
        method = self._parser.get_method()
        request = Request(
            _METHODS.get(method) or method.decode("latin-1"),
            self._target,
            self._request_headers,
            b"",
            self._secure,
            self._peer,
            self._keep_line,
        )
        request.is_http_1_0 = self._is_http_1_0
        return request

    @property
    def _part_bytes(self) -> int:
        """The memory of the request being read."""
        if not self._in_request:
            return 0
        return self._quiet_bytes + len(self._body) + head_bytes(self._request_headers or self._headers)

    # -- parser callbacks ------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._in_request = True
        self._begun_at = self._table.now
        self._is_line_open = True
        self._is_head_whole = False
        self._target = b""
        self._headers = {}
        self._body = b""
        self._expects = False
        self._upgrading = False
        self._quiet_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if self._headers.setdefault(name, value) is not value:
            if name in _SAID_ONCE:
                raise errors.BAD_REQUEST(reason=f"The request names its {_SAID_ONCE[name]} twice.")
            self._headers[name] = value

    def on_headers_complete(self) -> None:
        headers = self._request_headers = self._headers
        self._is_head_whole = True
        parser = self._parser
        assert parser is not None
        self._is_http_1_0 = False
        if not parser.should_keep_alive():
            self._keep_line = KEEP_LINE_CLOSE
            version = parser.get_http_version()
            self._is_http_1_0 = version == "1.0"
            if version not in ("1.0", "1.1"):
                raise errors.BAD_REQUEST(reason="Only HTTP/1.1 and HTTP/1.0 are spoken here.")
        elif b"connection" in headers:
            self._keep_line = KEEP_LINE_ALIVE
            self._is_http_1_0 = parser.get_http_version() == "1.0"
        else:
            self._keep_line = KEEP_LINE_NONE
        if b"upgrade" in headers:
            self._upgrading = parser.should_upgrade()
        if self._quiet_bytes + self._feed_bytes > self._limits.header_bytes:
            self._check_header_bytes()
        if len(headers) > HEADER_LINES_MAX:
            raise HEADERS_TOO_MANY(limit=HEADER_LINES_MAX)
        if b"content-length" in headers:
            length = int(headers[b"content-length"])
            if length > self._limits.request_bytes:
                raise errors.ITEM_TOO_LARGE(size=length, limit=self._limits.request_bytes)
        elif b"transfer-encoding" in headers:
            is_chunked = headers[b"transfer-encoding"].strip().lower() == b"chunked"
            if not is_chunked or parser.get_http_version() == "1.0":
                raise errors.BAD_REQUEST(
                    reason="No transfer encoding but 'chunked' of HTTP/1.1 is supported."
                )
            # Trailers come through on_header too; they must not replace headers already checked.
            self._headers = {}
        if b"expect" in headers:
            expected = headers[b"expect"].strip().lower()
            self._expects = expected == b"100-continue" and parser.get_http_version() == "1.1"

    def on_body(self, body: bytes) -> None:
        self._quiet_bytes = 0
        if not self._body:
            self._body = body
        else:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += body
        if len(self._body) > self._limits.request_bytes:
            raise errors.ITEM_TOO_LARGE(size=len(self._body), limit=self._limits.request_bytes)

    def on_message_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        method = parser.get_method()
        if method == b"CONNECT":
            raise errors.BAD_REQUEST(reason="CONNECT is not supported.")
        if self._upgrading:
            return
        self._in_request = False
        body = self._body
        request = Request(
            _METHODS.get(method) or method.decode("latin-1"),
            self._target,
            self._request_headers,
            body if body.__class__ is bytes else bytes(body),
            self._secure,
            self._peer,
            self._keep_line,
        )
        if self._proof is not None:
            request.proof = self._proof
            self._proof = None
        if self._is_http_1_0:
            request.is_http_1_0 = True
        self._queue.append(request)
        # An idle connection shall not go on holding its last request.
        self._body = b""
        self._headers = self._request_headers = _NO_HEADERS

    def _check_header_bytes(self) -> None:
        """The exact size, counted only when so much was read that the limit may be passed."""
        size = len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._headers.items())
        if size > self._limits.header_bytes:
            raise HEADERS_TOO_LARGE(limit=self._limits.header_bytes)


def head_bytes(headers: dict[bytes, bytes]) -> int:
    """About how much memory headers take."""
    return sum(map(len, headers.values())) + HEADER_LINE_BYTES * len(headers)
