"""Faults on demand at work: what a rule of the admin API does to a request of this protocol."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from pleiad.catalog.resource import Kind
from pleiad.engine.faults import Effect, Target
from pleiad.errors import PleiadError
from pleiad.heads.nosql.call import Call
from pleiad.server.http.message import ConnectionCut, Response

Operation = Callable[[Call], Awaitable[Response]]


async def answer(call: Call, operation: Operation, kind: str, is_item_operation: bool) -> Response:
    """The answer to a request while there are rules."""
    database, container = _names(call)
    target = Target(
        operation=kind,
        is_item_operation=is_item_operation,
        database=database,
        container=container,
        is_on=lambda range_id: _is_on(call, range_id),
    )
    if target.container and any(rule.partition is not None for rule in call.engine.faults.rules):
        # A rule about a partition needs the map of the container, which is open after its first use only.
        with contextlib.suppress(PleiadError):
            await call.engine.container(target.database, target.container)
    rule = call.engine.faults.take(target)
    if rule is None:
        return await operation(call)
    if rule.delay_ms:
        await asyncio.sleep(rule.delay_ms / 1000)
    error = rule.error()
    if error is not None:
        raise error
    if rule.effect is Effect.CUT_BEFORE:
        raise ConnectionCut
    if rule.effect is Effect.CUT_AFTER:
        try:
            await operation(call)
        finally:
            raise ConnectionCut
    return await operation(call)


def _names(call: Call) -> tuple[str, str]:
    """The names of the database and container in a path, which may have their rids instead."""
    segments = call.segments
    if len(segments) < 2 or segments[0] != "dbs":
        return "", ""
    database = call.engine.catalog.find(Kind.DATABASE, "", segments[1])
    if database is None:
        return segments[1], segments[3] if len(segments) > 3 and segments[2] == "colls" else ""
    if len(segments) < 4 or segments[2] != "colls":
        return database.id, ""
    container = call.engine.catalog.find(Kind.CONTAINER, database.rid, segments[3])
    return database.id, segments[3] if container is None else container.id


def _is_on(call: Call, range_id: str) -> bool:
    """Whether a request goes to a physical partition: by the range it names, by its key, or because it goes to all."""
    if len(call.segments) < 4:
        return False
    container = call.engine.open_container(call.segments[1], call.segments[3])
    if container is None:
        return False
    named = call.text(b"x-ms-documentdb-partitionkeyrangeid")
    if named:
        return named.split(",")[-1] == range_id
    try:
        key = call.key
        if key is None:
            return container.map.by_range_id(range_id) is not None
        partitions = container.map.overlapping(container.span_of(key))
    except PleiadError:
        return False  # the operation itself will say what is wrong with the key
    return range_id in [partition.range_id for partition in partitions]
