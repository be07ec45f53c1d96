"""Few tenants of which one is noisy: in one container, or each in its own."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pleiad.scenario.model import Ask, Attempt, Claim, Item, Scenario, write

GOOD, BAD = "a container a tenant", "one container, /tenantId"
_NOISY = "contoso"
_QUIET = ("fabrikam", "litware")


def _order(tenant: str, name: str) -> Item:
    return {"id": name, "tenantId": tenant, "text": "x" * 200}


def _items(random: Random) -> Sequence[Item]:
    return [_order(tenant, f"order-{number}") for tenant in (_NOISY, *_QUIET) for number in range(25)]


def _seconds(random: Random, items: Sequence[Item]) -> Sequence[Sequence[Ask]]:
    seconds = []
    for second in range(5):
        asks = [write(_order(_NOISY, f"new-{second}-{number}")) for number in range(40)]
        asks += [write(_order(tenant, f"new-{second}-{number}")) for tenant in _QUIET for number in range(5)]
        random.shuffle(asks)
        seconds.append(asks)
    return seconds


SCENARIO = Scenario(
    name="tenants-by-container",
    title="Tenants by container",
    story="Three tenants share a small container of 100 RU/s, or have 100 RU/s each. One of them writes far too much.",
    attempts=(
        Attempt(
            title=GOOD,
            path="/tenantId",
            throughput_ru={_NOISY: 100, _QUIET[0]: 100, _QUIET[1]: 100},
            container_of=lambda item: str(item["tenantId"]),
        ),
        Attempt(title=BAD, path="/tenantId", throughput_ru={"data": 100}),
    ),
    items=_items,
    seconds=_seconds,
    party=lambda item: str(item["tenantId"]),
    claims=(
        Claim(
            sentence="In one container the quiet tenants are refused for what the noisy one does.",
            holds=lambda found: all(found[BAD].throttled_of[tenant] > 0 for tenant in _QUIET),
        ),
        Claim(
            sentence="With containers of their own they have throughput that nobody else can use.",
            holds=lambda found: all(found[GOOD].throttled_of[tenant] == 0 for tenant in _QUIET),
        ),
        Claim(
            sentence="The noisy one is refused still: its throughput is its own as well.",
            holds=lambda found: found[GOOD].throttled_of[_NOISY] > 0,
        ),
    ),
    lesson="Few tenants who pay for a promise: a container each, with throughput that is reserved for them.",
)
