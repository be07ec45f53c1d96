"""Writing what a copy has made of items into the target, many in one commit.

A row keeps the time at which its item was written in the source, so that it expires when it would have there; items of
one second share a write of the store, and all writes share its commits.

Invariant: a page is written only under the epochs that the partitions had when this process began to work on the copy,
or has looked at since; otherwise TargetMovedError, and what was not written is written again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pleiad import charge
from pleiad.engine.container import Container
from pleiad.job.copy.failure import CopyFailedError, TargetMovedError
from pleiad.job.copy.pacer import Pacer
from pleiad.job.copy.transform import Placed
from pleiad.partition.partition import Partition
from pleiad.store.rows import APPLIED, ItemKey, Mutation, Outcome, PartitionWrite, Result, Row, Verb
from pleiad.store.segments import SegmentDroppedError


@dataclass(slots=True)
class Written:
    """What became of the items of a page."""

    created: int = 0
    existing: list[Placed] = field(default_factory=list)
    """Those that had to be new and were not."""
    conflicting: list[tuple[Placed, str]] = field(default_factory=list)
    """Those that a unique key refused."""


class TargetWriter:
    """The one who writes to the target of a copy."""

    def __init__(self, target: Container, pacer: Pacer, check_ours: Callable[[], None]) -> None:
        self._target = target
        self._pacer = pacer
        self._check_ours = check_ours
        """Raises when another server works on the copy now."""

    async def put(self, items: Sequence[Placed], verb: Verb) -> Written:
        """Writes items; CREATE leaves those alone that are there, UPSERT replaces them."""
        # Nothing is waited for between this and the choice of partitions, so their epochs are no later ones.
        self._check_ours()
        groups: dict[tuple[Partition, int], list[Placed]] = {}
        for placed in items:
            groups.setdefault((self._target.map.find(placed.key.epk), placed.ts), []).append(placed)
        done = Written()
        spent: dict[Partition, float] = {}
        answers = await _all(
            self._commit(partition, [placed.put._replace(verb=verb) for placed in group], ts)
            for (partition, ts), group in groups.items()
        )
        for ((partition, _), group), outcomes in zip(groups.items(), answers, strict=True):
            for placed, outcome in zip(group, outcomes, strict=True):
                self._sort(placed, outcome, done)
                ru = charge.create(placed.put.size_bytes, placed.put.terms).ru
                spent[partition] = spent.get(partition, 0.0) + ru
        await self._pacer.pay(self._target, spent)
        return done

    async def remove(self, keys: Iterable[ItemKey]) -> None:
        """Removes items; those that are not there are as they should be."""
        self._check_ours()
        groups: dict[Partition, list[Mutation]] = {}
        for key in keys:
            groups.setdefault(self._target.map.find(key.epk), []).append(
                Mutation(Verb.DELETE, key.epk, key.id)
            )
        now = int(time.time())
        await _all(self._commit(partition, group, now) for partition, group in groups.items())

    async def rows(self, keys: Sequence[ItemKey]) -> list[Row | None]:
        """The rows of items as they are now, in the order of the keys."""
        groups: dict[Partition, list[int]] = {}
        for index, key in enumerate(keys):
            groups.setdefault(self._target.map.find(key.epk), []).append(index)
        found: list[Row | None] = [None] * len(keys)
        for partition, places in groups.items():
            rows = await partition.read_many([keys[place] for place in places])
            for place, row in zip(places, rows, strict=True):
                found[place] = row
        return found

    async def _commit(self, partition: Partition, mutations: list[Mutation], now: int) -> Sequence[Outcome]:
        target = self._target
        write = PartitionWrite(
            partition.id,
            partition.epoch,
            now,
            tuple(mutations),
            target.default_ttl,
            target.limits.logical_partition_bytes,
            keep_versions=target.keeps_versions,
            partition_bytes=target.fixed_bytes,
        )
        try:
            outcomes = await partition.commit(write)
        except SegmentDroppedError:
            raise TargetMovedError from None
        if outcomes and outcomes[0].result is Result.GONE:
            raise TargetMovedError
        return outcomes

    def _sort(self, placed: Placed, outcome: Outcome, done: Written) -> None:
        result = outcome.result
        if result in APPLIED:
            done.created += result is Result.CREATED
        elif result is Result.EXISTS:
            done.existing.append(placed)
        elif result is Result.UNIQUE_CONFLICT:
            paths = self._target.definition.unique_keys[outcome.unique_key].paths
            done.conflicting.append((placed, ", ".join(paths)))
        elif result is Result.LOGICAL_PARTITION_FULL:
            limit = self._target.limits.logical_partition_text
            raise CopyFailedError(
                f"a logical partition of the target would be larger than the limit of {limit}: choose a partition key "
                "with more values",
                [placed.key.id],
            )
        elif result is Result.PARTITION_FULL:
            raise CopyFailedError("the target is a fixed container, and full", [placed.key.id])
        else:
            raise AssertionError(f"the store refused an item of a copy for no reason: {result}")


async def _all(commits: Iterable[Awaitable[Sequence[Outcome]]]) -> list[Sequence[Outcome]]:
    """What all of them gave; a failure is raised when none is under way any more."""
    answers = await asyncio.gather(*commits, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if not isinstance(answer, BaseException)]
