"""The watch: what an operator should be warned of, found in the background.

======================  ====================================================================================
kind                    when
======================  ====================================================================================
logical-partition-size  a logical partition passed 70 % of the size limit, and again at 80 %
split-refused           a physical partition is over its limit and cannot be split
throttled               more than 5 % of a partition's requests were answered with 429 for a minute
======================  ====================================================================================

A warning is logged once when it comes up or gets worse, as a line of names and values, and stands in the list until
its cause is gone. The sizes of logical partitions are summed only in physical partitions that are larger than 70 %
of the limit of one, only after they have changed by a notable part of it, and in a thread; no write waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pleiad.engine.at_work import AtWork
from pleiad.engine.container import Container
from pleiad.engine.log_line import log_line
from pleiad.engine.refusals import Refusals
from pleiad.engine.watch.census import Census
from pleiad.errors import PleiadError
from pleiad.item.body import load
from pleiad.keys.value import to_json_text
from pleiad.partition.partition import Partition

_log = logging.getLogger("pleiad.warning")

INTERVAL_SECONDS = 10.0
SIZE_PERCENTS = (80, 70)
"""The levels of the size of a logical partition, the worst first."""
_CHANGE_PERCENT = 1
"""Sizes are summed again when the physical partition changed by this part of a logical partition's limit."""
_LARGEST_COUNT = 50
_WARNINGS_MAX = 1_000

