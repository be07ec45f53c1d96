"""The figures of this second, of the account and of a container, for who looks every second."""

from __future__ import annotations

import time
from typing import Any

import orjson

from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.watch.balance import Level
from pleiad.heads.admin.partition_json import balance, container_to_json
from pleiad.heads.admin.warnings import standing
from pleiad.partition.latency import percentile_ms

HOTTEST = 8


async def made(engine: Engine) -> bytes:
    """The account, and in short the containers that are in use."""
    chronicle = engine.chronicle
    last, minute = chronicle.account_last(), chronicle.account_minute()
    containers = engine.containers
    answer = {
        "at": round(time.time(), 3),
        "last": {"requests": last.requests, "ru": round(last.ru, 2), "throttled": last.throttled},
        "lastMinute": {
            "requests": minute.requests,
            "ru": round(minute.ru, 2),
            "throttled": minute.throttled,
            "p50Ms": percentile_ms(minute.buckets, 50),
            "p99Ms": percentile_ms(minute.buckets, 99),
        },
        "bytes": sum(each.size_bytes_seen for one in containers for each in one.map.partitions),
        "warnings": standing(engine),
        "faults": len(engine.faults.live()),
        "containers": [_container(engine, each) for each in containers],
    }
    return orjson.dumps(answer)


async def made_of_container(engine: Engine, container: Container) -> bytes:
    """A container with its physical partitions and its hottest keys."""
    shown = await container_to_json(engine, container, HOTTEST)
    return orjson.dumps({"at": round(time.time(), 3), **shown}, option=orjson.OPT_NON_STR_KEYS)


def _container(engine: Engine, container: Container) -> dict[str, Any]:
    last, minute = engine.chronicle.last_of(container), engine.chronicle.minute_of(container)
    # Most containers of a large account are idle: of them nothing is worked out.
    level = Level.UNKNOWN
    if minute.requests:
        level = balance(engine, container, container.heat.hottest(1)).level
    governors = {id(each.governor): each.governor for each in container.map.partitions}
    return {
        "database": container.database.id,
        "container": container.resource.id,
        "ru": round(last.ru, 2),
        "allowed": round(sum(each.rate_ru for each in governors.values()), 2),
        "throttledLastMinute": minute.throttled,
        "level": level.value,
        "partitions": len(container.map.partitions),
        "settled": not engine.catalog.is_unfinished(container.resource.rid),
    }
