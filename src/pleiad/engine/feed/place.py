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

from pleiad import charge, errors
from pleiad.charge import Charge
from pleiad.engine.container import Container
from pleiad.engine.pages.feed import FeedState, LatestPageState, VersionsPageState, opened
from pleiad.engine.scan import Piece
from pleiad.engine.seal import fingerprint
from pleiad.errors import PleiadError, Reason
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
State = TypeVar("State", bound=FeedState)
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
    return container.seal.encode(_latest_mark(container), LatestPageState(tuple(pieces)).to_state())


def latest_from_text(container: Container, span: EpkRange, text: str) -> list[Piece]:
    """The place a client sent; a number stands for every part of the range, as after a split.

    A number behind the last change is a place as well, up to the largest of 64 bits: there is nothing new yet.
    """
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _INTEGER_MAX:
        return [Piece(span, min(int(text), _LSN_MAX))]
    return within(_opened(container, text, _latest_mark(container), LatestPageState).read, span, text)


def versions_to_text(container: Container, pieces: Sequence[Piece], read_until: int) -> str:
    """A place in the feed of all versions, with the time up to which everything was read."""
    state = VersionsPageState(tuple(pieces), read_until)
    return container.seal.encode(_versions_mark(container), state.to_state())


def versions_from_text(container: Container, span: EpkRange, text: str) -> tuple[list[Piece], int]:
    """The place a client sent, and the time up to which everything before it was read."""
    state = _opened(container, text, _versions_mark(container), VersionsPageState)
    return within(state.read, span, text), state.read_until


def _latest_mark(container: Container) -> int:
    return fingerprint(container.resource.rid, "latest versions")


def _versions_mark(container: Container) -> int:
    """Places from before an interruption of the versions are those of another feed."""
    return fingerprint(container.resource.rid, "all versions", container.versions_since)


def _opened(container: Container, text: str, mark: int, kind: type[State]) -> State:
    try:
        return opened(container.seal, text, mark, kind)
    except PleiadError:
        raise bad_place(text, " It is not a place in this change feed.") from None


def bad_place(text: str, hint: str) -> PleiadError:
    return errors.BAD_PLACE(token=text[:100], hint=hint)


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
    steps: Callable[[], int] = lambda: 0
    """What choosing them has taken so far."""
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

    async def run(self, place: Sequence[Piece], multiplier: int, lane: Lane) -> Charge:
        """Fills `changes`, and moves `place` behind them; returns the charge, which the partitions polled have paid.

        A walk that is stopped costs what it took up to there.
        """
        try:
            await self._fill(place)
        except PleiadError as error:
            if error.charge_ru is None and error.reason is not Reason.THROTTLED:
                error.charge_ru = self._pay(multiplier, lane).ru
            raise
        return self._pay(multiplier, lane)

    def _pay(self, multiplier: int, lane: Lane) -> Charge:
        """The charge of the page, taken from the partitions it polled."""
        cost = charge.feed_page(self.sizes_bytes, len(self.polled), multiplier)
        if self.choose is not None:
            cost += charge.evaluation(self.steps(), len(self.sizes_bytes), sum(self.sizes_bytes), multiplier)
        found = [*self._found, 0]  # a walk that was stopped has not counted the last partition
        governors = [partition.governor for partition in self.polled]
        spend_all(list(zip(governors, found, strict=False)), cost.ru, 0.0, lane)
        return cost

    async def _fill(self, place: Sequence[Piece]) -> None:
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
