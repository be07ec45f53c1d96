"""Reading rows of a container in a fixed order, from any point of it.

The order is by range of hashes and, within a physical partition, by document number, also where several ranges of it
are read. A position is a list of pieces: parts of the hash space with the document number to go on after; what lies
beyond the last piece is still unread, what lies before the first is done. Pieces are ranges and not partitions, so a
position outlives a restart, a split and a merge.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from pleiad.engine.container import Container
from pleiad.engine.narrow import NO_KEYS, NamedKeys
from pleiad.keys.range import EpkRange
from pleiad.limits import MB
from pleiad.partition.governor import Lane
from pleiad.partition.partition import Partition
from pleiad.query.pace import Pace
from pleiad.store.glances import Glance, Glances
from pleiad.store.rows import Row
from pleiad.store.selection import Predicate, Selection

_ROWS_FIRST = 100
_ROWS_MOST = 500
GLANCES_MOST = 2_000
_CHUNK_BYTES = 2 * MB
"""What a walk reads at once: first so many rows, then as many as are about so many bytes."""
_NUMBER_AT: Final = 0
"""Where rows and glances have their numbers."""
_ROW_SIZE: Final = itemgetter(Row._fields.index("size_bytes"))
_AHEAD_ROWS = 8
"""Rows that are read of each of several ranges beside its share, since shares are rarely even."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the hash space, read up to and with `after`: a document number, or an LSN in a change feed."""

    span: EpkRange
    after: int = 0


class _Ahead:
    """Rows of a range that are read and not given yet."""

    __slots__ = ("after", "is_done", "rows")

    def __init__(self, after: int) -> None:
        self.rows: deque[Any] = deque()
        self.after = after
        self.is_done = False

    def skip_to(self, number: int) -> None:
        """Leaves out what was given in another way, as after a change of the partition map."""
        while self.rows and self.rows[0][_NUMBER_AT] <= number:
            self.rows.popleft()
        self.after = max(self.after, number)

    def take(self, rows: Sequence[Row] | Glances, rows_max: int) -> None:
        """Adds what was read next of the range when as many rows as this were asked for."""
        self.rows.extend(rows)
        self.is_done = len(rows) < rows_max and not _is_cut(rows)
        if rows:
            self.after = rows[-1][_NUMBER_AT]


def _is_cut(rows: Sequence[Row] | Glances) -> bool:
    return isinstance(rows, Glances) and rows.is_cut


def _in_groups(spans: Sequence[EpkRange], ranges_max: int) -> list[tuple[EpkRange, ...]]:
    """Ranges as a store takes them together."""
    count = max(1, ranges_max)
    return [tuple(spans[start : start + count]) for start in range(0, len(spans), count)]


def take_group(container: Container, spans: deque[EpkRange]) -> tuple[Partition, list[EpkRange]]:
    """Takes from the front of some ranges what one physical partition holds and is asked for together."""
    partition = container.map.find(spans[0].min)
    group: list[EpkRange] = []
    while spans and spans[0].min < partition.span.max and len(group) < max(1, partition.ranges_max):
        span = spans.popleft()
        part = partition.span.intersect(span)
        assert part is not None
        group.append(part)
        if part.max < span.max:
            spans.appendleft(EpkRange(part.max, span.max))
    return partition, group


def selection_of(
    spans: Sequence[EpkRange],
    predicates: tuple[Predicate, ...],
    now: int,
    default_ttl: int | None,
) -> Selection:
    """The rows of one range, or of several that a store takes together."""
    whole = spans[0] if len(spans) == 1 else EpkRange(spans[0].min, spans[-1].max)
    return Selection(whole, predicates, now, default_ttl, tuple(spans) if len(spans) > 1 else ())


def _after(piece: Piece, number: int) -> Piece:
    return Piece(piece.span, max(piece.after, number))


