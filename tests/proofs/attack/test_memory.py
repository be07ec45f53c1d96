"""Memory, in short: see `attack/classes/memory.py`."""

from __future__ import annotations

from pathlib import Path

from attack.classes import memory
from attack.settings import Settings


def test_memory_has_an_end(settings: Settings, attacked: tuple[str, Path]) -> None:
    outcome = memory.run(settings, *attacked)
    assert outcome.broken == []
    assert outcome.requests > 50
