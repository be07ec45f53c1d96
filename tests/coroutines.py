"""Coroutines in tests, one way for all of them.

A test that is a coroutine function runs on an event loop of its own, a property test on one for each example. Where a
test speaks to its server through a client that blocks, the server lives on a `LoopThread`.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from pleiad.server.lifecycle import new_loop
from tests.waiting import SECONDS_MAX

T = TypeVar("T")


def _blocking(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*given: Any, **named: Any) -> None:
        asyncio.run(test(*given, **named))

    return run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        property_test = getattr(item.obj, "hypothesis", None)
        if property_test is not None and inspect.iscoroutinefunction(property_test.inner_test):
            property_test.inner_test = _blocking(property_test.inner_test)
        elif inspect.iscoroutinefunction(item.obj):
            item.obj = _blocking(item.obj)


class LoopThread:
    """An event loop that runs in a thread of its own until it is closed."""

    def __init__(self, make_loop: Callable[[], asyncio.AbstractEventLoop] = new_loop) -> None:
        self.loop = make_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def ask(self, work: Coroutine[Any, Any, T], seconds_max: float = SECONDS_MAX) -> T:
        """Runs a coroutine on the loop and waits for what it gives."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(seconds_max)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