class Scan:
    """A walk over the live rows of some ranges of hashes.

    With a lane the walk is admitted partition by partition: the first one refuses the request, a later one holds the
    walk, which then is to be continued from its position. Without one the caller has been admitted. With a pace a walk
    over very many ranges ends with its deadline, since rows come in order only when each range has been looked into.

    With names it gives glances at these properties in the place of rows.
    """

    def __init__(
        self,
        container: Container,
        spans: Sequence[EpkRange],
        begun: Sequence[Piece] = (),
        predicates: tuple[Predicate, ...] = (),
        is_visited: bool = False,
        lane: Lane | None = None,
        keys: NamedKeys = NO_KEYS,
        pace: Pace | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        self._container = container
        self._predicates = predicates
        self._names: tuple[str, ...] | None = names or None
        self._rows_most = GLANCES_MOST if names else _ROWS_MOST
        self._keys = keys
        self._pace = pace or Pace()
        self._now = int(time.time())
        self._pieces = remaining(spans, begun)
        self._ahead: dict[tuple[EpkRange, ...], _Ahead] = {}
        """What is read of ranges that are read beside each other, and not given yet."""
        self._last: list[Piece] = []
        """What the last chunk was read from, as it was before."""
        self._kept = 0
        """How many pieces the last chunk has left of that."""
        self._visited: set[int] = set()
        if begun and is_visited:
            self._visited.add(container.map.find(begun[0].span.min).id)
        self.partition = container.map.find(self._pieces[0].span.min if self._pieces else spans[0].min)
        self._lane = lane
        self._rows_next = max(1, min(_ROWS_FIRST, _CHUNK_BYTES // max(1, container.row_bytes_seen)))
        self.rows: dict[Partition, int] = {}
        """Rows that this walk got from each partition it came to."""
        self.is_held = False
        """Whether the walk stands before a partition that admits nobody now."""
        self.partitions_visited = 0
        """Physical partitions that this walk came to first; what an earlier page visited does not count again."""

    @property
    def is_done(self) -> bool:
        return not self._pieces

    def look_at(self, names: tuple[str, ...] | None) -> None:
        """Gives glances at these properties from now on, at none of them for sizes alone; rows for None."""
        if names != self._names:
            self._names = names
            self._rows_most = _ROWS_MOST if names is None else GLANCES_MOST
            self._ahead.clear()

    async def chunk(
        self, rows_max: int, known: Sequence[Row] | None = None, is_by_partition: bool = False
    ) -> Sequence[Row]:
        """The next rows, all of one physical partition; empty only when the walk is over or held.

        `known` is what the first read would find, if somebody has just made it. With `is_by_partition` also the end of
        a partition is told by no rows.
        """
        assert self._names is None
        found: Sequence[Row] = await self._next(rows_max, known, is_by_partition)
        return found

    async def glances(self, rows_max: int = GLANCES_MOST, is_by_partition: bool = False) -> Glances:
        """The same of a walk that has names."""
        assert self._names is not None
        found: Glances = await self._next(rows_max, None, is_by_partition)
        return found

    async def _next(self, rows_max: int, known: Sequence[Row] | None, is_by_partition: bool) -> Any:
        while self._pieces:
            partition = self._container.map.find(self._pieces[0].span.min)
            if not self._enters(partition):
                self.is_held = True
                return self._none()
            self.partition = partition
            self._last = self._take_pieces(partition)
            self._count_visit(partition)
            if known is None:
                rows_max = min(rows_max, self._rows_next)
            rows: Any
            if known is not None:
                rows, known = known, None
            elif len(self._last) == 1:
                rows = await self._select(partition, (self._last[0].span,), self._last[0].after, rows_max)
            else:
                rows = await self._select_by_number(partition, self._last, rows_max)
            if isinstance(rows, Glances):
                size_bytes, numbers = rows.size_bytes(), rows.numbers
            else:
                size_bytes, numbers = sum(map(_ROW_SIZE, rows)), [row.number for row in rows[-1:]]
            self._rows_next = self._rows_at_once(len(rows), size_bytes)
            if rows:
                seen_bytes = size_bytes // len(rows)
                self._container.row_bytes_seen = max(seen_bytes, self._container.row_bytes_seen * 3 // 4)
            self.rows[partition] += len(rows)
            has_more = len(rows) == rows_max or _is_cut(rows)
            left = [_after(piece, numbers[-1]) for piece in self._last] if has_more else []
            self._kept = len(left)
            self._pieces[:0] = left
            if rows or is_by_partition:
                return rows
        return self._none()

    def _none(self) -> Sequence[Row] | Glances:
        return () if self._names is None else Glances.of((), len(self._names))

    def _take_pieces(self, partition: Partition) -> list[Piece]:
        """Takes from the walk what comes next and lies in a partition."""
        edge = partition.span.max
        end = bisect.bisect_left(self._pieces, edge, key=lambda piece: piece.span.min)
        taken = self._pieces[:end]
        del self._pieces[:end]
        last = taken[-1]
        if edge < last.span.max:
            taken[-1] = Piece(EpkRange(last.span.min, edge), last.after)
            self._pieces.insert(0, Piece(EpkRange(edge, last.span.max), last.after))
        return taken

    async def _select(
        self, partition: Partition, spans: Sequence[EpkRange], after: int, rows_max: int
    ) -> Sequence[Row] | Glances:
        predicates = self._keys.narrow(self._predicates, *spans)
        selection = selection_of(spans, predicates, self._now, self._container.default_ttl)
        if self._names is not None:
            return await partition.glance(selection, self._names, after, rows_max)
        return await partition.select(selection, after, rows_max)

    async def _select_by_number(
        self, partition: Partition, pieces: Sequence[Piece], rows_max: int
    ) -> Sequence[Row] | Glances:
        """The next rows of several ranges together."""
        groups = [
            (spans, after)
            for after, alike in itertools.groupby(pieces, key=lambda piece: piece.after)
            for spans in _in_groups([piece.span for piece in alike], partition.ranges_max)
        ]
        each_max = rows_max // len(groups) + _AHEAD_ROWS
        heads: list[tuple[int, int]] = []
        streams = [self._ahead.setdefault(spans, _Ahead(after)) for spans, after in groups]
        for stream, (_, after) in zip(streams, groups, strict=True):
            stream.skip_to(after)

        async def push(index: int) -> None:
            stream = streams[index]
            if not stream.rows and not stream.is_done:
                spans, _ = groups[index]
                stream.take(await self._select(partition, spans, stream.after, each_max), each_max)
                await self._pace.rest()
            if stream.rows:
                heapq.heappush(heads, (stream.rows[0][_NUMBER_AT], index))

        for index in range(len(streams)):
            await push(index)
        found: list[Any] = []
        while heads and len(found) < rows_max:
            _, index = heapq.heappop(heads)
            found.append(streams[index].rows.popleft())
            await push(index)
        return found if self._names is None else Glances.of(found, len(self._names))

    def stop_after(self, row: Row | Glance | None, rows: Sequence[Row] | Glances) -> None:
        """Gives back the rest of the last chunk: the walk goes on behind `row`, or with the whole chunk for None."""
        assert self._last
        if row is not None and row[_NUMBER_AT] == rows[-1][_NUMBER_AT]:
            return
        del self._pieces[: self._kept]
        self._ahead.clear()
        pieces = self._last if row is None else [_after(piece, row[0]) for piece in self._last]
        self._pieces[:0] = pieces
        self._kept = len(self._last)

    def stay_behind(self, row: Row | Glance) -> None:
        """Stands behind the last row of the last chunk, at the end of the walk, where more may come."""
        self._pieces = self._pieces or [_after(piece, row[0]) for piece in self._last]

    @property
    def is_next_visited(self) -> bool:
        """Whether the walk has been in the partition it goes on with; the next page is told, by `is_visited`."""
        return bool(self._pieces) and self._container.map.find(self._pieces[0].span.min).id in self._visited

    def position(self) -> list[Piece]:
        """Where the walk stands: the pieces that are begun, or the first one that is not."""
        count = max((index for index, piece in enumerate(self._pieces, 1) if piece.after), default=1)
        places: list[Piece] = []
        for piece in self._pieces[:count]:
            if places and places[-1].after == piece.after:
                # What lies between two ranges is none of the walk's.
                places[-1] = Piece(EpkRange(places[-1].span.min, piece.span.max), piece.after)
            else:
                places.append(piece)
        return places

    def _rows_at_once(self, count: int, size_bytes: int) -> int:
        """How many rows to read next: as many of this size as are a moment's work, and no burden to hold."""
        if not size_bytes:
            return self._rows_most
        return max(1, min(self._rows_most, _CHUNK_BYTES * count // size_bytes))

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
