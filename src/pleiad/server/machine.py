"""The machine the server runs on."""

from __future__ import annotations

import socket


def machine_names() -> list[str]:
    """The name of this machine, whole and without its domain; nobody is asked for it."""
    name = socket.gethostname()
    return [name, name.partition(".")[0]]
