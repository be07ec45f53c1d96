"""Physical partitions over the admin API: where the items and the load of a container are."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from pleiad import errors
from pleiad.catalog import throughput
from pleiad.catalog.placement import Placement
from pleiad.engine.container import Container
from pleiad.heads.admin.answer import check_names, json_answer, whole_parameter
from pleiad.heads.http.call import HttpCall
from pleiad.item.body import load
from pleiad.keys.value import KeyValue
from pleiad.partition.partition import Partition
from pleiad.server.http.message import Response
from pleiad.values.undefined import UNDEFINED

TOP_DEFAULT = 5
TOP_MAX = 100


async def read(call: HttpCall) -> Response:
    """The physical partitions of a container, its largest and its hottest logical partitions."""
    container = await container_of(call)
    hottest = whole_parameter(call, "hottest", TOP_DEFAULT, TOP_MAX)
    largest = whole_parameter(call, "largest", TOP_DEFAULT, TOP_MAX)
    partitions = list(container.map.partitions)
    catalog, rid = call.engine.catalog, container.resource.rid
    answer = {
        "database": container.database.id,
        "container": container.resource.id,
        "partitionKey": list(container.resource.properties["partitionKey"]["paths"]),
        "throughput": throughput_of(call, container),
        "limits": {
            "logicalPartitionBytes": container.limits.logical_partition_bytes,
            "physicalPartitionBytes": container.limits.physical_partition_bytes,
        },
        "settled": not catalog.is_unfinished(rid),
        "partitions": [await partition_to_json(call, container, each) for each in partitions],
        "history": [_retired(each) for each in catalog.history(rid) if not each.is_live],
        "largest": await _largest(container, partitions, largest) if largest else [],
        "hottest": _hottest(container, hottest),
    }
    return json_answer(call, answer)


async def redistribute(call: HttpCall) -> Response:
    """Gives each physical partition RU/s of its own: `{"ru": {"0": 9000, "1": 3000}}`; null evens them out."""
    container = await container_of(call)
    body = call.json_object()
    check_names(body, frozenset({"ru"}))
    given = body.get("ru", False)
    if given is not None:
        if not isinstance(given, dict):
            raise errors.BAD_REQUEST(
                reason="'ru' must be an object with RU/s by partition id, or null for even shares."
            )
        for range_id, rate in given.items():
            if container.map.by_range_id(range_id) is None:
                raise errors.RESOURCE_NOT_FOUND(kind="physical partition", id=range_id[:100])
            if not isinstance(rate, int | float) or isinstance(rate, bool):
                raise errors.BAD_REQUEST(reason="The share of a physical partition is a number of RU/s.")
    rates = None if given is None else {int(range_id): float(rate) for range_id, rate in given.items()}
    await call.engine.offers.redistribute(container, rates)
    loads = {partition.range_id: _load(partition)["allowed"] for partition in container.map.partitions}
    return json_answer(call, {"ru": loads})


async def container_of(call: HttpCall) -> Container:
    """The container an admin path names."""
    return await call.engine.container(call.segments[3], call.segments[5], owner=False)


def throughput_of(call: HttpCall, container: Container) -> dict[str, Any]:
    """Provisioned throughput: the container's own, or that of its database."""
    own = call.engine.catalog.offer_of(container.resource.rid)
    offer = own or call.engine.catalog.offer_of(container.database.rid)
    if offer is None:
        return {}
    found = throughput.from_offer_content(offer.properties["content"])
    return {"ru": found.ru, "autoscale": found.autoscale, "shared": own is None}


async def partition_to_json(call: HttpCall, container: Container, partition: Partition) -> dict[str, Any]:
    """One physical partition. It shares its segment from a split until its rows have been copied."""
    state = await call.engine.watch.census.state(container, partition)
    low, high = partition.span.to_hex()
    return {
        "id": partition.range_id,
        "minInclusive": low,
        "maxExclusive": high,
        "parents": [str(parent) for parent in partition.parents],
        "items": state.items,
        "bytes": state.size_bytes,
        "lsn": partition.lsn,
        "sharesSegment": partition in call.engine.reshaper.homeless(container),
        "ru": _load(partition),
    }


def _load(partition: Partition) -> dict[str, Any]:
    """What a physical partition uses of what it is allowed."""
    figures = partition.governor.snapshot()
    return {
        "allowed": round(figures.rate_ru, 2),
        "serverShare": round(figures.share, 3),
        "lastSecond": round(figures.second_ru, 2),
        "lastMinute": round(figures.minute_ru, 2),
        "normalizedPercent": round(figures.normalized_percent, 1),
        "total": round(figures.ru, 2),
        "throttled": figures.refused,
        "throttledLastMinute": figures.refused_minute,
    }


def _retired(placement: Placement) -> dict[str, Any]:
    """A physical partition that a split or merge has replaced."""
    low, high = placement.span.to_hex()
    return {
        "id": str(placement.id),
        "minInclusive": low,
        "maxExclusive": high,
        "parents": [str(parent) for parent in placement.parents],
        "madeAt": _moment(placement.made_at),
        "retiredAt": _moment(placement.retired_at or 0),
    }


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


async def _largest(container: Container, partitions: list[Partition], count: int) -> list[dict[str, Any]]:
    found = await asyncio.gather(*(each.largest_logical_partitions(count) for each in partitions))
    limit = container.limits.logical_partition_bytes
    largest: list[dict[str, Any]] = [
        {
            "key": key_to_json(container.key.extract(load(logical.sample_body))),
            "partition": partition.range_id,
            "items": logical.items,
            "bytes": logical.size_bytes,
            "percent": round(100 * logical.size_bytes / limit, 2),
        }
        for partition, many in zip(partitions, found, strict=True)
        for logical in many
    ]
    return sorted(largest, key=lambda each: -each["bytes"])[:count]


def _hottest(container: Container, count: int) -> list[dict[str, Any]]:
    return [
        {
            "key": key_to_json(hot.key),
            "partitions": [each.range_id for each in container.map.overlapping(container.span_of(hot.key))],
            "ruPerSecond": round(hot.ru_per_second, 2),
        }
        for hot in container.heat.hottest(count)
    ]


def key_to_json(key: tuple[KeyValue, ...]) -> list[Any]:
    """A key as JSON; what is missing is an empty object, as in the header of a partition key."""
    return [{} if value is UNDEFINED else value for value in key]