SIZE = "logical-partition-size"
SPLIT_REFUSED = "split-refused"
THROTTLED = "throttled"
THROTTLED_PERCENT = 5
"""A part of refused requests up to this is the sign of throughput that is well used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingWarning:
    """One thing that somebody should look at; `values` are what the sentence is made from."""

    kind: str
    database: str
    container: str
    partition: str
    subject: str = ""
    """What of the partition it is about, such as a key; one warning of a kind for each subject."""
    level: int = 0
    """Higher is worse."""
    message: str
    values: dict[str, Any]
    since: float


class Warnings:
    """The warnings that stand."""

    def __init__(self) -> None:
        self._standing: dict[tuple[str, str, str, str, str], StandingWarning] = {}

    def report(
        self,
        kind: str,
        container: Container,
        partition: Partition,
        message: str,
        *,
        subject: str = "",
        level: int = 0,
        **values: Any,
    ) -> None:
        """Puts a warning up, or brings it up to date; the log hears of it when it is new or worse."""
        database, name = container.database.id, container.resource.id
        place = (kind, database, name, partition.range_id, subject)
        old = self._standing.get(place)
        if old is None and len(self._standing) >= _WARNINGS_MAX:
            return
        since = time.time() if old is None else old.since
        self._standing[place] = StandingWarning(
            kind=kind,
            database=database,
            container=name,
            partition=partition.range_id,
            subject=subject,
            level=level,
            message=message,
            values=values,
            since=since,
        )
        if old is None or level > old.level:
            _log.warning(_line(kind, f"{database}/{name}", partition.range_id, subject, values))

    def withdraw(
        self, kind: str, container: Container, partition: Partition, keep: Iterable[str] = ()
    ) -> None:
        """Takes the warnings of a kind about a partition down, but for those about the subjects to keep."""
        place = (kind, container.database.id, container.resource.id, partition.range_id)
        kept = set(keep)
        for each in [each for each in self._standing if each[:4] == place and each[4] not in kept]:
            del self._standing[each]

    def forget_all_but(self, places: set[tuple[str, str, str]]) -> None:
        """Takes down what is about partitions that are no more: names of database and container, and range id."""
        for each in [each for each in self._standing if each[1:4] not in places]:
            del self._standing[each]

    def standing(self) -> list[StandingWarning]:
        """All warnings, the oldest first."""
        return sorted(self._standing.values(), key=lambda warning: warning.since)


def _line(kind: str, container: str, partition: str, subject: str, values: dict[str, Any]) -> str:
    subjects = {"key": subject} if subject else {}
    return log_line(kind=kind, container=container, partition=partition, **subjects, **values)


class Watch:
    """Looks at all open containers again and again."""

    def __init__(self, at_work: AtWork, refusals: Refusals) -> None:
        self._at_work = at_work
        self._refusals = refusals
        self.census = Census()
        self.warnings = Warnings()
        self._summed: dict[tuple[str, int], int] = {}
        """The size a physical partition had when its logical partitions were summed."""
        self._turn = asyncio.Lock()
        self._looking: asyncio.Future[None] | None = None

    async def look(self) -> None:
        """One look at everything; what cannot be read is looked at next time."""
        async with self._turn:
            names = set()
            rids = set()
            for container in self._at_work:
                for partition in list(container.map.partitions):
                    names.add((container.database.id, container.resource.id, partition.range_id))
                    rids.add((container.resource.rid, partition.id))
                    try:
                        await self._look_at(container, partition)
                    except PleiadError as error:
                        _log.info("could not look at %s: %s", container.path, error.message)
                await asyncio.sleep(0)
            self.warnings.forget_all_but(names)
            self.census.forget_all_but(rids)
            self._summed = {place: size for place, size in self._summed.items() if place in rids}

    async def look_now(self, seconds: float) -> None:
        """A look of which one wants to see the end, but waits no longer than so many seconds; it goes on then."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self.look())
        done, _ = await asyncio.wait({self._looking}, timeout=seconds)
        for task in done:
            task.result()

    async def for_ever(self) -> None:
        """The background task; a failure is logged and the next look tries again."""
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            try:
                await self.look()
            except Exception:
                _log.exception("looking for warnings failed")

    async def _look_at(self, container: Container, partition: Partition) -> None:
        await self._look_at_sizes(container, partition)
        await self._look_at_refusal(container, partition)
        self._look_at_load(container, partition)

    def _look_at_load(self, container: Container, partition: Partition) -> None:
        figures = partition.governor.snapshot()
        asked = figures.requests_minute + figures.refused_minute
        if figures.refused_minute * 100 <= asked * THROTTLED_PERCENT:
            self.warnings.withdraw(THROTTLED, container, partition)
            return
        percent = 100 * figures.refused_minute / asked
        self.warnings.report(
            THROTTLED,
            container,
            partition,
            f"The physical partition {partition.range_id} answered {percent:.0f} % of its requests with 429 in the "
            f"last minute; it is allowed {figures.rate_ru:g} RU/s. More throughput helps if the others are as busy, "
            "else a partition key that spreads the requests.",
            percent=round(percent, 1),
            refused=figures.refused_minute,
            allowed=round(figures.rate_ru, 2),
        )

    async def _look_at_refusal(self, container: Container, partition: Partition) -> None:
        if not self._refusals.is_refused(container.resource.rid, partition.id):
            self.warnings.withdraw(SPLIT_REFUSED, container, partition)
            return
        size_bytes = (await self.census.state(container, partition)).size_bytes
        self.warnings.report(
            SPLIT_REFUSED,
            container,
            partition,
            f"The physical partition {partition.range_id} should be split and cannot be: it holds a single logical "
            "partition, or its range is too narrow. Another partition key would spread the items.",
            bytes=size_bytes,
        )

    async def _look_at_sizes(self, container: Container, partition: Partition) -> None:
        limit = container.limits.logical_partition_bytes
        size_bytes = (await self.census.state(container, partition)).size_bytes
        place = (container.resource.rid, partition.id)
        if size_bytes * 100 < limit * SIZE_PERCENTS[-1]:
            self.warnings.withdraw(SIZE, container, partition)
            self._summed.pop(place, None)
            return
        summed = self._summed.get(place)
        if summed is not None and abs(size_bytes - summed) * 100 < limit * _CHANGE_PERCENT:
            return
        self._summed[place] = size_bytes
        bytes_min = -(-limit * SIZE_PERCENTS[-1] // 100)
        largest = await partition.largest_logical_partitions(_LARGEST_COUNT, bytes_min)
        subjects = []
        for logical in largest:
            key = to_json_text(container.key.extract(load(logical.sample_body)))
            subjects.append(key)
            percent = 100 * logical.size_bytes / limit
            self.warnings.report(
                SIZE,
                container,
                partition,
                f"The logical partition {key} has {percent:.0f} % of the "
                f"{container.limits.logical_partition_text} it may have; writes to it fail at 100 %.",
                subject=key,
                level=next(level for level in SIZE_PERCENTS if percent >= level),
                bytes=logical.size_bytes,
                limit=limit,
                percent=round(percent, 1),
            )
        self.warnings.withdraw(SIZE, container, partition, keep=subjects)
