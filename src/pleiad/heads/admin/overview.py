"""All containers at a glance, for a list of them."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import orjson

from pleiad.catalog import throughput
from pleiad.catalog.resource import Kind, Resource
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.errors import PleiadError
from pleiad.heads.admin.partition_json import (
    balance,
    balance_to_json,
    load_to_json,
    moment,
    space_of,
    states_of,
    throughput_of,
)
from pleiad.partition.partition import Partition
from pleiad.store.rows import PartitionState

CONTAINERS_MAX = 1_000
_SHOWN_OF_LOAD = (
    "allowed",
    "lastSecond",
    "lastMinute",
    "normalizedPercent",
    "requestsLastMinute",
    "throttledLastMinute",
)


async def made(engine: Engine) -> bytes:
    """The server, its databases, and its containers with what their partitions use."""
    containers = engine.catalog.all(Kind.CONTAINER)
    shown = [await _container(engine, each) for each in containers[:CONTAINERS_MAX]]
    answer = {
        "at": round(time.time(), 3),
        "server": _server(engine),
        "throughput": {
            "ru": engine.provisioning.provisioned_ru(),
            "limitRu": engine.limits.account_throughput_ru or None,
        },
        "databases": [
            {"id": each.id, "throughput": _shared(engine, each)} for each in engine.catalog.all(Kind.DATABASE)
        ],
        "containers": [each for each in shown if each is not None],
        "leftOff": max(0, len(containers) - CONTAINERS_MAX),
    }
    return orjson.dumps(answer)


def _server(engine: Engine) -> dict[str, Any]:
    started_at = engine.chronicle.started_at
    return {
        "version": version("pleiad"),
        "startedAt": moment(started_at),
        "uptimeSeconds": round(time.time() - started_at, 1),
        "store": "postgres" if engine.store.is_shared else "sqlite",
        "throttle": "enforce" if engine.is_enforced else "observe",
        "isServerless": engine.provisioning.is_serverless,
        "consistency": engine.consistency.word,
    }


def _shared(engine: Engine, database: Resource) -> dict[str, Any] | None:
    offer = engine.catalog.offer_of(database.rid)
    if offer is None:
        return None
    found = throughput.from_offer_content(offer.properties["content"])
    return {"ru": found.ru, "autoscale": found.autoscale}


async def _container(engine: Engine, resource: Resource) -> dict[str, Any] | None:
    """A container, opened when it was not; None when it was deleted meanwhile."""
    database = engine.catalog.by_rid(Kind.DATABASE, resource.parent_rid)
    if database is None:
        return None
    shown: dict[str, Any] = {
        "database": database.id,
        "container": resource.id,
        "partitionKey": list(resource.properties["partitionKey"]["paths"]),
        "settled": not engine.catalog.is_unfinished(resource.rid),
        "problem": None,
    }
    try:
        container = await engine.openings.open(resource)
        states = await states_of(engine, container)
    except PleiadError as error:
        if engine.catalog.by_rid(Kind.CONTAINER, resource.rid) is None:
            return None
        nothing: dict[str, Any] = {"throughput": {}, "items": None, "bytes": None, "balance": None}
        return {**shown, **nothing, "partitions": [], "problem": error.message}
    return {
        **shown,
        "throughput": throughput_of(engine, container),
        "items": sum(state.items for state in states.values()),
        "bytes": sum(state.size_bytes for state in states.values()),
        "balance": balance_to_json(balance(engine, container, container.heat.hottest(1))),
        "partitions": [
            _partition(container, each, states[each.id])
            for each in container.map.partitions
            if each.id in states
        ],
    }


def _partition(container: Container, partition: Partition, state: PartitionState) -> dict[str, Any]:
    low, high = partition.span.to_hex()
    figures = load_to_json(partition.governor.snapshot())
    return {
        "id": partition.range_id,
        "minInclusive": low,
        "maxExclusive": high,
        "space": space_of(container, partition),
        "items": state.items,
        "bytes": state.size_bytes,
        **{name: figures[name] for name in _SHOWN_OF_LOAD},
    }
