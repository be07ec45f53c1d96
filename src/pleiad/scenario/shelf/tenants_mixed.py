"""Many small tenants and a large one: all in one container, or the large one apart."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pleiad.scenario.model import Ask, Attempt, Claim, Item, Scenario, write

GOOD, BAD = "the large tenant apart", "all in one, /tenantId"
_LARGE = "contoso"
_SMALL_COUNT = 30


def _order(tenant: str, name: str) -> Item:
    return {"id": name, "tenantId": tenant, "customer": f"customer-{name}", "text": "x" * 200}


def _small(random: Random) -> str:
    return f"tenant-{random.randrange(_SMALL_COUNT)}"


def _items(random: Random) -> Sequence[Item]:
    small = [_order(_small(random), f"order-{number}") for number in range(60)]
    return small + [_order(_LARGE, f"large-{number}") for number in range(80)]


def _seconds(random: Random, items: Sequence[Item]) -> Sequence[Sequence[Ask]]:
    seconds = []
    for second in range(5):
        asks = [write(_order(_LARGE, f"large-{second}-{number}")) for number in range(30)]
        asks += [write(_order(_small(random), f"new-{second}-{number}")) for number in range(15)]
        random.shuffle(asks)
        seconds.append(asks)
    return seconds


def _with_key(item: Item) -> Item:
    """Small tenants are a key of their own; the large one is divided by its customers."""
    key = item["customer"] if item["tenantId"] == _LARGE else item["tenantId"]
    return {**item, "partitionKey": key}


SCENARIO = Scenario(
    name="tenants-mixed",
    title="Small tenants together, a large one apart",
    story="Thirty small tenants, and one that writes twice as much as all of them together.",
    attempts=(
        Attempt(
            title=GOOD,
            path="/partitionKey",
            throughput_ru={"small": 200, "large": 400},
            container_of=lambda item: "large" if item["tenantId"] == _LARGE else "small",
            shaped=_with_key,
        ),
        Attempt(title=BAD, path="/tenantId", throughput_ru={"data": 600}),
    ),
    items=_items,
    seconds=_seconds,
    party=lambda item: "the large tenant" if item["tenantId"] == _LARGE else "the small tenants",
    claims=(
        Claim(
            sentence="In one container the large tenant has one physical partition, and is refused, whatever is paid.",
            holds=lambda found: found[BAD].throttled_of["the large tenant"] > 20,
        ),
        Claim(
            sentence="Small tenants who happen to be on that physical partition are refused with it.",
            holds=lambda found: found[BAD].throttled_of["the small tenants"] > 0,
        ),
        Claim(
            sentence="In a container of its own, keyed by its customers, the large tenant uses all it pays for, and "
            "the small ones do not notice.",
            holds=lambda found: (
                found[GOOD].throttled_of["the small tenants"] == 0 and found[GOOD].throttled_percent < 5
            ),
        ),
    ),
    lesson="Small tenants share a container by key; those that outgrow it get one of their own, with a finer key.",
)
