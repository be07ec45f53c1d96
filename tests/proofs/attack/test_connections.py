"""Connections, in short: see `attack/classes/connections.py`."""

from __future__ import annotations

from pathlib import Path

from attack.classes import connections
from attack.settings import Settings


def test_one_address_cannot_take_all_connections(settings: Settings, attacked: tuple[str, Path]) -> None:
    outcome = connections.run(settings, *attacked)
    assert outcome.broken == []
    assert outcome.requests > 500
