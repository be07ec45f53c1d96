"""What is listened on, and what is spoken there: an address, and the protocols that share it.

A protocol knows its first bytes. They are asked in their order; who is not sure yet is waited for, and what none of
them knows goes to the last, which then says so in its own words. Inside TLS they are asked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from pleiad.server.connections import Connection, ConnectionTable

FIRST_BYTES_MAX = 64
"""Who is not sure after so many bytes will never be."""

_NAMED_LOCALHOST = frozenset({"", "127.0.0.1", "::1", "0.0.0.0", "::", "localhost"})


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
    advertised_host: str | None = None
    """The name clients are told; without one the host, or `localhost` where that is no name to reach it by."""

    def address(self, port: int) -> str:
        """Where clients reach the listener that has this port."""
        host = self.advertised_host or self.host
        if host in _NAMED_LOCALHOST:
            host = "localhost"
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
