"""The last hour of a container or an account, minute by minute, from counters that others add to.

Nothing here is on the way of a request: once a second the counters are looked at. A minute is one frozen record, there
are 60 of them at most, and a minute that nobody saw is not there.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pleiad.engine.operation import Operation
from pleiad.engine.traffic import Traffic
from pleiad.partition.latency import CLASSES, percentile_ms

MINUTES_MAX = 60
MINUTE_SECONDS = 60
_TOO_MANY_REQUESTS = 429
ITEM_OPERATIONS = frozenset(operation.kind for operation in Operation if operation.is_item_operation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """What happened in a minute, or in so much of it as was seen."""

    at: int
    """When it began, in seconds since 1970."""
    seconds: float
    requests: Mapping[str, int]
    ru: float
    busiest_second_ru: float
    allowed_ru: float
    throttled: int
    p50_ms: float | None
    p99_ms: float | None
    size_bytes: int
    items: int
    busy_percent: Mapping[str, float] = field(default_factory=dict)
    """The busiest second of each physical partition, used of allowed."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Requests answered with 429 by each physical partition, without zeros."""
    heat: array[float] = field(default_factory=lambda: array("f"))
    """Request units by slice of the hash space."""


@dataclass(slots=True)
class Totals:
    """Counts since the start, of operations on items but for the requests, which are all."""

    requests: int = 0
    ru: float = 0.0
    throttled: int = 0


@dataclass(slots=True)
class Sums(Totals):
    """The same with all that a minute tells."""

    by_operation: dict[str, int] = field(default_factory=dict)
    buckets: list[int] = field(default_factory=lambda: [0] * CLASSES)

    def minus(self, before: Sums) -> Sums:
        return Sums(
            self.requests - before.requests,
            self.ru - before.ru,
            self.throttled - before.throttled,
            {
                operation: count - before.by_operation.get(operation, 0)
                for operation, count in self.by_operation.items()
                if count > before.by_operation.get(operation, 0)
            },
            [now - then for now, then in zip(self.buckets, before.buckets, strict=True)],
        )


def totals_of(parts: Iterable[Traffic]) -> Totals:
    """What is looked at each second."""
    totals = Totals()
    for part in parts:
        for (operation, status), series in part.series.items():
            totals.requests += series.requests
            if operation in ITEM_OPERATIONS:
                totals.ru += series.charge_ru
            if status == _TOO_MANY_REQUESTS:
                totals.throttled += series.requests
    return totals


def sums_of(parts: Iterable[Traffic]) -> Sums:
    """What is looked at each minute, and when somebody asks."""
    sums = Sums()
    for part in parts:
        for (operation, status), series in part.series.items():
            sums.requests += series.requests
            sums.by_operation[operation] = sums.by_operation.get(operation, 0) + series.requests
            if operation in ITEM_OPERATIONS:
                sums.ru += series.charge_ru
                sums.buckets = [one + more for one, more in zip(sums.buckets, series.buckets, strict=True)]
            if status == _TOO_MANY_REQUESTS:
                sums.throttled += series.requests
    return sums


@dataclass(frozen=True, slots=True)
class Now:
    """How it stands at a moment beside the counts: what is allowed, stored and busy."""

    allowed_ru: float = 0.0
    size_bytes: int = 0
    items: int = 0
    busy_percent: Mapping[str, float] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    heat: array[float] = field(default_factory=lambda: array("f"))


class Hour:
    """The minutes of one scope; `second` is called about once a second and `end_minute` when a minute is over."""

    def __init__(self, now: float, start: Sums) -> None:
        self.minutes: deque[Minute] = deque(maxlen=MINUTES_MAX - 1)
        self.last = Totals()
        """What the last second had."""
        self._began_at = now
        self._start = start
        self._at = now
        self._before = Totals(start.requests, start.ru, start.throttled)
        self._busiest_ru = 0.0

    def second(self, now: float, totals: Totals) -> None:
        """Takes note of how far the counts are."""
        seconds = now - self._at
        if seconds <= 0:
            return
        before, self._before, self._at = self._before, totals, now
        spent_ru = (totals.ru - before.ru) / seconds
        self.last = Totals(
            round((totals.requests - before.requests) / seconds),
            spent_ru,
            round((totals.throttled - before.throttled) / seconds),
        )
        self._busiest_ru = max(self._busiest_ru, spent_ru)

    def running(self, now: float, sums: Sums, state: Now) -> Minute:
        """The minute that runs, as far as it has come."""
        done = sums.minus(self._start)
        return Minute(
            at=int(self._began_at) // MINUTE_SECONDS * MINUTE_SECONDS,
            seconds=round(max(0.0, now - self._began_at), 1),
            requests=done.by_operation,
            ru=round(done.ru, 2),
            busiest_second_ru=round(self._busiest_ru, 2),
            allowed_ru=round(state.allowed_ru, 2),
            throttled=done.throttled,
            p50_ms=percentile_ms(done.buckets, 50),
            p99_ms=percentile_ms(done.buckets, 99),
            size_bytes=state.size_bytes,
            items=state.items,
            busy_percent=state.busy_percent,
            refused=state.refused,
            heat=state.heat,
        )

    def end_minute(self, now: float, sums: Sums, state: Now) -> None:
        """Keeps the minute that is over, and begins the next."""
        self.minutes.append(self.running(now, sums, state))
        self._began_at, self._start, self._busiest_ru = now, sums, 0.0

    def spent_ru(self, sums: Sums) -> float:
        """The request units of the minute that runs."""
        return sums.ru - self._start.ru
