"""What a scenario declares, and what comes of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

from pleiad.limits import KB, MB, Limits

Item = Mapping[str, Any]

PARTITION_RU = 100
"""What a physical partition serves here; the service's has 10,000."""
LOGICAL_BYTES = 200 * KB
"""What a logical partition holds here; the service's has 20 GB."""
LIMITS = dataclasses.replace(
    Limits(),
    logical_partition_bytes=LOGICAL_BYTES,
    physical_partition_bytes=500 * MB,
    physical_partition_ru=PARTITION_RU,
    manual_sizing_ru=PARTITION_RU,
    throughput_ru_min=PARTITION_RU,
)
"""The service's limits scaled down, without splits by size in the middle of a run."""


class Verb(Enum):
    """What a request of a scenario does."""

    READ = "read"
    WRITE = "write"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: an item to be read or written, or a query for the items that have its values at some paths."""

    verb: Verb
    item: Item
    where: tuple[str, ...] = ()


def read(item: Item) -> Ask:
    return Ask(Verb.READ, item)


def write(item: Item) -> Ask:
    return Ask(Verb.WRITE, item)


def query(item: Item, *where: str) -> Ask:
    """A query by equality; paths have one name, such as `/city`."""
    return Ask(Verb.QUERY, item, where)


def _everything(_: Item) -> str:
    return "data"


def _nobody(_: Item) -> str:
    return ""


def _as_it_is(item: Item) -> Item:
    return item


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One choice of partition key for the same data and requests."""

    title: str
    path: str
    throughput_ru: Mapping[str, int]
    """The RU/s of each container, by name."""
    container_of: Callable[[Item], str] = _everything
    shaped: Callable[[Item], Item] = _as_it_is
    """The item with what the key is made from."""

    def key(self, item: Item) -> Any:
        return self.shaped(item)[self.path.removeprefix("/")]


def on_path(path: str) -> Attempt:
    """One container of 400 RU/s, four physical partitions here, keyed by a property that items have."""
    return Attempt(title=path, path=path, throughput_ru={"data": 4 * PARTITION_RU})


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence about what happens, and whether it did."""

    sentence: str
    holds: Callable[[Mapping[str, AttemptResult]], bool]
    """By the results of the attempts, under their titles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A workload, and the partition keys to try on it."""

    name: str
    title: str
    story: str
    attempts: tuple[Attempt, ...]
    items: Callable[[Random], Sequence[Item]]
    """What is there before the requests come."""
    seconds: Callable[[Random, Sequence[Item]], Sequence[Sequence[Ask]]]
    """The requests of each second."""
    claims: tuple[Claim, ...]
    lesson: str
    party: Callable[[Item], str] = _nobody
    """Whose request it is, where the refusals of each are to be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    """One physical partition after the run; request units and refusals are those of the requests alone."""

    container: str
    id: str
    size_bytes: int
    charge_ru: float
    throttled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """What one partition key made of it."""

    title: str
    partitions: tuple[PartitionResult, ...]
    requests: int
    throttled: int
    full: int
    """Writes that were refused because their logical partition is as large as it may be, while loading too."""
    charge_ru: float
    queries: int
    visits: int
    """The physical partitions that the queries went to, added up."""
    throttled_of: Mapping[str, int]
    """The refused requests of each party that a scenario tells apart."""
    largest_percent: float
    """The largest logical partition, of what one may hold."""

    @property
    def throttled_percent(self) -> float:
        return 100 * self.throttled / max(1, self.requests)

    @property
    def fan_out(self) -> float:
        """Physical partitions for each query that was served."""
        return self.visits / max(1, self.queries)

    def shares(self, figure: str) -> list[float]:
        """The part that each physical partition has of a figure."""
        values = [float(getattr(each, figure)) for each in self.partitions]
        return [value / max(1e-9, sum(values)) for value in values]

    def top_share(self, figure: str) -> float:
        return max(self.shares(figure))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """A whole run."""

    scenario: Scenario
    seed: int
    attempts: tuple[AttemptResult, ...]

    def claims(self) -> Iterator[tuple[str, bool]]:
        """Each claim, and whether it held."""
        found = {each.title: each for each in self.attempts}
        for claim in self.scenario.claims:
            yield claim.sentence, claim.holds(found)
