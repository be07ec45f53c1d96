"""Reading rows of a container from its end to its beginning, from any point of it.

The order is that of a `Scan`, backwards: the last range of hashes first, and within a physical partition the highest
document number first. A position is a list of pieces in the order of their hashes, read down to the number they name;
what lies before the first piece is still unread, what lies beyond the last is done. So it outlives a split and a merge.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from pleiad.engine.container import Container
from pleiad.engine.scan import Piece
from pleiad.keys.range import EpkRange
from pleiad.partition.governor import Lane
from pleiad.partition.partition import Partition
from pleiad.store.rows import Row

_END = 2**63 - 1
"""Above every document number, for pieces that are not begun."""


class BackwardScan:
    """A walk over the live rows of a range of hashes from its end, which is admitted partition by partition."""

    def __init__(
        self, container: Container, span: EpkRange, begun: Sequence[Piece], is_visited: bool, lane: Lane
    ) -> None:
        self._container = container
        self._lane = lane
        self._now = int(time.time())
        rest = EpkRange(span.min, begun[0].span.min) if begun else span
        self._pieces = [Piece(rest), *begun] if rest.min < rest.max else list(begun)
        self._last = self._pieces[-1]
        """What the last chunk was read from, as it was before."""
        self.partition = self._partition()
        self._visited = {self.partition.id} if begun and is_visited else set[int]()
        self.rows: dict[Partition, int] = {}
        """Rows that this walk got from each partition it came to."""
        self.partitions_visited = 0
        """Physical partitions that this walk came to first; what an earlier page visited does not count again."""

    @property
    def is_done(self) -> bool:
        return not self._pieces

    @property
    def is_next_visited(self) -> bool:
        """Whether the walk has been in the partition it goes on with; the next page is told, by `is_visited`."""
        return bool(self._pieces) and self._partition().id in self._visited

    async def chunk(self, rows_max: int) -> Sequence[Row]:
        """The next rows, all of one physical partition; empty only when the walk is over or held."""
        while self._pieces:
            partition = self._partition()
            if not self._enters(partition):
                break
            self.partition = partition
            piece = self._pieces.pop()
            part = partition.span.intersect(piece.span)
            assert part is not None
            if piece.span.min < part.min:
                self._pieces.append(Piece(EpkRange(piece.span.min, part.min), piece.after))
            self._last = Piece(part, piece.after)
            rows = await partition.scan_back(part, piece.after or _END, rows_max)
            if len(rows) == rows_max:
                self._pieces.append(Piece(part, rows[-1].number))
            self.rows[partition] += len(rows)
            live = [row for row in rows if not self._container.is_expired(row, self._now)]
            if live:
                return live
        return ()

    def stop_after(self, row: Row | None, rows: Sequence[Row]) -> None:
        """Gives back the rest of the last chunk: the walk goes on behind `row`, or with the whole chunk for None."""
        if row is not None and row is rows[-1]:
            return
        if self._pieces and self._pieces[-1].span == self._last.span:
            self._pieces.pop()
        self._pieces.append(self._last if row is None else Piece(self._last.span, row.number))

    def position(self) -> list[Piece]:
        """Where the walk stands: the pieces that are begun, or the last one that is not."""
        first = next((index for index, piece in enumerate(self._pieces) if piece.after), -1)
        return self._pieces[first:]

    def _partition(self) -> Partition:
        """The physical partition with the end of what is left."""
        return self._container.map.overlapping(self._pieces[-1].span)[-1]

    def _enters(self, partition: Partition) -> bool:
        if partition not in self.rows:
            if not self.rows:
                partition.admit(self._lane)
            elif not partition.governor.is_open(self._lane):
                return False
            self.rows[partition] = 0
        if partition.id not in self._visited:
            self._visited.add(partition.id)
            self.partitions_visited += 1
        return True
