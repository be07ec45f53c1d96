"""An account on disk, made once and copied for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import pleiad
from tests.proofs.damage.account import Client, copy_of

Spoilable = Callable[[], Path]


@pytest.fixture(scope="session")
def kept_account(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two containers with items; the server that made them is stopped."""
    data = tmp_path_factory.mktemp("account") / "data"
    with pleiad.start(data=data) as server:
        Client(server).fill("first", "second")
    return data


@pytest.fixture
def data(kept_account: Path, tmp_path: Path) -> Path:
    """A copy of the account for one test."""
    return copy_of(kept_account, tmp_path / "data")
