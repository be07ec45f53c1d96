"""Rights, in short: see `attack/classes/rights.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from attack.classes import rights
from attack.settings import Settings


@pytest.mark.every_store
def test_nobody_does_or_sees_what_his_right_does_not_cover(
    settings: Settings, attacked: tuple[str, Path]
) -> None:
    outcome = rights.run(settings, *attacked)
    assert outcome.broken == []
    assert outcome.requests > 2000
