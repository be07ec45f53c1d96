"""Descriptors of the process: how many there may be, and how many of them connections may take.

The store opens files when they are needed, and script processes need sockets; for them `Limits.descriptors_reserved`
descriptors, or half of all where there are few, are kept free of connections. The kernel gives the lowest free number
to a new descriptor, so all numbers below that of a new connection are taken: by connections, which are counted, or by
files, which have that much of the reserve already. A quarter of the reserve is left free in any case.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from dataclasses import dataclass
from typing import Self

from pleiad.limits import Limits

if sys.platform != "win32":
    import resource

_RAISED_MAX = 1_048_576
"""Where the hard limit is none at all: what kernels allow without being asked."""

FREE_SHARE = 4
"""The part of the reserve that stays free for files yet to be opened."""


def fill_standard_descriptors() -> None:
    """Opens those of the three standard descriptors that are closed, so that no socket gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free


def raise_descriptor_limit() -> None:
    """Raise the soft limit of this process to its hard limit."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else _RAISED_MAX
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    # A kernel may refuse what the hard limit allows; smaller steps are tried then.
    while wanted > soft:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return
        wanted //= 2


@dataclass(frozen=True, slots=True)
class Descriptors:
    """What connections may take of the descriptors there are; `most` is None where nothing is limited."""

    most: int | None
    reserved: int

    @classmethod
    def of_process(cls, limits: Limits) -> Self:
        if sys.platform == "win32":
            return cls(None, 0)
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if soft == resource.RLIM_INFINITY:
            return cls(None, 0)
        return cls(soft, min(limits.descriptors_reserved, soft // 2))

    @property
    def for_connections(self) -> int | None:
        """How many connections there may be."""
        return None if self.most is None else self.most - self.reserved

    @property
    def for_files(self) -> int | None:
        """How many files there is always room for."""
        return None if self.most is None else self.reserved

    def leave_room(self, descriptor: int, connections: int) -> bool:
        """Whether enough are left for files when a connection takes this number beside so many others."""
        if self.most is None:
            return True
        files = descriptor - connections
        return descriptor < self.most - max(self.reserved - files, self.reserved // FREE_SHARE)


def descriptor_of(transport: asyncio.BaseTransport) -> int:
    """The number of a connection's descriptor, or -1."""
    socket = transport.get_extra_info("socket")
    return -1 if socket is None else int(socket.fileno())
