"""Files, in short: see `attack/classes/files.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from attack.classes import files
from attack.settings import Settings


@pytest.mark.every_store
def test_no_wrong_item_is_given_and_nothing_is_deleted(
    settings: Settings, attacked: tuple[str, Path]
) -> None:
    outcome = files.run(settings, *attacked)
    assert outcome.broken == []
    assert outcome.requests > 60
