"""The last hour over the admin API, minute by minute."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import orjson

from pleiad.catalog.throughput import Throughput
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.watch.chronicle import Event
from pleiad.engine.watch.hour import MINUTE_SECONDS, MINUTES_MAX, Minute
from pleiad.heads.admin.answer import whole_parameter
from pleiad.heads.http.call import HttpCall


def wanted(call: HttpCall) -> int:
    """How many minutes are asked for."""
    return whole_parameter(call, "minutes", MINUTES_MAX, MINUTES_MAX, least=1)


async def made_of_container(engine: Engine, container: Container, minutes: int) -> bytes:
    """The last hour of a container."""
    since, chronicle = _since(minutes), engine.chronicle
    shown = [each for each in chronicle.minutes_of(container)[-minutes:] if each.at >= since]
    events = [each for each in chronicle.events if each.at >= since and _concerns(each, container)]
    answer = {
        "at": round(time.time(), 3),
        "minutes": [{**_minute(each), "busyPercent": dict(each.busy_percent)} for each in shown],
        "events": [_event(each) for each in events],
    }
    return orjson.dumps(answer)


async def made(engine: Engine, minutes: int) -> bytes:
    """The last hour of the account, and in short that of each container."""
    since, chronicle = _since(minutes), engine.chronicle
    containers = []
    for container, remembered in chronicle.containers():
        shown = [each for each in remembered[-minutes:] if each.at >= since]
        if shown:
            names = {"database": container.database.id, "container": container.resource.id}
            containers.append({**names, **_in_short(shown)})
    answer = {
        "at": round(time.time(), 3),
        "minutes": [_minute(each) for each in chronicle.account_minutes()[-minutes:] if each.at >= since],
        "events": [_event(each) for each in chronicle.events if each.at >= since],
        "containers": containers,
    }
    return orjson.dumps(answer)


def _since(minutes: int) -> float:
    """When the first of so many minutes began."""
    return time.time() // MINUTE_SECONDS * MINUTE_SECONDS - (minutes - 1) * MINUTE_SECONDS


def _concerns(event: Event, container: Container) -> bool:
    """Whether an event is one of a container, or of the throughput that it shares."""
    if event.container is None:
        return event.database == container.database.id
    return event.container_rid == container.resource.rid


def _minute(minute: Minute) -> dict[str, Any]:
    return {
        "at": minute.at,
        "seconds": minute.seconds,
        "requests": dict(minute.requests),
        "ru": minute.ru,
        "busiestSecondRu": minute.busiest_second_ru,
        "allowedRu": minute.allowed_ru,
        "throttled": minute.throttled,
        "p50Ms": minute.p50_ms,
        "p99Ms": minute.p99_ms,
        "bytes": minute.size_bytes,
        "items": minute.items,
    }


def _in_short(minutes: Sequence[Minute]) -> dict[str, Any]:
    """One number a minute, from the first to the last; null where a minute is missing."""
    first, by_minute = minutes[0].at, {each.at: each for each in minutes}
    wanted = range(first, minutes[-1].at + 1, MINUTE_SECONDS)
    found = [by_minute.get(at) for at in wanted]
    return {
        "at": first,
        "ru": [None if each is None else each.ru for each in found],
        "throttled": [None if each is None else each.throttled for each in found],
    }


def _event(event: Event) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "at": round(event.at, 3),
        "kind": event.kind,
        "database": event.database,
        "container": event.container,
    }
    if event.kind == "throughput":
        return {**shown, "before": _throughput(event.before), "after": _throughput(event.after)}
    return {
        **shown,
        "partitions": list(event.partitions),
        "children": list(event.children),
        "cause": event.cause,
    }


def _throughput(given: Throughput | None) -> dict[str, Any] | None:
    return None if given is None else {"ru": given.ru, "autoscale": given.autoscale}
