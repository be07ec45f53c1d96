"""How long and how often a run measures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings every family of scenarios is given."""

    rounds: int = 7
    seconds: float = 1.5
    items: int = 20_000
    connections: int = 32


FULL = Settings()
QUICK = Settings(rounds=3, seconds=1.0)
