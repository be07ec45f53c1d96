"""Items whose skew is known, for tests of the measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from pleiad.advise.table import ReadingOptions, Table, read_table
from pleiad.job.item_file.entry import Entry, batched


def entries(items: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Items as a file has them."""
    return [Entry(n, n, orjson.dumps(item), dict(item)) for n, item in enumerate(items, 1)]


def table_of(items: Iterable[Mapping[str, Any]], **options: Any) -> Table:
    return read_table(batched(entries(items)), ReadingOptions(**options))


def skewed_items(shares: Mapping[str, int], text_bytes: int = 100) -> list[dict[str, Any]]:
    """So many items of each tenant, all of one size but for the number in their id."""
    found: list[dict[str, Any]] = []
    for tenant, count in shares.items():
        for _ in range(count):
            number = len(found)
            found.append(
                {
                    "id": f"{number:06d}",
                    "tenantId": tenant,
                    "userId": f"user-{number % 500:03d}",
                    "kind": "a",
                    "text": "x" * text_bytes,
                }
            )
    return found
