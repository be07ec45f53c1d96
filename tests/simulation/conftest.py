"""Makes the modules of the simulator importable by the name of their folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.append(ROOT)


@pytest.fixture(autouse=True)
def _pauses_by_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed repeats itself, so no request may pause because of the time it took on this machine."""
    monkeypatch.setattr("pleiad.query.pace.SLICE_SECONDS", 1e9)
    monkeypatch.setattr("pleiad.query.pace.BUSY_SLICE_SECONDS", 1e9)
