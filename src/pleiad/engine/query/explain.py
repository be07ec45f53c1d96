"""A query explained without being run: where it goes and why, and what that would cost with many more partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pleiad import charge
from pleiad.engine.container import Container
from pleiad.engine.query.job import spans_of
from pleiad.engine.query.prepared import prepared_of
from pleiad.engine.query.request import QueryRequest
from pleiad.partition.partition import Partition
from pleiad.query import Query, compile_query
from pleiad.query.advice import Advice, advice
from pleiad.query.index_use import IndexUse, index_use
from pleiad.query.pace import in_turns
from pleiad.query.values import hash_key

MANY_PARTITIONS = 50


class Reach(Enum):
    """Why a query goes where it goes."""

    KEY_GIVEN = "key-given"
    KEY_IN_FILTER = "key-in-filter"
    KEY_PREFIX = "key-prefix"
    NO_FILTER = "no-filter"
    KEY_NOT_IN_FILTER = "key-not-in-filter"
    KEY_OPEN = "key-open"
    NOTHING_MATCHES = "nothing-matches"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtManyPartitions:
    """What it would cost more with many physical partitions."""

    partitions: int
    more_ru: float
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What is to be known of a query before it runs."""

    partitions: tuple[str, ...]
    partition_count: int
    reach: Reach
    why: str
    partition_ru: float
    at_many: AtManyPartitions
    advice: tuple[Advice, ...]
    indexes: IndexUse

    @property
    def is_spread(self) -> bool:
        return len(self.partitions) > 1


def explain(container: Container, request: QueryRequest) -> Explanation:
    """Compiles a query and finds its way; a text that is no query raises what running it would."""
    query = compile_query(request.text, container.limits, request.parameters)
    known = prepared_of(container, request, query)
    spans = spans_of(container, request, query, known.keys)
    found: dict[int, Partition] = {}
    for span in in_turns(spans):
        found |= {each.id: each for each in container.map.overlapping(span)}
    partitions = tuple(each.range_id for each in container.map.partitions if each.id in found)
    reach = _reach(container, request, query, known.keys)
    levels = container.key.levels
    values = (
        1
        if reach is Reach.KEY_GIVEN
        else len({tuple(map(hash_key, key[:levels])) for key in in_turns(known.keys or ())})
    )
    partition_ru = charge.query_partition(request.multiplier)
    key_paths = container.key.path_steps if request.key else ()
    return Explanation(
        partitions=partitions,
        partition_count=len(container.map.partitions),
        reach=reach,
        why=_why(container, reach, values, len(partitions)),
        partition_ru=partition_ru,
        at_many=_at_many(reach, values, len(partitions), partition_ru),
        advice=tuple(advice(query, request.parameters)),
        indexes=index_use(
            query.plan,
            request.parameters,
            container.definition.indexing,
            container.computed_names,
            key_paths,
        ),
    )


def _reach(
    container: Container, request: QueryRequest, query: Query, keys: Sequence[tuple[Any, ...]] | None
) -> Reach:
    levels = container.key.levels
    if keys is not None and not keys:
        return Reach.NOTHING_MATCHES
    if request.key is not None:
        return Reach.KEY_GIVEN if len(request.key) == levels else Reach.KEY_PREFIX
    if keys is not None:
        return Reach.KEY_IN_FILTER if all(len(key) >= levels for key in keys) else Reach.KEY_PREFIX
    if query.block.where is None:
        return Reach.NO_FILTER
    if query.filter_names is not None and container.key_names.isdisjoint(query.filter_names):
        return Reach.KEY_NOT_IN_FILTER
    return Reach.KEY_OPEN


def _why(container: Container, reach: Reach, values: int, visited: int) -> str:
    count = len(container.map.partitions)
    path = ", ".join(container.resource.properties["partitionKey"]["paths"])
    everywhere = "every physical partition" if count > 1 else "the one physical partition there is"
    places = (
        f"{visited} of {count} physical partitions" if count > 1 else "the one physical partition there is"
    )
    match reach:
        case Reach.KEY_GIVEN:
            return "The request names the partition key, so it goes to one physical partition."
        case Reach.KEY_IN_FILTER if values == 1:
            return f"The filter names one value of {path}, so it goes to one physical partition."
        case Reach.KEY_IN_FILTER:
            return f"The filter names {values:,} values of {path}, which are on {places}."
        case Reach.KEY_PREFIX:
            return f"Only the first levels of {path} are named; what is beneath them is on {places}."
        case Reach.NO_FILTER:
            return f"There is no filter, so it goes to {everywhere}."
        case Reach.KEY_NOT_IN_FILTER:
            return f"The filter does not name {path}, so it goes to {everywhere}."
        case Reach.KEY_OPEN:
            return (
                f"The filter leaves more values of {path} open than can be listed, as ranges, functions and OR do, so "
                f"it goes to {everywhere}."
            )
        case Reach.NOTHING_MATCHES:
            return "No item can match, so nothing is read."


def _at_many(reach: Reach, values: int, visited: int, partition_ru: float) -> AtManyPartitions:
    """With many partitions: one for each value that is named, or all of them."""
    many = MANY_PARTITIONS
    if reach in (Reach.KEY_GIVEN, Reach.KEY_IN_FILTER):
        many = min(many, values)
    elif reach is Reach.KEY_PREFIX or reach is Reach.NOTHING_MATCHES:
        many = visited  # what begins alike stays together
    more = max(0, many - visited)
    more_ru = round(partition_ru * more, 2)
    with_many = f"With {MANY_PARTITIONS} physical partitions it would"
    if not more:
        sentence = f"{with_many} cost the same."
    elif many == MANY_PARTITIONS:
        sentence = f"{with_many} go to all of them and cost {more_ru:,.2f} RU more before anything is found."
    else:
        sentence = f"{with_many} go to {many} of them at most and cost up to {more_ru:,.2f} RU more."
    return AtManyPartitions(partitions=MANY_PARTITIONS, more_ru=more_ru, sentence=sentence)
