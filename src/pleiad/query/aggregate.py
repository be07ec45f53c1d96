"""Aggregate states and groups: rows go in one by one, partial states of several partitions merge, results
come out.

A state never raises on any value. ``merge`` with the state of other rows gives the same as adding those
rows, up to the rounding of floating-point sums.
"""

from __future__ import annotations

import math
import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final, Protocol, Self

from pleiad.query.functions.registry import ARRAY_ELEMENTS_MAX, check_array_elements
from pleiad.query.measure import size_of
from pleiad.query.plan import AggregateKind
from pleiad.query.values import EXACT_INT, as_double, hash_key, is_number, normal, order_key
from pleiad.values.undefined import UNDEFINED

Count = Callable[[int], None]


class State(Protocol):
    """The running state of one aggregate over one group."""

    def add(self, value: Any, times: int = 1) -> None: ...

    def add_all(self, values: Sequence[Any], kinds: set[type]) -> None:
        """Adds values in their order; `kinds` are their types."""

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

    def add_all(self, values: Sequence[Any], kinds: set[type]) -> None:
        undefined = type(UNDEFINED) in kinds
        self.count += sum([value is not UNDEFINED for value in values]) if undefined else len(values)

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

    def add_all(self, values: Sequence[Any], kinds: set[type]) -> None:
        self.count += sum([value is True for value in values])


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

    def add_all(self, values: Sequence[Any], kinds: set[type]) -> None:
        if not kinds <= _NUMBERS:
            for value in values:
                self.add(value)
            return
        self.count += len(values)
        # One by one, as above: what is exact as an integer is so as a double, and what is not is rounded alike.
        doubles = map(float, values) if int in kinds else values
        self.total = normal(reduce(operator.add, doubles, float(self.total)))

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

    def add_all(self, values: Sequence[Any], kinds: set[type]) -> None:
        # Python orders numbers as the language does, but for integers that no double holds, and NaN.
        if kinds == {float}:
            is_plain = math.isfinite(sum(values))
        else:
            is_plain = kinds <= _NUMBERS and sum(map(abs, values)) <= EXACT_INT
        if is_plain:
            values = (self.best_of(values),)
        for value in values:
            self.add(value)

    def best_of(self, values: Sequence[Any]) -> Any:
        return min(values)

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

    def best_of(self, values: Sequence[Any]) -> Any:
        return max(values)

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

    def add_all(self, values: Sequence[Any], kinds: set[type]) -> None:
        for value in values:
            self.add(value)

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
_NUMBERS: Final = frozenset((int, float))
_PLAIN_KEYS: Final = frozenset((str, type(None), type(UNDEFINED)))
"""Types of values that stand for themselves among keys."""
_PARTED: Final = frozenset((list, dict))
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

    __slots__ = (
        "_arguments",
        "_arguments_at",
        "_arguments_from",
        "_count",
        "_groups",
        "_keys",
        "_makers",
        "_single",
        "size_bytes",
    )

    def __init__(
        self,
        kinds: tuple[AggregateKind, ...],
        keys: Callable[..., tuple[Any, ...]] | None,
        arguments: Callable[..., tuple[Any, ...]],
        count: Count,
        keys_count: int = 0,
        arguments_at: Sequence[int] = (),
    ) -> None:
        """`count` is told how many bytes are added to what the groups hold, and may refuse.

        In a row with its place so many keys come behind it, and then the arguments, which aggregates may share.
        """
        self._count = count
        self._arguments_from = 1 + keys_count
        self._arguments_at = arguments_at
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
        keys = self._keys(*row) if self._keys is not None else ()
        for state, value in zip(self._states(keys, place), self._arguments(*row), strict=True):
            state.add(value, times)

    def add_placed(self, row: tuple[Any, ...], times: int) -> None:
        """Count a row as ``Execution.placed`` gives it, so many times."""
        place, keys, arguments = row[0], row[1 : self._arguments_from], row[self._arguments_from :]
        states = self._states(keys, (place, 0))
        for state, at in zip(states, self._arguments_at, strict=True):
            state.add(arguments[at], times)

    def _states(self, values: tuple[Any, ...], place: tuple[int, int]) -> list[Any]:
        """The states of the group that has these keys."""
        if self._keys is None:
            return self._single
        key = tuple(map(hash_key, values))
        group = self._groups.get(key)
        if group is None:
            self._grow(GROUP_BYTES + 2 * sum(map(size_of, values)))
            group = self._groups[key] = _Group(values, [make() for make in self._makers], place)
        elif place < group.first:
            group.first = place
        return group.states

    def add_all_placed(self, rows: Sequence[tuple[Any, ...]]) -> bool:
        """Count rows as ``Execution.placed`` gives them, in the order of their places.

        False, and nothing is counted, when some key is an array or object: those are taken one by one.
        """
        if not rows:
            return True
        places, *columns = zip(*rows, strict=True)
        keys_end = self._arguments_from - 1
        return self.add_columns(places, columns[:keys_end], columns[keys_end:])

    def add_columns(
        self, places: Sequence[int], keys: Sequence[Sequence[Any]], arguments: Sequence[Sequence[Any]]
    ) -> bool:
        """The same for rows that come as columns."""
        if self._keys is None:
            for state, at in zip(self._single, self._arguments_at, strict=True):
                state.add_all(arguments[at], set(map(type, arguments[at])))
            return True
        key_kinds = [set(map(type, column)) for column in keys]
        if not all(map(_PARTED.isdisjoint, key_kinds)):
            return False
        hashed = [
            column if _PLAIN_KEYS.issuperset(kind) else list(map(hash_key, column))
            for column, kind in zip(keys, key_kinds, strict=True)
        ]
        is_one = len(hashed) == 1
        marks: Sequence[Any] = hashed[0] if is_one else list(zip(*hashed, strict=True))
        kept = {mark: (mark,) if is_one else mark for mark in dict.fromkeys(marks)}
        self._meet(marks, kept, keys, places)
        divided = [_divided(marks, column) for column in arguments]
        kinds = [set(map(type, column)) for column in arguments]
        for mark, key in kept.items():
            values = [
                (column[mark], kind if len(kind) == 1 else set(map(type, column[mark])))
                for column, kind in zip(divided, kinds, strict=True)
            ]
            for state, at in zip(self._groups[key].states, self._arguments_at, strict=True):
                state.add_all(*values[at])
        return True

    def _meet(
        self,
        marks: Sequence[Any],
        kept: dict[Any, tuple[Any, ...]],
        keys: Sequence[Sequence[Any]],
        places: Sequence[int],
    ) -> None:
        """Makes the groups that are new, and notes where others have rows before those they were met with."""
        groups, first = self._groups, (places[0], 0)
        if all(key in groups and groups[key].first <= first for key in kept.values()):
            return
        met: set[Any] = set()
        last, number = -1, 0
        for mark, place, values in zip(marks, places, zip(*keys, strict=True), strict=True):
            number = number + 1 if place == last else 0
            last = place
            if mark not in met:
                met.add(mark)
                self._states(values, (place, number))

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


def _divided(keys: Sequence[Any], values: Sequence[Any]) -> dict[Any, list[Any]]:
    """The values of each key, in their order."""
    found: dict[Any, list[Any]] = {key: [] for key in dict.fromkeys(keys)}
    deque(map(list.append, map(found.__getitem__, keys), values), maxlen=0)
    return found


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
