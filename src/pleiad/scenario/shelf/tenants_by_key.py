"""Many tenants in one container: keyed by the tenant, or by the plan they pay for."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pleiad.scenario.model import Ask, Claim, Item, Scenario, on_path, query, write

GOOD, BAD = "/tenantId", "/plan"
_TENANTS = 40


def _order(random: Random, name: str) -> Item:
    tenant = random.randrange(_TENANTS)
    plan = "free" if tenant % 8 else "paid"
    return {"id": name, "tenantId": f"tenant-{tenant}", "plan": plan, "text": "x" * random.randint(100, 400)}


def _items(random: Random) -> Sequence[Item]:
    return [_order(random, f"order-{number}") for number in range(120)]


def _seconds(random: Random, items: Sequence[Item]) -> Sequence[Sequence[Ask]]:
    return [
        [write(_order(random, f"new-{second}-{number}")) for number in range(27)]
        + [query(random.choice(items), "/tenantId") for _ in range(12)]
        for second in range(5)
    ]


SCENARIO = Scenario(
    name="tenants-by-key",
    title="Tenants by partition key",
    story="Forty small tenants write orders and list their own.",
    attempts=(on_path(GOOD), on_path(BAD)),
    items=_items,
    seconds=_seconds,
    claims=(
        Claim(
            sentence="With the tenant as key all share the throughput, and few or no requests are refused.",
            holds=lambda found: found[GOOD].throttled_percent < 5,
        ),
        Claim(
            sentence="What a tenant asks goes to one physical partition, where its transactions are possible too.",
            holds=lambda found: found[GOOD].fan_out == 1,
        ),
        Claim(
            sentence="With the plan as key every list of a tenant goes everywhere, and the free plan is hot.",
            holds=lambda found: found[BAD].fan_out > 1 and found[BAD].throttled_percent > 10,
        ),
    ),
    lesson="Many small tenants: one container, keyed by the tenant. They share the throughput, and nobody is isolated.",
)
