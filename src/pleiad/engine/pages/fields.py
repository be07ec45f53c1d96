"""The members of a page state as a token has them, and the checks they pass when they come back.

A state is the JSON object that `seal` makes a token of. Its names are single letters, since tokens travel in header
lines; only this room knows them, and whoever reads a member says what it must be. `seal` refuses what this account did
not make, and what stands in a token is checked all the same, since another version may have made it: whatever is wrong
with it is BAD_CONTINUATION.

A state names its kind of page, and is refused where another kind is expected. One without a kind is older than the
kinds; clients keep places in change feeds for long, so it is taken for what is expected.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Sequence
from typing import Any, Final

from pleiad.engine.scan import Piece
from pleiad.engine.seal import bad
from pleiad.errors import PleiadError
from pleiad.item.body import count_members
from pleiad.keys.range import EpkRange
from pleiad.values.undefined import UNDEFINED

KIND: Final = "y"
NUMBER_END: Final = 2**62
"""Counts, document numbers and LSNs are below it."""
_NUMBER_MAX: Final = NUMBER_END - 1
_TEXT_CHARS_MAX: Final = 64
_SORT_VALUE_DEPTH_MAX: Final = 200
"""Items nest less deeply; to compare a value, and to write it into the next token, is to go down into it."""

State = dict[str, Any]
Pairs = tuple[tuple[int, int], ...]
"""Counts by document number."""


class Fields:
    """The members of a state, each checked when it is read."""

    __slots__ = ("_given", "_token")

    def __init__(self, given: Any, token: str) -> None:
        self._token = token
        if type(given) is not dict:
            raise bad(token)
        self._given: State = given

    def bad(self) -> PleiadError:
        return bad(self._token)

    def has(self, letter: str) -> bool:
        return letter in self._given

    def flag(self, letter: str) -> bool:
        """Whether something is so; only what is so is written."""
        if letter not in self._given:
            return False
        if self._given[letter] not in (1, True):
            raise self.bad()
        return True

    def text(self, letter: str) -> str | None:
        """A short text, or None where there is none."""
        if letter not in self._given:
            return None
        value = self._given[letter]
        if type(value) is not str or len(value) > _TEXT_CHARS_MAX:
            raise self.bad()
        return value

    def number(self, letter: str, low: int = 0, high: int = _NUMBER_MAX) -> int:
        return self._number(self._given.get(letter), low, high)

    def number_or_none(self, letter: str) -> int | None:
        return self.number(letter) if letter in self._given else None

    def _number(self, value: Any, low: int = 0, high: int = _NUMBER_MAX) -> int:
        if type(value) is not int or not low <= value <= high:
            raise self.bad()
        return value

    def numbers(self, letter: str, count: int, low: int = 0, high: int = _NUMBER_MAX) -> list[int]:
        """So many numbers."""
        given = self._row(self._given.get(letter), count)
        if set(map(type, given)) != {int} or min(given) < low or max(given) > high:
            raise self.bad()
        return given

    def _row(self, value: Any, count: int) -> list[Any]:
        if type(value) is not list or len(value) != count:
            raise self.bad()
        return value

    def entries(self, letter: str) -> list[Any]:
        """A list, empty where there is none."""
        value = self._given.get(letter, [])
        if type(value) is not list:
            raise self.bad()
        return value

    def pairs(self, letter: str) -> Pairs:
        """Numbers by number, none where there is no such member."""
        if letter not in self._given:
            return ()
        rows = [self._row(each, 2) for each in self.entries(letter)]
        return tuple([(self._number(first), self._number(second)) for first, second in rows])

    def pieces(self, letter: str) -> tuple[Piece, ...]:
        """A position: parts of the hash space in their order, one at least."""
        pieces: list[Piece] = []
        for each in self.entries(letter):
            low, high, after = self._row(each, 3)
            span = EpkRange(self.epk(low), self.epk(high))
            if span.min >= span.max or (pieces and span.min < pieces[-1].span.max):
                raise self.bad()
            pieces.append(Piece(span, self._number(after)))
        if not pieces:
            raise self.bad()
        return tuple(pieces)

    def epk(self, value: Any) -> bytes:
        """The hash that a text stands for."""
        try:
            return unhexlify(value)
        except (ValueError, TypeError):
            raise self.bad() from None

    def sort_values(self, letter: str) -> tuple[Any, ...]:
        """Values of sort keys, each in a list of its own that is empty for UNDEFINED; one at least."""
        values: list[Any] = []
        for each in self.entries(letter):
            if type(each) is not list or len(each) > 1:
                raise self.bad()
            values.append(each[0] if each else UNDEFINED)
        if not values:
            raise self.bad()
        try:
            count_members(values, _SORT_VALUE_DEPTH_MAX)
        except PleiadError:
            raise self.bad() from None
        return tuple(values)


def pieces_to_state(pieces: Sequence[Piece]) -> list[list[Any]]:
    return [[*piece.span.to_hex(), piece.after] for piece in pieces]
