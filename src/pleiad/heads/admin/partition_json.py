"""Physical partitions as the admin API shows them: what they hold and use, what is under way, what could be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pleiad.catalog import throughput
from pleiad.catalog.placement import Placement, children_of
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.reshape.progress import Progress
from pleiad.engine.reshape.prospects import Prospect, prospects_of
from pleiad.engine.steady import over_moves
from pleiad.engine.traffic import HotKey
from pleiad.engine.watch.balance import Balance, HotValue, Load, balance_of
from pleiad.engine.watch.chronicle import stretch_of
from pleiad.engine.watch.heat_map import Stretch, spent_on
from pleiad.heads.admin.answer import key_to_json
from pleiad.item.body import load
from pleiad.keys.hash import hash_of
from pleiad.keys.range import position
from pleiad.keys.value import to_json_text
from pleiad.partition.governor import GovernorSnapshot
from pleiad.partition.latency import percentile_ms
from pleiad.partition.partition import Partition
from pleiad.store.rows import PartitionState

_PLACE_DIGITS = 6
_MINUTE_SECONDS = 60


async def container_to_json(engine: Engine, container: Container, hottest: int) -> dict[str, Any]:
    """A container with its physical partitions; all that is not counted anew from its items."""
    states = await states_of(engine, container)
    catalog, rid = engine.catalog, container.resource.rid
    hot = container.heat.hottest(max(1, hottest))
    return {
        "database": container.database.id,
        "container": container.resource.id,
        "partitionKey": list(container.resource.properties["partitionKey"]["paths"]),
        "throughput": throughput_of(engine, container),
        "limits": {
            "logicalPartitionBytes": container.limits.logical_partition_bytes,
            "physicalPartitionBytes": container.limits.physical_partition_bytes,
        },
        "settled": not catalog.is_unfinished(rid),
        "partitions": partitions_to_json(engine, container, states),
        "history": _retired(container, catalog.history(rid)),
        "hottest": [_hot(container, each) for each in hot[:hottest]],
        "balance": balance_to_json(balance(engine, container, hot)),
    }


async def states_of(engine: Engine, container: Container) -> dict[int, PartitionState]:
    """The counters of the live partitions, by id."""
    return {partition.id: state for partition, state in await engine.watch.census.states(container)}


def throughput_of(engine: Engine, container: Container) -> dict[str, Any]:
    """Provisioned throughput: the container's own, or that of its database."""
    own = engine.catalog.offer_of(container.resource.rid)
    offer = own or engine.catalog.offer_of(container.database.rid)
    if offer is None:
        return {}
    found = throughput.from_offer_content(offer.properties["content"])
    return {"ru": found.ru, "autoscale": found.autoscale, "shared": own is None}


# -- partitions ------------------------------------------------------------------------------------------


def partitions_to_json(
    engine: Engine, container: Container, states: dict[int, PartitionState]
) -> list[dict[str, Any]]:
    """The live partitions in the order of their ranges; one whose counters are not known is left out."""
    rid = container.resource.rid
    known = [each for each in container.map.partitions if each.id in states]
    if len(known) < len(container.map.partitions):
        return [_partition(engine, container, each, states[each.id], None, frozenset()) for each in known]
    prospects = prospects_of(
        container,
        states,
        engine.provisioning.partitions_needed(container),
        engine.provisioning.is_splittable(container.resource),
        frozenset(each.id for each in known if engine.refusals.is_refused(rid, each.id)),
        container.limits,
    )
    homeless = frozenset(each.id for each in engine.reshaper.homeless(container))
    return [
        _partition(engine, container, each, states[each.id], prospects[each.id], homeless) for each in known
    ]


def _partition(
    engine: Engine,
    container: Container,
    partition: Partition,
    state: PartitionState,
    prospect: Prospect | None,
    homeless: frozenset[int],
) -> dict[str, Any]:
    """One physical partition. It shares its segment from a split until its rows have been copied."""
    low, high = partition.span.to_hex()
    return {
        "id": partition.range_id,
        "minInclusive": low,
        "maxExclusive": high,
        "space": space_of(container, partition),
        "parents": [str(parent) for parent in partition.parents],
        "items": state.items,
        "bytes": state.size_bytes,
        "lsn": partition.lsn,
        "sharesSegment": partition.id in homeless,
        "ru": load_to_json(partition.governor.snapshot()),
        "p99Ms": percentile_ms(engine.chronicle.latencies(container, partition), 99),
        **_change(engine, container, partition),
        "splittable": prospect is not None and prospect.split_refusal is None,
        "splitRefusal": None if prospect is None else prospect.split_refusal,
        "mergeableWith": [] if prospect is None else list(prospect.mergeable_with),
        "mergeRefusal": None if prospect is None else prospect.merge_refusal,
    }


def _change(engine: Engine, container: Container, partition: Partition) -> dict[str, Any]:
    """What is being done to a partition, here or by another server, or is due."""
    rid = container.resource.rid
    progress: Progress | None = engine.reshaper.progress.get(rid)
    if progress is not None and partition.id in progress.partitions:
        copied = progress.copied_percent(partition.id)
        return {
            "change": progress.kind,
            "phase": progress.phase.value,
            "copiedPercent": None if copied is None else round(copied, 1),
        }
    operation = engine.catalog.operation(rid)
    change = None
    if operation is not None and partition.id in operation.partitions:
        change = operation.kind
    elif partition.id in engine.splitting(container):
        change = "split"
    return {"change": change, "phase": None, "copiedPercent": None}


