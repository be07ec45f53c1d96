"""Moving the rows of a range from one segment to another while they are written to, wherever the two segments are.

A move copies what is there, then repeats what happened meanwhile, again and again until little is left; when nobody
writes any more, a last repetition makes the copy equal to its source. Between any two segments it is an export and an
import; inside one database the rows need not leave it. Which of the two it is, is decided here and nowhere else.

The segment that is left tracks deletes since before the first step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pleiad.keys.range import EpkRange
from pleiad.store.moves import ExportMark
from pleiad.store.rows import Row, WholeRow
from pleiad.store.segments import Segment

UniqueValuesOf = Callable[[Row], tuple[bytes, ...]]
"""The unique values of a row: they follow from its body, and not every store keeps long ones readable."""

FROM_THE_START = ExportMark(delete=0)
_COPY_ROWS = 10_000
PAGE_ROWS_FIRST = 64
_PAGE_ROWS_MAX = 2_000
_PAGE_BYTES = 4 << 20


def next_page_rows(rows: int, size_bytes: int) -> int:
    """How many rows of the size of the last ones make a page."""
    return max(1, min(_PAGE_ROWS_MAX, rows * _PAGE_BYTES // max(1, size_bytes)))


class Move(Protocol):
    """The rows of one partition on their way to another segment."""

    items: int
    size_bytes: int
    """What the copy holds of the range."""

    async def copy_some(self) -> bool:
        """Copies a piece of what was there when the move began; False when that was the last one."""

    async def catch_up(self) -> int:
        """Repeats what happened before this call; how many rows that were."""


def move_between(
    source: Segment, target: Segment, partition: int, span: EpkRange, unique_values_of: UniqueValuesOf
) -> Move:
    """The move of a partition: the copy inside a database where both segments are in one."""
    if target.can_copy_from(source):
        return MoveInside(source, target, partition, span)
    return MoveAcross(source, target, partition, span, unique_values_of)


class MoveInside:
    """A move whose rows stay in one database; it copies by document number, and repeats by LSN."""

    def __init__(self, source: Segment, target: Segment, partition: int, span: EpkRange) -> None:
        self._source = source
        self._target = target
        self._partition = partition
        self._span = span
        self._lsn: int | None = None
        self._number = 0
        self._delete = 0
        self.items = self.size_bytes = 0

    async def copy_some(self) -> bool:
        if self._lsn is None:
            self._lsn = (await self._source.state(self._partition)).lsn
        number = await self._target.copy_from(self._source, self._span, self._number, _COPY_ROWS)
        if number is None:
            totals = await self._target.totals(self._span)
            self.items, self.size_bytes = totals.items, totals.size_bytes
            return False
        self._number = number
        self.items += _COPY_ROWS  # about; they are counted at the end
        return True

    async def catch_up(self) -> int:
        assert self._lsn is not None
        reached = (await self._source.state(self._partition)).lsn
        done = await self._target.catch_up(self._source, self._span, self._lsn, self._delete)
        self._lsn, self._delete = reached, done.last_delete
        self.items += done.items_change
        self.size_bytes += done.size_bytes_change
        return done.rows


class MoveAcross:
    """A move between any two segments; to copy and to repeat is the same: the next piece behind a mark."""

    def __init__(
        self,
        source: Segment,
        target: Segment,
        partition: int,
        span: EpkRange,
        unique_values_of: UniqueValuesOf,
        mark: ExportMark = FROM_THE_START,
    ) -> None:
        self._source = source
        self._target = target
        self._partition = partition
        self._span = span
        self._unique_values_of = unique_values_of
        self._page_rows = PAGE_ROWS_FIRST
        self._goal: int | None = None
        self.mark = mark
        self.items = self.size_bytes = self.rows = 0
        """What the copy holds of the range, and how many rows came here, some of them more than once."""

    async def copy_some(self) -> bool:
        if self._goal is None:
            self._goal = await self._reached()
        return await self._step(self._goal)

    async def catch_up(self) -> int:
        # Not as far as the source has come when it is done: under a steady load that would never be.
        goal, before = await self._reached(), self.rows
        while await self._step(goal):
            pass
        return self.rows - before

    async def _reached(self) -> int:
        return (await self._source.state(self._partition)).lsn

    async def _step(self, goal: int) -> bool:
        """Takes one piece over; whether more is needed to come to an LSN."""
        asked = self._page_rows
        piece = await self._source.export(self._span, self.mark, asked)
        whole = [WholeRow(row, self._unique_values_of(row)) for row in piece.rows]
        change = await self._target.import_rows(self._span, whole, piece.deletes, piece.versions)
        self.items += change.items
        self.size_bytes += change.size_bytes
        self.rows += len(whole)
        self.mark = piece.mark
        images = sum(len(each.body) + len(each.previous_body) for each in piece.versions)
        size_bytes = images + sum(len(row.body) for row in piece.rows)
        self._page_rows = next_page_rows(max(len(whole), len(piece.versions), 1), size_bytes)
        has_rows = len(piece.rows) >= asked and piece.mark.lsn < goal
        has_versions = len(piece.versions) >= asked and piece.mark.version_lsn < goal
        return has_rows or has_versions
