"""A place in a change feed, and the walk from one place to the next.

A place says for each part of the hash space up to which LSN it has been read. Parts are ranges of hashes and not
physical partitions, so a place outlives a restart, a split and a merge: rows keep their LSNs, and new ones are higher
than those of all parents.

Invariants of a walk:
- within a logical partition changes come in the order they were made, and none is left out between two places;
- changes with one LSN are never on two pages;
- it reads no more than a response may hold, and a page without changes means that there were none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Generic, TypeVar

from pleiad import errors
from pleiad.engine import token as tokens
from pleiad.engine.container import Container
from pleiad.engine.scan import Piece
from pleiad.errors import PleiadError
from pleiad.keys.range import EpkRange
from pleiad.partition.governor import Lane, admit_all, spend_all
from pleiad.partition.partition import Partition
from pleiad.query.pace import Pace
from pleiad.store.rows import Row, Version

_CHUNK = 100
_CHUNK_FIRST = 16
_LSN_MAX = 2**62 - 1
_INTEGER_MAX = 2**63 - 1

Change = TypeVar("Change", Row, Version)
Fetch = Callable[[Partition, EpkRange, int, int], Awaitable[Sequence[Change]]]
"""Changes of a part of a partition after an LSN, at least as many as asked for where there are so many."""


def beginning(span: EpkRange) -> list[Piece]:
    return [Piece(span, 0)]


def now(container: Container, span: EpkRange) -> list[Piece]:
    """The place behind everything that is committed."""
    return [
        Piece(part, partition.lsn)
        for partition in container.map.overlapping(span)
        if (part := partition.span.intersect(span)) is not None
    ]


def within(pieces: Sequence[Piece], span: EpkRange, text: str) -> list[Piece]:
    """What a place says about a range; it must cover the range without a gap."""
    inside = [
        Piece(part, piece.after) for piece in pieces if (part := piece.span.intersect(span)) is not None
    ]
    edges = [span.min, *(piece.span.max for piece in inside)]
    if [piece.span.min for piece in inside] != edges[:-1] or edges[-1] != span.max:
        raise bad_place(text, " It belongs to another range of the container.")
    return inside


def latest_to_text(container: Container, pieces: Sequence[Piece]) -> str:
    """A place in the feed of latest versions; one LSN for the whole range is written as that number."""
    if len(pieces) == 1:
        return str(pieces[0].after)
    return container.seal.encode(_latest_mark(container), {"p": tokens.pieces_to_json(pieces)})


def latest_from_text(container: Container, span: EpkRange, text: str) -> list[Piece]:
    """The place a client sent; a number stands for every part of the range, as after a split.

    A number behind the last change is a place as well, up to the largest of 64 bits: there is nothing new yet.
    """
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _INTEGER_MAX:
        return [Piece(span, min(int(text), _LSN_MAX))]
    return within(_decoded(container, text, _latest_mark(container))[0], span, text)


def versions_to_text(container: Container, pieces: Sequence[Piece], read_until: int) -> str:
    """A place in the feed of all versions, with the time up to which everything was read."""
    return container.seal.encode(
        _versions_mark(container), {"p": tokens.pieces_to_json(pieces), "t": read_until}
    )


def versions_from_text(container: Container, span: EpkRange, text: str) -> tuple[list[Piece], int]:
    """The place a client sent, and the time up to which everything before it was read."""
    pieces, read_until = _decoded(container, text, _versions_mark(container))
    return within(pieces, span, text), read_until


def _latest_mark(container: Container) -> int:
    return tokens.fingerprint(container.resource.rid, "latest versions")


def _versions_mark(container: Container) -> int:
    """Places from before an interruption of the versions are those of another feed."""
    return tokens.fingerprint(container.resource.rid, "all versions", container.versions_since)


def _decoded(container: Container, text: str, mark: int) -> tuple[list[Piece], int]:
    try:
        state = container.seal.decode(text, mark)
        return tokens.pieces_from_json(state.get("p"), text), tokens.whole_number(state, "t", text)
    except PleiadError:
        raise bad_place(text, " It is not a place in this change feed.") from None


def bad_place(text: str, hint: str) -> PleiadError:
    return errors.BAD_HEADER(name="If-None-Match", value=text[:100], hint=hint)


@dataclass(slots=True)
class Walk(Generic[Change]):
    """Reads on from a place until a page is full or there is nothing more."""

    container: Container
    fetch: Fetch[Change]
    is_shown: Callable[[Change], bool]
    items_max: int
    choose: Callable[[list[Change]], Awaitable[list[Change]]] | None = None
    """Those of the changes shown that the client asks for; without it, all."""
    is_over: Callable[[], bool] = lambda: False
    """Whether the page has looked for wanted changes long enough."""
    changes: list[Change] = field(default_factory=list)
    sizes_bytes: list[int] = field(default_factory=list)
    """The sizes of the changes that were looked at."""
    place: list[Piece] = field(default_factory=list)
    polled: list[Partition] = field(default_factory=list)
    is_full: bool = False
    """Whether the page ended before the changes did."""
    has_unread_parts: bool = False
    """Whether some parts were not looked at, because the page was full before them."""
    _room_bytes: int = 0
    _found: list[int] = field(default_factory=list)
    """Changes that each of the polled partitions gave."""

    def admit(self, place: Sequence[Piece], lane: Lane) -> None:
        """Is let in by every partition of a place, so that what a page polls, and costs, never depends on load."""
        partitions = {partition: None for partition, _ in _by_partition(self.container, place)}
        admit_all([partition.admit for partition in partitions], lane)

    def spend(self, ru: float, lane: Lane) -> None:
        """Takes the charge of the page from the partitions it polled."""
        governors = [partition.governor for partition in self.polled]
        spend_all(list(zip(governors, self._found, strict=True)), ru, 0.0, lane)

    async def run(self, place: Sequence[Piece]) -> None:
        """Fills `changes`, and moves `place` behind them."""
        self._room_bytes = self.container.limits.response_bytes
        with Pace.of_request(self.container.limits) as pace:
            await pace.seat(self.container.row_bytes_seen * self.items_max)
            for partition, piece in _by_partition(self.container, place):
                if self.is_full:
                    self.has_unread_parts = True
                else:
                    self.polled.append(partition)
                    found_before = len(self.changes)
                    piece = Piece(piece.span, await self._read(partition, piece, pace))
                    self._found.append(len(self.changes) - found_before)
                self._put(piece)

    async def _read(self, partition: Partition, piece: Piece, pace: Pace) -> int:
        """The LSN up to which a part is read now."""
        after = piece.after
        at_once = max(1, min(_CHUNK_FIRST, self._room_bytes // max(1, self.container.row_bytes_seen)))
        while not self.is_full:
            wanted = min(self.items_max - len(self.changes), at_once)
            # Before the rows, so that nothing up to it can be missing from them.
            upto = partition.lsn
            found = await self.fetch(partition, piece.span, after, wanted)
            if found:
                seen_bytes = sum([change.size_bytes for change in found]) // len(found)
                self.container.row_bytes_seen = max(seen_bytes, self.container.row_bytes_seen * 3 // 4)
            shown_before = len(self.changes)
            for lsn, group in groupby(found, _lsn):
                if not await self._take(list(group)):
                    return after
                after = lsn
            if len(found) < wanted:
                return max(after, upto)
            if len(self.changes) == shown_before:
                self.is_full = self.is_full or self.is_over()
            at_once = _at_once([change.size_bytes for change in found], self.container.limits.response_bytes)
            await pace.rest()
        return after

    async def _take(self, group: list[Change]) -> bool:
        """Adds the changes of one LSN; False when the page has no room for them."""
        shown = [change for change in group if self.is_shown(change)]
        wanted = shown if self.choose is None else await self.choose(shown)
        size_bytes = sum(change.size_bytes for change in wanted)
        if self.changes and size_bytes > self._room_bytes:
            self.is_full = True
            return False
        self.sizes_bytes += [change.size_bytes for change in shown]
        self.changes += wanted
        self._room_bytes -= size_bytes
        self.is_full = len(self.changes) >= self.items_max
        return True

    def _put(self, piece: Piece) -> None:
        """Adds a part to the new place, joined to the one before it when both are read up to the same LSN."""
        if self.place and self.place[-1].after == piece.after and self.place[-1].span.max == piece.span.min:
            piece = Piece(EpkRange(self.place.pop().span.min, piece.span.max), piece.after)
        self.place.append(piece)


def _at_once(sizes_bytes: list[int], room_bytes: int) -> int:
    """How many changes like these are read together: as many as fit a page, so that large ones are not piled up."""
    return max(1, min(_CHUNK, room_bytes * len(sizes_bytes) // max(1, sum(sizes_bytes))))


def _lsn(change: Row | Version) -> int:
    return change.lsn


def _by_partition(container: Container, pieces: Sequence[Piece]) -> Iterator[tuple[Partition, Piece]]:
    """The parts of a place by the physical partition that holds them now."""
    for piece in pieces:
        for partition in container.map.overlapping(piece.span):
            part = partition.span.intersect(piece.span)
            assert part is not None
            yield partition, Piece(part, piece.after)
