"""One HTTP/1.1 connection: bytes in, requests to the handler, responses out in order.

Invariants
- Responses leave in the order of their requests; at most one handler runs per connection.
- After a refusal (malformed, too large, too slow) nothing more is parsed: the refusal is the last response,
  and what the client still sends is thrown away for a short while so that it can read the answer.
- Nothing is written after the transport began to close.
- Reading is paused while the client does not read, or while `PENDING_MAX` requests wait.
- Parser callbacks only collect; handlers run after the parser has returned.

Limits: bytes are parsed in slices of `SLICE_BYTES`, so headers that never end are cut at most one slice
after `Limits.header_bytes`. A client that closes its side is gone: its running handler is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import cast

import httptools

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.server import eager
from pleiad.server.connections import ConnectionTable
from pleiad.server.message import (
    KEEP_LINE_ALIVE,
    KEEP_LINE_CLOSE,
    KEEP_LINE_NONE,
    ConnectionCut,
    Request,
    Response,
    error_response,
)

PENDING_MAX = 32
UNSENT_BYTES_MAX = 65_536
SLICE_BYTES = 16 * 1024
LINGER_SECONDS = 2.0

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_METHODS = {
    name.encode(): name for name in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE")
}

_log = logging.getLogger("pleiad.server")


def _refusal(error: httptools.HttpParserError) -> PleiadError:
    """What to answer when the parser stopped: a callback's own refusal, or that this is not HTTP."""
    if isinstance(error, httptools.HttpParserCallbackError):
        cause = error.__context__
        if not isinstance(cause, PleiadError):
            raise error
        return cause
    return errors.BAD_REQUEST(reason=f"The request is not valid HTTP: {error}.")


