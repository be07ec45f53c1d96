"""How much of everything a run does, and what must hold meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

STORES = ("sqlite", "postgres")

STALL_MS_MAX = 250.0
"""No point read waits longer than this beside an attack."""
P99_MS_MAX = 50.0
"""And 99 of 100 wait no longer than this."""
RESIDENT_MB_MAX = 600.0
"""Memory of a server with its script processes under the whole list of attacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The size of a run. Promises that are times or bytes are loosened only where a test shares a busy machine."""

    seed: int = 1
    thorough: bool = True
    """Whether every route is asked with every flag one by one, aimed at every neighbour."""
    brief: bool = False
    """Whether only so much is done as still shows each promise, for the tests."""
    shots: int = 0
    """How many of the hostile requests; 0: all."""
    operation_seconds: float = 5.0
    """The server's limit on the time of one operation."""
    fuzz_requests: int = 1_000_000
    fuzz_queries: int = 1_000_000
    fuzz_frames: int = 300_000
    """Handfuls of frames that are sent at once."""
    bit_flips: int = 60
    kills: int = 5
    flood_connections: int = 1_500
    bodies: int = 250
    stall_ms_max: float = STALL_MS_MAX
    p99_ms_max: float = P99_MS_MAX
    resident_mb_max: float = RESIDENT_MB_MAX


FULL = Settings()
QUICK = Settings(
    thorough=False,
    operation_seconds=1.0,
    fuzz_requests=4_000,
    fuzz_queries=4_000,
    fuzz_frames=2_000,
    bit_flips=16,
    kills=2,
    flood_connections=500,
    bodies=120,
)
