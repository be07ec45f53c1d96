"""A database at work on a store in a temporary directory, and a runner for tests that are coroutines."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from pleiad.engine.engine import Engine
from pleiad.limits import Limits
from tests.stores import PATIENT, OpenStore


@pytest.fixture
def engine(tmp_path: Path, open_store: OpenStore) -> Callable[..., AbstractAsyncContextManager[Engine]]:
    """Opens the engine for the length of an async with-block; a second block opens the same data."""

    @contextlib.asynccontextmanager
    async def opened(limits: Limits | None = None, **settings: Any) -> AsyncIterator[Engine]:
        opened_engine = Engine(await open_store(tmp_path / "data"), limits or PATIENT, **settings)
        await opened_engine.open()
        try:
            yield opened_engine
        finally:
            await opened_engine.close()

    return opened
