"""What all connections of one server share, on whichever listener: limits, memory, the clock, and the table of them.

A connection is taken while there are fewer than `Limits.connections` and fewer than `Limits.connections_per_address`
of its address (of its /64 network, where that is IPv6), and while enough descriptors are free for other files; all of
this in proportion where the process may open fewer files. Others are told 503, a few of each address at a time. When
three quarters of the places are taken, idle connections and slow requests are given less time.

Invariants
- There is one timer per server. It sweeps every connection; no request owns a timer.
- The clock advances by at most two sweep periods per sweep, so a loop that was blocked does not make every
  client look slow at once.
- A connection is in the table from its first byte of life until `connection_lost`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol, cast

from pleiad.limits import Limits
from pleiad.server.descriptors import Descriptors
from pleiad.server.memory import Memory

_log = logging.getLogger(__name__)

SWEEP_SECONDS_MAX = 1.0
SWEEP_SECONDS_MIN = 0.02
REFUSALS_MAX = 128
"""Connections over the limit that may wait for their 503 at once; more are dropped without a word."""
REFUSALS_PER_ADDRESS_MAX = 16
CROWDED_IDLE_SECONDS = 10.0
TURN_SECONDS = 0.01
"""How long requests are answered before new ones are read."""
TURNS_OF_ONE_MIN = 8
"""After so many turns of the loop with requests of one connection alone, the next one is taken for the same."""
AWAKE_SECONDS = 0.0002
"""How long the loop stays awake for the next request of a connection that is served alone, where its requests came as
soon as that lately: to be woken takes longer than to wait for them."""
_PAUSE_SECONDS_MAX = 0.001
"""A longer pause says no more than that."""
_NEWEST_SHARE = 1 / 8


class Connection(asyncio.Protocol):
    """A connection at work: what its transport and the connection table call."""

    __slots__ = ()

    @abstractmethod
    def sweep(self, now: float) -> None:
        """Close the connection if one of its time limits has passed."""

    @abstractmethod
    def drain(self) -> None:
        """Close the connection as soon as nothing is being answered on it."""

    @abstractmethod
    def abort(self) -> None:
        """Close the connection at once."""


class Answerer(Protocol):
    """A connection with requests to answer, or with answers to write."""

    def take_turn(self) -> None:
        """Answer the requests."""

    def send(self) -> None:
        """Write the answers."""

    def abort(self) -> None:
        """Close the connection at once."""


class Shaker(Protocol):
    """A connection in a TLS handshake."""

    def shake(self) -> None:
        """Do the next step of it."""


class ConnectionTable:
    """The shared state of one server's connections."""

    def __init__(self, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        self.limits = limits
        self.loop = loop
        self.memory = Memory(limits)
        # Who waits for its 503 has a descriptor of the reserve.
        self._refusals_max = min(REFUSALS_MAX, limits.descriptors_reserved // 4)
        self._descriptors = Descriptors.of_process(limits)
        places = self._descriptors.for_connections
        if places is not None:
            self._refusals_max = min(self._refusals_max, places // 4)
        self._connections_max = limits.connections
        self._per_address_max = limits.connections_per_address
        if places is not None and places < limits.connections:
            self._connections_max = places
            self._per_address_max = limits.connections_per_address * places // limits.connections
            _log.info(
                "connections are capped at %d, since the process may open few files", self._connections_max
            )
        self.now = 0.0
        self.draining = False
        self.emptied = asyncio.Event()
        self.emptied.set()
        self._connections: dict[Connection, str] = {}
        self._per_address: Counter[str] = Counter()
        self._refusals: dict[Connection, str] = {}
        self._refusals_per_address: Counter[str] = Counter()
        self._answerers: list[Answerer] = []
        self._late: deque[Answerer] = deque()
        self._is_answer_due = False
        self._last_answerer: Answerer | None = None
        self._turns_of_one = 0
        self.serves_one = False
        """Whether one connection alone had requests to answer lately: who makes it wait keeps no other waiting."""
        self._answered_at = self._awake_until = 0.0
        self._pause_seconds = _PAUSE_SECONDS_MAX
        """About how long it took lately from an answer to the next request, where one connection is served alone."""
        self._is_awake = False
        self._senders: list[Answerer] = []
        self._shakers: deque[Shaker] = deque()
        self._is_answering = False
        self._timer: asyncio.TimerHandle | None = None
        self._swept_at = loop.time()
        self._second = 0
        self._each_second: list[Callable[[int], None]] = []
        shortest = min(limits.idle_seconds, limits.request_read_seconds)
        self._period_seconds = min(SWEEP_SECONDS_MAX, max(SWEEP_SECONDS_MIN, shortest / 4))

    def __len__(self) -> int:
        return len(self._connections)

    def has_place(self, address: str, descriptor: int) -> bool:
        """Whether a connection from an address may stay."""
        return (
            len(self._connections) < self._connections_max
            and self._per_address[address] < self._per_address_max
            and self._descriptors.leave_room(descriptor, len(self._connections) + len(self._refusals))
        )

    @property
    def is_crowded(self) -> bool:
        """Whether most places are taken."""
        return len(self._connections) * 4 >= self._connections_max * 3

    @property
    def idle_seconds(self) -> float:
        """How long a connection may be idle now."""
        seconds = self.limits.idle_seconds
        return min(seconds, CROWDED_IDLE_SECONDS) if self.is_crowded else seconds

    def refuses_silently(self, address: str) -> bool:
        """Whether so many wait for their refusal, of all or of an address, that one more is not told of it."""
        return (
            len(self._refusals) >= self._refusals_max
            or self._refusals_per_address[address] >= REFUSALS_PER_ADDRESS_MAX
        )

    def answer_later(self, answerer: Answerer) -> None:
        """Have a connection's requests answered when this turn of the loop has read those of all connections.

        The turn then reads, answers and writes in three runs instead of turning between them at each connection:
        code and data of each stay in the processor's caches, and clients that a write wakes are woken together.
        """
        if not self._is_answer_due:
            self._is_answer_due = True
            self.loop.call_soon(self._answer)
        self._answerers.append(answerer)

    def send_later(self, sender: Answerer) -> None:
        """Have a connection's answers written at the end of this turn of the loop."""
        if not self._senders and not self._is_answering:
            self.loop.call_soon(self._send)
        self._senders.append(sender)

    def shake_later(self, shaker: Shaker) -> None:
        """Have a step of a handshake done: one in a turn of the loop."""
        if not self._shakers:
            self.loop.call_soon(self._shake)
        self._shakers.append(shaker)

    def _shake(self) -> None:
        shaker = self._shakers.popleft()
        if self._shakers:
            self.loop.call_soon(self._shake)
        shaker.shake()

    def _answer(self) -> None:
        """Answer for a while. Who came first is not always first: one that had no turn is served in each turn, and
        before it those who came since, so that many long requests hold up a short one no longer than one of them.
        """
        answerers, self._answerers = self._answerers, []
        self._is_answer_due = False
        self._is_answering = True
        began_at = time.perf_counter()
        if len(answerers) == 1 and answerers[0] is self._last_answerer and not self._late:
            self._turns_of_one += 1
            self.serves_one = self._turns_of_one >= TURNS_OF_ONE_MIN
            pause_seconds = min(began_at - self._answered_at, _PAUSE_SECONDS_MAX)
            self._pause_seconds += _NEWEST_SHARE * (pause_seconds - self._pause_seconds)
        else:
            self._last_answerer = answerers[-1] if answerers else None
            self._turns_of_one, self._pause_seconds = 0, _PAUSE_SECONDS_MAX
            self.serves_one = False
        ends_at = began_at + TURN_SECONDS
        for number, answerer in enumerate(answerers, 1):
            self._take_turn(answerer)
            if number < len(answerers) and time.perf_counter() > ends_at:
                self._late.extend(answerers[number:])
                break
        while self._late:
            self._take_turn(self._late.popleft())
            if time.perf_counter() > ends_at:
                break
        self._is_answering = False
        self._send()
        if self._late and not self._is_answer_due:
            self._is_answer_due = True
            self.loop.call_soon(self._answer)

    def _take_turn(self, answerer: Answerer) -> None:
        try:
            answerer.take_turn()
        except Exception:
            # One connection's failure must not leave the others without their answers.
            _log.exception("answering failed; the connection is closed")
            answerer.abort()

    def _send(self) -> None:
        senders, self._senders = self._senders, []
        for sender in senders:
            sender.send()
        self._answered_at = time.perf_counter()
        if self.serves_one and self._pause_seconds < AWAKE_SECONDS:
            self._awake_until = self._answered_at + AWAKE_SECONDS
            if not self._is_awake:
                self._is_awake = True
                self.loop.call_soon(self._stay_awake)

    def _stay_awake(self) -> None:
        """Has the loop look for what has come without sleeping first."""
        self._is_awake = time.perf_counter() < self._awake_until
        if self._is_awake:
            self.loop.call_soon(self._stay_awake)

    def each_second(self, callback: Callable[[int], None]) -> None:
        """Have a callback told the time, in whole seconds, at the start of the clock and when another one has begun."""
        self._each_second.append(callback)

    def start_clock(self) -> None:
        self._sweep()

    def stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def add(self, connection: Connection, address: str) -> None:
        self._connections[connection] = address
        self._per_address[address] += 1
        self.emptied.clear()

    def add_refusal(self, connection: Connection, address: str) -> None:
        self._refusals[connection] = address
        self._refusals_per_address[address] += 1
        self.emptied.clear()

    def replace(self, old: Connection, new: Connection) -> None:
        """The first look at a connection is over; another object speaks for it now."""
        address = self._connections.pop(old, None)
        if address is not None:
            self._connections[new] = address

    def remove(self, connection: Connection) -> None:
        if cast(object, connection) is self._last_answerer:
            self._last_answerer, self._turns_of_one, self.serves_one = None, 0, False
        for table, count in (
            (self._connections, self._per_address),
            (self._refusals, self._refusals_per_address),
        ):
            address = table.pop(connection, None)
            if address is not None:
                count[address] -= 1
                if not count[address]:
                    del count[address]
        if not self._connections and not self._refusals:
            self.emptied.set()

    def drain(self) -> None:
        """Close idle connections now and busy ones after their answer."""
        self.draining = True
        for connection in self._all():
            connection.drain()

    def abort(self) -> None:
        for connection in self._all():
            connection.abort()

    def _all(self) -> list[Connection]:
        return [*self._connections, *self._refusals]

    def _sweep(self) -> None:
        elapsed = self.loop.time() - self._swept_at
        self._swept_at += elapsed
        second = int(time.time())
        if second != self._second:
            self._second = second
            for callback in self._each_second:
                callback(second)
        self._timer = self.loop.call_later(self._period_seconds, self._sweep)
        self.pass_time(min(elapsed, 2 * self._period_seconds))

    def pass_time(self, seconds: float) -> None:
        """Move the clock on, and close whose time is over."""
        self.now += seconds
        for connection in self._all():
            connection.sweep(self.now)
        self.memory.sweep(self.now)


def address_of(transport: asyncio.BaseTransport) -> str:
    """What counts as one address: of IPv6 the network of 64 bits, which one machine has to itself."""
    peername = transport.get_extra_info("peername")
    if not isinstance(peername, tuple) or not peername:
        return ""
    text = str(peername[0])
    if ":" not in text:
        return text
    try:
        address = ipaddress.IPv6Address(text.partition("%")[0])
    except ValueError:
        return text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(address) >> 64 << 64))
