"""A seed repeats itself on any machine."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _pauses_by_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed repeats itself, so no request may pause because of the time it took on this machine."""
    monkeypatch.setattr("pleiad.query.pace.SLICE_SECONDS", 1e9)
    monkeypatch.setattr("pleiad.query.pace.BUSY_SLICE_SECONDS", 1e9)
