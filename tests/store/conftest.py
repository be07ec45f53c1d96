"""The stores that the contract's tests run on, and a runner for tests that are coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from pleiad.store.contract import Store
from pleiad.store.postgres.store import PostgresStore
from pleiad.store.sqlite.store import SqliteStore


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a coroutine test on an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(params=["sqlite", "postgres"])
def opened(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[], AbstractAsyncContextManager[Store]]:
    """Opens the test's store for the length of an async with-block; a second block opens the same data."""
    dsn = "" if request.param == "sqlite" else request.getfixturevalue("postgres_server").new_database()

    @contextlib.asynccontextmanager
    async def open_store() -> AsyncIterator[Store]:
        store: Store = SqliteStore(tmp_path / "data") if not dsn else await PostgresStore.open(dsn)
        try:
            yield store
        finally:
            await store.close()

    return open_store
