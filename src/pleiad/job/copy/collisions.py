"""Looking for items of the source that would be one in the target, where the counts say that there are some."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from pleiad.job.copy.apply import Applier
from pleiad.job.copy.failure import ITEMS_NAMED_MAX
from pleiad.store.rows import ItemKey, Row

KEYS_MAX = 1_000_000
"""So many keys are kept in mind at once; of more items the keys are looked at in several rounds."""

Pages = Callable[[], AsyncIterator[Sequence[Row]]]


async def find_collisions(applier: Applier, pages: Pages, total: int) -> list[tuple[ItemKey, ItemKey]]:
    """Pairs of items of the source with one place in the target; those that are found first."""
    rounds = 1 + total // KEYS_MAX
    found: list[tuple[ItemKey, ItemKey]] = []
    for number in range(rounds):
        seen: dict[ItemKey, ItemKey] = {}
        async for rows in pages():
            items, _ = await applier.placed(rows)
            for placed in items:
                if hash(placed.key) % rounds == number:
                    other = seen.setdefault(placed.key, placed.origin)
                    if other != placed.origin:
                        found.append((other, placed.origin))
            if len(found) >= ITEMS_NAMED_MAX:
                return found
    return found
