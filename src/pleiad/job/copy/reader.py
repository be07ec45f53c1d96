"""Reading the source of a copy: what was there at the beginning in the order of its LSNs, then every change since.

Places are ranges of hashes and not physical partitions, so they outlive splits and merges: rows keep their LSNs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pleiad import charge
from pleiad.engine.container import Container
from pleiad.engine.feed.image import current_image, previous_image
from pleiad.engine.steady import over_moves
from pleiad.job.copy.job import CopyPlace
from pleiad.job.copy.pacer import Pacer
from pleiad.keys.range import EpkRange
from pleiad.partition.partition import Partition
from pleiad.store.move import PAGE_ROWS_FIRST
from pleiad.store.rows import ItemKey, Row, Version

PAGE_ROWS_MAX = 100
_PAGE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Change:
    """The item before and after one change, as the rows they were; None where there was none."""

    before: Row | None
    after: Row | None


class SourceReader:
    """The one who reads the source of a copy."""

    def __init__(self, source: Container, pacer: Pacer) -> None:
        self._source = source
        self._pacer = pacer
        self._page_rows = PAGE_ROWS_FIRST

    async def rows(self, place: CopyPlace) -> tuple[list[Row], list[CopyPlace]]:
        """The next rows of a place that were there at the beginning, and the places behind them.

        Those are two where the place lies in several physical partitions by now: what was read of, and the rest.
        """
        asked = self._page_rows
        found, partition, part = await _rows(self._source, place, asked)
        rows = [row for row in found if row.lsn <= place.goal]
        is_last = len(found) < asked or len(rows) < len(found)
        behind = replace(place, rows_after=place.goal if is_last else rows[-1].lsn)
        sizes = [row.size_bytes for row in rows]
        self._learn(sizes)
        await self._pay(partition, sizes)
        return rows, _places(place, behind, part)

    async def changes(self, place: CopyPlace) -> tuple[list[Change], bool, list[CopyPlace]]:
        """The next changes of a place, whether there may be more, and the places behind them, as above."""
        asked = self._page_rows
        versions, partition, part, upto = await _versions(self._source, place, asked)
        after = max([place.versions_after, *[version.lsn for version in versions]])
        has_more = len(versions) >= asked
        if not has_more:
            after = max(after, upto)
        sizes = [version.size_bytes for version in versions]
        self._learn(sizes)
        await self._pay(partition, sizes)
        changes = [Change(previous_image(each), current_image(each)) for each in versions]
        places = _places(place, replace(place, versions_after=after), part)
        return changes, has_more or len(places) > 1, places

    async def rows_of(self, keys: Sequence[ItemKey]) -> list[Row | None]:
        """The rows of items as they are now."""
        return await _read(self._source, keys)

    def _learn(self, sizes_bytes: Sequence[int]) -> None:
        if sizes_bytes:
            wanted = _PAGE_BYTES * len(sizes_bytes) // max(1, sum(sizes_bytes))
            self._page_rows = max(1, min(PAGE_ROWS_MAX, wanted))

    async def _pay(self, partition: Partition, sizes_bytes: Sequence[int]) -> None:
        if sizes_bytes:
            await self._pacer.pay(self._source, {partition: charge.feed_page(sizes_bytes, 1).ru})


def _places(before: CopyPlace, behind: CopyPlace, part: EpkRange) -> list[CopyPlace]:
    if part == before.span:
        return [behind]
    rest = EpkRange(part.max, before.span.max)
    return [replace(behind, span=part), replace(before, span=rest)]


def _part(source: Container, span: EpkRange) -> tuple[Partition, EpkRange]:
    """The physical partition that a range begins in, and how much of the range lies there."""
    partition = source.map.find(span.min)
    part = partition.span.intersect(span)
    assert part is not None
    return partition, part


@over_moves
async def _rows(source: Container, place: CopyPlace, limit: int) -> tuple[Sequence[Row], Partition, EpkRange]:
    partition, part = _part(source, place.span)
    return await partition.changes(part, place.rows_after, limit), partition, part


@over_moves
async def _versions(
    source: Container, place: CopyPlace, limit: int
) -> tuple[Sequence[Version], Partition, EpkRange, int]:
    partition, part = _part(source, place.span)
    # Before the versions, so that nothing up to it can be missing from them.
    upto = partition.lsn
    return await partition.versions(part, place.versions_after, limit), partition, part, upto


@over_moves
async def _read(source: Container, keys: Sequence[ItemKey]) -> list[Row | None]:
    return [await source.map.find(key.epk).read(key.epk, key.id) for key in keys]
