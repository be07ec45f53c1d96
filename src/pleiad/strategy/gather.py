"""Reading what a strategy has spread over many key values: the same question to each of them, so many at once.

The plans here take the key values to ask, such as `RandomSuffix.values_for("2018-08-09")` or
`TimeRollUp.values_between`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pleiad.strategy.plan import (
    CONCURRENCY_MAX,
    Item,
    KeyValue,
    Plan,
    Query,
    Read,
    Together,
    together,
)


def query_each(
    keys: Iterable[KeyValue],
    query: str = "SELECT * FROM c",
    parameters: Mapping[str, Any] | None = None,
    *,
    sorted_by: Callable[[Any], Any] | None = None,
    is_descending: bool = False,
    concurrency_max: int = CONCURRENCY_MAX,
) -> Plan[list[Any]]:
    """The results of one query in each of many logical partitions, as one list.

    They come in the order of the keys. Where the query has an ORDER BY, `sorted_by` gives from a result what it is
    ordered by, and the results are merged in that order. A query that counts or sums gives one result for each key.
    """
    calls = [Query(query, parameters or {}, key) for key in dict.fromkeys(keys)]
    outcomes = yield from together(Together(calls, concurrency_max))
    found = [outcome.items for outcome in outcomes if outcome is not None]
    if sorted_by is None:
        return [item for items in found for item in items]
    return list(heapq.merge(*found, key=sorted_by, reverse=is_descending))


def find_item(
    id: str, keys: Iterable[KeyValue], *, concurrency_max: int = CONCURRENCY_MAX
) -> Plan[Item | None]:
    """The item with an id, wherever it is among the key values; None when it is under none of them.

    It asks for a point read under each of them until one has it: half of them on average, all of them for nothing.
    """
    calls = [Read(id, key) for key in dict.fromkeys(keys)]
    outcomes = yield from together(Together(calls, concurrency_max, until_found=True))
    return next((outcome.item for outcome in outcomes if outcome is not None and outcome.items), None)
