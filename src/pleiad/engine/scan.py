"""Reading rows of a container in a fixed order, from any point of it.

The order is by range of hashes and, within a physical partition, by document number. A position is a list of
pieces: parts of the hash space with the document number to go on after; what lies beyond the last piece is still
unread, what lies before the first is done. Pieces are ranges and not partitions, so a position outlives a restart,
a split and a merge.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from pleiad.engine.container import Container
from pleiad.keys.range import EpkRange
from pleiad.limits import MB
from pleiad.partition.governor import Lane
from pleiad.partition.partition import Partition
from pleiad.store.contract import Row
from pleiad.store.selection import Predicate, Selection

_ROWS_FIRST = 100
_ROWS_MOST = 500
_CHUNK_BYTES = 2 * MB
"""What a walk reads at once: first so many rows, then as many as are about so many bytes."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the hash space, read up to and with `after`: a document number, or an LSN in a change feed."""

    span: EpkRange
    after: int = 0


class Scan:
    """A walk over the live rows of some ranges of hashes.

    With a lane the walk is admitted partition by partition: the first one refuses the request, a later one holds the
    walk, which then is to be continued from its position. Without one the caller has been admitted.
    """

    def __init__(
        self,
        container: Container,
        spans: Sequence[EpkRange],
        begun: Sequence[Piece] = (),
        predicates: tuple[Predicate, ...] = (),
        is_visited: bool = False,
        lane: Lane | None = None,
    ) -> None:
        self._container = container
        self._predicates = predicates
        self._now = int(time.time())
        self._pieces = remaining(spans, begun)
        self._last: Piece | None = None
        self._last_part: EpkRange | None = None
        self._visited: set[int] = set()
        if begun and is_visited:
            self._visited.add(container.map.find(begun[0].span.min).id)
        self.partition = container.map.find(self._pieces[0].span.min if self._pieces else spans[0].min)
        self._lane = lane
        self._rows_next = _ROWS_FIRST
        self.rows: dict[Partition, int] = {}
        """Rows that this walk got from each partition it came to."""
        self.is_held = False
        """Whether the walk stands before a partition that admits nobody now."""
        self.partitions_visited = 0
        """Physical partitions that this walk came to first; what an earlier page visited does not count again."""

    @property
    def is_done(self) -> bool:
        return not self._pieces

    async def chunk(self, rows_max: int, known: Sequence[Row] | None = None) -> Sequence[Row]:
        """The next rows, all of one physical partition; empty only when the walk is over or held.

        `known` is what the first read would find, if somebody has just made it.
        """
        while self._pieces:
            piece = self._pieces.pop(0)
            partition = self._container.map.find(piece.span.min)
            if not self._enters(partition):
                self._pieces.insert(0, piece)
                self.is_held = True
                return ()
            self.partition = partition
            part = partition.span.intersect(piece.span)
            assert part is not None
            if part.max < piece.span.max:
                self._pieces.insert(0, Piece(EpkRange(part.max, piece.span.max), piece.after))
            self._count_visit(partition)
            if known is not None:
                rows, known = known, None
            else:
                selection = Selection(part, self._predicates, self._now, self._container.default_ttl)
                rows_max = min(rows_max, self._rows_next)
                rows = await partition.select(selection, piece.after, rows_max)
                self._rows_next = _rows_at_once(rows)
            self.rows[partition] += len(rows)
            if len(rows) == rows_max:
                self._pieces.insert(0, Piece(part, rows[-1].number))
            self._last, self._last_part = piece, part
            if rows:
                return rows
        return ()

    async def skip_to_next_row(self) -> None:
        """Moves on to where the next row is, or to the end when there is none."""
        rows = await self.chunk(1)
        if rows:
            self.stop_after(None, rows)

    def stop_after(self, row: Row | None, rows: Sequence[Row]) -> None:
        """Gives back the rest of the last chunk: the walk goes on behind `row`, or with the whole chunk for None."""
        assert self._last is not None
        assert self._last_part is not None
        if row is not None and row is rows[-1]:
            return
        if self._pieces and self._pieces[0] == Piece(self._last_part, rows[-1].number):
            self._pieces.pop(0)
        self._pieces.insert(0, Piece(self._last_part, self._last.after if row is None else row.number))

    @property
    def is_next_visited(self) -> bool:
        """Whether the walk has been in the partition it goes on with; the next page is told, by `is_visited`."""
        return bool(self._pieces) and self._container.map.find(self._pieces[0].span.min).id in self._visited

    def position(self) -> list[Piece]:
        """Where the walk stands: the pieces that are begun, or the first one that is not."""
        begun = [piece for piece in self._pieces if piece.after]
        return begun or self._pieces[:1]

    def _enters(self, partition: Partition) -> bool:
        if partition not in self.rows:
            if self._lane is not None:
                if not self.rows:
                    partition.admit(self._lane)
                elif not partition.governor.is_open(self._lane):
                    return False
            self.rows[partition] = 0
        return True

    def _count_visit(self, partition: Partition) -> None:
        if partition.id not in self._visited:
            self._visited.add(partition.id)
            self.partitions_visited += 1


def _rows_at_once(rows: Sequence[Row]) -> int:
    """How many rows to read next: as many of this size as are a moment's work, and no burden to hold."""
    size_bytes = sum([row.size_bytes for row in rows])
    return _ROWS_MOST if not size_bytes else max(1, min(_ROWS_MOST, _CHUNK_BYTES * len(rows) // size_bytes))


def spans_begun(spans: Sequence[EpkRange], begun: Sequence[Piece]) -> list[EpkRange]:
    """The ranges that have been read up to a position, those of its pieces read in part."""
    before = EpkRange(b"", begun[-1].span.max)
    return [part for span in spans if (part := span.intersect(before)) is not None]


def is_read(row: Row, begun: Sequence[Piece]) -> bool:
    """Whether a row of those ranges has been read."""
    return all(row.number <= piece.after for piece in begun if piece.span.contains(row.epk))


def remaining(spans: Sequence[EpkRange], begun: Sequence[Piece]) -> list[Piece]:
    """What is left of the spans from a position on."""
    if not begun:
        return [Piece(span) for span in spans]
    pieces = []
    for piece in begun:
        for span in spans:
            inside = span.intersect(piece.span)
            if inside is not None:
                pieces.append(Piece(inside, piece.after))
    edge = begun[-1].span.max
    for span in spans:
        if span.max > edge:
            pieces.append(Piece(EpkRange(max(span.min, edge), span.max)))
    return pieces
