"""What is listened on, and what is spoken there: an address, and the protocols that share it.

A protocol knows its first bytes. They are asked in their order; who is not sure yet is waited for, and what none of
them knows goes to the last, which then says so in its own words. Inside TLS they are asked again.
"""

from __future__ import annotations

import errno
import socket
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from pleiad.server.connections import Connection, ConnectionTable

FIRST_BYTES_MAX = 64
"""Who is not sure after so many bytes will never be."""

_NAMED_LOCALHOST = frozenset({"", "127.0.0.1", "::1", "0.0.0.0", "::", "localhost"})


def is_taken(host: str, port: int) -> bool:
    """Whether somebody listens at an address already; what else is wrong with it shows when one listens there."""
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return False
    return any(_is_in_use(family, address) for family, _, _, _, address in addresses)


def _is_in_use(family: int, address: tuple[Any, ...]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if sys.platform != "win32":  # where it would let two listen at the same time
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


class Recognition(Enum):
    """What a protocol says of the first bytes of a connection."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"
    """It takes more bytes to tell."""


class WireProtocol(Protocol):
    """A protocol that a listener speaks."""

    def begin(self, table: ConnectionTable) -> None:
        """The server starts; called once, before the first connection."""

    def recognises(self, first: bytes, secure: bool) -> Recognition:
        """Whether these are the first bytes of this protocol; there is at least one."""

    def connect(self, table: ConnectionTable, secure: bool) -> Connection:
        """The connection that begins; its transport is given to it next, and then its first bytes."""

    def refusal(self) -> bytes:
        """What is said to a client there is no place for; empty to say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """An address with its protocols."""

    name: str
    host: str
    port: int
    """0 takes a free one."""
    protocols: tuple[WireProtocol, ...]
    plain: tuple[WireProtocol, ...] | None = None
    """Those of them that are spoken without TLS; all of them unless it is said."""
    advertised_host: str | None = None
    """The name clients are told; without one the host, or `localhost` where that is no name to reach it by."""

    def address(self, port: int) -> str:
        """Where clients reach the listener that has this port."""
        host = self.advertised_host or self.host
        if host in _NAMED_LOCALHOST:
            host = "localhost"
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
