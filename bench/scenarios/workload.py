"""What a workload record costs: point reads of a container that is recorded, beside those while it is not.

Short rounds alternate on one server and one container, which is switched in between. Rates are taken by the CPU time of
the server, in which the thread that writes the record is counted too, and the best round of each is compared: so the
ratio holds on a busy machine.
Bars, each a rate with the record over the rate without:
- ``recorded_point_read``: with the values in the record.
- ``hashed_point_read``: with hashes of them.
"""

from __future__ import annotations

from bench import request
from bench.items import items
from bench.load import Job, LoadError, LoadProcess, Measure
from bench.report import Bar, FamilyReport, line
from bench.server import PleiadServer, pleiad_server
from bench.settings import Settings

WARMUP_SECONDS = 0.2
_ROUND_SECONDS = 0.7
_ROUNDS_FACTOR = 3
_MODES = ("off", "values", "hashes")
_BARS = {"values": ("recorded_point_read", 0.97), "hashes": ("hashed_point_read", 0.97)}
_LINES = {"off": "read_unrecorded", "values": "read_recorded", "hashes": "read_hashed"}


def run(settings: Settings, load: LoadProcess) -> FamilyReport:
    """Rounds of each mode in turns, and how they compare."""
    measures: dict[str, list[Measure]] = {mode: [] for mode in _MODES}
    with pleiad_server() as server:
        link = server.create_container("bench", "recorded")
        stored = items("item", settings.items)
        server.fill(load, link, stored)
        date = request.date_text()
        requests = [
            request.read_item(server.host, server.key, link, item.id, item.pk, date) for item in stored
        ]
        for _ in range(_ROUNDS_FACTOR * settings.rounds):
            for mode in _MODES:
                _switch(server, link, mode)
                measures[mode].append(_measured(settings, load, server, requests))
    return FamilyReport(
        lines=tuple(line(_LINES[mode], rounds) for mode, rounds in measures.items()),
        bars=tuple(_bar(mode, measures) for mode in _BARS),
    )


def _bar(mode: str, measures: dict[str, list[Measure]]) -> Bar:
    name, bar = _BARS[mode]
    return Bar(
        name=name,
        ratio=max(map(_per_cpu, measures[mode])) / max(map(_per_cpu, measures["off"])),
        bar=bar,
        meaning=f"point reads per CPU second, recorded with {mode} over not recorded",
    )


def _per_cpu(measure: Measure) -> float:
    return measure.requests / max(measure.server_cpu_seconds, 0.01)


def _switch(server: PleiadServer, link: str, mode: str) -> None:
    admin_link = f"_pleiad/v1/{link}"
    status, answer = server.call("PUT", f"/{admin_link}/workload", "workload", admin_link, {"record": mode})
    if status != 200:
        raise LoadError(f"the record could not be switched: {status} {answer[:400]!r}")


def _measured(settings: Settings, load: LoadProcess, server: PleiadServer, requests: list[bytes]) -> Measure:
    return load.run(
        Job(
            name="recorded",
            port=server.port,
            server_pid=server.pid,
            requests=requests,
            statuses=(200,),
            connections=settings.connections,
            seconds=_ROUND_SECONDS,
            warmup_seconds=WARMUP_SECONDS,
            repeat=True,
        )
    )
