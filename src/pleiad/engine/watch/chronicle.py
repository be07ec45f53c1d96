"""The chronicle: remembers the last hour of the account and of its containers, for who looks on.

It looks at the counters once a second, from beside the requests. What it remembers is bounded: 60 minutes a container,
so many containers as the limits say (those used first), and some hundred events. Splits, merges and changes of the
throughput are noticed by what is there afterwards, whoever made them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pleiad.catalog import throughput
from pleiad.catalog.catalog import Catalog
from pleiad.catalog.placement import Placement, children_of
from pleiad.catalog.resource import Kind, Resource
from pleiad.catalog.throughput import Throughput
from pleiad.engine.at_work import AtWork
from pleiad.engine.container import Container
from pleiad.engine.traffic import SLICES, Traffic
from pleiad.engine.watch.heat_map import Stretch, heat_row
from pleiad.engine.watch.hour import (
    MINUTE_SECONDS,
    MINUTES_MAX,
    Hour,
    Minute,
    Now,
    Sums,
    Totals,
    sums_of,
    totals_of,
)
from pleiad.keys.range import position
from pleiad.limits import Limits
from pleiad.partition.latency import CLASSES
from pleiad.partition.partition import Partition

_log = logging.getLogger(__name__)

INTERVAL_SECONDS = 1.0
SAMPLE_SECONDS = 10.0
"""How often is noted how far the counts are; seven such notes reach a minute back, fewer to the beginning."""
_SAMPLES = 7
_EVENTS_MAX = 500
_NO_LATENCIES = (0,) * CLASSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that changed a container or its throughput; of a database's throughput there is no container."""

    at: float
    kind: str
    database: str
    container: str | None
    container_rid: str | None = None
    partitions: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    cause: str | None = None
    before: Throughput | None = None
    after: Throughput | None = None


@dataclass(frozen=True, slots=True)
class _Sample:
    """How far the counts of a container were at a moment, and the latencies of its partitions."""

    sums: Sums
    latencies: dict[int, tuple[int, ...]]


@dataclass(slots=True)
class _Watched:
    """What the chronicle knows of one container."""

    container: Container
    hour: Hour
    retired: frozenset[int]
    """The partitions that were replaced before the last look."""
    refused: dict[int, int] = field(default_factory=dict)
    """Refusals of each partition when the minute began."""
    spent_ru: dict[int, float] = field(default_factory=dict)
    """What each partition had spent when the minute began."""
    samples: deque[_Sample] = field(default_factory=lambda: deque(maxlen=_SAMPLES))


