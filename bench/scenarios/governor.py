"""What the governors cost: point reads on a server that enforces throughput beside one that only counts.

Rounds alternate between the two servers. Their containers have so much throughput that nothing is refused, so the
difference is the price of enforcing. Bars:
- ``governor_enforced_vs_observed``: rate of point reads when enforcing over the rate when observing.
- ``governor_cost_headroom``: 2 microseconds over the time one admission and its payment take.
- ``traffic_cost_headroom``: 1 microsecond over the time it takes to count a request for the metrics.
"""

from __future__ import annotations

import random
import time
import timeit

from bench import request
from bench.items import Item, items
from bench.load import Job, LoadProcess, Measure
from bench.report import Bar, FamilyReport, line, paired_ratio
from bench.server import PleiadServer, pleiad_server
from bench.settings import Settings
from pleiad.engine.traffic import Heat, Traffic
from pleiad.partition.governor import Governor, Throttle

ITEMS = 2_000
THROUGHPUT_RU = 60_000
READS = 40_000
COST_SECONDS_MAX = 2e-6
COUNT_SECONDS_MAX = 1e-6
WARMUP_SECONDS = 0.3


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """Alternate rounds on both servers, and the governor alone."""
    loaded = items("item", ITEMS)
    with pleiad_server("enforce") as strict, pleiad_server("observe") as lenient:
        links = {server.port: _filled(server, load, loaded) for server in (strict, lenient)}
        enforced, observed = [], []
        for number in range(settings.rounds):
            observed.append(_reads(settings, load, lenient, links[lenient.port], loaded, number))
            enforced.append(_reads(settings, load, strict, links[strict.port], loaded, number))
    cost_seconds, count_seconds = _cost_seconds(), _count_seconds()
    return FamilyReport(
        lines=(line("point_read_observed", observed), line("point_read_enforced", enforced)),
        bars=(
            Bar(
                name="governor_enforced_vs_observed",
                ratio=paired_ratio(enforced, observed),
                bar=0.97,
                meaning="point reads/s with throughput enforced over only counted",
            ),
            Bar(
                name="governor_cost_headroom",
                ratio=COST_SECONDS_MAX / cost_seconds,
                bar=1,
                meaning=f"2 µs over admission and payment of a request ({cost_seconds * 1e6:.2f} µs)",
            ),
            Bar(
                name="traffic_cost_headroom",
                ratio=COUNT_SECONDS_MAX / count_seconds,
                bar=1,
                meaning=f"1 µs over counting a request for the metrics ({count_seconds * 1e6:.2f} µs)",
            ),
        ),
    )


def _filled(server: PleiadServer, load: LoadProcess, loaded: list[Item]) -> str:
    link = server.create_container("bench", "read", THROUGHPUT_RU)
    server.fill(load, link, loaded)
    return link


def _reads(
    settings: Settings, load: LoadProcess, server: PleiadServer, link: str, loaded: list[Item], number: int
) -> Measure:
    order = random.Random(number)
    date = request.date_text(seconds_ago=number)
    requests = [
        request.read_item(server.host, server.key, link, item.id, item.pk, date)
        for item in order.choices(loaded, k=READS)
    ]
    return load.run(
        Job(
            name="point_read",
            port=server.port,
            server_pid=server.pid,
            requests=requests,
            statuses=(200,),
            connections=settings.connections,
            seconds=settings.seconds,
            warmup_seconds=WARMUP_SECONDS,
            repeat=True,
        )
    )


def _cost_seconds() -> float:
    """One admission and one payment, on a governor with plenty."""
    governor = Governor(1e9, Throttle())

    def many() -> None:
        for _ in range(100_000):
            governor.admit()
            governor.spend(1.0)

    return min(timeit.repeat(many, number=1, repeat=5)) / 100_000


def _count_seconds() -> float:
    """What is noted of a request when it ends."""
    traffic, heat, key = Traffic(), Heat(lambda key: 0, lambda: 0.0), ("user-1234",)

    def count() -> None:
        began_at = time.perf_counter()
        heat.note(key, 1.0)
        traffic.note("read", 200, time.perf_counter() - began_at, 1.0)

    return min(timeit.repeat(count, number=1_000, repeat=200)) / 1_000
