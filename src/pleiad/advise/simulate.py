"""Requests under a key on simulated physical partitions: the real hash, the real charge, the real governor.

Nobody retries here: a request that is refused is counted and gone, as in an open loop of independent clients. A request
that visits several partitions goes from one to the next, and is refused when one of them refuses; what it has spent
until then is spent. What it costs is taken from each for the visit, and for the items by how many of them each one has.

Invariants: with the same demands and placement the result is the same; the governors see the requests in the order of
their times on a clock that stands at these times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pleiad.advise.demand import LOOKUP_RU, Demands
from pleiad.advise.found import RowsOf
from pleiad.advise.placement import Placement, even_bounds
from pleiad.advise.routing import Routes, Scope
from pleiad.advise.skew import imbalance, sums
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.partition.governor import Governor, Throttle

COUNTS = (1, 2, 4, 8, 16, 32, 64)
P99 = 99
_WINDOW_REQUESTS = 50
"""Windows are long enough for so many requests a partition, so that chance alone makes none of them hot."""
REPLAYED_VISITS_MAX = 150_000
_SPREAD_GROUPS_MAX = 5_000

Amounts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Simulation:
    """What happens on so many physical partitions."""

    physical: int
    throughput_ru: float
    storage_bytes: tuple[float, ...]
    """By physical partition, without what an index takes."""
    ru: tuple[float, ...]
    """Request units a second that are wanted of each, on average."""
    storage_imbalance: float
    """The largest by the mean."""
    ru_imbalance: float
    usable: float
    """The part of the throughput that can be used before one partition refuses: mean by largest at the same moment."""
    needed_ru: float
    """The throughput with which 99 of 100 seconds stay below 100 % on every partition."""
    normalized_p99: tuple[float, ...]
    """By partition: used of allowed in the busiest of 100 seconds, at most 1."""
    refused: float
    """The share of the requests that is refused with 429."""
    refused_by: tuple[int, ...]
    replayed: int
    """How many requests went through the governors."""
    total_ru: float
    """A second, on average."""
    fan_out_tax_ru: float
    """A second: what visits beyond the first partition of each request cost."""
    visits_mean: float
    """Partitions that a query visits, on average."""


@dataclass(frozen=True, slots=True)
class Visits:
    """Requests as visits to physical partitions, in the order of time."""

    request: NDArray[np.int64]
    physical: NDArray[np.int64]
    ru: Amounts
    tax_ru: float
    query_visits: float


def simulate(
    demands: Demands,
    routes: Routes,
    placement: Placement,
    weights: Amounts,
    count: int,
    throughput_ru: float,
    limits: Limits,
    rows_of: RowsOf | None = None,
    replayed_max: int = REPLAYED_VISITS_MAX,
) -> Simulation:
    """Replays the requests on so many physical partitions; ``weights`` are the bytes of the logical ones.

    The governors see at most ``replayed_max`` visits, those around the busiest moment.
    """
    physical = placement.physical(count, weights)
    storage = sums(physical, weights, count)
    visits = visits_of(demands, routes, placement, physical, count, storage, rows_of)
    seconds = demands.seconds
    by_second = per_window(demands.second, visits, count, int(seconds))
    windows = _windows(demands, by_second, count)
    busiest = by_second.max(axis=1)
    wanted = by_second.sum(axis=0) / seconds
    highest = float(windows.max(axis=1).sum())
    rate = throughput_ru / count
    refused, refused_by, replayed = replay(
        demands.at, visits, demands.count, count, rate, limits, replayed_max
    )
    normalized = np.minimum(1.0, np.percentile(by_second, P99, axis=0) / rate) if rate else np.zeros(count)
    return Simulation(
        physical=count,
        throughput_ru=throughput_ru,
        storage_bytes=tuple(storage.tolist()),
        ru=tuple(wanted.tolist()),
        storage_imbalance=imbalance(storage),
        ru_imbalance=imbalance(wanted),
        usable=float(windows.sum()) / (count * highest) if highest else 1.0,
        needed_ru=count * float(np.percentile(busiest, P99)),
        normalized_p99=tuple(normalized.tolist()),
        refused=refused,
        refused_by=tuple(refused_by.tolist()),
        replayed=replayed,
        total_ru=float(wanted.sum()),
        fan_out_tax_ru=visits.tax_ru / seconds,
        visits_mean=visits.query_visits,
    )


def _windows(demands: Demands, by_second: Amounts, count: int) -> Amounts:
    """The same in windows that are long enough to judge evenness."""
    rate = demands.count / max(1.0, demands.seconds)
    length = int(max(1, min(len(by_second), np.ceil(_WINDOW_REQUESTS * count / max(rate, 1e-9)))))
    starts = np.arange(0, len(by_second), length)
    summed: Amounts = np.add.reduceat(by_second, starts, axis=0)
    return summed


def per_window(second: NDArray[np.int64], visits: Visits, count: int, seconds: int) -> Amounts:
    """Request units by second and physical partition."""
    place = second[visits.request] * count + visits.physical if len(visits.request) else np.empty(0, np.int64)
    return sums(place, visits.ru, seconds * count).reshape(seconds, count)


# -- visits ----------------------------------------------------------------------------------------


def visits_of(
    demands: Demands,
    routes: Routes,
    placement: Placement,
    physical: NDArray[np.int64],
    count: int,
    storage: Amounts,
    rows_of: RowsOf | None,
) -> Visits:
    """The physical partitions that each request visits, and what it costs there."""
    is_one = (routes.scopes <= Scope.SINGLE) if demands.count else np.empty(0, bool)
    by_mark = np.searchsorted(even_bounds(count), demands.marks, side="right").astype(np.int64)
    one = np.flatnonzero(is_one)
    logical = routes.partitions[one]
    places = np.where(logical >= 0, physical[np.maximum(logical, 0)], by_mark[one]) if len(one) else one
    cost = routes.own_ru[one] + routes.visit_ru[one]
    many = np.flatnonzero(~is_one)
    is_wide = routes.scopes[many] == Scope.EVERYWHERE
    spread = _Spread(demands, routes, placement, physical, count, storage, rows_of, by_mark)
    requests, partitions, amounts = [one], [places], [cost]
    wide = many[is_wide]
    if len(wide):
        requests.append(np.repeat(wide, count))
        partitions.append(np.tile(np.arange(count, dtype=np.int64), len(wide)))
        amounts.append(spread.everywhere(wide).ravel())
    tax = float(routes.visit_ru[wide].sum()) * (count - 1)
    visited_total = len(wide) * count
    for number in many[~is_wide].tolist():
        visited, ru = spread.within(number)
        requests.append(np.full(len(visited), number, np.int64))
        partitions.append(visited)
        amounts.append(ru)
        tax += float(routes.visit_ru[number]) * (len(visited) - 1)
        visited_total += len(visited)
    request = np.concatenate(requests)
    order = np.argsort(request, kind="stable")
    queries = len(many) + int((routes.scopes == Scope.SINGLE).sum())
    mean = (visited_total + queries - len(many)) / queries if queries else 1.0
    return Visits(
        request[order], np.concatenate(partitions)[order], np.concatenate(amounts)[order], tax, mean
    )


class _Spread:
    """How requests to several partitions lie on them."""

    def __init__(
        self,
        demands: Demands,
        routes: Routes,
        placement: Placement,
        physical: NDArray[np.int64],
        count: int,
        storage: Amounts,
        rows_of: RowsOf | None,
        by_mark: NDArray[np.int64],
    ) -> None:
        self._demands, self._routes, self._placement = demands, routes, placement
        self._physical, self._count, self._rows_of, self._by_mark = physical, count, rows_of, by_mark
        total = float(storage.sum())
        self._shares: list[Amounts] = [storage / total if total > 0 else np.full(count, 1 / count)]
        """Where the items lie that requests find: all items first, then those of one value each."""
        self._groups: dict[tuple[str, int], int] = {}
        self._visited: dict[tuple[int, ...], NDArray[np.int64]] = {}
        self._paths = [path for path in demands.equals if rows_of is not None and path in rows_of.paths()]

    def everywhere(self, numbers: NDArray[np.int64]) -> Amounts:
        """What requests to all partitions take of each, a row for each request."""
        own_ru, visit_ru = self._routes.own_ru[numbers], self._routes.visit_ru[numbers]
        groups = np.array([self._group_of(number) for number in numbers.tolist()], np.int64)
        shares = np.stack(self._shares)[groups]
        rows = self._demands.rows[numbers]
        alone = np.flatnonzero(rows >= 0)
        shares[alone] = 0.0
        shares[alone, self._physical[self._placement.rows[rows[alone]]]] = 1.0
        taken: Amounts = visit_ru[:, None] + own_ru[:, None] * shares
        return taken

    def within(self, number: int) -> tuple[NDArray[np.int64], Amounts]:
        """The partitions of a request to some of them, and what it takes of each."""
        routes = self._routes
        extra = 0.0
        if number in routes.prefixes:
            visited = self._of_prefix(number, routes.prefixes[number])
        else:
            values = routes.several[number]
            visited = self._of_values(number, values)
            distinct = len(set(values))
            extra = LOOKUP_RU * max(0, distinct - len(visited)) if distinct > 1 else 0.0
        row = int(self._demands.rows[number])
        if row >= 0:
            shares = (visited == self._physical[self._placement.rows[row]]).astype(np.float64)
        else:
            shares = self._shares[self._group_of(number)][visited]
        total = float(shares.sum())
        shares = shares / total if total > 0 else np.full(len(visited), 1 / len(visited))
        return visited, routes.visit_ru[number] + (routes.own_ru[number] + extra) * shares

    def _of_prefix(self, number: int, places: tuple[int, int]) -> NDArray[np.int64]:
        low, high = places
        if high <= low:
            return self._by_mark[[number]]
        if places not in self._visited:
            self._visited[places] = np.unique(self._physical[low:high])
        return self._visited[places]

    def _of_values(self, number: int, values: tuple[int, ...]) -> NDArray[np.int64]:
        logical = np.array(values, np.int64)
        unknown = min(self._count, int((logical < 0).sum()))
        if not unknown and values in self._visited:
            return self._visited[values]
        around = (self._by_mark[number] + np.arange(unknown)) % self._count
        found = np.unique(np.concatenate([self._physical[logical[logical >= 0]], around]))
        if not unknown:
            self._visited[values] = found
        return found

    def _group_of(self, number: int) -> int:
        """Which of the shares a request has: those of the rarest value that it demands, as far as they are known."""
        for path in self._paths:
            code = int(self._demands.equals[path][number])
            if code < 0 or self._rows_of is None:
                continue
            found = self._groups.get((path, code))
            if found is None and len(self._shares) < _SPREAD_GROUPS_MAX:
                rows = self._rows_of.rows(path, code)
                held = np.bincount(self._physical[self._placement.rows[rows]], minlength=self._count)
                found = self._groups[path, code] = len(self._shares)
                self._shares.append(held / max(1, len(rows)))
            return found or 0
        return 0


# -- governors -------------------------------------------------------------------------------------


def replay(
    at: Amounts,
    visits: Visits,
    requests: int,
    count: int,
    rate_ru: float,
    limits: Limits,
    replayed_max: int = REPLAYED_VISITS_MAX,
) -> tuple[float, NDArray[np.int64], int]:
    """The share of requests that is refused, how many by each partition, and how many were replayed."""
    refused_by = np.zeros(count, np.int64)
    if not requests or rate_ru <= 0:
        return 0.0, refused_by, 0
    if not _may_refuse(at, visits, count, rate_ru):
        return 0.0, refused_by, requests
    first, last = _window(at, visits, replayed_max)
    clock = _Clock(float(at[visits.request[first]]))
    throttle = Throttle(clock=clock.now)
    governors = [Governor(rate_ru, throttle, limits) for _ in range(count)]
    request = visits.request[first:last].tolist()
    physical = visits.physical[first:last].tolist()
    ru = visits.ru[first:last].tolist()
    refused = replayed = start = 0
    while start < len(request):
        end = start + 1
        while end < len(request) and request[end] == request[start]:
            end += 1
        clock.at = float(at[request[start]])
        replayed += 1
        for place, amount in zip(physical[start:end], ru[start:end], strict=True):
            try:
                governors[place].admit()
            except PleiadError:
                refused_by[place] += 1
                refused += 1
                break
            governors[place].spend(amount)
        start = end
    return refused / replayed if replayed else 0.0, refused_by, replayed


class _Clock:
    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at


def _may_refuse(at: Amounts, visits: Visits, count: int, rate_ru: float) -> bool:
    """Whether any bucket would run empty if every request were admitted; if not, all of them are."""
    times = at[visits.request]
    for place in range(count):
        mine = visits.physical == place
        if not mine.any():
            continue
        ru, when = visits.ru[mine], times[mine]
        spent_before = np.concatenate(([0.0], np.cumsum(ru)[:-1]))
        level = spent_before - rate_ru * when
        debt = level - np.minimum.accumulate(level)
        if float(debt.max()) >= rate_ru:
            return True
    return False


def _window(at: Amounts, visits: Visits, replayed_max: int) -> tuple[int, int]:
    """The visits that are replayed: all of them, or those around the busiest moment, whole requests only."""
    total = len(visits.request)
    if total <= replayed_max:
        return 0, total
    second = np.floor(at[visits.request] - at[0]).astype(np.int64)
    busiest = int(np.argmax(np.bincount(second, weights=visits.ru)))
    middle = int(np.searchsorted(second, busiest))
    first = max(0, min(middle - replayed_max // 2, total - replayed_max))
    last = min(total, first + replayed_max)
    first = int(np.searchsorted(visits.request, visits.request[first]))
    return first, int(np.searchsorted(visits.request, visits.request[last - 1], side="right"))
