"""What the tests of path indexes share: asynchronous tests, and segments whose indexes are built at will."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

from pleiad.store.index_use import IndexSettings


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a coroutine test in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def eager() -> IndexSettings:
    """Indexes from the first use, built in very small pieces."""
    return IndexSettings(items_min=0, uses_min=1, chunk_items=3, run_items=7)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"
