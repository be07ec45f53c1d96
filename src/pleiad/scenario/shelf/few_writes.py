"""A time series with few writes that is read by the day: keyed by the day, or by the id."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pleiad.scenario.model import Ask, Claim, Item, Scenario, on_path, query, write

GOOD, BAD = "/day", "/id"
_DAYS = 12


def _items(random: Random) -> Sequence[Item]:
    return [
        {
            "id": f"reading-{day}-{number}",
            "day": f"2026-03-{day + 1:02d}",
            "value": random.randint(0, 1_000),
            "note": "x" * 150,
        }
        for day in range(_DAYS)
        for number in range(8)
    ]


def _seconds(random: Random, items: Sequence[Item]) -> Sequence[Sequence[Ask]]:
    return [
        [write({**items[-1], "id": f"reading-{second}-new"})]
        + [query(random.choice(items), "/day") for _ in range(10)]
        for second in range(6)
    ]


SCENARIO = Scenario(
    name="few-writes",
    title="A time series with few writes",
    story="A reading comes once in a while; reports ask for all readings of a day.",
    attempts=(on_path(GOOD), on_path(BAD)),
    items=_items,
    seconds=_seconds,
    claims=(
        Claim(
            sentence="With the day as key a report goes to one physical partition, and none is refused.",
            holds=lambda found: found[GOOD].fan_out == 1 and found[GOOD].throttled == 0,
        ),
        Claim(
            sentence="With the id as key every report goes to all physical partitions, and costs more.",
            holds=lambda found: (
                found[BAD].fan_out == len(found[BAD].partitions)
                and found[BAD].charge_ru > 1.2 * found[GOOD].charge_ru
            ),
        ),
    ),
    lesson="Where little is written and ranges of time are read, a roll-up of the time such as its date is a good key.",
)