class HttpProtocol(asyncio.Protocol):
    """The protocol of one connection; also its row in the connection table."""

    __slots__ = (
        "_begun_at",
        "_body",
        "_expects",
        "_feed_bytes",
        "_handler",
        "_headers",
        "_held",
        "_idle_at",
        "_in_request",
        "_keep_line",
        "_limits",
        "_linger_at",
        "_loop",
        "_lost",
        "_parser",
        "_paused",
        "_peer",
        "_queue",
        "_quiet_bytes",
        "_request_headers",
        "_secure",
        "_stalled_at",
        "_table",
        "_target",
        "_task",
        "_transport",
        "_turn_due",
        "_unsent",
        "_upgrading",
        "_write_paused",
    )

    def __init__(self, table: ConnectionTable, secure: bool) -> None:
        self._table = table
        self._handler = table.handler
        self._limits = table.limits
        self._loop = table.loop
        self._secure = secure
        self._peer = ""
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        # the request being read
        self._in_request = False
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._request_headers = self._headers
        self._body: bytes | bytearray = b""
        self._keep_line = KEEP_LINE_NONE
        self._expects = False
        self._upgrading = False
        self._feed_bytes = 0
        self._quiet_bytes = 0
        # requests read, and the one being answered; a Response in the queue is a refusal and the last
        self._queue: deque[Request | Response] = deque()
        self._task: asyncio.Task[Response] | None = None
        self._turn_due = False
        # flow
        self._held = b""
        self._unsent = b""
        self._paused = False
        self._write_paused = False
        self._lost = False
        # times, by the table's clock
        self._idle_at = self._begun_at = self._stalled_at = table.now
        self._linger_at: float | None = None

    # -- transport callbacks ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peername = transport.get_extra_info("peername")
        if isinstance(peername, tuple) and peername:
            self._peer = str(peername[0])

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._table.remove(self)
        self._stop_parsing()
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        if self._held or len(data) > SLICE_BYTES:
            self._held += data
            self._feed_held()
        else:
            self._feed(data)
            if self._queue and len(self._queue) >= PENDING_MAX:
                self._pause()

    def pause_writing(self) -> None:
        self._write_paused = True
        self._stalled_at = self._table.now
        self._pause()

    def resume_writing(self) -> None:
        self._write_paused = False
        self.take_turn()

    # -- reading ---------------------------------------------------------------------------------

    def _feed(self, data: bytes) -> None:
        """Parse one slice and answer what it completes."""
        parser = self._parser
        if parser is None:
            return
        self._feed_bytes = len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError as error:
            self._refuse(_refusal(error))
        if self._queue and not self._turn_due:
            self._turn_due = True
            self._table.answer_later(self)
        if self._in_request:
            self._read_in_part()

    def _read_in_part(self) -> None:
        """A slice ended inside a request: bound what is not body, and ask for a body held back."""
        self._quiet_bytes += self._feed_bytes
        if self._quiet_bytes > self._limits.header_bytes + SLICE_BYTES:
            self._refuse(errors.HEADERS_TOO_LARGE(limit=self._limits.header_bytes))
            self._pump()
        elif self._expects:
            self._send_continue()

    def _feed_held(self) -> None:
        """Parse what is held, slice by slice, for as long as answers may be written."""
        data = self._held
        self._held = b""
        for start in range(0, len(data), SLICE_BYTES):
            if self._parser is None:
                return
            if self._write_paused or len(self._queue) >= PENDING_MAX:
                self._held = data[start:]
                break
            self._feed(data[start : start + SLICE_BYTES])
        if self._write_paused or len(self._queue) >= PENDING_MAX:
            self._pause()

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Read on as if the client had not offered another protocol.

        The parser regards everything after such a header block as foreign, so the block is given to a new
        parser without the offer.
        """
        method = self._parser.get_method() if self._parser is not None else b""
        lines = [b"%b %b HTTP/1.1\r\n" % (method, self._target)]
        skipped = (b"upgrade", b"connection", b"http2-settings")
        lines += [b"%b: %b\r\n" % pair for pair in self._request_headers.items() if pair[0] not in skipped]
        self._parser = httptools.HttpRequestParser(self)
        self._in_request = False
        self._feed(b"".join([*lines, b"\r\n", rest]))

    def _send_continue(self) -> None:
        """Ask for the body the client holds back, once all earlier answers are written."""
        if self._task is None and not self._queue and not self._body:
            self._expects = False
            self.send()
            self._write(_CONTINUE)

    def _refuse(self, error: PleiadError) -> None:
        self._stop_parsing()
        self._queue.append(error_response(error))

    def _stop_parsing(self) -> None:
        self._parser = None
        self._in_request = False
        self._held = b""
        self._body = b""

    def _pause(self) -> None:
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    # -- parser callbacks ------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._in_request = True
        self._begun_at = self._table.now
        self._target = b""
        self._headers = {}
        self._body = b""
        self._expects = False
        self._upgrading = False
        self._quiet_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        headers = self._request_headers = self._headers
        parser = self._parser
        assert parser is not None
        if not parser.should_keep_alive():
            self._keep_line = KEEP_LINE_CLOSE
            if parser.get_http_version() not in ("1.0", "1.1"):
                raise errors.BAD_REQUEST(reason="Only HTTP/1.1 and HTTP/1.0 are spoken here.")
        elif b"connection" in headers:
            self._keep_line = KEEP_LINE_ALIVE
            self._upgrading = parser.should_upgrade()
        else:
            self._keep_line = KEEP_LINE_NONE
        if self._quiet_bytes + self._feed_bytes > self._limits.header_bytes:
            self._check_header_bytes()
        if b"content-length" in headers:
            length = int(headers[b"content-length"])
            if length > self._limits.request_bytes:
                raise errors.ITEM_TOO_LARGE(size=length, limit=self._limits.request_bytes)
        elif b"transfer-encoding" in headers:
            if headers[b"transfer-encoding"].strip().lower() != b"chunked":
                raise errors.BAD_REQUEST(reason="No transfer encoding but 'chunked' is supported.")
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
        self._queue.append(
            Request(
                _METHODS.get(method) or method.decode("latin-1"),
                self._target,
                self._request_headers,
                body if body.__class__ is bytes else bytes(body),
                self._secure,
                self._peer,
                self._keep_line,
            )
        )

    def _check_header_bytes(self) -> None:
        """The exact size, counted only when so much was read that the limit may be passed."""
        size = len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._headers.items())
        if size > self._limits.header_bytes:
            raise errors.HEADERS_TOO_LARGE(limit=self._limits.header_bytes)

    # -- answering -------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Answer queued requests until one has to wait, the client stops reading, or the turn is over."""
        queue = self._queue
        budget = PENDING_MAX
        while queue and self._task is None and not self._write_paused:
            if budget == 0:
                self._schedule_turn()
                return
            budget -= 1
            item = queue.popleft()
            if isinstance(item, Response):
                self._finish_refusal(item)
                return
            try:
                started = eager.start(self._handler(item), self._loop)
            except (Exception, asyncio.CancelledError) as error:
                self._respond(item, self._failure(item, error))
                continue
            if isinstance(started, asyncio.Task):
                self._task = started
                started.add_done_callback(partial(self._task_done, item))
            else:
                self._respond(item, started)

    def _task_done(self, request: Request, task: asyncio.Task[Response]) -> None:
        self._task = None
        if task.cancelled():
            if self._lost:
                return
            response = self._failure(request, asyncio.CancelledError())
        else:
            error = task.exception()
            response = task.result() if error is None else self._failure(request, error)
        if self._lost:
            return
        self._respond(request, response)
        self.take_turn()

    def _schedule_turn(self) -> None:
        """Let other connections have their turn before going on."""
        if not self._turn_due:
            self._turn_due = True
            self._table.answer_later(self)

    def take_turn(self) -> None:
        """Go on answering, and reading if it was paused."""
        self._turn_due = False
        transport = self._transport
        if self._lost or transport is None or transport.is_closing():
            return
        self._pump()
        if transport.is_closing():
            return
        if self._paused and not self._write_paused and len(self._queue) < PENDING_MAX:
            self._paused = False
            # The time the server itself did not read is not the client's.
            self._begun_at = self._table.now
            transport.resume_reading()
            if self._held:
                self._feed_held()
        if self._expects and self._in_request:
            self._send_continue()

    def _failure(self, request: Request, error: BaseException) -> Response:
        if isinstance(error, PleiadError):
            return error_response(error)
        if isinstance(error, ConnectionCut):
            self._close()  # what is written to a closing transport goes nowhere
            return error_response(errors.INTERNAL())
        # Never the headers: they hold keys.
        _log.error("%s %r failed", request.method, request.raw_path, exc_info=error)
        return error_response(errors.INTERNAL())

    def _respond(self, request: Request, response: Response) -> None:
        table = self._table
        keep_line = request.keep_line
        if table.draining and not self._queue:
            keep_line = KEEP_LINE_CLOSE
        try:
            data = self._render(request.method, response, keep_line)
        except Exception as error:
            data = self._render(request.method, self._failure(request, error), keep_line)
        self._idle_at = table.now
        if self._unsent:
            self._unsent += data
        else:
            self._unsent = data
            table.send_later(self)
        if keep_line is KEEP_LINE_CLOSE:
            self._close()
        elif len(self._unsent) > UNSENT_BYTES_MAX:
            self.send()

    def send(self) -> None:
        """Write the answers of this turn of the loop."""
        data, self._unsent = self._unsent, b""
        if data:
            self._write(data)

    def _render(self, method: str, response: Response, keep_line: bytes) -> bytes:
        status = response.status
        head = self._table.heads.get(status) or self._table.head(status)
        if status == 204 or status == 304:
            return b"%b%b%b\r\n" % (head, response.headers, keep_line)
        body = response.body
        length = len(body)
        if method == "HEAD":
            body = b""
        return b"%bContent-Length: %d\r\n%b%b\r\n%b" % (head, length, response.headers, keep_line, body)

    def _write(self, data: bytes) -> None:
        transport = self._transport
        if not self._lost and transport is not None and not transport.is_closing():
            transport.write(data)

    def _close(self) -> None:
        self.send()
        self._stop_parsing()
        self._queue.clear()
        if self._transport is not None and not self._lost:
            self._transport.close()

    def _finish_refusal(self, response: Response) -> None:
        """Send the last response; leave the client the time to read it before the connection goes."""
        transport = self._transport
        if self._lost or transport is None or transport.is_closing():
            return
        self._queue.clear()
        self.send()
        self._write(self._render("", response, KEEP_LINE_CLOSE))
        self._linger_at = self._table.now
        if transport.can_write_eof():
            transport.write_eof()

    # -- the connection table's view ---------------------------------------------------------------

    def sweep(self, now: float) -> None:
        if self._linger_at is not None:
            if now - self._linger_at > LINGER_SECONDS:
                self.abort()
        elif self._write_paused:
            if now - self._stalled_at > self._limits.idle_seconds:
                self.abort()
        elif self._task is not None or self._queue:
            return
        elif self._in_request:
            if now - self._begun_at > self._limits.request_read_seconds:
                seconds = self._limits.request_read_seconds
                self._refuse(
                    errors.REQUEST_TIMEOUT(reason=f"The request was not received within {seconds:g} seconds.")
                )
                self._pump()
        elif now - self._idle_at > self._limits.idle_seconds:
            self._close()

    def drain(self) -> None:
        if self._task is None and not self._queue and not self._in_request and self._linger_at is None:
            self._close()

    def abort(self) -> None:
        if self._transport is not None and not self._lost:
            self._transport.abort()
