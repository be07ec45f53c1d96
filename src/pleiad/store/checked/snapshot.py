"""A snapshot that is tested: what it has shown once it shows again."""

from __future__ import annotations

from collections.abc import Sequence

from pleiad.keys.range import EpkRange
from pleiad.store.checked import pages
from pleiad.store.checked.breach import demand
from pleiad.store.rows import ItemKey, Row
from pleiad.store.segments import Snapshot


class CheckedSnapshot:
    """The contract's Snapshot over another one."""

    def __init__(self, inner: Snapshot) -> None:
        self._inner = inner
        self._shown: dict[ItemKey, Row | None] = {}

    async def read_many(self, keys: Sequence[ItemKey]) -> Sequence[Row | None]:
        rows = await self._inner.read_many(keys)
        pages.check_found(rows, keys)
        for key, row in zip(keys, rows, strict=True):
            self._show(key, row)
        return rows

    async def find(self, number: int) -> Row | None:
        row = await self._inner.find(number)
        pages.check_number(row, number)
        if row is not None:
            self._show(ItemKey(row.epk, row.id), row)
        return row

    async def scan(self, span: EpkRange, after: int, limit: int, bytes_max: int) -> Sequence[Row]:
        pages.check_limit(limit)
        rows = await self._inner.scan(span, after, limit, bytes_max)
        pages.check_rows(rows, span, after, limit)
        pages.check_unique_keys(rows)
        size_bytes = sum(row.size_bytes for row in rows[:-1])
        demand(size_bytes < max(1, bytes_max), pages.PAGES, f"a page of {size_bytes} bytes and one more row")
        for row in rows:
            self._show(ItemKey(row.epk, row.id), row)
        return rows

    def close(self) -> None:
        self._inner.close()

    def _show(self, key: ItemKey, row: Row | None) -> None:
        shown = self._shown.setdefault(key, row)
        demand(shown == row, "14", f"the row {shown} became {row} in one moment")
