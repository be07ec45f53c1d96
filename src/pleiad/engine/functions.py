"""User-defined functions in queries: the container's JavaScript, called where a query names it.

The functions of a query run in one script process for the length of a page. A query calls them in the middle of its
work and needs the answer at once, so a page with functions is worked out in a thread, and other requests go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

import orjson

from pleiad import errors
from pleiad.catalog.resource import Kind
from pleiad.engine.container import Container
from pleiad.engine.script_failure import check_failure
from pleiad.keys.undefined import UNDEFINED
from pleiad.script import worker
from pleiad.script.process import ScriptProcess

Functions = Mapping[str, Callable[..., Any]]
NO_FUNCTIONS: Functions = {}
_PAGE_SHARE = 2
"""A page ends by time after a slice of rows; its functions may go on for as long again to finish the slice."""

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


@contextlib.asynccontextmanager
async def functions_of(container: Container, names: Iterable[str]) -> AsyncIterator[Functions]:
    """The functions that a query names, ready to be called until the end of the block."""
    sources = _sources(container, names)
    async with container.scripts.pool.lease() as process:
        yield await _defined(container, process, sources)


async def functions_beside(container: Container, process: ScriptProcess, names: Iterable[str]) -> Functions:
    """The functions that a query of a script names, in the process where the script waits for the query."""
    return await _defined(container, process, _sources(container, names))


async def _defined(container: Container, process: ScriptProcess, sources: dict[str, str]) -> Functions:
    limits = container.limits
    answer = await process.ask(worker.DEFINE, orjson.dumps(sources), limits.operation_seconds)
    check_failure(answer, limits)
    process.detach()
    ends_at = time.monotonic() + _PAGE_SHARE * limits.operation_seconds
    return {name: _function(container, process, name, ends_at) for name in sources}


async def beside_the_loop(
    functions: Functions,
    work: Callable[_Arguments, _Answer],
    *arguments: _Arguments.args,
    **named: _Arguments.kwargs,
) -> _Answer:
    """Does a piece of a query's work: here, or in a thread when it may call functions."""
    if functions:
        return await asyncio.to_thread(work, *arguments, **named)
    return work(*arguments, **named)


def _sources(container: Container, names: Iterable[str]) -> dict[str, str]:
    sources = {}
    for name in names:
        found = container.scripts.find(Kind.USER_DEFINED_FUNCTION, name)
        if found is None:
            raise errors.QUERY_ERROR(reason=f"There is no user-defined function '{name}' in the container.")
        sources[name] = found.properties["body"]
    return sources


def _function(container: Container, process: ScriptProcess, name: str, ends_at: float) -> Callable[..., Any]:
    limits = container.limits

    def call(*arguments: Any) -> Any:
        seconds = min(ends_at - time.monotonic(), limits.operation_seconds)
        if seconds <= 0:
            raise errors.REQUEST_TIMEOUT(
                reason=f"The query was stopped: its functions took more than {limits.operation_seconds:g} seconds."
            )
        values = [[] if value is UNDEFINED else [value] for value in arguments]
        answer = process.ask_blocking(worker.CALL, orjson.dumps([name, values]), seconds)
        if not isinstance(answer, dict):
            raise errors.SCRIPT_FAILED(reason="the function gave no value.")
        check_failure(answer, limits)
        value = answer.get("value")
        return value[0] if isinstance(value, list) and value else UNDEFINED

    return call
