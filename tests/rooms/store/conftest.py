"""The stores that the contract's tests run on, and a runner for tests that are coroutines."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from pleiad.store.store import Store
from tests.stores import OpenStore


@pytest.fixture
def opened(tmp_path: Path, open_store: OpenStore) -> Callable[[], AbstractAsyncContextManager[Store]]:
    """Opens the test's store for the length of an async with-block; a second block opens the same data."""

    @contextlib.asynccontextmanager
    async def opened_store() -> AsyncIterator[Store]:
        store = await open_store(tmp_path / "data", durable=True)
        try:
            yield store
        finally:
            await store.close()

    return opened_store
