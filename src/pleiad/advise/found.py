"""The items that queries find, where the table tells which: all items are in it, and the filter is of equalities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pleiad.advise.demand import NOT_ASKED, SYSTEM_BYTES, Demands, Way, found_ru
from pleiad.advise.table import Table

_QUERIES_MAX = 10_000
_ROUNDING_RU = 0.006
"""Charges are told with two decimals."""

Rows = NDArray[np.int64]


class RowsOf:
    """The rows that have a value, for the paths of a table: found when somebody asks first."""

    def __init__(self, codes: dict[str, NDArray[np.int32]]) -> None:
        self._codes = codes
        self._sorted: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def rows(self, path: str, code: int) -> NDArray[np.int64]:
        if path not in self._sorted:
            codes = self._codes[path]
            order = np.argsort(codes, kind="stable")
            self._sorted[path] = (
                order,
                np.searchsorted(codes[order], np.arange(int(codes.max(initial=-1)) + 2)),
            )
        order, starts = self._sorted[path]
        return order[starts[code] : starts[code + 1]] if code + 1 < len(starts) else order[:0]

    def paths(self) -> list[str]:
        return list(self._codes)


def found_rows(demands: Demands, table: Table, rows_of: RowsOf) -> Iterator[tuple[int, Rows]]:
    """Queries with the rows that they found: those of which the charge says that it were these and no others.

    What a request of the record creates is not there before it.
    """
    if table.scale != 1.0:
        return
    made_at = np.full(table.rows, -np.inf)
    created = np.array([name == "create" for name in demands.operations])[demands.operation]
    created &= demands.rows >= 0
    made_at[demands.rows[created]] = demands.at[created]
    known = set(rows_of.paths())
    for number in np.flatnonzero(demands.ways == Way.QUERY)[:_QUERIES_MAX].tolist():
        wanted = _wanted(demands, number)
        if not known.issuperset(wanted) or any(ranges[number] for ranges in demands.ranges.values()):
            continue
        rows = _having(wanted, table, rows_of)
        rows = rows[made_at[rows] < demands.at[number]]
        if abs(charge_of(table.sizes[rows]) - demands.own_ru[number]) < _ROUNDING_RU:
            yield number, rows


def charge_of(sizes: NDArray[np.int64]) -> float:
    """What a query costs that finds whole items of these sizes, without the partitions that are visited."""
    total = int(sizes.sum())
    return found_ru(len(sizes), total, total + len(sizes) * SYSTEM_BYTES)


def _wanted(demands: Demands, number: int) -> dict[str, tuple[int, ...]]:
    """The codes that a request demands, by path."""
    found = {}
    for path, codes in demands.equals.items():
        code = int(codes[number])
        if code != NOT_ASKED:
            found[path] = demands.several.get((number, path), (code,))
    return found


def _having(wanted: dict[str, tuple[int, ...]], table: Table, rows_of: RowsOf) -> Rows:
    """The rows that have one of the codes at every path."""
    found: Rows = np.arange(0)
    for place, (path, codes) in enumerate(wanted.items()):
        if place == 0:
            groups = [rows_of.rows(path, code) for code in set(codes) if code >= 0]
            found = np.concatenate([found, *groups])
        else:
            found = found[np.isin(table.columns[path].codes[found], codes)]
    return found
