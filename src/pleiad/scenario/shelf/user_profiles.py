"""The backend of user profiles: keyed by the user, or by the country."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pleiad.scenario.model import Ask, Claim, Item, Scenario, on_path, read, write

_COUNTRIES = ("US", "US", "US", "US", "US", "US", "US", "DE", "DE", "JP")
"""Seven of ten users are of one country."""
GOOD, BAD = "/userId", "/country"


def _items(random: Random) -> Sequence[Item]:
    return [
        {
            "id": f"user-{number}",
            "userId": f"user-{number}",
            "country": random.choice(_COUNTRIES),
            "about": "x" * random.randint(300, 700),
        }
        for number in range(120)
    ]


def _seconds(random: Random, items: Sequence[Item]) -> Sequence[Sequence[Ask]]:
    return [
        [write(random.choice(items)) for _ in range(20)] + [read(random.choice(items)) for _ in range(24)]
        for _ in range(5)
    ]


SCENARIO = Scenario(
    name="user-profiles",
    title="User profiles",
    story="A profile is read and written for one user at a time. Seven of ten users live in one country.",
    attempts=(on_path(GOOD), on_path(BAD)),
    items=_items,
    seconds=_seconds,
    claims=(
        Claim(
            sentence="With the user as key the requests of all users fit the throughput, or nearly all.",
            holds=lambda found: found[GOOD].throttled_percent < 5,
        ),
        Claim(
            sentence="With the country as key one physical partition has most of the data and of the requests, and "
            "refuses some of them while others have nothing to do.",
            holds=lambda found: (
                found[BAD].top_share("size_bytes") > 0.6 and found[BAD].throttled_percent > 10
            ),
        ),
        Claim(
            sentence="A country grows to the limit of a logical partition long before a user does.",
            holds=lambda found: found[BAD].largest_percent > 20 * found[GOOD].largest_percent,
        ),
    ),
    lesson="Key by the user: there are as many values as users, and every request names one. The id may be the key.",
)
