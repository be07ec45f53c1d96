"""Descriptors of the process: how many there may be, and how many of them connections may take.

The store opens files when they are needed, and script processes need sockets; for them `Limits.descriptors_reserved`
descriptors, or half of all where there are few, are kept free of connections. The kernel gives the lowest free number
to a new descriptor, so a connection whose number is in the last part of the table says that the reserve is touched,
whoever has taken the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

from pleiad.limits import Limits

if sys.platform != "win32":
    import resource

_RAISED_MAX = 1_048_576
"""Where the hard limit is none at all: what kernels allow without being asked."""


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


def descriptors_for_connections(limits: Limits) -> int | None:
    """Below which number the descriptor of a connection must be; None where nothing is limited."""
    if sys.platform == "win32":
        return None
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return None
    return soft - min(limits.descriptors_reserved, soft // 2)


def descriptor_of(transport: asyncio.BaseTransport) -> int:
    """The number of a connection's descriptor, or -1."""
    socket = transport.get_extra_info("socket")
    return -1 if socket is None else int(socket.fileno())
