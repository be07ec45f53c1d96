"""What the token of a query says: how its next page begins, for each way in which pages are made.

Whoever makes pages of one kind takes the states of that kind alone and refuses the others, which belong to the same
query asked in another way, such as with a partition key beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Self

from pleiad.charge import Tally
from pleiad.engine.pages.fields import KIND, NUMBER_END, Fields, Pairs, State, pieces_to_state
from pleiad.engine.scan import Piece
from pleiad.keys.definition import KeyDefinition
from pleiad.keys.hash import hash_of
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.values.undefined import UNDEFINED

_HUNDREDTHS_MAX: Final = 2**53 - 1
_TALLY_COUNTS: Final = len(Tally().counts())


# -- results that come item by item ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left of the results: what OFFSET, LIMIT and TOP still do, and the items that were cut."""

    skip: int = 0
    """Results that OFFSET still leaves out."""
    left: int | None = None
    """Results that LIMIT or TOP still allow; None without them."""
    cuts: Pairs = ()
    """Rows that were given of items with more, by document number.

    A split may put others before such an item, and a page may end within one of those too.
    """
    paid_steps: Pairs = ()
    """What was paid for evaluating those items up to there, by document number."""

    def to_state(self) -> State:
        state: State = {"o": self.skip}
        if self.left is not None:
            state["l"] = self.left
        if self.cuts:
            state["s"] = self.cuts
        if self.paid_steps:
            state["x"] = self.paid_steps
        return state

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        return cls(fields.number("o"), fields.number_or_none("l"), fields.pairs("s"), fields.pairs("x"))


@dataclass(frozen=True, slots=True)
class StreamPageState:
    """A page that goes on in a walk over the container."""

    KIND: ClassVar = "s"

    begun: tuple[Piece, ...]
    """Where the walk stands."""
    is_visited: bool
    """Whether the walk has been in the partition it goes on with."""
    remainder: Remainder
    kept: str | None = None
    """The name under which what DISTINCT has met is kept."""

    def to_state(self) -> State:
        return {
            KIND: self.KIND,
            **_walk_to_state(self.begun, self.is_visited, self.kept),
            **self.remainder.to_state(),
        }

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        return cls(fields.pieces("p"), fields.flag("d"), Remainder.from_state(fields), fields.text("w"))


@dataclass(frozen=True, slots=True)
class LookupPageState:
    """A page of items that the filter names one by one."""

    KIND: ClassVar = "l"

    after: int
    """The document number of the last item that is done."""
    remainder: Remainder

    def to_state(self) -> State:
        return {KIND: self.KIND, "n": self.after, **self.remainder.to_state()}

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        return cls(fields.number_or_none("n") or 0, Remainder.from_state(fields))


# -- results for which every candidate is looked at --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pause:
    """Where the gathering of all candidates stood when its time was over."""

    begun: tuple[Piece, ...]
    is_visited: bool
    """Whether the walk has been in the partition it goes on with."""
    kept: str | None
    """The name under which what was gathered is kept."""

    def to_state(self) -> State:
        return _walk_to_state(self.begun, self.is_visited, self.kept)

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        return cls(fields.pieces("p"), fields.flag("d"), fields.text("w"))


def _walk_to_state(begun: tuple[Piece, ...], is_visited: bool, kept: str | None) -> State:
    state: State = {"p": pieces_to_state(begun)}
    if is_visited:
        state["d"] = 1
    if kept is not None:
        state["w"] = kept
    return state


def _pause_to_state(pause: Pause | None) -> State:
    return {} if pause is None else pause.to_state()


def _pause_from_state(fields: Fields) -> Pause | None:
    return Pause.from_state(fields) if fields.has("p") else None


@dataclass(frozen=True, slots=True)
class PausedPageState:
    """A page of an order, of groups or of rank when no result has been given yet."""

    KIND: ClassVar = "g"

    pause: Pause

    def to_state(self) -> State:
        return {KIND: self.KIND, **self.pause.to_state()}

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        return cls(Pause.from_state(fields))


@dataclass(frozen=True, slots=True)
class OrderedPageState:
    """A page of an ordered query behind a row: the last one given, or the last one looked at."""

    KIND: ClassVar = "o"

    values: tuple[Any, ...]
    """The sort values of the row; UNDEFINED stands for an infinite distance too."""
    tie: tuple[int, int]
    """Where the row stands among those with these values."""
    emitted: int
    """Rows that were given, or left out by OFFSET."""
    is_paid: bool = False
    """Whether every candidate was looked at, and paid for."""
    pause: Pause | None = None

    def to_state(self) -> State:
        state: State = {
            KIND: self.KIND,
            "k": [[] if value is UNDEFINED else [value] for value in self.values],
            "t": self.tie,
            "e": self.emitted,
        }
        if self.is_paid:
            state["a"] = 1
        return {**state, **_pause_to_state(self.pause)}

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        first, second = fields.numbers("t", 2, -NUMBER_END, NUMBER_END)
        pause = _pause_from_state(fields)
        return cls(fields.sort_values("k"), (first, second), fields.number("e"), fields.flag("a"), pause)


