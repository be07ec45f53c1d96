"""The memory that all connections of a server together may take, and who has to wait for room in it.

Three sums are kept, each told by the connections themselves:
- heads: requests whose headers have begun and not ended. Who would pass `Limits.heads_bytes` is refused.
- bodies: everything received and not answered: bodies in part, requests that wait behind others, the one being
  answered. Beyond `Limits.bodies_bytes` connections stop reading and wait in line; beyond that and
  `OVERRUN_BODIES` bodies more a request is refused, whoever sends it.
- unsent: answers that clients do not read, in whole pieces of `SEND_BYTES`, since a transport keeps a piece until it
  is sent. Beyond half of `Limits.unsent_bytes` who has read nothing for
  `UNREAD_SECONDS` is cut, beyond all of it who has read nothing for the longest time.

Invariants
- A body in part holds room, and so might all that wait: therefore one connection, the head of the line, may always
  read on. It ends by itself or by its time limit, which is short while others wait, and the next one has its turn.
- What a connection was counted for is given back when it is lost, whatever it was doing.
"""

from __future__ import annotations

from typing import Protocol

from pleiad.limits import Limits

OVERRUN_BODIES = 4
"""Reads that were under way when the room ran out, and the body of the head of the line, end above the budget."""
READ_BYTES = 256 * 1024
"""What one read of a socket may bring."""
SEND_BYTES = 128 * 1024
"""What is given to a transport at once."""
PRESSED_SECONDS = 5.0
"""The time to send a request while others wait for room or for a connection."""
UNREAD_SECONDS = 2.0
RETRY_AFTER_MS = 1_000


class Reader(Protocol):
    """A connection that reads bodies and may have to wait for room."""

    def read_on(self) -> None:
        """There is room again."""


class Writer(Protocol):
    """A connection whose client does not read."""

    @property
    def unsent_bytes(self) -> int:
        """What waits in memory to be sent."""

    def abort(self) -> None:
        """Close the connection at once."""


class Memory:
    """The sums of one server."""

    def __init__(self, limits: Limits) -> None:
        self.heads_bytes = 0
        self.bodies_bytes = 0
        self.unsent_bytes = 0
        self._heads_bytes_max = limits.heads_bytes
        self._bodies_bytes_max = limits.bodies_bytes
        self._bodies_bytes_end = limits.bodies_bytes + OVERRUN_BODIES * limits.request_bytes
        self._unsent_bytes_max = limits.unsent_bytes
        self._first: Reader | None = None
        self._line: dict[Reader, None] = {}
        self._unread: dict[Writer, tuple[int, float]] = {}
        """Bytes, and since when nothing was read of them; who has read nothing for the longest time is first."""

    # -- heads and bodies -----------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether one of the budgets is used up."""
        return self.bodies_bytes > self._bodies_bytes_max or self.heads_bytes > self._heads_bytes_max

    @property
    def has_no_room_for_heads(self) -> bool:
        return self.heads_bytes > self._heads_bytes_max

    @property
    def has_no_room_for_bodies(self) -> bool:
        return self.bodies_bytes > self._bodies_bytes_end

    @property
    def has_little_room(self) -> bool:
        return self.bodies_bytes > self._bodies_bytes_max

    @property
    def is_pressed(self) -> bool:
        """Whether somebody waits for room."""
        return bool(self._line)

    def count(self, heads_bytes: int, bodies_bytes: int) -> None:
        """Adds what a connection has taken, or what it has given back."""
        self.heads_bytes += heads_bytes
        self.bodies_bytes += bodies_bytes
        if bodies_bytes < 0 and self._line:
            self._let_go_on()

    def may_read(self, reader: Reader) -> bool:
        """Whether a connection in the middle of a body may read on; if not, it stands in line."""
        if not self.has_little_room or self._first is reader:
            return True
        if self._first is None and not self._line:
            self._first = reader
            return True
        self._line[reader] = None
        return False

    def leave(self, reader: Reader) -> None:
        """A connection has its body, or is gone."""
        if self._first is reader:
            self._first = None
        self._line.pop(reader, None)
        if self._line:
            self._let_go_on()

    def _let_go_on(self) -> None:
        room_reads = (self._bodies_bytes_max - self.bodies_bytes) // READ_BYTES
        while self._line and (room_reads > 0 or self._first is None):
            reader = next(iter(self._line))
            del self._line[reader]
            if self._first is None:
                self._first = reader
            room_reads -= 1
            reader.read_on()

    # -- answers that are not read ------------------------------------------------------------------

    def note_unsent(self, writer: Writer, now: float) -> None:
        """A client does not read as fast as it is answered; asked again, it says whether the client has read since."""
        bytes_before, since = self._unread.get(writer, (0, now))
        size = writer.unsent_bytes
        self.unsent_bytes += _in_pieces(size) - _in_pieces(bytes_before)
        if size < bytes_before:
            del self._unread[writer]
            since = now
        self._unread[writer] = (size, since)
        while self.unsent_bytes > self._unsent_bytes_max:
            self._cut(next(iter(self._unread)))

    def forget_unsent(self, writer: Writer) -> None:
        """A client has read, or is gone."""
        self.unsent_bytes -= _in_pieces(self._unread.pop(writer, (0, 0.0))[0])

    def sweep(self, now: float) -> None:
        """Looks again at who does not read."""
        for writer in list(self._unread):
            if writer in self._unread:
                self.note_unsent(writer, now)
        while self.unsent_bytes * 2 > self._unsent_bytes_max:
            writer, (_, since) = next(iter(self._unread.items()))
            if now - since < UNREAD_SECONDS:
                break
            self._cut(writer)

    def _cut(self, writer: Writer) -> None:
        self.forget_unsent(writer)
        writer.abort()


def _in_pieces(size_bytes: int) -> int:
    """The memory of so many bytes that wait to be sent."""
    return -(-size_bytes // SEND_BYTES) * SEND_BYTES
