"""Split and merge over the admin API.

A split is done when it is answered; its children get segments of their own in the background. A merge copies rows
first: when that takes longer than a client should wait, the answer is 202 and the merge goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from pleiad import errors
from pleiad.engine.container import Container
from pleiad.errors import PleiadError
from pleiad.heads.admin.answer import check_names, json_answer
from pleiad.heads.admin.partition_json import partitions_to_json, states_of
from pleiad.heads.admin.partitions import container_of
from pleiad.heads.http.call import HttpCall
from pleiad.partition.partition import Partition
from pleiad.server.http.message import Response

WAIT_SECONDS = 20.0

_log = logging.getLogger(__name__)
_running: set[asyncio.Task[Partition]] = set()
"""Merges that go on behind their answer; a task that nobody holds may vanish."""


async def split(call: HttpCall) -> Response:
    """Divides one physical partition in two; a container with a single one needs no name for it."""
    container = await container_of(call)
    body = call.json_object() if call.request.body else {}
    check_names(body, frozenset({"partition"}))
    given = body.get("partition")
    if given is None:
        if len(container.map.partitions) > 1:
            raise errors.BAD_REQUEST(
                reason="Name the 'partition' to split: the container has several physical partitions."
            )
        given = container.map.partitions[0].range_id
    _check_live(container, given)
    children = await call.engine.split(container, given)
    shown = await _shown(call, container, children)
    return json_answer(call, {"parent": given, "partitions": shown}, 201)


async def merge(call: HttpCall) -> Response:
    """Makes one physical partition of neighbours."""
    container = await container_of(call)
    body = call.json_object()
    check_names(body, frozenset({"partitions"}))
    given = body.get("partitions")
    if not isinstance(given, list):
        raise errors.BAD_REQUEST(reason="'partitions' must be a list of the ids of physical partitions.")
    for range_id in given:
        _check_live(container, range_id)
    if len(given) < 2 or len(set(given)) < len(given):
        raise errors.CANNOT_MERGE(reason="a merge takes two or more different physical partitions.")
    task = asyncio.ensure_future(call.engine.merge(container, given))
    _running.add(task)
    task.add_done_callback(_running.discard)
    done, _ = await asyncio.wait({task}, timeout=WAIT_SECONDS)
    if not done:
        task.add_done_callback(_log_failure)
        return json_answer(call, {"parents": given, "settled": False}, 202)
    (merged,) = await _shown(call, container, [task.result()])
    return json_answer(call, {"parents": given, "settled": True, "partition": merged}, 201)


async def _shown(
    call: HttpCall, container: Container, partitions: Sequence[Partition]
) -> list[dict[str, Any] | None]:
    """Partitions as they are now; null for one that another change has replaced already."""
    states = await states_of(call.engine, container)
    shown = {each["id"]: each for each in partitions_to_json(call.engine, container, states)}
    return [shown.get(each.range_id) for each in partitions]


def _log_failure(task: asyncio.Task[Partition]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        reason = error.message if isinstance(error, PleiadError) else repr(error)
        _log.error("a merge that went on behind its answer failed: %s", reason)


def _check_live(container: Container, range_id: Any) -> None:
    if not isinstance(range_id, str):
        raise errors.BAD_REQUEST(reason='The id of a physical partition is a text, such as "0".')
    if container.map.by_range_id(range_id) is None:
        raise errors.RESOURCE_NOT_FOUND(kind="physical partition", id=range_id[:100])
