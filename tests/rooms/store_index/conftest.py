"""What the tests of path indexes share: asynchronous tests, and segments whose indexes are built at will."""

from __future__ import annotations

from pathlib import Path

import pytest

from pleiad.store.index_use import IndexSettings


@pytest.fixture
def eager() -> IndexSettings:
    """Indexes from the first use, built in very small pieces."""
    return IndexSettings(items_min=0, uses_min=1, chunk_items=3, run_items=7)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"
