"""The items of the benchmark: about 1 KB of JSON in 17 fields, the same on every run.

``/pk`` is the partition key. Ids carry a prefix so that rounds which create items never meet each other's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

LOGICAL_PARTITIONS = 1_000
# fmt: off
_WORDS = (
    "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island",
    "juniper", "kelp", "lagoon", "meadow", "north", "orchard", "prairie", "quartz", "river",
    "summit", "tundra", "upland", "valley", "willow", "yarrow", "zephyr",
)
# fmt: on
_CITIES = ("Oslo", "Lima", "Kyoto", "Quito", "Accra", "Perth", "Turin", "Bergen")


@dataclass(frozen=True, slots=True)
class Item:
    """One item: its id, its partition key value, and its JSON."""

    id: str
    pk: str
    body: bytes


def items(prefix: str, count: int) -> list[Item]:
    """``count`` items with the ids ``prefix-0``, ``prefix-1`` and so on, over all logical partitions."""
    return list(each_item(prefix, count))


def each_item(prefix: str, count: int) -> Iterator[Item]:
    """The same one after the other, for more than fit in memory."""
    source = random.Random(prefix)
    texts = [" ".join(source.choices(_WORDS, k=76)) for _ in range(64)]
    for index in range(count):
        yield _item(f"{prefix}-{index}", index, source, texts)


def _item(item_id: str, index: int, source: random.Random, texts: list[str]) -> Item:
    pk = f"tenant-{index * 7919 % LOGICAL_PARTITIONS}"
    number = source.getrandbits(30)
    word = _WORDS[number % len(_WORDS)]
    fields = {
        "id": item_id,
        "pk": pk,
        "name": f"{word} {number}",
        "email": f"{word}.{number}@example.org",
        "status": ("open", "paid", "sent", "closed")[number & 3],
        "category": _WORDS[number // 7 % len(_WORDS)],
        "amount": number % 1_000_000 / 100,
        "quantity": number % 50,
        "score": number / 2**30,
        "active": bool(number & 1),
        "discount": None if number & 6 else 0.15,
        "createdAt": f"2024-{number % 12 + 1:02}-{number % 28 + 1:02}T{number % 24:02}:00:00Z",
        "revision": number % 9,
        "tags": [_WORDS[(number >> shift) % len(_WORDS)] for shift in (0, 5, 10)],
        "address": {
            "street": f"{number % 300} {word.title()} Street",
            "city": _CITIES[number % len(_CITIES)],
            "zip": f"{number % 100_000:05}",
            "geo": {"lat": number % 180 - 90, "lon": number % 360 - 180},
        },
        "lines": [{"sku": f"sku-{number % 9000 + step}", "count": step, "price": 9.5} for step in (1, 2)],
        "description": texts[number % len(texts)],
    }
    return Item(item_id, pk, orjson.dumps(fields))
