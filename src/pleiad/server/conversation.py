"""One connection of messages both ways, as plain TCP protocols and WebSocket have it.

A codec turns bytes into messages and back and knows nothing of sockets; a talk answers each message and says as much as
it likes, whenever it likes. Between them stands this: flow, memory, time limits and draining, the same for every
protocol.

Invariants
- Messages are given to the talk in the order of their arrival; at most `concurrent_max` are being answered, so with one
  the answers have the order of the messages too.
- Reading is paused while the client does not read, while `PENDING_MAX` messages or `Limits.request_bytes` of them wait
  or are being answered, or while there is no room. A message in part alone never pauses it: nothing would go on.
- Draining, what has come is answered, and nothing more is read but the rest of a message in part.
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
from collections.abc import Callable, Coroutine, Sequence, Sized
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
UNCOUNTED_BYTES = 4 * 1024
"""Whole messages up to this, which is what nearly all are, are not counted while they wait."""

_log = logging.getLogger("pleiad.server")

Message = bytes | str
"""What is said. What is heard may be anything whose length is what it takes in memory."""


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

    def read(self, data: bytes) -> tuple[Sequence[Sized], bytes]:
        """The messages that end in the data, and what the protocol itself has to answer.

        Raises `Refusal` when this is not the protocol, or a message is larger than it may be.
        """

    @property
    def is_over(self) -> bool:
        """Whether the client has said goodbye."""

    def forget(self) -> None:
        """Nothing more is read: give back what is kept of a message in part, and do not wait for the collector."""

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


class PlainCodec:
    """The half of a codec whose protocol has no words of its own: messages are bytes already, and it ends unsaid."""

    __slots__ = ()

    @property
    def is_over(self) -> bool:
        return False

    def write(self, message: Message) -> bytes:
        assert isinstance(message, bytes)
        return message

    def probe(self) -> bytes:
        return b""

    def goodbye(self) -> bytes:
        return b""

    def no_room(self) -> bytes:
        return b""

    def failure(self) -> bytes:
        return b""


Talk = Callable[[Any], Coroutine[Any, Any, None] | None]
"""Answers one message, at once or by a coroutine; what it has to say it says to its conversation."""


class Conversation(PacedWriter, Connection):
    """A connection of messages."""

    __slots__ = (
        "_bodies_bytes",
        "_codec",
        "_heard_at",
        "_is_apart",
        "_is_in_line",
        "_is_probed",
        "_listens",
        "_part_since",
        "_paused",
        "_paused_at",
        "_queue",
        "_reads_no_more",
        "_running",
        "_talk",
        "_turn_due",
        "_waiting_bytes",
        "_waits_for_room",
        "_was_in_part",
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
        is_apart: bool = False,
    ) -> None:
        super().__init__(table)
        self._is_apart = is_apart
        self._codec = codec
        self.secure = secure
        self.concurrent_max = concurrent_max
        self.peer = ""
        self._queue: deque[tuple[Sized, int]] = deque()
        """The messages that wait, with what they take in memory."""
        # what is being answered, with its size; and the sizes of these and of the queue together
        self._running: dict[asyncio.Task[None], int] = {}
        self._waiting_bytes = 0
        self._turn_due = False
        self._paused = False
        self._reads_no_more = False
        self._bodies_bytes = 0
        self._is_in_line = False
        self._waits_for_room = False
        self._heard_at = self._paused_at = self._part_since = table.now
        self._is_probed = False
        self._was_in_part = codec.is_in_part
        # whether the client's goodbye is waited for after ours
        self._listens = False
        self._talk = begin(self)

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be said."""
        return self._lost or self._is_last_said

    async def say(self, message: Message) -> None:
        """Send a message; returns when the client keeps up. Raises `ConversationOver` when it cannot be sent."""
        self.say_now(message)
        if self._write_paused:
            await self._client_reads()

    def say_now(self, message: Message) -> None:
        """The same for the one answer to a message: the next is not asked for before the client keeps up."""
        if self.is_over:
            raise ConversationOver
        self._put(self._codec.write(message))

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
        self._codec.forget()
        for task in self._running:
            task.cancel()
        self._recount()

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        if self._is_last_said:
            self._hear_goodbye(data)
            return
        table, codec, queue = self._table, self._codec, self._queue
        self._heard_at = table.now
        self._is_probed = False
        was_in_part = self._was_in_part
        try:
            messages, reply = codec.read(data)
        except Refusal as refusal:
            self._finish(refusal.last_word)
            return
        if reply:
            self._put(reply)
        for message in messages:
            size_bytes = len(message) + MESSAGE_BYTES
            queue.append((message, size_bytes))
            self._waiting_bytes += size_bytes
        is_in_part = self._was_in_part = codec.is_in_part
        if messages or not was_in_part:
            self._part_since = table.now
        if codec.is_over:
            self._finish(b"")
            return
        if queue and not self._turn_due:
            self._schedule_turn()
        if self._bodies_bytes or self._waiting_bytes > UNCOUNTED_BYTES or self._is_in_line or is_in_part:
            self._recount()
            if self._has_enough:
                self._pause()
        if table.memory.has_little_room:
            self._mind_room()
        if table.draining:
            self._reads_no_more = self._reads_no_more or bool(messages)
            self.drain()

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
        """Write at the end of this turn of the loop, together with what else is said in it, or apart from that."""
        if not data:
            return
        if self._unsent and self._is_apart:
            self.send()
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
        if self._bodies_bytes or self._is_in_line:
            self._recount()
        if self._paused and not self._is_held_up:
            self._paused = False
            # The time the server itself did not read is not the client's.
            self._part_since += self._table.now - self._paused_at
            self._heard_at += self._table.now - self._paused_at
            transport.resume_reading()
        if self._table.draining:
            self.drain()

    @property
    def _is_held_up(self) -> bool:
        """Whether nothing is to be read now: answers first, or room."""
        return self._write_paused or self._waits_for_room or self._has_enough or self._reads_no_more

    @property
    def _has_enough(self) -> bool:
        """Whether so much waits that no more is to be read."""
        is_much = self._waiting_bytes > 0 and self._bodies_bytes > self._table.limits.request_bytes
        return is_much or len(self._queue) >= PENDING_MAX

    def _answer(self) -> None:
        budget = PENDING_MAX
        queue, running = self._queue, self._running
        while queue and len(running) < self.concurrent_max and not self._write_paused:
            if self._is_last_said:
                return
            if budget == 0:
                self._schedule_turn()
                return
            budget -= 1
            message, size_bytes = queue.popleft()
            try:
                begun = self._talk(message)
                started = None if begun is None else eager.start(begun, self._table.loop)
            except (Exception, asyncio.CancelledError) as error:
                self._waiting_bytes -= size_bytes
                self._fail(error)
                return
            if isinstance(started, asyncio.Task):
                running[started] = size_bytes
                started.add_done_callback(self._answered)
            else:
                self._waiting_bytes -= size_bytes

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._waiting_bytes -= self._running.pop(task)
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
        self._waiting_bytes -= sum([size_bytes for _, size_bytes in self._queue])
        self._queue.clear()
        self._is_last_said = True
        self._listens = listens and bool(last_word)
        if not self._listens:
            self._codec.forget()
        # What came and was not read would make the socket take back what it was given.
        is_unread = self._reads_no_more and self._paused
        self._linger_at = self._table.now if last_word or is_unread else None
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
        size_bytes = 0 if self._lost else self._waiting_bytes
        if not (self._lost or self._is_last_said):
            size_bytes += self._codec.held_bytes
            if self._paused and size_bytes and self._transport is not None:
                size_bytes += self._transport.get_extra_info("unread_bytes", 0)
        more = size_bytes - self._bodies_bytes
        if more:
            self._bodies_bytes = size_bytes
            self._table.memory.count(0, more)
        if self._is_in_line and (self.is_over or not self._codec.is_in_part):
            self._is_in_line = self._waits_for_room = False
            self._table.memory.leave(self)

    def _mind_room(self) -> None:
        """Where there is little room wait for it in the middle of a message, and go where there is none at all."""
        memory = self._table.memory
        if memory.has_no_room_for_bodies:
            self._finish(self._codec.no_room())
        elif self._codec.is_in_part:
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
        self._reads_no_more = self._reads_no_more or not self._codec.is_in_part
        if self.is_over or not self._reads_no_more:
            return
        if self._running or self._queue:
            self._pause()
        else:
            self._finish(self._codec.goodbye(), listens=True)
