"""What the tokens of feeds say: the items of a container, its changes, and metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

from pleiad.engine.pages.fields import KIND, Fields, State, pieces_to_state
from pleiad.engine.scan import Piece
from pleiad.engine.seal import Seal


class FeedState(Protocol):
    """What the token of a feed says."""

    KIND: ClassVar[str]

    def to_state(self) -> State: ...

    @classmethod
    def from_state(cls, fields: Fields) -> Self: ...


_FeedState = TypeVar("_FeedState", bound=FeedState)


@dataclass(frozen=True, slots=True)
class ListingPageState:
    """A page of the items of a container."""

    KIND: ClassVar[str] = "f"

    begun: tuple[Piece, ...]
    """Where the walk over the items stands."""
    is_visited: bool
    """Whether the walk has been in the partition it goes on with."""

    def to_state(self) -> State:
        state: State = {KIND: self.KIND, "p": pieces_to_state(self.begun)}
        return {**state, "d": 1} if self.is_visited else state

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        return cls(fields.pieces("p"), fields.flag("d"))


@dataclass(frozen=True, slots=True)
class LatestPageState:
    """A page of the change feed of latest versions."""

    KIND: ClassVar[str] = "h"

    read: tuple[Piece, ...]
    """Up to which LSN each part of the range is read."""

    def to_state(self) -> State:
        return {KIND: self.KIND, "p": pieces_to_state(self.read)}

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        return cls(fields.pieces("p"))


@dataclass(frozen=True, slots=True)
class VersionsPageState:
    """A page of the change feed of all versions."""

    KIND: ClassVar[str] = "v"

    read: tuple[Piece, ...]
    """Up to which LSN each part of the range is read."""
    read_until: int
    """The time, in seconds since the epoch, up to which all of it is read."""

    def to_state(self) -> State:
        return {KIND: self.KIND, "p": pieces_to_state(self.read), "t": self.read_until}

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        return cls(fields.pieces("p"), fields.number("t"))


@dataclass(frozen=True, slots=True)
class MetadataPageState:
    """A page of a metadata feed."""

    KIND: ClassVar[str] = "m"

    given: int
    """Resources, or results of a query on them, that were given."""

    def to_state(self) -> State:
        return {KIND: self.KIND, "c": self.given}

    @classmethod
    def from_state(cls, fields: Fields) -> Self:
        return cls(fields.number("c"))


def opened(seal: Seal, token: str, mark: int, kind: type[_FeedState]) -> _FeedState:
    """What a token of a feed says; BAD_CONTINUATION when it was not sealed for this feed, or is of another kind."""
    return from_state(seal.decode(token, mark), token, kind)


def from_state(given: Any, token: str, kind: type[_FeedState]) -> _FeedState:
    """What was sealed in a token."""
    fields = Fields(given, token)
    if fields.text(KIND) not in (kind.KIND, None):
        raise fields.bad()
    return kind.from_state(fields)
