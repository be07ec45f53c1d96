"""A database at work on a store in a temporary directory, and a runner for tests that are coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from pleiad.engine.engine import Engine
from pleiad.limits import Limits
from tests.stores import OpenStore


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a coroutine test on an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def engine(tmp_path: Path, open_store: OpenStore) -> Callable[..., AbstractAsyncContextManager[Engine]]:
    """Opens the engine for the length of an async with-block; a second block opens the same data."""

    @contextlib.asynccontextmanager
    async def opened(limits: Limits | None = None, **settings: Any) -> AsyncIterator[Engine]:
        opened_engine = Engine(await open_store(tmp_path / "data"), limits or Limits(), **settings)
        await opened_engine.open()
        try:
            yield opened_engine
        finally:
            await opened_engine.close()

    return opened
