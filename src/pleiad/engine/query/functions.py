"""User-defined functions in queries: the container's JavaScript, called where a query names it.

The functions of a query run in one script process for the length of a page. A query calls them in the middle of its
work, which then waits as it does between two slices: other requests go on.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import orjson

from pleiad import errors
from pleiad.catalog.resource import Kind
from pleiad.engine.container import Container
from pleiad.query.pace import Pace
from pleiad.script import worker
from pleiad.script.failure import check_failure
from pleiad.script.process import ScriptProcess
from pleiad.values.undefined import UNDEFINED

Functions = Mapping[str, Callable[..., Any]]
NO_FUNCTIONS: Functions = {}
_CALL_STEPS = 64


@contextlib.asynccontextmanager
async def functions_of(container: Container, names: Iterable[str], pace: Pace) -> AsyncIterator[Functions]:
    """The functions that a query names, ready to be called until the end of the block."""
    async with container.scripts.pool.lease() as process:
        yield await _defined(container, process, names, pace)


async def functions_beside(
    container: Container, process: ScriptProcess, names: Iterable[str], pace: Pace
) -> Functions:
    """The functions that a query of a script names, in the process where the script waits for the query."""
    return await _defined(container, process, names, pace)


async def _defined(
    container: Container, process: ScriptProcess, names: Iterable[str], pace: Pace
) -> Functions:
    limits = container.limits
    found = {name: container.scripts.find(Kind.USER_DEFINED_FUNCTION, name) for name in names}
    sources = {name: script.properties["body"] for name, script in found.items() if script is not None}
    answer = await process.ask(worker.DEFINE, orjson.dumps(sources), limits.operation_seconds)
    check_failure(answer, limits)
    return {
        name: _function(container, process, name, pace) if name in sources else _missing(name)
        for name in found
    }


def _missing(name: str) -> Callable[..., Any]:
    """What is called where a query names a function that is not there: no item, no call, no error."""

    def call(*arguments: Any) -> Any:
        raise errors.QUERY_ERROR(reason=f"There is no user-defined function '{name}' in the container.")

    return call


def _function(container: Container, process: ScriptProcess, name: str, pace: Pace) -> Callable[..., Any]:
    limits = container.limits

    def call(*arguments: Any) -> Any:
        pace.tick(_CALL_STEPS)
        seconds = min(pace.seconds_left, limits.operation_seconds)
        if seconds <= 0:
            raise errors.REQUEST_TIMEOUT(
                reason=f"The query was stopped: its functions took more than {limits.operation_seconds:g} seconds."
            )
        values = [[] if value is UNDEFINED else [value] for value in arguments]
        answer = pace.wait(process.ask(worker.CALL, orjson.dumps([name, values]), seconds))
        if not isinstance(answer, dict):
            raise errors.SCRIPT_FAILED(reason="the function gave no value.")
        check_failure(answer, limits)
        value = answer.get("value")
        return value[0] if isinstance(value, list) and value else UNDEFINED

    return call
