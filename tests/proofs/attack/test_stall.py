"""Stalls, in short: see `attack/classes/stall.py`."""

from __future__ import annotations

from pathlib import Path

from attack.classes import stall
from attack.settings import Settings


def test_no_request_holds_the_others_up(settings: Settings, attacked: tuple[str, Path]) -> None:
    outcome = stall.run(settings, *attacked)
    assert outcome.broken == []
    assert outcome.requests >= len(stall.BRIEF_SHOTS)
