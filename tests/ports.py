"""Ports for tests that have to know one before their server starts, or after it is gone."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port of `localhost` at which nobody listens and that nobody else is given meanwhile.

    It is bound and not listened at: a server that is told the port may, again and again, and no other process gets it
    as a free one or as its own end of a connection.
    """
    while True:
        with contextlib.ExitStack() as held:
            port = held.enter_context(_bound(socket.AF_INET, "127.0.0.1", 0)).getsockname()[1]
            try:
                if _has_ipv6():
                    held.enter_context(_bound(socket.AF_INET6, "::1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            yield int(port)
            return


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((address, port))
    except OSError:
        made.close()
        raise
    return made


def _has_ipv6() -> bool:
    try:
        _bound(socket.AF_INET6, "::1", 0).close()
    except OSError:
        return False
    return True
