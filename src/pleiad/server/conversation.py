"""One connection of messages both ways, as plain TCP protocols and WebSocket have it.

A codec turns bytes into messages and back and knows nothing of sockets; a talk answers each message and says as much as
it likes, whenever it likes. Between them stands this: flow, memory, time limits and draining, the same for every
protocol.

Invariants
- Messages are given to the talk in the order of their arrival; at most `concurrent_max` are being answered, so with one
  the answers have the order of the messages too.
- Reading is paused while the client does not read, while `PENDING_MAX` messages or `Limits.request_bytes` of them wait,
  or while there is no room.
- A message in part must be whole within `Limits.request_read_seconds`, and sooner while others wait for room.
- After the last word nothing is answered; a client that was told one has `LINGER_SECONDS` to read it.
- What is counted in the memory of all connections is given back when the connection is lost, and its answers are
  cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, cast

from pleiad.server import eager
from pleiad.server.connections import Connection, ConnectionTable
from pleiad.server.memory import PRESSED_SECONDS
from pleiad.server.paced_writer import PacedWriter

PENDING_MAX = 32
LINGER_SECONDS = 2.0
MESSAGE_BYTES = 128
"""What a message takes in memory beside its content."""
UNSENT_BYTES_MAX = 65_536

_log = logging.getLogger("pleiad.server")

Message = bytes | str


class Refusal(Exception):
    """The client broke the protocol: its last word, and the end of the connection."""

    def __init__(self, last_word: bytes = b"") -> None:
        super().__init__("the client broke the protocol")
        self.last_word = last_word


class ConversationOver(Exception):
    """Nothing more can be said: the client is gone, or the last word was said."""


class Codec(Protocol):
    """Bytes to messages and back, for one connection."""

    @property
    def held_bytes(self) -> int:
        """What it keeps of a message in part."""

    @property
    def is_in_part(self) -> bool:
        """Whether a message has begun and not ended."""

    def read(self, data: bytes) -> tuple[list[Message], bytes]:
        """The messages that end in the data, and what the protocol itself has to answer.

        Raises `Refusal` when this is not the protocol, or a message is larger than it may be.
        """

    @property
    def is_over(self) -> bool:
        """Whether the client has said goodbye."""

    def write(self, message: Message) -> bytes:
        """A message as bytes."""

    def probe(self) -> bytes:
        """What a living client answers by itself; empty where the protocol has nothing of the kind."""

    def goodbye(self) -> bytes:
        """What is said before an idle or draining connection is closed."""

    def no_room(self) -> bytes:
        """What is said to a client that has to go because there is no memory or no time for its message."""

    def failure(self) -> bytes:
        """What is said when answering has failed."""


Talk = Callable[[Any], Coroutine[Any, Any, None]]
"""Answers one message; what it has to say it says to its conversation."""


class Conversation(PacedWriter, Connection):
    """A connection of messages."""

    __slots__ = (
        "_bodies_bytes",
        "_codec",
        "_heard_at",
        "_is_in_line",
        "_is_probed",
        "_listens",
        "_part_since",
        "_paused",
        "_paused_at",
        "_queue",
        "_running",
        "_talk",
        "_turn_due",
        "_waits_for_room",
        "concurrent_max",
        "peer",
        "secure",
    )

    def __init__(
        self,
        table: ConnectionTable,
        codec: Codec,
        begin: Callable[[Conversation], Talk],
        secure: bool,
        concurrent_max: int = 1,
    ) -> None:
        super().__init__(table)
        self._codec = codec
        self.secure = secure
        self.concurrent_max = concurrent_max
        self.peer = ""
        self._queue: deque[Message] = deque()
        self._running: dict[asyncio.Task[None], Message] = {}
        self._turn_due = False
        self._paused = False
        self._bodies_bytes = 0
        self._is_in_line = False
        self._waits_for_room = False
        self._heard_at = self._paused_at = self._part_since = table.now
        self._is_probed = False
        # whether the client's goodbye is waited for after ours
        self._listens = False
        self._talk = begin(self)

    async def say(self, message: Message) -> None:
        """Send a message; returns when the client keeps up. Raises `ConversationOver` when it cannot be sent."""
        if self._lost or self._is_last_said:
            raise ConversationOver
        self._put(self._codec.write(message))
        if self._write_paused:
            await self._client_reads()

    # -- transport callbacks ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peername = transport.get_extra_info("peername")
        if isinstance(peername, tuple) and peername:
            self.peer = str(peername[0])
        if self._table.draining:
            self.drain()

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.remove(self)
        self._forget_unsent()
        self._queue.clear()
        for task in self._running:
            task.cancel()
        self._recount()

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        if self._is_last_said:
            self._hear_goodbye(data)
            return
        self._heard_at = self._table.now
        self._is_probed = False
        was_in_part = self._codec.is_in_part
        try:
            messages, reply = self._codec.read(data)
        except Refusal as refusal:
            self._finish(refusal.last_word)
            return
        self._put(reply)
        self._queue.extend(messages)
        if messages or not was_in_part:
            self._part_since = self._table.now
        if self._codec.is_over:
            self._finish(b"")
            return
        if self._queue:
            self._schedule_turn()
        self._recount()
        if self._has_enough:
            self._pause()
        self._mind_room()

    def _hear_goodbye(self, data: bytes) -> None:
        """After the last word what comes is thrown away, so that the client can read it; its own goodbye ends it."""
        if self._listens and self._transport is not None:
            with contextlib.suppress(Refusal):
                self._codec.read(data)
            if self._codec.is_over:
                self._listens = False
                self._transport.close()

    def pause_writing(self) -> None:
        self._pause()
        self._pause_writing()

    def resume_writing(self) -> None:
        if self._resume_writing():
            self.take_turn()

    # -- flow ------------------------------------------------------------------------------------

    def _put(self, data: bytes) -> None:
        """Write at the end of this turn of the loop, together with what else is said in it."""
        if not data:
            return
        if self._unsent:
            self._unsent += data
        else:
            self._unsent = data
            self._table.send_later(self)
        if len(self._unsent) > UNSENT_BYTES_MAX:
            self.send()

    def _pause(self) -> None:
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = True
            self._paused_at = self._table.now
            self._transport.pause_reading()

    def _schedule_turn(self) -> None:
        if not self._turn_due:
            self._turn_due = True
            self._table.answer_later(self)

    def take_turn(self) -> None:
        """Go on answering, and reading if it was paused."""
        self._turn_due = False
        transport = self._transport
        if self._lost or transport is None or transport.is_closing():
            return
        self._answer()
        self._recount()
        is_held_up = self._write_paused or self._waits_for_room or self._has_enough
        if self._paused and not is_held_up:
            self._paused = False
            # The time the server itself did not read is not the client's.
            self._part_since += self._table.now - self._paused_at
            self._heard_at += self._table.now - self._paused_at
            transport.resume_reading()
        if self._table.draining:
            self.drain()

    @property
    def _has_enough(self) -> bool:
        """Whether so much waits that no more is to be read."""
        return len(self._queue) >= PENDING_MAX or self._bodies_bytes > self._table.limits.request_bytes

    def _answer(self) -> None:
        budget = PENDING_MAX
        while self._queue and len(self._running) < self.concurrent_max and not self._write_paused:
            if self._is_last_said:
                return
            if budget == 0:
                self._schedule_turn()
                return
            budget -= 1
            message = self._queue.popleft()
            try:
                started = eager.start(self._talk(message), self._table.loop)
            except (Exception, asyncio.CancelledError) as error:
                self._fail(error)
                return
            if isinstance(started, asyncio.Task):
                self._running[started] = message
                started.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if self._lost:
            return
        self._heard_at = self._table.now
        if error is not None:
            self._fail(error)
        self.take_turn()

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, Refusal):
            self._finish(error.last_word)
        elif not isinstance(error, ConversationOver):
            # Never the message: it may hold keys.
            _log.error("answering a message failed", exc_info=error)
            self._finish(self._codec.failure())

    def _finish(self, last_word: bytes, listens: bool = False) -> None:
        """Say the last word, and leave the client the time to read it; where there is none, close."""
        if self._is_last_said or self._lost:
            return
        self._put(last_word)
        self.send()
        self._queue.clear()
        self._is_last_said = True
        self._listens = listens
        self._linger_at = self._table.now if last_word else None
        for task in self._running:
            task.cancel()
        self._wake()
        self._recount()
        if self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()
        if not self._rest:
            self._end()

    # -- memory ----------------------------------------------------------------------------------

    def _recount(self) -> None:
        """Tell the table what this connection keeps in memory now."""
        waiting = [*self._queue, *self._running.values()]
        size_bytes = 0 if self._lost else sum(map(len, waiting)) + MESSAGE_BYTES * len(waiting)
        if not self._lost and not self._is_last_said:
            size_bytes += self._codec.held_bytes
        more = size_bytes - self._bodies_bytes
        if more:
            self._bodies_bytes = size_bytes
            self._table.memory.count(0, more)
        if self._is_in_line and (self._lost or self._is_last_said or not self._codec.is_in_part):
            self._is_in_line = self._waits_for_room = False
            self._table.memory.leave(self)

    def _mind_room(self) -> None:
        """Wait for room in the middle of a message, and go where there is none at all."""
        memory = self._table.memory
        if memory.has_no_room_for_bodies:
            self._finish(self._codec.no_room())
        elif memory.has_little_room and self._codec.is_in_part:
            self._is_in_line = True
            if not memory.may_read(self):
                self._waits_for_room = True
                self._pause()

    def read_on(self) -> None:
        """There is room again."""
        self._waits_for_room = False
        self._schedule_turn()

    # -- the connection table's view ---------------------------------------------------------------

    def sweep(self, now: float) -> None:
        table, limits = self._table, self._table.limits
        if self._linger_at is not None:
            if now - self._linger_at > LINGER_SECONDS:
                self.abort()
        elif self._write_paused:
            if now - self._stalled_at > limits.idle_seconds:
                self.abort()
        elif self._waits_for_room:
            if now - self._paused_at > limits.request_read_seconds:
                self._finish(self._codec.no_room())
        elif self._paused:
            return
        elif self._codec.is_in_part:
            seconds = limits.request_read_seconds
            if table.is_crowded or table.memory.is_pressed:
                seconds = min(PRESSED_SECONDS, seconds)
            if now - self._part_since > seconds:
                self._finish(self._codec.no_room())
        elif not self._running and not self._queue:
            self._sweep_idle(now - self._heard_at)

    def _sweep_idle(self, idle_seconds: float) -> None:
        """Close who is not there any more: who has said nothing, and has not answered a probe."""
        if idle_seconds > self._table.idle_seconds:
            self._finish(self._codec.goodbye(), listens=True)
        elif not self._is_probed and idle_seconds > self._table.idle_seconds / 2:
            self._is_probed = True
            self._put(self._codec.probe())

    def drain(self) -> None:
        if not self._running and not self._queue and not self._codec.is_in_part:
            self._finish(self._codec.goodbye(), listens=True)
