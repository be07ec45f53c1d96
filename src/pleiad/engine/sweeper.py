"""The sweeper: deletes expired items in the background.

Reads hide an expired item at once; sweeping only gives its space back, so it works in small steps and yields to
every request between them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from pleiad.engine.container import Container
from pleiad.store.contract import NEVER, Mutation, Precondition, Result, SegmentDroppedError, Verb

_log = logging.getLogger(__name__)
_STEP_ITEMS = 100
INTERVAL_SECONDS = 1.0


async def sweep(container: Container, now: int | None = None) -> int:
    """Deletes what has expired in a container; returns how many rows that were."""
    if container.default_ttl is None:
        return 0
    swept = 0
    for partition in container.map.partitions:
        while True:
            moment = int(time.time()) if now is None else now
            rows = await partition.expired(moment, container.default_ttl, _STEP_ITEMS)
            if not rows:
                break
            # The store removes an expired row before it looks at the precondition, so this one, which never
            # holds, keeps a row that was written anew after it was found expired.
            never = Precondition(lsn=NEVER)
            mutations = [Mutation(Verb.DELETE, row.epk, row.id, precondition=never) for row in rows]
            outcomes = await partition.commit(mutations, moment, container.default_ttl, container.limits)
            swept += sum(outcome.result is Result.MISSING for outcome in outcomes)
            await asyncio.sleep(0)
    return swept


async def sweep_for_ever(containers: Callable[[], Iterable[Container]]) -> None:
    """Sweeps all containers again and again; a failure is logged and the next round tries again."""
    while True:
        await asyncio.sleep(INTERVAL_SECONDS)
        for container in list(containers()):
            try:
                await sweep(container)
            except SegmentDroppedError:
                continue  # its rows have moved; the next round finds them
            except Exception:
                _log.exception("sweeping %s failed", container.path)
