"""Comparing a copy with its source, item by item.

Every item of the source has to be in the target, with every byte, and there has to be nothing else: so both hold the
same number of items. The checksum is the same in whatever order items are met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

from pleiad.engine.container import Container
from pleiad.engine.steady import over_moves
from pleiad.job.copy.apply import Applier
from pleiad.job.copy.failure import ITEMS_NAMED_MAX, CopyFailedError
from pleiad.job.copy.transform import Placed
from pleiad.job.copy.writer import TargetWriter
from pleiad.store.rows import ItemKey, Row

_EXPIRED_ROWS = 1_000
_SUSPECTS_MAX = 10_000
_CHECKSUM_BYTES = 16
_CHUNK_BITS = 1 << 15


class Numbers:
    """A set of document numbers, which are dense: a bit for each."""

    def __init__(self) -> None:
        self._chunks: dict[int, bytearray] = {}

    def add(self, number: int) -> bool:
        """Puts a number in; False when it was there."""
        high, low = divmod(number, _CHUNK_BITS)
        chunk = self._chunks.get(high)
        if chunk is None:
            chunk = self._chunks[high] = bytearray(_CHUNK_BITS // 8)
        bit = 1 << low % 8
        if chunk[low // 8] & bit:
            return False
        chunk[low // 8] |= bit
        return True


class Verification:
    """One comparison: how many items were found to be equal, their checksum, and those that were not."""

    def __init__(self, applier: Applier, writer: TargetWriter) -> None:
        self._applier = applier
        self._writer = writer
        self.items = 0
        self._sum = 0
        self._expiries: Counter[int] = Counter()
        """How many of them expire when."""
        self.suspects: dict[ItemKey, Placed] = {}
        self._met = Numbers()

    @property
    def checksum(self) -> str:
        return self._sum.to_bytes(_CHECKSUM_BYTES, "big").hex()

    async def compare(self, rows: Sequence[Row]) -> None:
        """Looks for the items of rows in the target; an item that was met before is not looked for again."""
        items, unfit = await self._applier.placed([row for row in rows if self._met.add(row.number)])
        if unfit:
            raise CopyFailedError(
                f"an item cannot be in the target: {unfit[0][1]}", [row.id for row, _ in unfit]
            )
        await self.compare_items(items)

    async def compare_items(self, items: Sequence[Placed]) -> None:
        found = await self._writer.rows([placed.key for placed in items])
        for placed, row in zip(items, found, strict=True):
            if placed.is_in(row):
                self.items += 1
                self._sum ^= _digest(placed)
                self._expiries.update(self._applier.expiries(placed))
            else:
                self.suspects[placed.origin] = placed
                if len(self.suspects) > _SUSPECTS_MAX:
                    raise self.refusal()

    def live_at(self, now: int) -> int:
        """How many of the items have not expired at a time."""
        return self.items - sum(count for moment, count in self._expiries.items() if moment <= now)

    def refusal(self) -> CopyFailedError:
        """What is told of items that are not in the target as they should be."""
        names = [placed.key.id for placed in list(self.suspects.values())[:ITEMS_NAMED_MAX]]
        return CopyFailedError(
            "items of the source are not in the target as they should be: something else has written there, or items "
            "of the source have the same id in one logical partition of the target",
            names,
        )


def _digest(placed: Placed) -> int:
    text = repr((placed.key.epk, placed.key.id, placed.ts)).encode() + placed.put.body
    return int.from_bytes(blake2b(text, digest_size=_CHECKSUM_BYTES).digest(), "big")


@over_moves
async def live_count(container: Container, other_ttl: int | None, now: int) -> int:
    """How many items of a container have expired neither by its own time to live nor by another one."""
    count = 0
    for partition in container.map.partitions:
        count += (await partition.state()).items
        dead: set[int] = set()
        for ttl in {container.default_ttl, other_ttl} - {None}:
            limit = _EXPIRED_ROWS
            while len(rows := await partition.expired(now, ttl, limit)) >= limit:
                limit *= 4
            dead |= {row.number for row in rows}
        count -= len(dead)
    return count