@dataclass(frozen=True, slots=True)
class NumberedPageState:
    """A page of an ordered query behind a number of rows: sort values may be too long for a token."""

    KIND: ClassVar = "n"

    emitted: int
    """Rows that were given, or left out by OFFSET."""
    rows_mark: int
    """Tells the request whose rows were counted."""
    is_paid: bool = False
    """Whether every candidate was looked at, and paid for."""
    pause: Pause | None = None

    def to_state(self) -> State:
        state: State = {KIND: self.KIND, "c": self.emitted, "q": f"{self.rows_mark:x}"}
        if self.is_paid:
            state["a"] = 1
        return {**state, **_pause_to_state(self.pause)}

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        try:
            rows_mark = int(fields.text("q") or "", 16)
        except ValueError:
            raise fields.bad() from None
        return cls(fields.number("c"), rows_mark, fields.flag("a"), _pause_from_state(fields))


@dataclass(frozen=True, slots=True)
class WholePageState:
    """A page of results that are all known before the first is given: groups, rank, DISTINCT in an order."""

    KIND: ClassVar = "w"

    given: int
    """Results that were given."""
    kept: str | None = None
    """The name under which the texts of all results are kept; None while they are gathered again."""
    pause: Pause | None = None

    def to_state(self) -> State:
        state: State = {KIND: self.KIND, "c": self.given}
        if self.kept is not None:
            state["w"] = self.kept
        return {**state, **_pause_to_state(self.pause)}

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        pause = _pause_from_state(fields)
        return cls(fields.number("c"), None if pause else fields.text("w"), pause)


@dataclass(frozen=True, slots=True)
class CountPageState:
    """A page of one count that the store makes partition by partition."""

    KIND: ClassVar = "c"

    begun: tuple[Piece, ...]
    """Where counting goes on."""
    total: int
    """What is counted so far."""

    def to_state(self) -> State:
        return {KIND: self.KIND, "p": pieces_to_state(self.begun), "n": self.total}

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        return cls(fields.pieces("p"), fields.number("n"))


QueryPageState = (
    StreamPageState
    | LookupPageState
    | PausedPageState
    | OrderedPageState
    | NumberedPageState
    | WholePageState
    | CountPageState
)
_TOLD_BY: Final[tuple[tuple[str, type[QueryPageState]], ...]] = (
    ("k", OrderedPageState),
    ("q", NumberedPageState),
    ("c", WholePageState),
    ("op", StreamPageState),
    ("o", LookupPageState),
    ("np", CountPageState),
    ("p", PausedPageState),
)
"""The members that tell the kind of a state that names none: of the first line that has all of its own there."""
_KINDS: Final = {kind.KIND: kind for _, kind in _TOLD_BY}


# -- all that a token says ---------------------------------------------------------------------------


class Scope(NamedTuple):
    """The range a token is for. One key is its hash alone, since clients end its range in more than one way."""

    low: bytes
    high: bytes | None

    @classmethod
    def of(cls, span: EpkRange) -> Self:
        low, high = span.min, span.max
        if low == b"":
            return cls(low, high)
        after_low = int.from_bytes(low, "big") + 1
        is_one_key = high.startswith(low) or int.from_bytes(high, "big") == after_low
        return cls(low, None if is_one_key else high)

    def is_of_same_hash(self, other: Scope, key: KeyDefinition) -> bool:
        """Whether one of two is for a key, and the other for the range of its hash.

        Clients know no more of a key than its hash, and go on with either as with the other. Two keys that have one
        hash are two all the same.
        """
        if self.high is not None or other.high is not None:
            return False
        return hash_of(self.low, key) == hash_of(other.low, key) in (self.low, other.low)

    def covers(self, span: EpkRange) -> bool:
        """Whether it is a range of keys that has all of another in it."""
        return self.high is not None and self.low <= span.min and span.max <= self.high


_WHOLE_SCOPE: Final = Scope.of(WHOLE)


@dataclass(frozen=True, slots=True)
class QueryState:
    """All that the token of a query says."""

    page: QueryPageState
    scope: Scope
    charged: Tally
    """What the pages up to here touched, and were charged for."""
    left_hundredths: int = 0
    """What they left to pay, in hundredths of a request unit; below 0 where they paid ahead."""

    def to_state(self) -> State:
        state = self.page.to_state()
        if self.scope != _WHOLE_SCOPE:
            state["r"] = [edge.hex().upper() for edge in self.scope if edge is not None]
        state["u"] = self.charged.counts()
        if self.left_hundredths:
            state["b"] = self.left_hundredths
        return state

    @classmethod
    def from_state(cls, given: Any, token: str) -> Self:
        """What was sealed in a token; BAD_CONTINUATION when it is none that a query can go on with."""
        fields = Fields(given, token)
        left = fields.number("b", -_HUNDREDTHS_MAX, _HUNDREDTHS_MAX) if fields.has("b") else 0
        charged = Tally(*fields.numbers("u", _TALLY_COUNTS)) if fields.has("u") else Tally()
        return cls(_page_from_state(fields), _scope_from_state(fields), charged, left)


def _page_from_state(fields: Fields) -> QueryPageState:
    name = fields.text(KIND)
    if name is None:
        kind = next((kind for letters, kind in _TOLD_BY if all(map(fields.has, letters))), None)
    else:
        kind = _KINDS.get(name)
    if kind is None:
        raise fields.bad()
    return kind.from_state(fields)


def _scope_from_state(fields: Fields) -> Scope:
    if not fields.has("r"):
        return _WHOLE_SCOPE
    edges = [fields.epk(each) for each in fields.entries("r")]
    if not 1 <= len(edges) <= 2:
        raise fields.bad()
    return Scope(edges[0], edges[1] if len(edges) == 2 else None)