def load_to_json(figures: GovernorSnapshot) -> dict[str, Any]:
    """What a physical partition uses of what it is allowed."""
    return {
        "allowed": round(figures.rate_ru, 2),
        "serverShare": round(figures.share, 3),
        "lastSecond": round(figures.second_ru, 2),
        "lastMinute": round(figures.minute_ru, 2),
        "normalizedPercent": round(figures.normalized_percent, 1),
        "total": round(figures.ru, 2),
        "requestsLastMinute": figures.requests_minute + figures.refused_minute,
        "throttled": figures.refused,
        "throttledLastMinute": figures.refused_minute,
        "overBudget": figures.over_budget,
    }


def _retired(container: Container, history: Sequence[Placement]) -> list[dict[str, Any]]:
    """The physical partitions that a split or merge has replaced."""
    children = children_of(history)
    answers = []
    for placement in history:
        if placement.is_live:
            continue
        low, high = placement.span.to_hex()
        made = children.get(placement.id, [])
        answers.append(
            {
                "id": str(placement.id),
                "minInclusive": low,
                "maxExclusive": high,
                "space": [_place(container, placement.span.min), _place(container, placement.span.max)],
                "parents": [str(parent) for parent in placement.parents],
                "madeAt": moment(placement.made_at),
                "retiredAt": moment(placement.retired_at or 0),
                "children": [str(each.id) for each in made],
                "cause": next((each.cause for each in made if each.cause), None),
            }
        )
    return answers


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _place(container: Container, boundary: bytes) -> float:
    return round(position(boundary, container.key), _PLACE_DIGITS)


def space_of(container: Container, partition: Partition) -> list[float]:
    """Where a partition lies in the hash space, from 0 to 1."""
    return [round(each, _PLACE_DIGITS) for each in stretch_of(container, partition)]


# -- logical partitions ------------------------------------------------------------------------------------


@over_moves
async def largest(container: Container, count: int) -> list[dict[str, Any]]:
    """The largest logical partitions, counted anew."""
    partitions = list(container.map.partitions)
    found = await asyncio.gather(*(each.largest_logical_partitions(count) for each in partitions))
    limit = container.limits.logical_partition_bytes
    answers: list[dict[str, Any]] = [
        {
            "key": key_to_json(container.key.extract(load(logical.sample_body))),
            "partition": partition.range_id,
            "epk": hash_of(logical.epk, container.key).hex().upper(),
            "place": _place(container, logical.epk),
            "items": logical.items,
            "bytes": logical.size_bytes,
            "percent": round(100 * logical.size_bytes / limit, 2),
        }
        for partition, many in zip(partitions, found, strict=True)
        for logical in many
    ]
    return sorted(answers, key=lambda each: -each["bytes"])[:count]


def _hot(container: Container, hot: HotKey) -> dict[str, Any]:
    span = container.span_of(hot.key)
    return {
        "key": key_to_json(hot.key),
        "partitions": [each.range_id for each in container.map.overlapping(span)],
        "epk": hash_of(span.min, container.key).hex().upper(),
        "place": _place(container, span.min),
        "ruPerSecond": round(hot.ru_per_second, 2),
        "share": round(hot.share_percent, 2),
        "throttled": hot.refused,
    }


# -- balance -----------------------------------------------------------------------------------------------


def balance(engine: Engine, container: Container, hot: Sequence[HotKey]) -> Balance:
    """The judgement of how a container spreads its load."""
    value = None
    if hot:
        text = to_json_text(hot[0].key)
        value = HotValue(text[1:-1] if len(hot[0].key) == 1 else text, hot[0].share_percent)
    return balance_of(_loads(engine, container), value, container.heat.keys_seen)


def _loads(engine: Engine, container: Container) -> list[Load]:
    """The last minute of each partition; where a database shares its throughput, what came to this container."""
    row: Sequence[float] = ()
    refused: dict[str, int] = {}
    if container.allotment.pool is not None:
        last = engine.chronicle.minutes_of(container)[-2:]
        seconds = sum(minute.seconds for minute in last) or 1.0
        row = [
            sum(ru) * _MINUTE_SECONDS / seconds for ru in zip(*(minute.heat for minute in last), strict=True)
        ]
        for minute in last:
            for range_id, count in minute.refused.items():
                refused[range_id] = refused.get(range_id, 0) + count
    loads = []
    for partition in container.map.partitions:
        low, high = stretch_of(container, partition)
        figures = partition.governor.snapshot()
        requests, own_refused = figures.requests_minute, figures.refused_minute
        if container.allotment.pool is not None:
            requests = sum(engine.chronicle.latencies(container, partition))
            own_refused = refused.get(partition.range_id, 0)
        loads.append(
            Load(
                id=partition.range_id,
                used_ru=spent_on(row, Stretch(low, high)) if row else figures.minute_ru,
                allowed_ru=figures.rate_ru,
                requests=requests + own_refused,
                refused=own_refused,
                size_bytes=partition.size_bytes_seen,
                width=high - low,
            )
        )
    return loads


def balance_to_json(judged: Balance) -> dict[str, Any]:
    facts = judged.facts
    return {
        "level": judged.level.value,
        "kind": judged.kind.id,
        "word": judged.kind.word,
        "sentence": judged.sentence,
        "why": judged.why,
        "usablePercent": judged.usable_percent,
        "facts": {
            "hottestPartition": facts.hottest_partition,
            "hottestPartitionPercent": facts.hottest_partition_percent,
            "otherPartitionsPercent": facts.other_partitions_percent,
            "hottestKey": facts.hottest_key,
            "hottestKeyShare": facts.hottest_key_share,
            "throttledPercent": facts.throttled_percent,
            "hottestThrottledPercent": facts.hottest_throttled_percent,
            "keysSeen": facts.keys_seen,
            "storageSpread": facts.storage_spread,
        },
    }
