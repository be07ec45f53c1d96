"""The report of an advice: frozen values with one JSON form, which the terminal, the HTML page and the explorer show.

Shares are parts of 1, sizes are bytes, rates are request units a second, times are days unless a name says otherwise.
None stands where something is not known, never for nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from pleiad.advise.simulate import Simulation
from pleiad.advise.skew import Skew

FORMAT = "pleiad-advice/1"


class Level(StrEnum):
    """How a reason speaks for a key."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class Verdict(StrEnum):
    """How well a key fits."""

    BEST = "best"
    GOOD = "good"
    WEAK = "weak"
    BAD = "bad"
    DISQUALIFIED = "disqualified"


@dataclass(frozen=True, slots=True)
class Reason:
    """A sentence for or against a key."""

    level: Level
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopValue:
    """One of the hottest values of a key."""

    label: str
    items: float
    bytes: float
    bytes_share: float
    ru: float
    """A second."""
    ru_share: float
    growth_bytes_a_day: float | None
    days_to_70_percent: float | None
    days_to_full: float | None
    """Until the largest size of a logical partition."""
    days_to_ru_limit: float | None
    """Until one physical partition does not give what it asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """How far requests go under a key: shares of the requests and of the request units, by scope."""

    requests: dict[str, float]
    ru: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What was measured of one key."""

    distinct: int
    cardinality_ratio: float
    """Distinct values by items: 1 when every item has its own."""
    coverage: float
    """The share of the items that have a value."""
    null_share: float
    items: Skew
    storage: Skew
    ru: Skew
    ru_top_share_p99: float
    """The largest value's share of the request units, in the worst of 100 windows."""
    written_values: float
    """Distinct values that are written in a window, on average."""
    written_effective: float
    """The same as equally busy values: 1 / sum of squared shares."""
    window_seconds: float
    monotonicity: float | None
    """How closely values follow the order of writes, from -1 to 1."""
    routed: Routed
    transactions: int
    transaction_fit: float | None
    """The share of observed batches and scripts whose items have one value."""
    changed_share: float | None
    """The share of observed replaces that changed the value."""
    key_bytes_max: int
    type_shares: dict[str, float]
    unsafe_number_share: float
    id_collisions: int
    largest_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What becomes of a key when the world changes."""

    name: str
    storage_bytes: float
    ru: float
    physical: int
    usable: float
    largest_bytes: float
    largest_ru: float
    needed_ru: float
    cost_month: float
    text: str
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One key: what was measured, what happens, what it costs."""

    key: str
    kind: str
    paths: tuple[str, ...]
    partition_key: dict[str, Any]
    """As a container is created with it; what clients make is in /partitionKey."""
    is_current: bool
    rank: int
    verdict: Verdict
    summary: str
    """Why, in one or two sentences."""
    reasons: tuple[Reason, ...]
    disqualified: tuple[str, ...]
    measures: Measures
    simulations: tuple[Simulation, ...]
    physical: int
    """The number of physical partitions that the key is judged on."""
    needed_ru: float
    """Throughput to provision there, in the steps it is sold in."""
    cost_month: float
    cost_factor: float
    """Of the cost of the best key."""
    top_values: tuple[TopValue, ...]
    heat: tuple[tuple[float, ...], ...]
    """Request units a second by window and physical partition."""
    what_if: tuple[WhatIf, ...]

    @property
    def judged(self) -> Simulation:
        return next(each for each in self.simulations if each.physical == self.physical)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What throughput and storage cost, in one currency."""

    ru_hour: float = 0.008
    """100 RU/s for an hour."""
    gb_month: float = 0.25
    currency: str = "USD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The requests that keys were tried with."""

    basis: str
    """record, queries or uniform."""
    requests: int
    tried: int
    seconds: float
    joined_share: float | None
    """The share of requests on one item whose item was found."""
    known_paths: tuple[str, ...]
    refused: int
    operations: dict[str, int]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """How sure the advice is, and why."""

    level: str
    """high, medium or low."""
    share_margin: float
    """By so much a share of the items may be off, 95 times of 100; 0 when all were read."""
    request_margin: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An advice."""

    source: str
    items: int
    rows: int
    total_bytes: int
    """With growth, where it was asked for."""
    growth: float
    problems: tuple[str, ...]
    problem_count: int
    time_path: str | None
    days: float | None
    """Between the first and the last item."""
    workload: Workload
    throughput_ru: float
    physical_now: int
    """The physical partitions that such a container would have."""
    physical: int
    """Those that keys are judged on."""
    logical_partition_bytes: int
    physical_partition_ru: int
    prices: Prices
    confidence: Confidence
    verdict: str
    detail: str
    candidates: tuple[Candidate, ...]
    """The best first."""
    notes: tuple[str, ...] = field(default=())

    @property
    def best(self) -> Candidate | None:
        first = self.candidates[0] if self.candidates else None
        return first if first is not None and not first.disqualified else None

    @property
    def counterexample(self) -> Candidate | None:
        """The key to hold against the best: the one of now, or else the worst that could have been chosen."""
        others = [each for each in self.candidates if each is not self.best]
        current = [each for each in others if each.is_current]
        usable = [each for each in others if not each.disqualified]
        return next(iter(current or usable[::-1] or others), None)


def to_json(report: Report, indented: bool = True) -> bytes:
    """The report with all its numbers."""
    options = orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if indented else 0)
    return orjson.dumps({"format": FORMAT, **_named(asdict(report))}, option=options)


def _named(value: Any) -> Any:
    """The same with names as JSON of Pleiad has them: levelRu for level_ru."""
    if isinstance(value, dict):
        return {_camel(name): _named(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_named(each) for each in value]
    return value


def _camel(name: str) -> str:
    if not name.islower() or "/" in name or "_" not in name:
        return name
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
