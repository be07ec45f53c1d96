"""Gathering what a query needs of every candidate before its first result, over as many pages as the time takes.

A page that runs out of time is empty, and its token says how far the walk came. What was gathered is kept for the next
page; where it is gone, the walk is repeated up to that place first, so that a query ends wherever its pages are asked
for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from pleiad.engine.pages.query import Pause
from pleiad.engine.query.glances import places_found, row_of
from pleiad.engine.query.job import SLICE_ROWS, QueryJob, looked_up
from pleiad.engine.scan import Piece, Scan, is_read, spans_begun, take_group
from pleiad.store.glances import Glances
from pleiad.store.rows import Row
from pleiad.store.selection import Predicate


class Gathering(Protocol):
    """What is gathered: what comes of each row, added one by one."""

    job: QueryJob
    names: tuple[str, ...]
    """What it looks at of the rows; nothing where it looks at all of them."""

    @property
    def size_bytes(self) -> int: ...

    def parts(self, row: Row) -> Iterable[Any]: ...

    def add(self, row: Row, number: int, part: Any) -> None: ...

    def take_many(self, looked: Glances) -> int | None:
        """Takes in rows of which it sees some properties, until the time is over; how many.

        None, and nothing is taken in, where rows are to be taken one by one.
        """


G = TypeVar("G", bound=Gathering)


class Gathered(NamedTuple):
    """The gathering, and where it stands when the time was over before the end."""

    work: Any
    pause: Pause | None


async def gather(
    job: QueryJob,
    pause: Pause | None,
    new: Callable[[], G],
    *,
    pays: bool,
    predicates: tuple[Predicate, ...] | None = None,
) -> Gathered:
    """Adds every candidate, in scan order, from where an earlier page has paused.

    `pays` when finding and loading them is not paid for yet.
    """
    if job.lookups is not None:
        return Gathered(await _of_lookups(job, new(), pays), None)
    if not job.spans:
        return Gathered(new(), None)
    if predicates is None:
        predicates = job.pushdown.predicates
    if pause is None:
        work = new()
        scan = _scan(job, predicates, work.names)
    else:
        work = await _taken_up(job, pause, new, predicates)
        scan = _scan(job, predicates, work.names, pause.begun, pause.is_visited)
    job.visits = scan.rows
    await _walk(job, scan, work, pays)
    if pays:
        job.tally.partitions = scan.partitions_visited
    if scan.is_done:
        return Gathered(work, None)
    name = job.container.kept.keep(job.kept_mark, work, work.size_bytes)
    return Gathered(work, Pause(tuple(scan.position()), scan.is_next_visited, name))


def _scan(
    job: QueryJob,
    predicates: tuple[Predicate, ...],
    names: tuple[str, ...],
    begun: Sequence[Piece] = (),
    is_visited: bool = False,
) -> Scan:
    return Scan(
        job.container, job.spans, begun, predicates, is_visited, keys=job.keys, pace=job.pace, names=names
    )


async def _taken_up(
    job: QueryJob, pause: Pause, new: Callable[[], G], predicates: tuple[Predicate, ...]
) -> G:
    """What was gathered up to a pause, kept or gathered again."""
    work: G | None = job.container.kept.take(pause.kept, job.kept_mark)
    if work is None:
        work = new()
        await _repeat(job, work, pause.begun, predicates)
    else:
        job.pace.hold(work.size_bytes)
        work.job = job
    return work


async def _walk(job: QueryJob, scan: Scan, work: Gathering, pays: bool) -> None:
    """Takes in rows until the end or until the time is over, and one at least."""
    while True:
        chunk: Sequence[Row] | Glances
        if work.names:
            chunk = glances = await scan.glances()
            job.at = scan.partition
            taken = await job.pace.run(_take_glances, work, glances, pays) if glances else 0
        else:
            chunk = rows = await scan.chunk(SLICE_ROWS)
            taken = await job.pace.run(_take_all, work, rows, pays)
        if not chunk:
            return
        if taken < len(chunk) or job.is_out_of_time():
            scan.stop_after(chunk[taken - 1], chunk)
            return
        await job.pace.rest()


def _take_all(work: Gathering, rows: Sequence[Row], pays: bool) -> int:
    """Takes in rows until the time is over; how many."""
    for number, row in enumerate(rows):
        _take_paid(work, row)
        if pays:
            work.job.loaded(row.size_bytes)
        if work.job.is_out_of_time():
            return number + 1
    return len(rows)


def _take_glances(work: Gathering, looked: Glances, pays: bool) -> int:
    """Takes in what was looked at until the time is over; how many rows of it."""
    job = work.job
    taken = 0
    while taken < len(looked) and not (taken and job.is_out_of_time()):
        count = work.take_many(looked.behind(taken) if taken else looked) if job.takes_many else None
        if count is None:
            return taken + _take_each(work, looked.behind(taken), pays)
        if pays:
            job.tally.items_loaded += count
            job.tally.bytes_loaded += looked.size_bytes(taken, count)
        taken += count
    return taken


def _take_each(work: Gathering, glances: Glances, pays: bool) -> int:
    """The same one by one, without those that do not pass the filter."""
    job = work.job
    found = places_found(job, glances)
    for number, glance in enumerate(glances):
        if found is None or glance[0] in found:
            _take_paid(work, row_of(glance, work.names))
        if pays:
            job.loaded(glance[1])
        if job.is_out_of_time():
            return number + 1
    return len(glances)


def take(work: Gathering, row: Row) -> None:
    for number, part in enumerate(work.parts(row)):
        work.add(row, number, part)


def _take_paid(work: Gathering, row: Row) -> None:
    before = work.job.pace.steps
    take(work, row)
    work.job.evaluated(row, work.job.pace.steps - before)


async def _of_lookups(job: QueryJob, work: G, pays: bool) -> G:
    for row in await looked_up(job, pays):
        if pays:
            job.loaded(row.size_bytes)
        await job.pace.run(_take_paid, work, row)
    return work


async def _repeat(
    job: QueryJob, work: Gathering, begun: Sequence[Piece], predicates: tuple[Predicate, ...]
) -> None:
    """Takes in again what earlier pages took in, and paid for."""
    async for row in rows_read(job, begun, predicates):
        await job.pace.run(take, work, row)


async def rows_read(
    job: QueryJob, begun: Sequence[Piece], predicates: tuple[Predicate, ...]
) -> AsyncIterator[Row]:
    """The rows that a walk has read before it came to a position."""
    spans = spans_begun(job.spans, begun)
    if not spans:
        return
    scan = Scan(job.container, spans, (), predicates, keys=job.keys, pace=job.pace)
    while chunk := await scan.chunk(SLICE_ROWS):
        for row in chunk:
            if is_read(row, begun):
                yield row
        await job.pace.rest()


async def charge_candidates(job: QueryJob, predicates: tuple[Predicate, ...]) -> None:
    """Charges the loading of all rows that the predicates leave, before the first result."""
    spans = deque(job.spans)
    while spans:
        partition, group = take_group(job.container, spans)
        items, size_bytes = await partition.count(job.selection(group, predicates))
        job.tally.items_loaded += items
        job.tally.bytes_loaded += size_bytes
        await job.pace.rest()
