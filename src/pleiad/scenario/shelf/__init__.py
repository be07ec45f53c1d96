"""The scenarios there are, by name."""

from __future__ import annotations

from pleiad.scenario.model import Scenario
from pleiad.scenario.shelf import (
    device_state,
    few_writes,
    food_groups,
    many_writes,
    monthly,
    tenants_by_container,
    tenants_by_key,
    tenants_mixed,
    user_profiles,
)

SCENARIOS: dict[str, Scenario] = {
    module.SCENARIO.name: module.SCENARIO
    for module in (
        user_profiles,
        device_state,
        few_writes,
        many_writes,
        monthly,
        tenants_by_key,
        tenants_by_container,
        tenants_mixed,
        food_groups,
    )
}
