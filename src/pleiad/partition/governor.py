"""The governor of one physical partition: admits requests by the request units that are left.

A bucket fills at the partition's rate, its share of the container's throughput, and holds one second of it. A request
is admitted while something is in the bucket and pays when its charge is known, so the level may fall below zero; then
nothing is admitted until the debt is filled up again. What overflows while the partition is idle is kept apart: up to
one second as spare units for background work, and with burst capacity up to five minutes for requests.

Where several servers work on the same data, each has a governor for the partition and fills its bucket at a share of
the rate; the shares of all servers sum up to one at most (`engine.shared_budget`). Everything here is then a share of
what it is for one server. A bucket holds at least a chunk, a tenth of a second's units, so that a server without a
share can serve the first requests that come to it while it asks for one.

Invariants:
- in t seconds requests spend at most rate x (t + 1), beside what burst capacity saved earlier and the charges of the
  requests that were admitted last; with several servers that holds for all of them together, and a chunk for each;
- a refused request costs nothing, and `retry_after_ms` is the first millisecond at which it would be admitted if
  nobody else spent anything meanwhile; with several servers, one at which it would be: the share may grow before;
- spare units never hold up a request: they are spent from what no request used.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from pleiad import errors
from pleiad.errors import ErrorRow, PleiadError
from pleiad.limits import Limits

LOW_PRIORITY_RESERVE = 0.2
"""The share of a second's units that is left to requests of high priority."""
AUTOSCALE_FLOOR = 0.1
"""Autoscale never scales below this share of its maximum."""
CHUNK = 0.1
"""The part of a second's units that the bucket of a server holds, however small its share is."""
SHARE_SECONDS = 1.0
"""The time in which a server that asks for a share of a budget has got the part that is its due."""
_MINUTE_SECONDS = 60
_HOUR_SECONDS = 3600
_SCALE_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """The switches of an account: whether requests are refused at all, whether unused units are saved, and which share
    of its rate a governor begins with."""

    enforced: bool = True
    burst: bool = False
    clock: Callable[[], float] = time.monotonic
    first_share: Callable[[], float] = lambda: 1.0


