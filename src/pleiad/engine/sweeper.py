"""The sweeper: deletes expired items and forgets old versions in the background.

Reads hide an expired item at once; sweeping gives its space back and, where versions are kept, tells the change feed.
It works in small steps, yields to every request between them, and spends only request units that no request used.
"""

from __future__ import annotations

import asyncio
import logging
import time

from pleiad import charge
from pleiad.engine.at_work import AtWork
from pleiad.engine.container import Container
from pleiad.errors import PleiadError
from pleiad.store.catalog import CatalogStore
from pleiad.store.rows import NEVER, Mutation, Precondition, Result, Verb
from pleiad.store.segments import SegmentDroppedError, SegmentOutOfServiceError

_log = logging.getLogger(__name__)
_STEP_ITEMS = 100
_STEP_VERSIONS = 500
_ALL_TIMES = 1 << 62
VERSIONS_GRACE_SECONDS = 60
"""Versions are kept that much longer than promised, so that no place the feed still accepts has lost some."""
INTERVAL_SECONDS = 1.0


async def sweep(container: Container, now: int | None = None) -> int:
    """Deletes what has expired in a container; returns how many rows that were."""
    if container.default_ttl is None or container.closed is not None:
        return 0
    swept = 0
    for partition in container.map.partitions:
        while partition.governor.has_spare():
            moment = int(time.time()) if now is None else now
            rows = await partition.expired(moment, container.default_ttl, _STEP_ITEMS)
            if not rows:
                break
            # The store removes an expired row before it looks at the precondition, so this one, which never
            # holds, keeps a row that was written anew after it was found expired.
            never = Precondition(lsn=NEVER)
            mutations = [Mutation(Verb.DELETE, row.epk, row.id, precondition=never) for row in rows]
            outcomes = await container.commit(partition, mutations, moment)
            if outcomes[0].result is Result.GONE:
                break  # others have taken its place, and the next round finds them
            swept += sum(outcome.result is Result.MISSING for outcome in outcomes)
            spent_ru = sum(charge.delete(row.size_bytes, row.terms).ru for row in rows)
            partition.governor.spend_spare(spent_ru)
            await asyncio.sleep(0)
    return swept


async def forget_versions(container: Container, now: int | None = None) -> int:
    """Removes the versions a container need not keep any longer; returns how many that were."""
    if not container.has_versions_to_forget or container.is_followed:
        return 0
    seconds = container.versions_seconds
    moment = int(time.time()) if now is None else now
    before_ts = _ALL_TIMES if seconds is None else moment - seconds - VERSIONS_GRACE_SECONDS
    forgotten = 0
    for partition in container.map.partitions:
        while not container.is_followed:
            step = await partition.forget_versions(before_ts, _STEP_VERSIONS)
            if not step:
                break
            forgotten += step
            await asyncio.sleep(0)
    container.has_versions_to_forget = seconds is not None or container.keeps_versions
    return forgotten


async def sweep_for_ever(at_work: AtWork, store: CatalogStore) -> None:
    """Sweeps all containers again and again, one server at a time; a failure is logged and tried again."""
    while True:
        await asyncio.sleep(INTERVAL_SECONDS)
        try:
            async with store.lease("sweep") as is_ours:
                if is_ours:
                    await _sweep_all(at_work, store)
        except PleiadError as error:
            if not store.problems.is_troubled:
                _log.warning("sweeping is put off: %s", error.message)


async def _sweep_all(at_work: AtWork, store: CatalogStore) -> None:
    for container in at_work:
        try:
            await sweep(container)
            await forget_versions(container)
        except (SegmentDroppedError, SegmentOutOfServiceError):
            continue  # its rows have moved, and the next round finds them; or they are damaged
        except PleiadError as error:
            if not store.problems.is_troubled:
                _log.warning("sweeping %s is put off: %s", container.path, error.message)
        except Exception:
            _log.exception("sweeping %s failed", container.path)
