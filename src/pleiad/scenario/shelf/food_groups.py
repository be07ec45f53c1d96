"""Foods by their group: the throughput of three physical partitions, and a group that is full."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pleiad.scenario.model import Ask, Attempt, Claim, Item, Scenario, query, read

GOOD, BAD = "/foodGroup", "/id"
_GROUPS = (
    ("Beef Products", 30),
    ("Vegetables and Vegetable Products", 26),
    ("Baked Products", 18),
    ("Soups, Sauces, and Gravies", 14),
    ("Sausages and Luncheon Meats", 9),
    ("Fruits and Fruit Juices", 8),
    ("Legumes and Legume Products", 6),
    ("Sweets", 5),
    ("Spices and Herbs", 4),
)


def _items(random: Random) -> Sequence[Item]:
    return [
        {"id": f"food-{group}-{number}", "foodGroup": group, "nutrients": "x" * random.randint(100, 300)}
        for group, count in _GROUPS
        for number in range(count)
    ]


def _seconds(random: Random, items: Sequence[Item]) -> Sequence[Sequence[Ask]]:
    groups = [items[sum(count for _, count in _GROUPS[:index])] for index in range(len(_GROUPS))]
    return [
        [query(random.choice(groups), "/foodGroup") for _ in range(8)]
        + [read(random.choice(items)) for _ in range(20)]
        for _ in range(5)
    ]


SCENARIO = Scenario(
    name="food-groups",
    title="Food groups",
    story="Three physical partitions share 300 RU/s, so each has 100, as each of three has 6,000 of 18,000 RU/s. Foods "
    "are listed by their group.",
    attempts=(
        Attempt(title=GOOD, path=GOOD, throughput_ru={"data": 300}),
        Attempt(title=BAD, path=BAD, throughput_ru={"data": 300}),
    ),
    items=_items,
    seconds=_seconds,
    claims=(
        Claim(
            sentence="Three physical partitions share the throughput evenly, and a group is on one of them.",
            holds=lambda found: len(found[GOOD].partitions) == 3 and found[GOOD].fan_out == 1,
        ),
        Claim(
            sentence="With the group as key the largest group fills its logical partition first.",
            holds=lambda found: found[GOOD].largest_percent > 10 * found[BAD].largest_percent,
        ),
        Claim(
            sentence="With the id as key storage is even, and every list of a group goes to all three.",
            holds=lambda found: found[BAD].top_share("size_bytes") < 0.5 and found[BAD].fan_out == 3,
        ),
    ),
    lesson="A group is a good key while lists of a group are what is asked and no group outgrows a logical partition.",
)
