"""Fuzzing, in short: see `attack/classes/fuzz.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from attack.classes import fuzz
from attack.settings import Settings


@pytest.mark.every_store
def test_whatever_is_sent_gets_an_answer(settings: Settings, attacked: tuple[str, Path]) -> None:
    outcome = fuzz.run(settings, *attacked)
    assert outcome.broken == []
    assert outcome.requests > 300
