"""What ORDER BY needs from the indexing policy, and the service's refusal where it does not have it.

One key needs its path to be indexed. Several keys need a composite index with the same paths in the same
sequence and number, and with directions that are all the same or all the opposite; a composite index that
merely starts with the keys does not serve them. In mode none there is no index, so nothing can be
ordered.

Not asked for an index: constants, which order nothing; scores; and keys that are no path into the item,
such as the keys of groups.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from pleiad.index.policy import Composite, IndexingPolicy, Steps
from pleiad.query import errors, plan
from pleiad.query.bind.order import is_correlated
from pleiad.query.pace import in_turns
from pleiad.query.paths.places import Places, policy_paths

NO_COMPOSITE: Final = (
    "The order by query does not have a corresponding composite index that it can be served from."
)
CORRELATED: Final = "Order-by over correlated collections is not supported."
NO_RANGE: Final = "Order-by item requires a range index to be defined on the corresponding index path."

SortPath = tuple[Steps, bool]
"""A path and whether it ascends, as composite indexes have them."""


def check_order_by(
    bound: plan.Plan, policy: IndexingPolicy, parameters: Mapping[str, Any], computed: Collection[str] = ()
) -> None:
    """Raise the service's 400 when the policy has no index that the ORDER BY can be served from."""
    if is_correlated(bound.block):
        raise errors.plain_error(CORRELATED)
    keys = sort_paths(bound.block, Places(parameters, bound.block.sources))
    if len(keys) == 1 and not policy_paths(policy, computed)(keys[0][0]):
        raise errors.plain_error(NO_RANGE)
    if len(keys) > 1 and matching_composite(keys, policy) is None:
        raise errors.plain_error(NO_COMPOSITE)


def sort_paths(block: plan.Block, places: Places) -> list[SortPath]:
    """The keys of ORDER BY that are paths into the item."""
    keys: list[SortPath] = []
    for key in in_turns(block.order_by):
        place = places.of(key.expression)
        if place is not None:
            keys.append((place, not key.descending))
    return keys


def matching_composite(keys: Sequence[SortPath], policy: IndexingPolicy) -> Composite | None:
    """The composite index of the policy that gives this order or its exact reverse."""
    if policy.mode == "none":
        return None
    wanted = tuple(keys)
    reverse = tuple((steps, not ascending) for steps, ascending in keys)
    return next((each for each in policy.composites if each in (wanted, reverse)), None)
