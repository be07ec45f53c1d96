"""The short version of every class of attack: the same files as `make attack` runs, with small settings.

Times are judged loosely here, since a test shares its machine with other tests; they would still find a request that
holds the others up for seconds. `make attack` holds the server to the promises as they stand.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from attack.settings import QUICK, Settings
from tests.stores import StoreOf


@pytest.fixture
def settings() -> Settings:
    """As little as still shows each promise."""
    return dataclasses.replace(
        QUICK,
        brief=True,
        operation_seconds=0.3,
        fuzz_requests=400,
        fuzz_queries=400,
        fuzz_frames=200,
        bit_flips=3,
        kills=1,
        flood_connections=700,
        bodies=40,
        stall_ms_max=2_000.0,
        p99_ms_max=1_000.0,
    )


@pytest.fixture
def attacked(store_of: StoreOf, tmp_path: Path) -> tuple[str, Path]:
    """The store that is attacked, with nothing in it, and where the server keeps its files."""
    return store_of(tmp_path / "data"), tmp_path
