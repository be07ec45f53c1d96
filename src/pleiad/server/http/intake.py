"""What a connection holds of requests, and what it tells the memory of all connections about it."""

from __future__ import annotations

from abc import abstractmethod

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.server.connections import ConnectionTable
from pleiad.server.http.message import Request
from pleiad.server.http.request_reader import head_bytes
from pleiad.server.http.status_lines import StatusLines
from pleiad.server.http.stream_writer import StreamWriter
from pleiad.server.memory import RETRY_AFTER_MS


class Intake(StreamWriter):
    """The requests of a connection that are not answered, be they in part, in line or at work."""

    __slots__ = (
        "_bodies_bytes",
        "_heads_bytes",
        "_held",
        "_is_counted",
        "_is_in_line",
        "_paused",
        "_paused_at",
        "_served",
        "_turn_due",
        "_waits_for_room",
    )

    def __init__(self, table: ConnectionTable, secure: bool, lines: StatusLines) -> None:
        super().__init__(table, secure, lines)
        self._served: Request | None = None
        self._turn_due = False
        # flow
        self._held = b""
        self._paused = False
        self._paused_at = table.now
        # what the table's memory counts for this connection
        self._heads_bytes = 0
        self._bodies_bytes = 0
        self._is_counted = False
        self._is_in_line = False
        self._waits_for_room = False

    def read_on(self) -> None:
        """There is room again."""
        self._waits_for_room = False
        self._schedule_turn()

    def _schedule_turn(self) -> None:
        """Let other connections have their turn before going on."""
        if not self._turn_due:
            self._turn_due = True
            self._table.answer_later(self)

    @abstractmethod
    def take_turn(self) -> None:
        """Go on answering, and reading if it was paused."""

    def _pause(self) -> None:
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = True
            self._paused_at = self._table.now
            self._transport.pause_reading()

    def _drop_requests(self) -> None:
        """Nothing more is read or answered here."""
        self._stop_parsing()
        self._held = b""
        self._queue.clear()
        self._recount()

    def _recount(self) -> None:
        """Tell the table what this connection keeps in memory now."""
        heads_bytes = bodies_bytes = 0
        if self._in_request and not self._is_head_whole:
            heads_bytes = self._part_bytes
        elif self._in_request:
            bodies_bytes = self._part_bytes
        if self._queue or self._served is not None:
            waiting = [item for item in self._queue if isinstance(item, Request)]
            if self._served is not None and not self._lost:
                waiting.append(self._served)
            bodies_bytes += sum([len(each.body) + head_bytes(each.headers) for each in waiting])
        bodies_bytes += len(self._held)
        if bodies_bytes and self._paused and self._transport is not None:
            bodies_bytes += self._transport.get_extra_info("unread_bytes", 0)
        heads_more, bodies_more = heads_bytes - self._heads_bytes, bodies_bytes - self._bodies_bytes
        if heads_more or bodies_more:
            self._heads_bytes, self._bodies_bytes = heads_bytes, bodies_bytes
            self._is_counted = heads_bytes + bodies_bytes > 0
            self._table.memory.count(heads_more, bodies_more)
        if self._is_in_line and not self._in_request:
            self._is_in_line = self._waits_for_room = False
            self._table.memory.leave(self)


def no_room() -> PleiadError:
    return errors.UNAVAILABLE(
        reason="The server has no room for the request now; retry.", retry_after_ms=RETRY_AFTER_MS
    )
