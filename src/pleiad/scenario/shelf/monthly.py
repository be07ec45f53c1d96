"""A time series in a container for each month, or in one container keyed by the month."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pleiad.scenario.model import Ask, Attempt, Claim, Item, Scenario, query, write

GOOD, BAD = "a container a month, /host", "one container, /month"
_MONTHS = ("2026-01", "2026-02", "2026-03")
_HOSTS = 40


def _reading(random: Random, name: str, month: str) -> Item:
    return {"id": name, "host": f"host-{random.randrange(_HOSTS)}", "month": month, "line": "x" * 200}


def _items(random: Random) -> Sequence[Item]:
    return [_reading(random, f"old-{number}", _MONTHS[number % 2]) for number in range(100)]


def _seconds(random: Random, items: Sequence[Item]) -> Sequence[Sequence[Ask]]:
    return [
        [write(_reading(random, f"new-{second}-{number}", _MONTHS[-1])) for number in range(35)]
        + [query(random.choice(items), "/host") for _ in range(2)]
        for second in range(5)
    ]


SCENARIO = Scenario(
    name="monthly",
    title="A container for each month",
    story="The month that runs takes all writes; months that are over are looked at now and then.",
    attempts=(
        Attempt(
            title=GOOD,
            path="/host",
            throughput_ru={"2026-01": 100, "2026-02": 100, "2026-03": 400},
            container_of=lambda item: str(item["month"]),
        ),
        Attempt(title=BAD, path="/month", throughput_ru={"data": 600}),
    ),
    items=_items,
    seconds=_seconds,
    claims=(
        Claim(
            sentence="The container of the month that runs has the throughput, and few or no writes are refused.",
            holds=lambda found: found[GOOD].throttled_percent < 5,
        ),
        Claim(
            sentence="Keyed by the month, 600 RU/s in one container serve no more than one physical partition can.",
            holds=lambda found: found[BAD].throttled_percent > 30,
        ),
        Claim(
            sentence="Months that are over need few RU/s, and are dropped as a whole when they are old.",
            holds=lambda found: (
                sum(each.charge_ru for each in found[GOOD].partitions if each.container != _MONTHS[-1])
                < 0.2 * found[GOOD].charge_ru
            ),
        ),
    ),
    lesson="A container for each month or day, keyed by host: much throughput for the current one, little for others.",
)
