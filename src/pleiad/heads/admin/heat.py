"""Heat over the admin API: where in the hash space the request units of the last hour were used."""

from __future__ import annotations

import time
from typing import Any

import orjson

from pleiad import errors
from pleiad.engine.container import Container
from pleiad.engine.engine import Engine
from pleiad.engine.traffic import SLICES
from pleiad.engine.watch.heat_map import joined
from pleiad.engine.watch.hour import Minute
from pleiad.heads.admin.answer import whole_parameter
from pleiad.heads.http.call import HttpCall

_SINCE_MAX = 2**53
_DIVISORS = tuple(count for count in range(1, SLICES + 1) if SLICES % count == 0)


def wanted(call: HttpCall) -> tuple[int, int]:
    """How many slices are asked for, and after which time."""
    slices = whole_parameter(call, "slices", SLICES, SLICES, least=1)
    if slices not in _DIVISORS:
        raise errors.BAD_REQUEST(reason=f"'slices' must be one of {', '.join(map(str, _DIVISORS))}.")
    return slices, whole_parameter(call, "since", 0, _SINCE_MAX)


async def made(engine: Engine, container: Container, slices: int, since: int) -> bytes:
    """One row a minute."""
    minutes = engine.chronicle.minutes_of(container)
    governors = {id(each.governor): each.governor for each in container.map.partitions}
    answer = {
        "at": round(time.time(), 3),
        "slices": slices,
        "allowed": round(sum(each.rate_ru for each in governors.values()), 2),
        "rows": [_row(each, slices) for each in minutes if each.at > since],
    }
    return orjson.dumps(answer)


def _row(minute: Minute, slices: int) -> dict[str, Any]:
    return {
        "at": minute.at,
        "seconds": minute.seconds,
        "ru": [round(ru, 2) for ru in joined(minute.heat, slices)],
        "throttled": dict(minute.refused),
    }
