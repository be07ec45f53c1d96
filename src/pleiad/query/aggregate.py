"""Aggregate states and groups: rows go in one by one, partial states of several partitions merge, results
come out.

A state never raises on any value. ``merge`` with the state of other rows gives the same as adding those
rows, up to the rounding of floating-point sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, Self

from pleiad.query.functions.registry import ARRAY_ELEMENTS_MAX, check_array_elements
from pleiad.query.measure import size_of
from pleiad.query.plan import AggregateKind
from pleiad.query.values import as_double, hash_key, is_number, normal, order_key
from pleiad.values.undefined import UNDEFINED

Count = Callable[[int], None]


class State(Protocol):
    """The running state of one aggregate over one group."""

    def add(self, value: Any, times: int = 1) -> None: ...

    def merge(self, other: Self) -> None: ...

    def result(self) -> Any: ...


class CountState:
    """COUNT: defined values."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def add(self, value: Any, times: int = 1) -> None:
        if value is not UNDEFINED:
            self.count += times

    def merge(self, other: Self) -> None:
        self.count += other.count

    def result(self) -> Any:
        return self.count


class CountIfState(CountState):
    """COUNTIF: values that are exactly true."""

    __slots__ = ()

    def add(self, value: Any, times: int = 1) -> None:
        if value is True:
            self.count += times


