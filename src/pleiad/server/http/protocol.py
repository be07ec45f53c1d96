"""One HTTP/1.1 connection: bytes in, requests to the handler, responses out in order.

Invariants
- Responses leave in the order of their requests; at most one handler runs per connection.
- A request whose body is still to come is shown to the gate when its headers are complete; who may not go on is
  refused before its body is read, also instead of `100 Continue`.
- After a refusal (malformed, too large, too slow, not let in) nothing more is parsed: the refusal is the last
  response, and what the client still sends is thrown away for a short while so that it can read the answer.
- Nothing is written after the transport began to close.
- Reading is paused while the client does not read, while `PENDING_MAX` requests wait, or while there is no room.
- Parser callbacks only collect; handlers run after the parser has returned.

What a connection may take: until its head is whole, `Limits.header_bytes` and one slice of `SLICE_BYTES`; then one
body of `Limits.request_bytes`, one read of the socket, and `PENDING_MAX` requests behind it; of answers that are not
read `UNSENT_BYTES_MAX` and one answer. An idle one has its parser and its transport and nothing of its last request.
All connections together have the budgets of `memory.py`; a request of up to `UNCOUNTED_BYTES` that came in one read
is not counted. A client that closes its side is gone: its running handler is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import httptools

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.server import eager
from pleiad.server.connections import ConnectionTable
from pleiad.server.http import http2
from pleiad.server.http.failures import HEADERS_TOO_LARGE, HEADERS_TOO_MANY
from pleiad.server.http.intake import no_room
from pleiad.server.http.message import (
    KEEP_LINE_CLOSE,
    Answer,
    ConnectionCut,
    Pending,
    Request,
    Response,
    StreamedResponse,
    SwitchedResponse,
    error_response,
)
from pleiad.server.http.request_reader import HEADER_LINES_MAX, refusal_of, with_escaped_target
from pleiad.server.http.switch import Switch
from pleiad.server.memory import PRESSED_SECONDS

if TYPE_CHECKING:
    from pleiad.server.http.site import HttpSite

PENDING_MAX = 32
UNSENT_BYTES_MAX = 65_536
SLICE_BYTES = 16 * 1024
UNCOUNTED_BYTES = 4 * 1024
LINGER_SECONDS = 2.0

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_log = logging.getLogger("pleiad.server")


class HttpProtocol(Switch):
    """The protocol of one connection; also its row in the connection table."""

    __slots__ = (
        "_handler",
        "_http2",
        "_idle_at",
        "_loop",
        "_task",
    )

    def __init__(self, table: ConnectionTable, secure: bool, site: HttpSite) -> None:
        super().__init__(table, secure, site)
        self._handler = site.handler
        self._loop = table.loop
        # the request being answered
        self._task: asyncio.Future[Any] | None = None
        # of a client that has begun with HTTP/2, until its request is there
        self._http2: http2.FirstRequest | None = None
        self._idle_at = table.now

    # -- transport callbacks ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peername = transport.get_extra_info("peername")
        if isinstance(peername, tuple) and peername:
            self._peer = str(peername[0])

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.remove(self)
        self._forget_unsent()
        self._drop_requests()
        if isinstance(self._task, asyncio.Task):
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
        if self._in_request or self._held or self._is_counted:
            self._recount()
            self._mind_room()
        elif len(data) > UNCOUNTED_BYTES:
            # Whole requests that came in one read, which is what nearly all are: no need to look at each.
            self._is_counted = True
            self._bodies_bytes = len(data)
            self._table.memory.bodies_bytes += len(data)
            self._mind_room()

    def pause_writing(self) -> None:
        self._pause()
        self._pause_writing()

    def resume_writing(self) -> None:
        if self._resume_writing():
            self.take_turn()

    # -- reading ---------------------------------------------------------------------------------

    def _feed(self, data: bytes) -> None:
        """Parse one slice and answer what it completes."""
        parser = self._parser
        if parser is None:
            if self._http2 is not None:
                self._answer_http2(self._http2, data)
            return
        if not data.isascii() and (self._is_line_open or not self._in_request):
            data = with_escaped_target(data)
        self._feed_bytes = len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._take_offer(data[offer.args[0] :])
            return
        except httptools.HttpParserError as error:
            if parser.get_method() != http2.PREFACE_METHOD:
                self._refuse(refusal_of(error))
            elif self._queue or self._task is not None:
                self._refuse_with(http2.SETTINGS + http2.farewell(0))
            else:
                self._stop_parsing()
                self._http2 = http2.FirstRequest()
                self._write(http2.SETTINGS)
                self._answer_http2(self._http2, http2.behind_preface(data))
        if self._queue and not self._turn_due:
            self._turn_due = True
            self._table.answer_later(self)
        if self._in_request:
            self._read_in_part(data)

    def _answer_http2(self, frames: http2.FirstRequest, data: bytes) -> None:
        """Refuse the first request of a client that speaks HTTP/2, and not the connection before it is there."""
        stream = frames.find(data)
        if stream is not None:
            self._http2 = None
            self._refuse_with(http2.farewell(stream))
            self._schedule_turn()

    def _read_in_part(self, data: bytes) -> None:
        """A slice ended inside a request: bound what is not body, ask the gate, and ask for a body held back."""
        self._is_line_open = self._is_line_open and data.find(b"\r\n") < 0
        self._quiet_bytes += self._feed_bytes
        if self._quiet_bytes > self._limits.header_bytes + SLICE_BYTES:
            self._refuse(HEADERS_TOO_LARGE(limit=self._limits.header_bytes))
        elif len(self._headers) > HEADER_LINES_MAX:
            self._refuse(HEADERS_TOO_MANY(limit=HEADER_LINES_MAX))
        elif self._is_head_whole and self._proof is None:
            self._ask_gate()
        if self._in_request and self._expects:
            self._send_continue()
        elif self._parser is None:
            self._pump()

    def _ask_gate(self) -> None:
        """Have the caller known before its body is taken; the proof goes with the request, to be made only once."""
        gate = self._site.gate
        if gate is None or self._upgrading:
            return
        request = self._request_in_part()
        refusal = gate(request)
        if refusal is None:
            self._proof = request.proof or True
        else:
            self._refuse_with(refusal)

    def _feed_held(self) -> None:
        """Parse what is held, slice by slice, for as long as answers may be written."""
        data = self._held
        self._held = b""
        for start in range(0, len(data), SLICE_BYTES):
            if self._parser is None and self._http2 is None:
                return
            if self._is_held_up:
                self._held += data[start:]
                break
            self._feed(data[start : start + SLICE_BYTES])
        if self._is_held_up:
            self._pause()

    @property
    def _is_held_up(self) -> bool:
        """Whether nothing is to be parsed now: answers first."""
        return self._write_paused or self._switching or len(self._queue) >= PENDING_MAX

    def _send_continue(self) -> None:
        """Ask for the body the client holds back, once all earlier answers are written."""
        if self._task is None and not self._queue and not self._body:
            self._expects = False
            self.send()
            self._write(_CONTINUE)

    def _refuse(self, error: PleiadError) -> None:
        self._refuse_with(error_response(error))

    def _refuse_with(self, refusal: Response | bytes) -> None:
        self._stop_parsing()
        self._held = b""
        self._queue.append(refusal)

    # -- memory ----------------------------------------------------------------------------------

    def _mind_room(self) -> None:
        """Stop where there is no room: wait for it in the middle of a body, and go where there is none at all."""
        memory = self._table.memory
        if not memory.is_over:
            return
        if memory.has_no_room_for_bodies or (self._heads_bytes and memory.has_no_room_for_heads):
            if self._parser is not None:
                if self._queue and not self._in_request:
                    self._queue.pop()  # what was read last is refused, be it in part or whole
                self._refuse(no_room())
                self._recount()
                self._pump()
        elif self._in_request and self._is_head_whole and memory.has_little_room:
            self._is_in_line = True
            if not memory.may_read(self):
                self._waits_for_room = True
                self._pause()

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
            if not isinstance(item, Request):
                self._finish_refusal(item)
                return
            if self._table.serves_one and not queue:
                item.is_alone = True
            try:
                answer = self._handler(item)
            except (Exception, asyncio.CancelledError) as error:
                answer = self._failure(item, error)
            self._take(item, answer)

    def _take(self, request: Request, answer: Answer) -> None:
        """Write an answer, or begin to wait for it."""
        if isinstance(answer, Response):
            self._respond(request, answer)
            return
        if isinstance(answer, Pending):
            self._task = answer.future
            self._served = request
            answer.future.add_done_callback(partial(self._pending_done, request, answer))
            return
        try:
            started = eager.start(answer, self._loop)
        except (Exception, asyncio.CancelledError) as error:
            started = self._failure(request, error)
        if isinstance(started, asyncio.Task):
            self._task = started
            self._served = request
            started.add_done_callback(partial(self._task_done, request))
        else:
            self._respond(request, started)

    def _pending_done(self, request: Request, pending: Pending, _: asyncio.Future[Any]) -> None:
        self._task = self._served = None
        if self._lost:
            pending.drop()
            return
        try:
            answer: Answer = pending.end()
        except Exception as error:
            answer = self._failure(request, error)
        self._take(request, answer)
        if self._queue or self._paused or self._is_counted or self._switching or self._expects:
            self.take_turn()

    def _task_done(self, request: Request, task: asyncio.Task[Response]) -> None:
        self._task = self._served = None
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

    def take_turn(self) -> None:
        """Go on answering, and reading if it was paused."""
        self._turn_due = False
        transport = self._transport
        if self._lost or transport is None or transport.is_closing():
            return
        self._pump()
        if transport.is_closing() or self._lost:
            return
        if self._switching and self._task is None and not self._queue:
            self._decline()
        if self._paused and not self._waits_for_room and not self._is_held_up:
            self._paused = False
            # The time the server itself did not read is not the client's.
            self._begun_at += self._table.now - self._paused_at
            transport.resume_reading()
            if self._held:
                self._feed_held()
                self._recount()
                self._mind_room()
        if self._expects and self._in_request:
            self._send_continue()
        if self._is_counted:
            self._recount()

    def _failure(self, request: Request, error: BaseException) -> Response:
        if isinstance(error, PleiadError):
            return error_response(error)
        if isinstance(error, ConnectionCut):
            self._close()  # what is written to a closing transport goes nowhere
            return error_response(errors.INTERNAL())
        # Never the headers: they hold keys.
        _log.error("%s %r failed", request.method, request.raw_path, exc_info=error)
        return error_response(errors.INTERNAL())

    def _render(self, method: str, response: Response, keep_line: bytes) -> bytes:
        status = response.status
        head = self._lines.made.get(status) or self._lines.make(status)
        if status == 204 or status == 304:
            return b"%b%b%b\r\n" % (head, response.headers, keep_line)
        body = response.body
        length = len(body)
        if method == "HEAD":
            body = b""
        return b"%bContent-Length: %d\r\n%b%b\r\n%b" % (head, length, response.headers, keep_line, body)

    def _respond(self, request: Request, response: Response) -> None:
        if response.__class__ is not Response and self._respond_otherwise(request, response):
            return
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

    def _respond_otherwise(self, request: Request, response: Response) -> bool:
        """Begin an answer that is not there as a whole; false where it is an ordinary one."""
        if isinstance(response, StreamedResponse):
            self._served = request
            self._task = self._loop.create_task(self._stream(request, response))
            self._task.add_done_callback(partial(self._stream_done, request))
            return True
        if isinstance(response, SwitchedResponse) and self._switching:
            self._switch(response)
            return True
        return False  # where nothing was offered it has no status to be rendered with, and becomes a 500

    def _stream_done(self, request: Request, task: asyncio.Task[bool]) -> None:
        self._task = self._served = None
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if self._lost:
            return
        self._idle_at = self._table.now
        if error is None:
            if not task.result() or (self._table.draining and not self._queue):
                self._close()
        elif self._is_stream_begun:
            if not isinstance(error, TimeoutError):
                _log.error("%s %r failed in its answer", request.method, request.raw_path, exc_info=error)
            self.abort()  # a body without its end says that something went wrong
            return
        elif isinstance(error, TimeoutError):
            self._respond(request, error_response(errors.REQUEST_TIMEOUT(reason="The answer took too long.")))
        else:
            self._respond(request, self._failure(request, error))
        self.take_turn()

    def _close(self) -> None:
        self.send()
        self._drop_requests()
        self._is_last_said = True
        if not self._rest:
            self._end()

    def _finish_refusal(self, refusal: Response | bytes) -> None:
        """Send the last response; leave the client the time to read it before the connection goes."""
        transport = self._transport
        if self._lost or transport is None or transport.is_closing():
            return
        self._queue.clear()
        self.send()
        if isinstance(refusal, Response):
            refusal = self._render("", refusal, KEEP_LINE_CLOSE)
        self._write(refusal)
        self._linger_at = self._table.now
        self._is_last_said = True
        if not self._rest:
            self._end()

    # -- the connection table's view ---------------------------------------------------------------

    def sweep(self, now: float) -> None:
        table = self._table
        if self._linger_at is not None:
            if now - self._linger_at > LINGER_SECONDS:
                self.abort()
        elif self._write_paused:
            if now - self._stalled_at > self._limits.idle_seconds:
                self.abort()
        elif self._waits_for_room:
            if now - self._paused_at > self._limits.request_read_seconds:
                self._refuse_late(no_room())
        elif self._task is not None or self._queue:
            return
        elif self._in_request:
            is_pressed = table.is_crowded or table.memory.is_pressed
            seconds = self._limits.request_read_seconds
            if is_pressed and now - self._begun_at > min(PRESSED_SECONDS, seconds):
                self._refuse_late(no_room())
            elif now - self._begun_at > seconds:
                self._refuse_late(
                    errors.REQUEST_TIMEOUT(reason=f"The request was not received within {seconds:g} seconds.")
                )
        elif now - self._idle_at > table.idle_seconds:
            self._close()

    def _refuse_late(self, error: PleiadError) -> None:
        self._refuse(error)
        self._recount()
        self._pump()
        if self._paused:  # what the client still sends is thrown away, which takes reading it
            self.take_turn()

    def drain(self) -> None:
        if self._task is None and not self._queue and not self._in_request and self._linger_at is None:
            self._close()
