"""Which rows a reader asks a store for, and in which order.

A selection is a conjunction of simple predicates on property paths within an epk range. Each predicate is exact: a
store gives back just the rows for which all of them hold. The steps of a path are names of object properties and
never positions in arrays. The paths ("_ts",) and ("id",) mean the row's own timestamp and id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from pleiad.keys.range import EpkRange

PREDICATES_MAX = 100
"""How many a selection has at most: whoever selects by more must test the others itself."""

NAMES_MAX = 8
"""How many properties a store is asked for in the place of whole rows, at most."""

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range of numbers or of strings."""

    value: str | int | float
    inclusive: bool


class Predicate(NamedTuple):
    """What one property must be.

    Exactly one kind is set: `one_of` (equal to one of these scalars), a range (`low`, `high` or both, of one type),
    or `is_defined`. With `element` it speaks of the elements of the array at the path: some element equals one of
    the scalars.

    Values of different types are never equal. Numbers compare as IEEE doubles, strings by their UTF-8 bytes.
    """

    path: tuple[str, ...]
    one_of: tuple[Scalar, ...] | None = None
    low: Bound | None = None
    high: Bound | None = None
    is_defined: bool = False
    element: bool = False


@dataclass(frozen=True, slots=True)
class PathOrder:
    """An ORDER BY on one property path."""

    path: tuple[str, ...]
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of an epk range that satisfy all predicates and whose time to live is not over at `now`.

    With `ranges`, disjoint parts of the range in their order, rows of these alone.
    """

    span: EpkRange
    predicates: tuple[Predicate, ...] = ()
    now: int = 0
    default_ttl: int | None = None
    ranges: tuple[EpkRange, ...] = ()


class IndexedPath(NamedTuple):
    """A path a physical index is kept for: of its value, or with `element` of the scalar elements of its array."""

    path: tuple[str, ...]
    element: bool = False


@dataclass(frozen=True, slots=True)
class OrderPosition:
    """A place in the order (type rank, value, document number) of one path."""

    rank: int
    value: str | int | float
    number: int

    def to_json(self) -> list[Any]:
        """The position as a JSON value; `from_json` gives it back unchanged."""
        return [self.rank, self.value, self.number]

    @classmethod
    def from_json(cls, value: object) -> OrderPosition:
        """The position a JSON value stands for.

        Raises ValueError when it stands for none.
        """
        if isinstance(value, list) and len(value) == 3:
            rank, place, number = value
            if (
                _is_integer(rank)
                and _is_integer(number)
                and (_is_integer(place) or isinstance(place, str | float))
            ):
                return cls(rank, place, number)
        raise ValueError("not a position in an order")


def _is_integer(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63
