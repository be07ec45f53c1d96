"""Where a client that merges partitions wants an ordered query to begin.

Such a client keeps the place of the last row it gave, and names it when it goes on, perhaps in another process: the
values of the sort keys, the row's `_rid` in the one range it came from, and whether rows with these values are done.
Rows before that place are not given. A continuation beside it names another place, and the later of both counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.item import rid as rids
from pleiad.query.distinct_hash import ordered_bytes
from pleiad.query.values import order_key
from pleiad.values.ranks import ARRAY_RANK, OBJECT_RANK
from pleiad.values.undefined import UNDEFINED

BEFORE_ALL: Final = -(2**62)
BEHIND_ALL: Final = 2**62
"""Stand before and behind the numbers of all documents, and of all rows of one."""
_HASHED_RANKS: Final = {"array": ARRAY_RANK, "object": OBJECT_RANK}
_HALF_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class HashedValue:
    """An array or an object of which only the hash is known, as it is ordered."""

    rank: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """The place a client goes on from: a value for each sort key, and the last document where it is known."""

    values: tuple[Any, ...]
    number: int | None = None
    exclude: bool = False

    @property
    def order_keys(self) -> tuple[tuple[Any, ...], ...]:
        """What `order_key` gives for the values."""
        return tuple(
            (value.rank, value.hash) if isinstance(value, HashedValue) else order_key(value)
            for value in self.values
        )

    def tie(self, turned: int) -> tuple[int, int]:
        """The place among rows with these values; `turned` is -1 where their documents come in falling order."""
        edge = BEHIND_ALL if self.exclude else BEFORE_ALL
        return (edge, 0) if self.number is None else (turned * self.number, edge)


def resume_point(given: Any) -> ResumePoint:
    """The place that the member `resumeFilter` of a query names; BAD_REQUEST when it names none."""
    if not isinstance(given, dict):
        raise _bad("it must be an object.")
    values, rid, exclude = given.get("value"), given.get("rid"), given.get("exclude", False)
    if not isinstance(values, list) or not values:
        raise _bad("'value' must have a value for each sort key.")
    if not isinstance(exclude, bool):
        raise _bad("'exclude' must be true or false.")
    if rid is not None and not isinstance(rid, str):
        raise _bad("'rid' must be the _rid of an item.")
    number = rids.document_parts(rid)[2] if rid else None
    return ResumePoint(tuple(map(_value, values)), number, exclude)


def _value(given: Any) -> Any:
    if isinstance(given, list):
        if given:
            raise _bad("an array as a value stands for undefined and must be empty.")
        return UNDEFINED
    if not isinstance(given, dict):
        return given
    rank = _HASHED_RANKS.get(str(given.get("type")))
    halves = [given.get("low"), given.get("high")]
    if rank is None or not all(type(half) is int and half.bit_length() <= _HALF_BITS for half in halves):
        raise _bad("an array or object stands there by 'type', 'low' and 'high'.")
    low, high = (half % 2**_HALF_BITS for half in halves)  # clients write them with a sign
    return HashedValue(rank, ordered_bytes((low, high)))


def _bad(reason: str) -> PleiadError:
    return errors.BAD_REQUEST(reason=f"The 'resumeFilter' of the query is not valid: {reason}")
