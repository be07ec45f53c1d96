"""The state of devices: keyed by the device, or by its model."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pleiad.scenario.model import Ask, Claim, Item, Scenario, on_path, read, write

GOOD, BAD = "/deviceId", "/model"


def _items(random: Random) -> Sequence[Item]:
    return [
        {
            "id": f"device-{number}",
            "deviceId": f"device-{number}",
            "model": "thermostat" if number % 10 else "camera",
            "state": "x" * random.randint(200, 400),
        }
        for number in range(100)
    ]


def _seconds(random: Random, items: Sequence[Item]) -> Sequence[Sequence[Ask]]:
    return [
        [write(item) for item in random.sample(items, 24)] + [read(item) for item in random.sample(items, 15)]
        for _ in range(5)
    ]


SCENARIO = Scenario(
    name="device-state",
    title="Device state",
    story="Each device writes its latest state again and again, and each is read by itself.",
    attempts=(on_path(GOOD), on_path(BAD)),
    items=_items,
    seconds=_seconds,
    claims=(
        Claim(
            sentence="With the device as key, which may be the id, few or no requests are refused.",
            holds=lambda found: found[GOOD].throttled_percent < 5,
        ),
        Claim(
            sentence="With two models as key at most two of four physical partitions do anything.",
            holds=lambda found: sum(share > 0 for share in found[BAD].shares("charge_ru")) <= 2,
        ),
        Claim(
            sentence="The throughput of the others is paid for and cannot be used: requests are refused.",
            holds=lambda found: found[BAD].throttled_percent > 10,
        ),
    ),
    lesson="Key by the device. A property of which there are few values leaves most of the throughput unused.",
)