class SumState:
    """SUM and AVG: undefined as soon as one defined value is not a number."""

    __slots__ = ("count", "is_numeric", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total: int | float = 0
        self.is_numeric = True

    def add(self, value: Any, times: int = 1) -> None:
        if value is UNDEFINED:
            return
        if not is_number(value):
            self.is_numeric = False
            return
        self.count += times
        number = value if value.__class__ is float else normal(value)
        for _ in range(times):  # to multiply would round otherwise
            self.total = normal(self.total + number)

    def merge(self, other: Self) -> None:
        self.is_numeric = self.is_numeric and other.is_numeric
        self.count += other.count
        self.total = normal(self.total + other.total)

    def result(self) -> Any:
        if not self.is_numeric:
            return UNDEFINED
        return self.total if math.isfinite(self.total) else UNDEFINED


class AverageState(SumState):
    """AVG: the sum over the count, undefined when nothing was counted."""

    __slots__ = ()

    def result(self) -> Any:
        if not self.is_numeric or self.count == 0 or not math.isfinite(self.total):
            return UNDEFINED
        return normal(as_double(self.total) / self.count)


class MinState:
    """MIN: by type, then value; undefined as soon as there is an array or object."""

    __slots__ = ("best", "best_key", "is_primitive")

    def __init__(self) -> None:
        self.best: Any = UNDEFINED
        self.best_key: tuple[Any, ...] | None = None
        self.is_primitive = True

    def add(self, value: Any, times: int = 1) -> None:
        if value is UNDEFINED:
            return
        if value.__class__ is dict or value.__class__ is list:
            self.is_primitive = False
            return
        key = order_key(value)
        if self.best_key is None or self.is_better(key, self.best_key):
            self.best, self.best_key = value, key

    def is_better(self, key: tuple[Any, ...], best: tuple[Any, ...]) -> bool:
        return key < best

    def merge(self, other: Self) -> None:
        self.is_primitive = self.is_primitive and other.is_primitive
        self.add(other.best)

    def result(self) -> Any:
        return self.best if self.is_primitive else UNDEFINED


class MaxState(MinState):
    """MAX: as MIN, from the other end."""

    __slots__ = ()

    def is_better(self, key: tuple[Any, ...], best: tuple[Any, ...]) -> bool:
        return key > best


class ListState:
    """MAKELIST: every defined value, in scan order; each is counted as the text has it, shared or not."""

    __slots__ = ("_count", "values")

    def __init__(self, count: Count) -> None:
        self._count = count
        self.values: list[Any] = []

    def add(self, value: Any, times: int = 1) -> None:
        for _ in range(times if value is not UNDEFINED else 0):
            if len(self.values) >= ARRAY_ELEMENTS_MAX:
                check_array_elements(len(self.values) + 1)
            self._count(size_of(value))
            self.values.append(value)

    def merge(self, other: Self) -> None:
        for value in other.values:
            self.add(value)

    def result(self) -> Any:
        return self.values


class SetState(ListState):
    """MAKESET: each defined value once."""

    __slots__ = ("seen",)

    def __init__(self, count: Count) -> None:
        super().__init__(count)
        self.seen: set[Any] = set()

    def add(self, value: Any, times: int = 1) -> None:
        key = hash_key(value)
        if value is not UNDEFINED and key not in self.seen:
            self._count(size_of(value))
            self.seen.add(key)
            super().add(value)


STATES: Final[dict[AggregateKind, Callable[[], Any]]] = {
    AggregateKind.COUNT: CountState,
    AggregateKind.SUM: SumState,
    AggregateKind.AVG: AverageState,
    AggregateKind.MIN: MinState,
    AggregateKind.MAX: MaxState,
    AggregateKind.COUNTIF: CountIfState,
}
LIST_STATES: Final[dict[AggregateKind, Callable[[Count], Any]]] = {
    AggregateKind.MAKELIST: ListState,
    AggregateKind.MAKESET: SetState,
}
IN_ANY_ORDER: Final = frozenset(AggregateKind) - {
    AggregateKind.SUM,
    AggregateKind.AVG,
    AggregateKind.MAKELIST,
}
"""Aggregates that come to the same whatever comes between equal rows; sums are rounded in the order of the rows."""
GROUP_BYTES: Final = 500
"""What a group takes in memory beside its keys and lists, roughly."""
GroupRow = tuple[tuple[Any, ...], tuple[Any, ...]]


@dataclass(slots=True)
class _Group:
    """The values of the keys, the state of each aggregate, and the place of the first row."""

    values: tuple[Any, ...]
    states: list[Any]
    first: tuple[int, int]


class Groups:
    """The groups of a block's rows. Without GROUP BY there is one group, also when there is no row."""

    __slots__ = ("_arguments", "_count", "_groups", "_keys", "_makers", "_single", "size_bytes")

    def __init__(
        self,
        kinds: tuple[AggregateKind, ...],
        keys: Callable[..., tuple[Any, ...]] | None,
        arguments: Callable[..., tuple[Any, ...]],
        count: Count,
    ) -> None:
        """`count` is told how many bytes are added to what the groups hold, and may refuse."""
        self._count = count
        self.size_bytes = 0
        self._makers = tuple(
            partial(LIST_STATES[kind], self._grow) if kind in LIST_STATES else STATES[kind] for kind in kinds
        )
        self._keys = keys
        self._arguments = arguments
        self._groups: dict[Any, _Group] = {}
        self._single: list[Any] = [] if keys is not None else [make() for make in self._makers]

    def _grow(self, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        self._count(size_bytes)

    def add(self, row: tuple[Any, ...], place: tuple[int, int] = (0, 0), times: int = 1) -> None:
        """Count a row, or so many like it, in its group; `place` tells which row of the container the first one is."""
        if self._keys is None:
            states = self._single
        else:
            values = self._keys(*row)
            key = tuple(map(hash_key, values))
            group = self._groups.get(key)
            if group is None:
                self._grow(GROUP_BYTES + 2 * sum(map(size_of, values)))
                group = self._groups[key] = _Group(values, [make() for make in self._makers], place)
            elif place < group.first:
                group.first = place
            states = group.states
        for state, value in zip(states, self._arguments(*row), strict=True):
            state.add(value, times)

    def merge(self, other: Groups) -> None:
        """Take in the groups of other rows of the same query."""
        for single, their_single in zip(self._single, other._single, strict=True):
            single.merge(their_single)
        for key, theirs in other._groups.items():
            group = self._groups.get(key)
            if group is None:
                self._groups[key] = theirs
            else:
                group.first = min(group.first, theirs.first)
                for state, their_state in zip(group.states, theirs.states, strict=True):
                    state.merge(their_state)

    def __len__(self) -> int:
        return len(self._groups) + (self._keys is None)

    def results(self) -> Iterator[GroupRow]:
        """For each group its key values and its aggregate results, in the order of their first rows."""
        if self._keys is None:
            yield (), tuple(state.result() for state in self._single)
        for group in sorted(self._groups.values(), key=lambda group: group.first):
            yield group.values, tuple(state.result() for state in group.states)


def grouped(
    rows: Iterable[tuple[Any, ...]],
    kinds: tuple[AggregateKind, ...],
    keys: Callable[..., tuple[Any, ...]] | None,
    arguments: Callable[..., tuple[Any, ...]],
    count: Count,
) -> Iterator[GroupRow]:
    """The groups of the rows."""
    groups = Groups(kinds, keys, arguments, count)
    for row in rows:
        groups.add(row)
    return groups.results()
