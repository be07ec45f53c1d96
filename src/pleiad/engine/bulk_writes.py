"""Whole items that one bulk request writes: each by itself, those of a physical partition given to its store together.

Invariants:
- each item is checked, admitted, decided and charged by itself, and none fails because of another;
- items of one physical partition are written in the order of the request;
- what may have been written is not written again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from pleiad import errors
from pleiad.engine import items
from pleiad.engine.container import Container
from pleiad.engine.items import NewItem
from pleiad.engine.transaction import Answer, ItemOperation, charged_ru
from pleiad.engine.whole_writes import Write, created, planned
from pleiad.errors import PleiadError
from pleiad.partition.governor import Lane
from pleiad.partition.partition import Partition
from pleiad.query.pace import Pace
from pleiad.store.rows import Mutation, Outcome, Result
from pleiad.store.segments import SegmentDroppedError


async def write_together(
    container: Container, operations: Sequence[ItemOperation], lane: Lane
) -> list[Answer]:
    """How creates, upserts and replaces of whole items ended, in the order of the request."""
    answers: dict[int, Answer] = {}
    wrong: dict[int, PleiadError] = {}
    with Pace.of_request(container.limits) as pace:
        groups = await planned(container, operations, [each.key for each in operations], wrong, pace)
    answers.update(wrong)
    await asyncio.gather(
        *(_write(container, partition, group, lane, answers) for partition, group in groups.items())
    )
    return [answers[index] for index in range(len(operations))]


async def _write(
    container: Container, partition: Partition, group: list[Write], lane: Lane, answers: dict[int, Answer]
) -> None:
    """Answers the writes of one partition; each that the whole could not decide is tried alone."""
    group = _admitted(partition, group, lane, answers)
    if not group:
        return
    outcomes: Sequence[Outcome | PleiadError | None]
    try:
        outcomes = await container.commit(partition, [write.mutation for write in group], int(time.time()))
        if outcomes[0].result is Result.GONE:
            outcomes = [None] * len(group)
    except SegmentDroppedError:
        outcomes = [None] * len(group)
    except PleiadError as error:
        # After UNAVAILABLE nothing was written, and the reason may lie in one of them. Another failure is that of each:
        # what may have been written is not written again.
        outcomes = [None if error.row is errors.UNAVAILABLE else error] * len(group)
    if outcomes[0] is None:
        # Side by side, so that they share a commit, in their order.
        done: Sequence[Answer] = await asyncio.gather(
            *(_end(container, partition, item, mutation, None) for _, item, mutation in group)
        )
    else:
        done = await _ends(container, partition, group, outcomes)
    for (index, _, _), answer in zip(group, done, strict=True):
        answers[index] = answer
    partition.governor.spend(sum(map(charged_ru, done)), lane, len(done))


def _admitted(
    partition: Partition, group: list[Write], lane: Lane, answers: dict[int, Answer]
) -> list[Write]:
    """Those of a group that the partition lets in; the others are answered."""
    admitted = []
    for write in group:
        try:
            partition.admit(lane)
        except PleiadError as error:
            answers[write.position] = error
            continue
        if write is group[0] and partition.governor.lets_all_in(lane):
            return group
        admitted.append(write)
    return admitted


async def _ends(
    container: Container,
    partition: Partition,
    group: list[Write],
    outcomes: Sequence[Outcome | PleiadError | None],
) -> list[Answer]:
    """The ends of writes that were committed together."""
    done: list[Answer] = []
    for (_, item, mutation), outcome in zip(group, outcomes, strict=True):
        answer = created(partition, item, outcome)
        done.append(answer or await _end(container, partition, item, mutation, outcome))
    return done


async def _end(
    container: Container,
    partition: Partition,
    item: NewItem,
    mutation: Mutation,
    outcome: Outcome | PleiadError | None,
) -> Answer:
    """The end of a write that ended like that; without an outcome it is committed now, alone."""
    if isinstance(outcome, PleiadError):
        return outcome
    try:
        return await items.written(container, partition, item, mutation, outcome)
    except PleiadError as error:
        return error