OBSERVE = Throttle(enforced=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """How a request asks to be treated: its priority, and the throughput bucket it belongs to (0 is none).

    The system's own work is neither refused nor counted.
    """

    low_priority: bool = False
    bucket: int = 0
    is_system: bool = False


NORMAL = Lane()
SYSTEM = Lane(is_system=True)


@dataclass(frozen=True, slots=True)
class Buckets:
    """The throughput buckets of a container: the percent of the rate each may use, and which one requests that name
    none belong to (0: none). A bucket is a ceiling and reserves nothing."""

    percents: Mapping[int, int]
    default: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernorSnapshot:
    """What an operator reads of one governor.

    Containers that share the throughput of a database show the same governor, so sum over governors, not over
    partitions.
    """

    rate_ru: float
    """RU/s allowed, to all servers together."""
    share: float
    """The part of it that this server may use now: 1 where there is no other."""
    level_ru: float
    """What is left of it now; negative is debt."""
    second_ru: float
    """Used in the last whole second."""
    minute_ru: float
    """Used in the last 60 whole seconds, of 60 times `rate_ru`."""
    normalized_percent: float
    """The busiest second of that minute and the one that runs: used of allowed, at most 100."""
    requests: int
    """Requests charged since the start."""
    requests_minute: int
    """The same in that minute and the second that runs."""
    ru: float
    """Request units charged since the start."""
    refused: int
    """Requests answered with 429 since the start."""
    refused_minute: int
    """The same in that minute and the second that runs."""
    over_budget: int
    """Requests that only observing let through, since the start."""
    burst_ru: float
    """What burst capacity has saved."""
    burst_spent_ru: float
    """What was spent of burst capacity since the start."""
    scaled_ru: float
    """Autoscale: the RU/s it stands at now, from a tenth of the maximum up. Manual: `rate_ru`."""
    scaled_hour_ru: float
    """The highest `scaled_ru` of the clock hour, which is what the service bills."""


class Demand(NamedTuple):
    """What has come to one server of what a budget is for."""

    spent_ru: float
    """Since the start."""
    denied: int
    """Requests that found nothing left since the start."""
    is_empty: bool
    is_full: bool
    """Whether a share would fill nothing: neither the bucket nor what is kept for later."""


class _Second(NamedTuple):
    """The figures of one second."""

    number: int
    used: float
    requests: int
    refused: int


class Governor:
    """The budget of one physical partition, or of one place in a database's shared throughput."""

    __slots__ = (
        "_at",
        "_autoscale",
        "_buckets",
        "_burst",
        "_burst_max",
        "_burst_spent",
        "_clock",
        "_enforced",
        "_fill",
        "_hold",
        "_hour",
        "_hour_ru",
        "_level",
        "_limits",
        "_over_budget",
        "_plain",
        "_rate",
        "_refused",
        "_refused_total",
        "_requests",
        "_requests_before",
        "_second_end",
        "_seconds",
        "_servers",
        "_share",
        "_spare",
        "_throttle",
        "_used",
        "_used_before",
    )

    def __init__(self, rate_ru: float, throttle: Throttle = OBSERVE, limits: Limits | None = None) -> None:
        self._rate = self._level = rate_ru
        self._fill = self._hold = rate_ru
        """What the bucket gains in a second, and what it holds."""
        self._share, self._servers = 1.0, 1
        self._throttle: Throttle | None = None
        self._spare = rate_ru
        self._burst = self._burst_max = self._burst_spent = 0.0
        self._over_budget = self._refused = self._refused_total = 0
        self._requests = self._requests_before = 0
        self._used = self._used_before = 0.0
        self._hour, self._hour_ru = -1, 0.0
        self._autoscale = False
        self._buckets: dict[int, _Bucket] = {}
        self._seconds: deque[_Second] = deque(maxlen=_MINUTE_SECONDS)
        """Whole seconds with traffic."""
        self._clock = throttle.clock
        self._at = self._clock()
        self._second_end = int(self._at) + 1
        self.allot(rate_ru, throttle, limits or Limits())

    @property
    def rate_ru(self) -> float:
        return self._rate

    @property
    def is_enforced(self) -> bool:
        """Whether requests beyond the rate are refused."""
        return self._enforced

    @property
    def share(self) -> float:
        return self._share

    @property
    def spent_ru(self) -> float:
        """Request units charged since the start."""
        return self._used_before + self._used

    def allot(
        self,
        rate_ru: float,
        throttle: Throttle,
        limits: Limits,
        autoscale: bool = False,
        buckets: Buckets | None = None,
    ) -> None:
        """Sets rate and switches anew, at once and without losing the debt; the share stays."""
        if throttle.clock is not self._clock:
            self._clock = throttle.clock
            self._at = self._clock()
            self._second_end = int(self._at) + 1
        self._refill(self._clock())
        if throttle is not self._throttle:
            self._throttle = throttle
            self._share = throttle.first_share()
        held = self._hold
        self._rate = rate_ru
        self._limits = limits
        self._enforced = throttle.enforced
        self._autoscale = autoscale
        bursts = throttle.burst and rate_ru < limits.burst_partition_ru
        self._burst_max = rate_ru * limits.burst_seconds if bursts else 0.0
        self._burst = min(self._burst, self._burst_max)
        self._spare = min(self._spare, rate_ru)
        percents = buckets.percents if buckets is not None else {}
        self._buckets = {id: _Bucket(rate_ru * percent / 100, self._at) for id, percent in percents.items()}
        self._scale()
        self._level = min(self._level + max(0.0, self._hold - held), self._hold)
        self._plain: Lane | None = NORMAL
        if buckets is not None and buckets.default:
            self._buckets[NORMAL.bucket] = self._buckets[buckets.default]
            self._plain = None

    # -- several servers -------------------------------------------------------------------------------

    def set_share(self, share: float, servers: int = 1) -> None:
        """From now on fills at this part of the rate; each of so many servers has a right to an even part.

        What the bucket no longer holds counts as unused.
        """
        self._refill(self._clock())
        self._share, self._servers = share, servers
        self._scale()

    def _scale(self) -> None:
        self._fill = self._rate * self._share
        self._hold = self._rate * max(self._share, CHUNK)
        for bucket in self._buckets.values():
            bucket.scale(max(self._share, CHUNK))

    def demand(self) -> Demand:
        """What this server makes of the budget."""
        self._refill(self._clock())
        is_full = self._level >= self._hold and self._spare >= self._rate and self._burst >= self._burst_max
        denied = self._refused_total + self._refused + self._over_budget
        return Demand(self._used_before + self._used, denied, self._level <= 0, is_full)

    # -- the way of a request --------------------------------------------------------------------------

    def admit(self, lane: Lane = NORMAL) -> None:
        """Lets a request in, or raises what tells its client when to come again."""
        now = self._clock()
        hold = self._hold
        level = self._level + (now - self._at) * self._fill
        self._at = now
        if level > hold:
            self._keep_unused(level - hold)
            level = hold
        self._level = level
        if now >= self._second_end:
            self._end_second(now)
        if level <= 0 or lane is not self._plain:
            self._decide(lane, now)

    def lets_all_in(self, lane: Lane = NORMAL) -> bool:
        """Whether whoever comes at the moment of the request that was admitted last is let in without a count."""
        return self._level > 0 and lane is self._plain

    def spend(self, ru: float, lane: Lane = NORMAL, requests: int = 1) -> None:
        """Takes the charge of an admitted request, done or failed, or of several that were admitted at one moment."""
        if lane is not self._plain:
            if lane.is_system:
                return
            if lane.bucket in self._buckets:
                self._buckets[lane.bucket].level -= ru
        self._requests += requests
        self._used += ru
        # A request that enforcing would have refused costs nothing there, so observing does not count it as debt.
        if self._enforced or self._level > 0:
            self._level -= ru

    def is_open(self, lane: Lane = NORMAL) -> bool:
        """Whether a request would be admitted now; nothing is counted."""
        now = self._clock()
        self._refill(now)
        return not self._enforced or self._obstacle(lane, now) is None

    # -- background work -------------------------------------------------------------------------------

    def has_spare(self) -> bool:
        """Whether there are units that no request used; work that spends only these asks before each step."""
        self._refill(self._clock())
        return not self._enforced or self._spare > 0

    def spend_spare(self, ru: float) -> None:
        """Takes the charge of background work; a debt is paid from later spare units only."""
        self._spare -= ru

    # -- figures ---------------------------------------------------------------------------------------

    def snapshot(self) -> GovernorSnapshot:
        """The figures of this moment."""
        now = self._clock()
        self._refill(now)
        this_second = self._second_end - 1
        recent = [each for each in self._seconds if each.number >= this_second - _MINUTE_SECONDS]
        busiest = max([each.used for each in recent] + [self._used])
        scaled = self._scaled()
        return GovernorSnapshot(
            rate_ru=self._rate,
            share=self._share,
            level_ru=self._level,
            second_ru=sum(each.used for each in recent if each.number == this_second - 1),
            minute_ru=sum(each.used for each in recent),
            normalized_percent=min(100.0, 100 * busiest / self._rate),
            requests=self._requests_before + self._requests,
            requests_minute=sum(each.requests for each in recent) + self._requests,
            ru=self._used_before + self._used,
            refused=self._refused_total + self._refused,
            refused_minute=sum(each.refused for each in recent) + self._refused,
            over_budget=self._over_budget,
            burst_ru=self._burst,
            burst_spent_ru=self._burst_spent,
            scaled_ru=scaled,
            scaled_hour_ru=max(scaled, self._hour_ru if self._hour == int(now) // _HOUR_SECONDS else 0.0),
        )

    def _scaled(self) -> float:
        """Where autoscale stands: the average use of the last whole seconds, so only steady use reaches the top."""
        if not self._autoscale:
            return self._rate
        first = self._second_end - 1 - _SCALE_SECONDS
        recent = islice(reversed(self._seconds), _SCALE_SECONDS)
        used = sum(min(each.used, self._rate) for each in recent if each.number >= first)
        return min(self._rate, max(AUTOSCALE_FLOOR * self._rate, used / _SCALE_SECONDS))

    # -- filling ---------------------------------------------------------------------------------------

    def _refill(self, now: float) -> None:
        level = self._level + (now - self._at) * self._fill
        self._at = now
        if level > self._hold:
            self._keep_unused(level - self._hold)
            level = self._hold
        self._level = level
        if now >= self._second_end:
            self._end_second(now)

    def _keep_unused(self, ru: float) -> None:
        spare = self._spare + ru
        self._spare = spare if spare < self._rate else self._rate
        if self._burst_max:
            self._burst = min(self._burst + ru, self._burst_max)

    def _end_second(self, now: float) -> None:
        """Notes the figures of the second that is over; the one that runs starts at zero."""
        if self._requests or self._refused:
            self._seconds.append(_Second(self._second_end - 1, self._used, self._requests, self._refused))
            self._used_before += self._used
            self._requests_before += self._requests
            self._refused_total += self._refused
        self._used, self._requests, self._refused = 0.0, 0, 0
        hour = (self._second_end - 1) // _HOUR_SECONDS
        self._second_end += 1
        scaled = self._scaled()
        self._hour_ru = max(self._hour_ru, scaled) if hour == self._hour else scaled
        self._hour = hour
        self._second_end = int(now) + 1

    # -- deciding --------------------------------------------------------------------------------------

    def _decide(self, lane: Lane, now: float) -> None:
        if not self._enforced and lane is self._plain and self._burst <= 0:
            self._over_budget += 1  # nothing is left, nothing is saved, and nobody is told when to come again
            return
        found = self._obstacle(lane, now)
        if found is None:
            return
        if not self._enforced:
            self._over_budget += 1
            return
        self._refused += 1
        row, wait_seconds = found
        raise row(retry_after_ms=int(wait_seconds * 1000) + 1)

    def _obstacle(self, lane: Lane, now: float) -> tuple[ErrorRow, float] | None:
        """What keeps a request out and for how many seconds, or None when it may go in."""
        if lane.is_system:
            return None
        bucket = self._buckets.get(lane.bucket)
        if bucket is not None:
            wait_seconds = bucket.wait_seconds(now)
            if wait_seconds is not None:
                return errors.THROUGHPUT_BUCKET_EMPTY, wait_seconds
        floor = self._hold * LOW_PRIORITY_RESERVE if lane.low_priority else 0.0
        if self._level > floor:
            return None
        wait_seconds = self._filling_seconds(floor - self._level)
        if self._burst > 0 and self._share > 0 and bucket is None:
            if self._draw_burst(floor):
                return None
            wait_seconds = min(wait_seconds, self._second_end - now)
        return errors.TOO_MANY_REQUESTS, wait_seconds

    def _filling_seconds(self, ru: float) -> float:
        """How long it takes to fill in so much: at the share there is, or at the one that asking for it brings."""
        if self._fill == self._rate:
            return ru / self._rate
        asked_seconds = SHARE_SECONDS + ru * self._servers / self._rate
        return min(asked_seconds, ru / self._fill) if self._fill > 0 else asked_seconds

    def _draw_burst(self, floor: float) -> bool:
        """Puts saved units into the bucket, as far as the second has room for them; whether that is enough."""
        room = (self._limits.burst_partition_ru - self._rate) * self._share - self._used
        drawn = min(self._burst, max(0.0, room))
        if self._level + drawn <= floor:
            return False
        drawn = min(drawn, floor - self._level + self._hold)
        self._burst -= drawn
        self._burst_spent += drawn
        self._level += drawn
        return True


class _Bucket:
    """A throughput bucket on this partition: at most its percent of the rate."""

    __slots__ = ("_whole_ru", "at", "level", "rate")

    def __init__(self, rate_ru: float, now: float) -> None:
        self._whole_ru = self.rate = self.level = rate_ru
        self.at = now

    def scale(self, share: float) -> None:
        """From now on allows this part of its rate."""
        self.rate = self._whole_ru * share
        self.level = min(self.level, self.rate)

    def wait_seconds(self, now: float) -> float | None:
        """How long until it admits a request, or None when it does now."""
        self.level = min(self.level + (now - self.at) * self.rate, self.rate)
        self.at = now
        return None if self.level > 0 else -self.level / self.rate


def admit_all(admissions: Iterable[Callable[[Lane], None]], lane: Lane) -> None:
    """Lets a request into several partitions, or raises the refusal with the longest wait."""
    refusals: list[PleiadError] = []
    for admit in admissions:
        try:
            admit(lane)
        except PleiadError as error:
            refusals.append(error)
    if refusals:
        raise max(refusals, key=lambda error: error.retry_after_ms or 0)


def spend_all(visits: Sequence[tuple[Governor, int]], ru: float, evenly_ru: float, lane: Lane) -> None:
    """Takes a charge from several governors: a part of it evenly, the rest by the rows each one's partition gave."""
    count = len(visits)
    rows = sum(number for _, number in visits)
    for governor, number in visits:
        by_rows = number / rows if rows else 1 / count
        governor.spend(evenly_ru / count + (ru - evenly_ru) * by_rows, lane)