class Chronicle:
    """The last hour of one account, as it is looked at once a second."""

    def __init__(
        self, at_work: AtWork, catalog: Catalog, provisioned_ru: Callable[[], int], limits: Limits
    ) -> None:
        self._at_work = at_work
        self._catalog = catalog
        self._provisioned_ru = provisioned_ru
        self._limits = limits
        self.started_at = now = time.time()
        self._watched: dict[str, _Watched] = {}
        self._account = Hour(now, Sums())
        self._account_samples: deque[Sums] = deque(maxlen=_SAMPLES)
        self._minute = int(now) // MINUTE_SECONDS
        self._sampled_at = 0.0
        self._looked_at = now
        """When the counters were last looked at; what is new has begun since."""
        self._offers: dict[str, Resource] | None = None
        self.events: deque[Event] = deque(maxlen=_EVENTS_MAX)
        """What happened, the oldest first."""

    async def for_ever(self) -> None:
        """The background task; a failure is logged and the next second tries again."""
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            try:
                await self.second(time.time())
            except Exception:
                _log.exception("the figures of a second were not remembered")

    async def second(self, now: float) -> None:
        """One look at all counters; at the end of a minute others have their turn between containers."""
        self._meet()
        minute = int(now) // MINUTE_SECONDS
        # A clock that is set back a little has its minute go on; one that is set back far begins anew.
        is_new_minute = minute > self._minute or minute < self._minute - MINUTES_MAX
        is_sampled = now - self._sampled_at >= SAMPLE_SECONDS or now < self._sampled_at
        for watched in self._watched.values():
            watched.hour.second(now, totals_of((watched.container.traffic,)))
            self._notice_changes(watched)
            if is_sampled:
                watched.samples.append(_sample(watched.container))
        self._account.second(now, totals_of(self._parts()))
        self._notice_throughput(now)
        if is_sampled:
            self._account_samples.append(sums_of(self._parts()))
            self._sampled_at = now
        if is_new_minute:
            self._minute = minute
            self._account.end_minute(now, sums_of(self._parts()), self._now())
            await self._end_minutes(now)
        self._looked_at = now

    def _parts(self) -> tuple[Traffic, ...]:
        return (self._at_work.traffic, *self._at_work.traffic.parts)

    # -- containers --------------------------------------------------------------------------------

    def _meet(self) -> None:
        """Takes up containers that came to work, and forgets those that were deleted."""
        for rid in [rid for rid in self._watched if self._catalog.by_rid(Kind.CONTAINER, rid) is None]:
            del self._watched[rid]
        for container in self._at_work:
            self.watch(container)

    def watch(self, container: Container) -> None:
        """Begins to remember a container that was not known, as long as there is room."""
        rid = container.resource.rid
        known = self._watched.get(rid)
        if known is not None and known.container is container:
            return
        if known is None and len(self._watched) >= self._limits.history_containers:
            return
        hour = Hour(self._looked_at, Sums())
        if known is not None:
            hour.minutes = known.hour.minutes
        self._watched[rid] = _Watched(container, hour, _retired(self._catalog.history(rid)))

    async def _end_minutes(self, now: float) -> None:
        for container in self._at_work:
            watched = self._watched.get(container.resource.rid)
            if watched is not None and watched.container is container:
                sums = sums_of((container.traffic,))
                watched.hour.end_minute(now, sums, self._state(watched, sums))
                partitions = container.map.partitions
                watched.refused = {each.id: each.refused for each in partitions}
                watched.spent_ru = {each.id: each.governor.spent_ru for each in partitions}
            container.heat.turn()
            await asyncio.sleep(0)

    def _state(self, watched: _Watched, sums: Sums) -> Now:
        container = watched.container
        partitions = container.map.partitions
        refused = {each.range_id: each.refused - watched.refused.get(each.id, 0) for each in partitions}
        return Now(
            sum({id(each.governor): each.governor.rate_ru for each in partitions}.values()),
            sum(each.size_bytes_seen for each in partitions),
            sum(each.items_seen for each in partitions),
            {each.range_id: round(each.governor.snapshot().normalized_percent, 1) for each in partitions},
            {range_id: count for range_id, count in refused.items() if count > 0},
            array("f", self._heat(watched, watched.hour.spent_ru(sums))),
        )

    def _heat(self, watched: _Watched, spent_ru: float) -> list[float]:
        container = watched.container
        if spent_ru <= 0:
            return [0.0] * SLICES
        is_shared = container.allotment.pool is not None
        stretches = []
        for each in container.map.partitions:
            low, high = stretch_of(container, each)
            own_ru = None if is_shared else each.governor.spent_ru - watched.spent_ru.get(each.id, 0.0)
            stretches.append(Stretch(low, high, own_ru))
        return heat_row(container.heat.slices_ru(), spent_ru, stretches)

    # -- what happened -----------------------------------------------------------------------------

    def _notice_changes(self, watched: _Watched) -> None:
        """Tells of the splits and merges since the last look."""
        container = watched.container
        rid = container.resource.rid
        history = self._catalog.history(rid)
        retired = _retired(history)
        if retired == watched.retired:
            return
        new = {each.id: each for each in history if each.id in retired - watched.retired}
        watched.retired = retired
        groups: dict[tuple[int, ...], list[Placement]] = {}
        for id, children in sorted(children_of(history).items()):
            if id in new:
                groups.setdefault(tuple(sorted(child.id for child in children)), []).append(new[id])
        for child_ids, parents in groups.items():
            made = next(each for each in history if each.id == child_ids[0])
            self.events.append(
                Event(
                    at=float(parents[0].retired_at or 0),
                    kind="split" if len(child_ids) > 1 else "merge",
                    database=container.database.id,
                    container=container.resource.id,
                    container_rid=rid,
                    partitions=tuple(str(each.id) for each in parents),
                    children=tuple(map(str, child_ids)),
                    cause=made.cause or None,
                )
            )

    def _notice_throughput(self, now: float) -> None:
        """Tells of offers that were changed since the last look; new ones are no event, they are a beginning."""
        offers = {offer.rid: offer for offer in self._catalog.all(Kind.OFFER)}
        before, self._offers = self._offers or {}, offers
        for rid, offer in offers.items():
            old = before.get(rid)
            if old is None or old is offer:
                continue
            given, taken = (
                throughput.from_offer_content(each.properties["content"]) for each in (old, offer)
            )
            owner = self._catalog.owner_of(offer)
            if (given.ru, given.autoscale) == (taken.ru, taken.autoscale) or owner is None:
                continue
            parent = self._catalog.parent_of(owner) if owner.kind is Kind.CONTAINER else None
            self.events.append(
                Event(
                    at=now,
                    kind="throughput",
                    database=owner.id if parent is None else parent.id,
                    container=None if parent is None else owner.id,
                    container_rid=None if parent is None else owner.rid,
                    before=given,
                    after=taken,
                )
            )

    # -- what is told ------------------------------------------------------------------------------

    def minutes_of(self, container: Container) -> list[Minute]:
        """The last hour of a container, the oldest minute first and the one that runs last."""
        self.watch(container)
        watched = self._watched.get(container.resource.rid)
        if watched is None:
            return []
        sums = sums_of((watched.container.traffic,))
        running = watched.hour.running(time.time(), sums, self._state(watched, sums))
        return [*watched.hour.minutes, running]

    def account_minutes(self) -> list[Minute]:
        """The last hour of the account."""
        running = self._account.running(time.time(), sums_of(self._parts()), self._now())
        return [*self._account.minutes, running]

    def containers(self) -> list[tuple[Container, list[Minute]]]:
        """The last hour of every container that is remembered."""
        return [(watched.container, self.minutes_of(watched.container)) for watched in self._watched.values()]

    def account_last(self) -> Totals:
        """What the account did in the last second."""
        return self._account.last

    def account_minute(self) -> Sums:
        """What the account did in about the last minute."""
        now = sums_of(self._parts())
        return now.minus(self._account_samples[0]) if len(self._account_samples) == _SAMPLES else now

    def latencies(self, container: Container, partition: Partition) -> list[int]:
        """How many requests of about the last minute took how long, of a partition."""
        watched = self._watched.get(container.resource.rid)
        before: tuple[int, ...] = _NO_LATENCIES
        if watched is not None and len(watched.samples) == _SAMPLES:
            before = watched.samples[0].latencies.get(partition.id, _NO_LATENCIES)
        return [max(0, now - then) for now, then in zip(partition.latencies, before, strict=True)]

    def last_of(self, container: Container) -> Totals:
        """What a container did in the last second."""
        watched = self._watched.get(container.resource.rid)
        return Totals() if watched is None else watched.hour.last

    def minute_of(self, container: Container) -> Sums:
        """What a container did in about the last minute."""
        now, watched = sums_of((container.traffic,)), self._watched.get(container.resource.rid)
        if watched is None or watched.container is not container or len(watched.samples) < _SAMPLES:
            return now
        return now.minus(watched.samples[0].sums)

    def _now(self) -> Now:
        partitions = [each for container in self._at_work for each in container.map.partitions]
        return Now(
            self._provisioned_ru(),
            sum(each.size_bytes_seen for each in partitions),
            sum(each.items_seen for each in partitions),
        )


def stretch_of(container: Container, partition: Partition) -> tuple[float, float]:
    """Where a partition lies in the hash space, from 0 to 1."""
    span = partition.span
    return position(span.min, container.key), position(span.max, container.key)


def _sample(container: Container) -> _Sample:
    latencies = {each.id: tuple(each.latencies) for each in container.map.partitions}
    return _Sample(sums_of((container.traffic,)), latencies)


def _retired(history: Sequence[Placement]) -> frozenset[int]:
    return frozenset(each.id for each in history if not each.is_live)
