"""How requests would have to be sent under another key, from what their clients know.

==========  ======================================================================================================
point       one item by its id and key
single      a query inside one logical partition
prefix      a query below the first levels of a hierarchical key
several     a query for some values of the key: an IN list, or all suffixes of a value
everywhere  the filter says nothing of the key: all physical partitions are asked
==========  ======================================================================================================

A client that knows the id of an item, but not its new key, has to find it by a query first. A random suffix is never
known, a computed one is where both of its properties are. A filter that compares the time of a roll-up otherwise than
by equality is taken to touch two of its values.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import orjson
from numpy.typing import NDArray

from pleiad import charge
from pleiad.advise.demand import (
    NOT_ASKED,
    SEVERAL,
    UNKNOWN,
    VISIT_RU,
    Demands,
    Way,
    found_ru,
    lookup_charges,
)
from pleiad.advise.found import RowsOf, charge_of, found_rows
from pleiad.advise.key import ID_PATH, Kind
from pleiad.advise.placement import Placement, suffix_codes
from pleiad.advise.table import Table

_RANGE_VALUES = 2
_PROPERTY_BYTES = len(',"partitionKey":""')


class Scope(IntEnum):
    """How far a request goes."""

    POINT = 0
    SINGLE = 1
    PREFIX = 2
    SEVERAL = 3
    EVERYWHERE = 4


SCOPE_WORDS = {
    Scope.POINT: "point",
    Scope.SINGLE: "single",
    Scope.PREFIX: "prefix",
    Scope.SEVERAL: "several",
    Scope.EVERYWHERE: "everywhere",
}


@dataclass(frozen=True)
class Routes:
    """The way of every request under one key."""

    scopes: NDArray[np.int8]
    partitions: NDArray[np.int64]
    """The logical partition of points and singles; -1 where it is not in the table, and for all others."""
    own_ru: NDArray[np.float64]
    visit_ru: NDArray[np.float64]
    prefixes: dict[int, tuple[int, int]]
    """The logical partitions of prefixes, as places in the order of hashes."""
    several: dict[int, tuple[int, ...]]
    """The logical partitions of several values; -1 for one that is not in the table."""

    def share(self, scope: Scope) -> float:
        """Of all requests."""
        return float((self.scopes == scope).mean()) if len(self.scopes) else 0.0

    def ru_share(self, scope: Scope, total_ru: NDArray[np.float64]) -> float:
        """Of all request units, given what each request costs."""
        total = float(total_ru.sum())
        return float(total_ru[self.scopes == scope].sum()) / total if total > 0 else 0.0


def route(demands: Demands, placement: Placement, table: Table, rows_of: RowsOf | None = None) -> Routes:
    """Where each request goes under the key of a placement."""
    return _Router(demands, placement, table, rows_of).routes()


class _Router:
    def __init__(self, demands: Demands, placement: Placement, table: Table, rows_of: RowsOf | None) -> None:
        self._demands = demands
        self._rows_of = rows_of
        self._placement = placement
        self._table = table
        self._key = placement.key
        count = demands.count
        self._scopes = np.full(count, Scope.EVERYWHERE, np.int8)
        self._partitions = np.full(count, -1, np.int64)
        self._prefixes: dict[int, tuple[int, int]] = {}
        self._several: dict[int, tuple[int, ...]] = {}
        self._codes = [self._level_codes(name) for name in self._key.column_names]

    def routes(self) -> Routes:
        demands = self._demands
        ways = demands.ways
        is_item = ways == Way.ITEM
        has_row = demands.rows >= 0
        of_rows = (
            np.where(has_row, self._placement.rows[np.maximum(demands.rows, 0)], -1)
            if demands.count
            else has_row
        )
        self._scopes[is_item] = Scope.POINT
        self._partitions[is_item] = of_rows[is_item]
        knows_key = self._knows_key_by_id()
        is_id = ways == Way.ID
        if knows_key:
            self._scopes[is_id] = Scope.POINT
            self._partitions[is_id] = of_rows[is_id]
        else:
            self._route_filters(np.flatnonzero(is_id))
        self._route_filters(np.flatnonzero(ways == Way.QUERY))
        self._fill_points(np.flatnonzero((self._scopes == Scope.POINT) & (self._partitions < 0)))
        own_ru, visit_ru = self._charges(is_id & (not knows_key))
        return Routes(self._scopes, self._partitions, own_ru, visit_ru, self._prefixes, self._several)

    def _level_codes(self, name: str) -> NDArray[np.int64]:
        """What is demanded of one column of the key."""
        if name in self._demands.equals or self._key.kind is not Kind.ROLL_UP:
            return self._demands.equals_at(name)
        # An equality with a time is one with its hour, day or month.
        path = self._key.paths[0]
        of_time = self._demands.equals_at(path)
        rolled, times = self._table.columns[name], self._table.columns.get(path)
        if times is None:
            return np.where(of_time == NOT_ASKED, NOT_ASKED, UNKNOWN)
        code_of = np.full(times.distinct, UNKNOWN, np.int64)
        code_of[times.codes] = rolled.codes
        return np.where(of_time >= 0, code_of[np.maximum(of_time, 0)], of_time)

    def _knows_key_by_id(self) -> bool:
        """Whether who knows the id and the key of now knows the new key."""
        known = self._demands.known_paths | {ID_PATH}
        return self._key.kind is not Kind.RANDOM and known.issuperset(self._key.paths)

    def _route_filters(self, numbers: NDArray[np.int64]) -> None:
        """Routes requests by the values that they demand."""
        if not len(numbers):
            return
        asked = [codes[numbers] for codes in self._codes]
        kind = self._key.kind
        if kind is Kind.RANDOM:
            self._to_suffixes(numbers, asked[0])
            return
        if kind is Kind.SUFFIX:
            is_whole = (asked[0] != NOT_ASKED) & (asked[1] != NOT_ASKED)
            self._to_one(numbers[is_whole], [codes[is_whole] for codes in asked])
            self._to_suffixes(numbers[~is_whole], asked[0][~is_whole])
            return
        is_several = np.any([codes == SEVERAL for codes in asked], axis=0)
        is_whole = np.all([codes != NOT_ASKED for codes in asked], axis=0) & ~is_several
        self._to_one(numbers[is_whole], [codes[is_whole] for codes in asked])
        leads = asked[0] != NOT_ASKED
        if kind is Kind.HIERARCHY:
            for number in numbers[leads & ~is_whole & ~is_several]:
                self._to_prefix(int(number))
        for number in numbers[is_several & leads]:
            self._to_several(int(number))
        if kind is Kind.ROLL_UP:
            ranges = self._demands.ranges.get(self._key.paths[0])
            if ranges is not None:
                for number in numbers[ranges[numbers] & ~leads]:
                    self._scopes[number] = Scope.SEVERAL
                    self._several[int(number)] = (-1,) * _RANGE_VALUES

    def _to_one(self, numbers: NDArray[np.int64], codes: list[NDArray[np.int64]]) -> None:
        self._scopes[numbers] = Scope.SINGLE
        self._partitions[numbers] = self._partition_of(codes)

    def _partition_of(self, codes: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The logical partition of the values that are demanded; -1 for values that no item has."""
        levels = list(self._placement.levels)
        if self._key.kind is Kind.SUFFIX:
            assert self._placement.suffixes is not None
            other = self._table.columns[self._key.paths[1]]
            suffixes = suffix_codes(other.hashes, self._key.count)
            codes = [codes[0], np.where(codes[1] >= 0, suffixes[np.maximum(codes[1], 0)], -1)]
            levels.append(self._placement.suffixes)
        if len(levels) == 1:
            return np.where(codes[0] >= 0, codes[0], -1)
        widths = [int(level.max(initial=0)) + 1 for level in levels]
        have, want = np.zeros(self._placement.count, np.float64), np.zeros(len(codes[0]), np.float64)
        for level, code, width in zip(levels, codes, widths, strict=True):
            have, want = have * width + level, want * width + np.maximum(code, 0)
        order = np.argsort(have)
        at = np.minimum(np.searchsorted(have[order], want), max(0, len(order) - 1))
        is_there = np.all([code >= 0 for code in codes], axis=0) & (have[order][at] == want)
        return np.where(is_there, order[at], -1)

    def _to_prefix(self, number: int) -> None:
        """All logical partitions below the first levels."""
        placement = self._placement
        low, high = 0, placement.count
        for level, (codes, column) in enumerate(zip(self._codes, placement.columns, strict=True)):
            code = int(codes[number])
            if code == NOT_ASKED:
                break
            if code < 0:
                low = high = 0
                break
            in_order = self._placement.hashes[level][low:high]
            wanted = column.hashes[code]
            low, high = (
                low + int(np.searchsorted(in_order, wanted)),
                low + int(np.searchsorted(in_order, wanted, side="right")),
            )
        self._scopes[number] = Scope.PREFIX
        self._prefixes[number] = (low, high)

    def _to_several(self, number: int) -> None:
        """The logical partitions of all combinations of the values that are demanded."""
        options: list[list[int]] = []
        for name, codes in zip(self._key.column_names, self._codes, strict=True):
            code = int(codes[number])
            if code == NOT_ASKED:
                return  # a prefix of several values: everywhere is what a client has to ask for at worst
            options.append(list(self._demands.several.get((number, name), (code,))))
        combined = [[]]  # type: list[list[int]]
        for each in options:
            combined = [[*before, code] for before in combined for code in each]
        found = self._partition_of([np.array(column, np.int64) for column in zip(*combined, strict=True)])
        self._scopes[number] = Scope.SEVERAL
        self._several[number] = tuple(found.tolist())

    def _to_suffixes(self, numbers: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
        """All suffixes of a value."""
        by_value = self._partitions_by_value if len(numbers) else {}
        for number, code in zip(numbers.tolist(), codes.tolist(), strict=True):
            if code in (NOT_ASKED, SEVERAL):
                continue
            self._scopes[number] = Scope.SEVERAL
            self._several[number] = by_value.get(code, (-1,))

    @property
    def _partitions_by_value(self) -> dict[int, tuple[int, ...]]:
        level = self._placement.levels[0]
        order = np.argsort(level, kind="stable")
        values, starts = np.unique(level[order], return_index=True)
        return {
            int(value): tuple(part.tolist())
            for value, part in zip(values, np.split(order, starts[1:]), strict=True)
        }

    def _fill_points(self, numbers: NDArray[np.int64]) -> None:
        """Items that are not in the table, but whose key the request itself says."""
        if len(numbers) and self._key.kind is not Kind.RANDOM:
            self._partitions[numbers] = self._partition_of([codes[numbers] for codes in self._codes])

    def _charges(self, is_looked_up: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What requests cost under this key: finding items first, and the property that clients have to add."""
        demands = self._demands
        own_ru, visit_ru = demands.own_ru.copy(), demands.visit_ru.copy()
        if is_looked_up.any():
            numbers = np.flatnonzero(is_looked_up)
            rows = demands.rows[numbers]
            sizes = np.where(rows >= 0, self._table.sizes[np.maximum(rows, 0)], int(self._table.sizes.mean()))
            if self._key.is_synthetic:
                sizes = sizes + self._property_bytes(np.maximum(rows, 0))
            reads = np.array([name == "read" for name in demands.operations])[demands.operation[numbers]]
            own_ru[numbers] = np.where(reads, 0.0, own_ru[numbers]) + lookup_charges(sizes)
            visit_ru[numbers] = VISIT_RU
        if self._key.is_synthetic and demands.count:
            own_ru += self._added_ru(is_looked_up)
        return own_ru, visit_ru

    def _property_bytes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the property takes in each row, its name included."""
        placement = self._placement
        logical, inverse = np.unique(placement.rows[rows], return_inverse=True)
        lengths = []
        for partition in logical.tolist():
            values = placement.values_of(partition)
            text = "" if values is None else str(values[0])
            lengths.append(_PROPERTY_BYTES + len(orjson.dumps(text)) - 2)
        return np.array(lengths, np.int64)[inverse]

    def _added_ru(self, looked_up: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What the property of a synthetic key adds to operations on one item."""
        demands = self._demands
        rows = np.maximum(demands.rows, 0)
        sizes = self._table.sizes[rows]
        extra = self._property_bytes(rows)
        pairs = list(zip(sizes.tolist(), extra.tolist(), strict=True))
        terms = self._table.terms[rows].tolist()
        create, read = charge.create, charge.read
        writes = np.array(
            [create(s + e, t + 1).ru - create(s, t).ru for (s, e), t in zip(pairs, terms, strict=True)]
        )
        again = np.array([create(s + e, 0).ru - create(s, 0).ru for s, e in pairs])
        reads = np.array([read(s + e).ru - read(s).ru for s, e in pairs])
        names = np.array(demands.operations)[demands.operation]
        added = np.zeros(demands.count)
        for operation, amount in (
            ("read", np.where(looked_up, 0.0, reads)),
            ("create", writes),
            ("upsert", writes),
            ("delete", writes),
            ("replace", 2 * again),
            ("patch", 2 * again),
        ):
            added = np.where((names == operation) & (demands.rows >= 0), amount, added)
        is_query = demands.ways == Way.QUERY
        one_ru = found_ru(1, 1000 * int(extra.mean()), 1000 * int(extra.mean())) - found_ru(1, 0, 0)
        added = np.where(is_query, self._found_items() * one_ru / 1000, added)
        if self._rows_of is not None:
            for number, found in found_rows(demands, self._table, self._rows_of):
                grown = self._table.sizes[found] + self._property_bytes(found)
                added[number] = charge_of(grown) - demands.own_ru[number]
        return added

    def _found_items(self) -> NDArray[np.float64]:
        """How many items each query finds at most, by the rarest value that it demands."""
        found = np.full(self._demands.count, np.inf)
        for path, codes in self._demands.equals.items():
            column = self._table.columns.get(path)
            if column is not None:
                counts = np.bincount(column.codes, minlength=column.distinct).astype(np.float64)
                found = np.where(codes >= 0, np.minimum(found, counts[np.maximum(codes, 0)]), found)
        for (number, path), wanted in self._demands.several.items():
            column = self._table.columns.get(path)
            if column is not None:
                held = float(np.isin(column.codes, [code for code in wanted if code >= 0]).sum())
                found[number] = min(found[number], held)
        return np.where(np.isfinite(found), found * self._table.scale, 0.0)
