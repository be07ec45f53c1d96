"""What keeps the account busy, over the admin API."""

from __future__ import annotations

import time

from pleiad.engine.watch.busiest import Entry
from pleiad.heads.admin.answer import json_answer
from pleiad.heads.http.call import HttpCall
from pleiad.partition.latency import BOUNDS_SECONDS
from pleiad.server.http.message import Response


async def read(call: HttpCall) -> Response:
    """Sums by kind of request since somebody began to look; from now on requests are counted, for a minute."""
    engine = call.engine
    entries = engine.busiest.look()
    engine.observers.add(engine.busiest)
    answer = {
        "at": round(time.time(), 3),
        "boundsMs": [1_000 * bound for bound in BOUNDS_SECONDS],
        "entries": [_to_json(entry) for entry in entries],
    }
    return json_answer(call, answer)


def _to_json(entry: Entry) -> dict[str, object]:
    return {
        "container": entry.container,
        "operation": entry.operation,
        "query": entry.query,
        "requests": entry.requests,
        "throttled": entry.throttled,
        "ru": round(entry.charge_ru, 2),
        "ms": round(1_000 * entry.seconds, 3),
        "partitions": entry.partitions,
        "buckets": entry.buckets,
    }
