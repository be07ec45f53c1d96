"""A time series with many writes: keyed by the host, or by the day."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pleiad.scenario.model import Ask, Claim, Item, Scenario, on_path, query, write

GOOD, BAD = "/host", "/day"
_HOSTS = 50
_TODAY = "2026-03-12"


def _reading(random: Random, name: str, day: str) -> Item:
    return {"id": name, "host": f"host-{random.randrange(_HOSTS)}", "day": day, "line": "x" * 200}


def _items(random: Random) -> Sequence[Item]:
    return [_reading(random, f"old-{number}", f"2026-03-{1 + number % 11:02d}") for number in range(100)]


def _seconds(random: Random, items: Sequence[Item]) -> Sequence[Sequence[Ask]]:
    return [
        [write(_reading(random, f"new-{second}-{number}", _TODAY)) for number in range(35)]
        + [query(random.choice(items), "/host") for _ in range(5)]
        for second in range(5)
    ]


SCENARIO = Scenario(
    name="many-writes",
    title="A time series with many writes",
    story="All hosts log all the time, so nearly all requests write something with the date of today.",
    attempts=(on_path(GOOD), on_path(BAD)),
    items=_items,
    seconds=_seconds,
    claims=(
        Claim(
            sentence="With the day as key one physical partition takes the writes of today, and refuses many.",
            holds=lambda found: found[BAD].throttled_percent > 30 and found[BAD].top_share("charge_ru") > 0.7,
        ),
        Claim(
            sentence="The data of eleven days are spread all the same: storage alone does not show a hot key.",
            holds=lambda found: found[BAD].largest_percent < 50,
        ),
        Claim(
            sentence="With the host as key the writes go everywhere, and few or none are refused.",
            holds=lambda found: found[GOOD].throttled_percent < 5,
        ),
    ),
    lesson="Where much is written, never key by the time. Key by who writes: host, process, activity.",
)
