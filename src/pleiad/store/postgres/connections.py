"""Connections to PostgreSQL: how many there are, how long anybody waits, and what a failure means.

Invariants:
- a request that gets no connection in `wait_seconds` is UNAVAILABLE, and nothing was sent;
- nothing waits for an answer longer than `deadline_seconds`: then the socket is shut. A cancel request is never sent
  for a write, because PostgreSQL answers a cancelled wait for its standbys with success;
- a write whose answer did not come, or came with a warning, has an unknown outcome and is REQUEST_TIMEOUT: never a
  success, and never sent again;
- a broken connection is never used again, and the next request makes a new one;
- while no more connections can be made, those that are there serve everybody in turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import pq
from psycopg.types.numeric import Int8Dumper

from pleiad import errors
from pleiad.store.postgres import arrays
from pleiad.store.postgres.database import StoreUnreachableError
from pleiad.store.problems import DISK, UNREACHABLE, Problems

_T = TypeVar("_T")
Connection = psycopg.AsyncConnection[Any]

_RETRY_SECONDS = 0.1
_ATTEMPTS = 3
_LOOK_SECONDS = 2.0
_PREPARED_MAX = 400
_LOST_A_RACE = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
UNKNOWN = "The store did not answer in time whether the write took place; read the item to find out."
_LATE = "The store did not answer in time."
_UNREACHABLE = "The store cannot be reached; nothing was changed."
_BUSY = "The store is busy; nothing was changed."

# Commits are durable whatever the server's default is; a stricter one is kept. Texts travel as UTF-8. Plans are
# kept while tables grow, so they follow the indexes and the order of the joins as written, not what the tables held at
# first. A server that loses its client stops working for it.
_SETUP = """SELECT set_config('default_transaction_isolation', 'read committed', false),
  set_config('client_encoding', 'UTF8', false),
  set_config('synchronous_commit', CASE current_setting('synchronous_commit')
    WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false),
  set_config('jit', 'off', false), set_config('enable_seqscan', 'off', false),
  set_config('enable_hashjoin', 'off', false), set_config('enable_mergejoin', 'off', false),
  set_config('join_collapse_limit', '1', false),
  set_config('client_connection_check_interval', '2s', false),
  set_config('idle_in_transaction_session_timeout', '30s', false)"""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How many connections a server has and how long it waits."""

    connections_max: int = 10
    wait_seconds: float = 5.0
    deadline_seconds: float = 30.0


