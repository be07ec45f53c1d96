"""What a store has at hand and what waits for it, at this moment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFigures:
    """Read when somebody looks at the metrics; nothing is counted for it on the way of a request."""

    segments_open: int = 0
    """Segments with open files, or that were used since the start."""
    writes_waiting: int = 0
    """Writes that wait for the commit before theirs."""
    disk_calls_waiting: int = 0
    """Commits and other long calls that wait for a disk thread."""
    connections_used: int = 0
    connections_idle: int = 0
    connections_max: int = 0
    """Of a database; 0 where there is none."""
    connection_waiters: int = 0
    """Requests that wait for a connection."""
