"""What every store has to know of predicates, whatever it searches with: types, doubles, contradictions.

Type ranks order values of different types as the NoSQL API does (``values.ranks``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from pleiad.store.selection import Predicate, Scalar, Selection
from pleiad.values import ranks

RANK_UNDEFINED, RANK_NULL, RANK_BOOLEAN = ranks.UNDEFINED_RANK, ranks.NULL_RANK, ranks.BOOLEAN_RANK
RANK_NUMBER, RANK_STRING = ranks.NUMBER_RANK, ranks.STRING_RANK
RANK_ARRAY, RANK_OBJECT = ranks.ARRAY_RANK, ranks.OBJECT_RANK
"""Written into the entries of path indexes."""

ROW_COLUMNS: dict[tuple[str, ...], str] = {("id",): "id", ("_ts",): "ts"}
"""Properties that are columns of the row."""


def is_addressable(path: tuple[str, ...]) -> bool:
    """Whether a stored item can have the path at all: names with lone surrogates are never stored."""
    try:
        for name in path:
            name.encode()
    except UnicodeEncodeError:
        return False
    return True


def double(value: int | float) -> float:
    """The nearest double; infinite when there is none."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@dataclass(frozen=True, slots=True)
class Wanted:
    """The scalars of `one_of` by type."""

    null: bool
    booleans: tuple[bool, ...]
    numbers: tuple[float, ...]
    strings: tuple[str, ...]

    @classmethod
    def of(cls, scalars: Iterable[Scalar]) -> Wanted:
        null, booleans, strings = False, set(), set()
        numbers: list[float] = []
        for scalar in scalars:
            if scalar is None:
                null = True
            elif isinstance(scalar, bool):
                booleans.add(scalar)
            elif isinstance(scalar, str):
                if is_addressable((scalar,)):
                    strings.add(scalar)
            elif not math.isnan(number := double(scalar)):
                numbers.append(number)
        # No set of them: a client could have chosen them so that it takes for ever.
        once = tuple([number for number, _ in groupby(sorted(numbers))])
        return cls(null, tuple(sorted(booleans)), once, tuple(sorted(strings)))


def check(predicate: Predicate) -> None:
    """Raises ValueError for a predicate that is not of exactly one kind."""
    is_range = predicate.low is not None or predicate.high is not None
    if (predicate.one_of is not None) + is_range + predicate.is_defined != 1:
        raise ValueError("a predicate is exactly one of: one_of, a range, is_defined")


def range_rank(predicate: Predicate) -> int | None:
    """The type both ends of a range have, None when no value can lie in it."""
    ranks = set()
    for bound in (predicate.low, predicate.high):
        if bound is None:
            continue
        if isinstance(bound.value, str):
            ranks.add(RANK_STRING)
        elif isinstance(bound.value, bool) or math.isnan(double(bound.value)):
            return None
        else:
            ranks.add(RANK_NUMBER)
    return ranks.pop() if len(ranks) == 1 else None


def merged(predicates: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
    """The same conjunction, with a lower and an upper end of one path made one range."""
    ranges = [(place, p) for place, p in enumerate(predicates) if not p.element and p.one_of is None]
    lows = {p.path: place for place, p in ranges if p.low is not None and p.high is None}
    kept: list[Predicate | None] = list(predicates)
    for place, predicate in ranges:
        if predicate.high is not None and predicate.low is None and predicate.path in lows:
            low = lows.pop(predicate.path)
            kept[low] = Predicate(predicate.path, low=predicates[low].low, high=predicate.high)
            kept[place] = None
    return tuple(predicate for predicate in kept if predicate is not None)


def merged_selection(selection: Selection) -> Selection:
    """The same selection with its ranges merged."""
    if len(selection.predicates) < 2:
        return selection
    return replace(selection, predicates=merged(selection.predicates))