class Connections:
    """The connections of one server, made when needed and kept for the next request."""

    def __init__(self, dsn: str, settings: ConnectionSettings, problems: Problems | None = None) -> None:
        self._dsn = dsn
        self.problems = problems or Problems()
        self.outage = self.problems.outage(UNREACHABLE)
        self.disk = self.problems.outage(DISK)
        self._settings = settings
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._count = 0
        self._warned: set[Connection] = set()
        self._overdue: set[Connection] = set()
        self._closed = False

    @property
    def most(self) -> int:
        return self._settings.connections_max

    def figures(self) -> tuple[int, int, int]:
        """How many connections are used and how many are not, and how many wait for one."""
        return self._count - len(self._idle), len(self._idle), len(self._waiting)

    # -- working -------------------------------------------------------------------------------

    async def read(self, work: Callable[[Connection], Awaitable[_T]]) -> _T:
        """Runs something that changes nothing; it is tried again when its connection broke."""
        for attempt in range(_ATTEMPTS):
            connection = await self.take()
            try:
                return await self._run(connection, work, self._settings.deadline_seconds)
            except psycopg.OperationalError as error:
                if connection in self._overdue:
                    self._overdue.discard(connection)
                    raise errors.REQUEST_TIMEOUT(reason=_LATE) from error
                is_repeatable = connection.closed or isinstance(error, _LOST_A_RACE)
                if not is_repeatable or attempt == _ATTEMPTS - 1:
                    raise errors.UNAVAILABLE(reason=_UNREACHABLE) from error
            except psycopg.errors.ReadOnlySqlTransaction as error:
                await self._leave_standby()
                raise errors.UNAVAILABLE(reason=_UNREACHABLE) from error
        raise AssertionError("the last attempt returns or raises")

    async def write(self, work: Callable[[Connection], Awaitable[_T]]) -> _T:
        """Runs a change that is durable when this returns.

        REQUEST_TIMEOUT when nobody can tell whether it took place. A failure of the server's own, psycopg.Error, means
        that it did not; one that a second try would not meet is tried again.
        """
        for attempt in range(_ATTEMPTS):
            connection = await self.take()
            self._warned.discard(connection)
            try:
                answer = await self._run(connection, work, self._settings.deadline_seconds)
            except _LOST_A_RACE:
                if attempt == _ATTEMPTS - 1:
                    raise errors.UNAVAILABLE(reason=_BUSY) from None
                await asyncio.sleep(_RETRY_SECONDS)  # so that the winner goes first
                continue
            except psycopg.errors.ReadOnlySqlTransaction as error:
                await self._leave_standby()
                raise errors.UNAVAILABLE(reason=_UNREACHABLE) from error
            except psycopg.Error as error:
                self._overdue.discard(connection)
                if connection.closed:
                    raise errors.REQUEST_TIMEOUT(reason=UNKNOWN) from error
                raise
            if connection in self._warned:
                raise errors.REQUEST_TIMEOUT(reason=UNKNOWN)
            self.disk.recovered()
            return answer
        raise AssertionError("the last attempt returns or raises")

    async def _run(
        self, connection: Connection, work: Callable[[Connection], Awaitable[_T]], seconds: float
    ) -> _T:
        deadline = asyncio.get_running_loop().call_later(seconds, self._give_up, connection)
        try:
            return await work(connection)
        finally:
            deadline.cancel()
            await self.give_back(connection)

    def _give_up(self, connection: Connection) -> None:
        self._overdue.add(connection)
        _shut(connection)

    def in_time(self, connection: Connection) -> AbstractContextManager[None]:
        """A block in which the server must answer on a connection that was taken; it breaks when the time is over."""
        return in_time(connection, self._settings.deadline_seconds)

    async def is_there(self) -> bool:
        """Whether the server answers, and takes writes, in a moment."""

        async def look(connection: Connection) -> bool:
            rows = await (await connection.execute("SELECT pg_is_in_recovery()")).fetchall()
            return not rows[0][0]

        await _become_a_task()
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                return await self.read(look)
        except (TimeoutError, psycopg.Error, errors.PleiadError):
            return False

    # -- connections ---------------------------------------------------------------------------

    async def open(self) -> None:
        """Makes the first connection; StoreUnreachableError says why it cannot be made."""
        end = asyncio.get_running_loop().time() + self._settings.wait_seconds
        try:
            self._idle.append(await self._connect(end))
        except (psycopg.OperationalError, TimeoutError) as error:
            raise StoreUnreachableError(f"the PostgreSQL server does not answer: {error}") from error
        self._count += 1

    async def take(self) -> Connection:
        """A connection that nobody else uses until it is given back."""
        end = asyncio.get_running_loop().time() + self._settings.wait_seconds
        while not self._closed:
            while self._idle:
                connection = self._idle.pop()
                if _is_alive(connection):
                    return connection
                await self._discard(connection)
            if self._count < self._settings.connections_max:
                made = await self._connect_until(end)
                if made is not None:
                    return made
            else:
                await self._wait_for_one(end)
        raise errors.UNAVAILABLE(reason="The server is stopping.")

    async def _wait_for_one(self, end: float) -> None:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        try:
            await _become_a_task()
            await asyncio.wait_for(turn, max(0.0, end - loop.time()))
        except TimeoutError:
            raise errors.UNAVAILABLE(reason=_BUSY) from None
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._wake_one()
            raise
        finally:
            with contextlib.suppress(ValueError):
                self._waiting.remove(turn)

    def _wake_one(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def _connect_until(self, end: float) -> Connection | None:
        """A new connection; tried again for a while, so that a restart of the server is a pause and no failure.

        None when the server takes no more of them and one that is there has become free.
        """
        loop = asyncio.get_running_loop()
        self._count += 1
        try:
            await _become_a_task()
            while True:
                try:
                    return await self._connect(end)
                except (psycopg.OperationalError, TimeoutError) as error:
                    if not self._idle and (loop.time() + _RETRY_SECONDS >= end or self._closed):
                        self.outage.failed(f"the PostgreSQL server does not answer: {error or 'no answer'}")
                        raise errors.UNAVAILABLE(reason=_UNREACHABLE) from error
                if self._idle:
                    break
                await asyncio.sleep(_RETRY_SECONDS)
        except BaseException:
            self._count -= 1
            self._wake_one()
            raise
        self._count -= 1
        return None

    def refusal(self, error: Exception) -> errors.PleiadError:
        """What a client is told of a write that the server refused."""
        if isinstance(error, psycopg.errors.DiskFull):
            self.disk.failed(f"the disk of the PostgreSQL server is full: {error}")
            return errors.STORE_FULL()
        return errors.UNAVAILABLE(reason="The store could not write; nothing was changed.")

    async def _connect(self, end: float) -> Connection:
        async with asyncio.timeout_at(end):
            connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
        try:
            connection.adapters.register_dumper(int, Int8Dumper)
            arrays.register(connection)
            connection.prepared_max = _PREPARED_MAX
            connection.add_notice_handler(lambda notice: self._note(connection, notice))
            with in_time(connection, end - asyncio.get_running_loop().time()):
                await connection.execute(_SETUP)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _note(self, connection: Connection, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self._warned.add(connection)

    async def give_back(self, connection: Connection) -> None:
        """Lets others have a connection; a broken one, or one in a transaction, is closed."""
        is_usable = (
            not connection.closed
            and connection.info.transaction_status == pq.TransactionStatus.IDLE
            and not self._closed
        )
        if is_usable:
            self._idle.append(connection)
        else:
            await self._discard(connection)
        self._wake_one()

    async def _discard(self, connection: Connection) -> None:
        self._count -= 1
        self._warned.discard(connection)
        self._overdue.discard(connection)
        with contextlib.suppress(psycopg.Error):
            await connection.close()

    async def _leave_standby(self) -> None:
        """The connections are made anew, to find the server that takes writes."""
        await self._close_idle()

    async def _close_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            await self._discard(connection)

    async def close(self) -> None:
        """Closes the connections nobody uses; the others close when they are given back."""
        self._closed = True
        await self._close_idle()
        while self._waiting:
            self._wake_one()


async def _become_a_task() -> None:
    """The first step of a request may run outside a task (see `server.eager`), where nothing can be timed."""
    if asyncio.current_task() is None:
        await asyncio.sleep(0)


def _is_alive(connection: Connection) -> bool:
    """Whether the server has said nothing since the last answer: what it says unasked is goodbye."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


@contextlib.contextmanager
def in_time(connection: Connection, seconds: float) -> Iterator[None]:
    """A block in which the server must answer; after so many seconds the connection breaks."""
    deadline = asyncio.get_running_loop().call_later(seconds, _shut, connection)
    try:
        yield
    finally:
        deadline.cancel()


def _shut(connection: Connection) -> None:
    """Ends a connection whose answer is overdue: whoever waits for it learns at once that it is lost."""
    with contextlib.suppress(OSError, psycopg.Error):
        duplicate = socket.socket(fileno=os.dup(connection.fileno()))
        with contextlib.closing(duplicate):
            duplicate.shutdown(socket.SHUT_RDWR)
