"""No request runs without an end, and none holds the others up.

Every hostile request is sent, one after the other, each on a connection of its own, and where it gives pages the next
page is asked for too. Beside them a reader in another process reads items: how long it waited at most, and 99 of 100
times, are the figures. A request that was not answered in several times the server's own limit has no end.
"""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attack.classes import slots
from attack.ground import point_reads
from attack.hostile.shots import Shot, all_shots, prepare
from attack.report import Outcome
from attack.settings import Settings
from attack.target import Launch, Target, serving
from attack.watch import Watch
from attack.wire import NoAnswerError

PAGES = 2
AT_ONCE = 24
GRACE_SECONDS = 10.0
"""An answer may come so much later than the limit on an operation: pages are written, processes ended."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fired:
    """One request that was sent: when, for how long, and how it ended."""

    name: str
    began_at: float
    ended_at: float
    status: int


def fire(target: Target, shot: Shot, seconds: float, pages: int = PAGES, tls: bool = False) -> list[Fired]:
    """Sends a hostile request and asks for its next pages; status 0 is no answer in time."""
    connection = target.connect(tls, seconds)
    fired: list[Fired] = []
    headers = dict(shot.headers)
    try:
        for _ in range(pages):
            began_at = time.monotonic()
            try:
                answer = connection.send(shot.caller, shot.method, shot.segments, shot.body, headers)
            except (NoAnswerError, OSError):
                fired.append(Fired(shot.name, began_at, time.monotonic(), 0))
                break
            fired.append(Fired(shot.name, began_at, time.monotonic(), answer.status))
            if answer.status != 200 or not answer.continuation:
                break
            headers["x-ms-continuation"] = answer.continuation
    finally:
        connection.close()
    return fired


BRIEF_SHOTS = (
    "join of 5",
    "makelist over joins",
    "wide rows",
    "area over joins",
    "262 KB of selected",
    "joins on metadata: databases",
    "patch: joins",
    "procedure: loop",
    "arguments: lists",
    "function that spins",
    "262 KB of order by",
    "10,000 parameters",
    "400,000 ids in a parameter",
    "body of empty objects",
    "order by a million rows, over partitions",
)
"""One of each family and what broke a promise once, for a short run, which sends them all at once."""


def chosen(settings: Settings) -> list[Shot]:
    """The hostile requests of a run."""
    shots = all_shots()
    if settings.brief:
        return [shot for shot in shots if shot.name in BRIEF_SHOTS]
    return shots[: settings.shots] if settings.shots else shots


def volley(target: Target, settings: Settings) -> list[Fired]:
    """All hostile requests, so many at a time that their wants add up."""
    seconds = settings.operation_seconds * AT_ONCE + GRACE_SECONDS
    with ThreadPoolExecutor(AT_ONCE) as pool:
        sent = pool.map(lambda shot: fire(target, shot, seconds, pages=1), chosen(settings))
        return [each for fired in sent for each in fired]


def _one_by_one(target: Target, settings: Settings, outcome: Outcome) -> list[Fired]:
    """All hostile requests, none beside another, so that each can be blamed for what it does."""
    seconds = settings.operation_seconds * 3 + GRACE_SECONDS
    fired: list[Fired] = []
    for number, shot in enumerate(chosen(settings)):
        fired += fire(target, shot, seconds, tls=number % 4 == 0)
        if not target.is_running:
            outcome.breaks(f"the server ended at '{shot.name}'")
            break
    return fired


def run(settings: Settings, store: str, data: Path) -> Outcome:
    """Every hostile request, beside a reader."""
    outcome = Outcome(name="stall", store=store.partition(":")[0])
    limits = {"operation_seconds": settings.operation_seconds}
    with serving(Launch(data=data / "stall", store=store, limits=limits)) as target:
        connection = target.connect()
        reads = point_reads(connection)
        prepare(connection)
        connection.close()
        with Watch(target, reads) as watch:
            fired = volley(target, settings) if settings.brief else _one_by_one(target, settings, outcome)
        for each in fired:
            outcome.answered(each.status, each.name)
            if each.status == 0:
                outcome.breaks(
                    f"no end: '{each.name}' had no answer in {each.ended_at - each.began_at:.1f} s"
                )
        if store == "sqlite" and target.is_running and not settings.brief:
            slots.attack(outcome, target)
        outcome.take(watch, settings)
        _blame(outcome, watch, fired, settings)
        outcome.took_tracebacks(target.tracebacks(), target.said())
    return outcome


def _blame(outcome: Outcome, watch: Watch, fired: list[Fired], settings: Settings) -> None:
    """Says which requests the longest waits were beside."""
    worst: dict[str, float] = {}
    for stall in watch.reads.stalls:
        if stall.own_ms <= settings.stall_ms_max:
            continue
        middle = stall.began_at + stall.wall_ms / 2000
        names = [each.name for each in fired if each.began_at <= middle <= each.ended_at] or [
            "between requests"
        ]
        worst[names[0]] = max(worst.get(names[0], 0.0), stall.own_ms)
    for name, own_ms in sorted(worst.items(), key=lambda pair: -pair[1]):
        outcome.breaks(f"stall of {own_ms:,.0f} ms beside '{name}'")
