"""Which keys are worth a try: found in what items have and what requests ask for.

Every scalar path that nearly all items have, ``/id``, the key of now, hierarchical keys of two and three levels from
the coarse to the fine, concatenations, suffixes behind values that are too large alone, and roll-ups of the time.
Amounts, such as prices, spread well and are what nobody knows an item by: they are tried where a query asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pleiad.advise.column import Column
from pleiad.advise.demand import NOT_ASKED, Demands
from pleiad.advise.key import ID_PATH, Key, Kind, hierarchy, path_key
from pleiad.advise.moment import UNITS
from pleiad.advise.table import Table

CANDIDATES_MAX = 24
NEARLY_ALL = 0.99
_SINGLES_FIRST = 8
_GROUPERS_MAX = 4
_HOT_SHARE = 1 / 16
_SUFFIX_COUNTS = (10, 20, 50, 100, 200, 400)
_LONG_BYTES = 200
"""Texts that are longer are prose rather than keys."""


def propose(table: Table, demands: Demands, current: Sequence[str] = ()) -> list[Key]:
    """The keys to try, those that matter most first."""
    asked = _asked(demands)
    columns = {path: column for path, column in table.columns.items() if path.startswith("/")}
    present = [
        path
        for path, column in columns.items()
        if path == ID_PATH
        or path in asked
        or (coverage(column) >= NEARLY_ALL and column.bytes_max <= _LONG_BYTES and not column.is_amount)
    ]
    found: dict[Key, None] = {}
    if current:
        found[path_key(current[0]) if len(current) == 1 else hierarchy(*current)] = None
    found[path_key(ID_PATH)] = None
    singles = sorted(
        present, key=lambda path: (-asked.get(path, 0), -min(columns[path].distinct, 1000), path)
    )
    found.update(dict.fromkeys(path_key(path) for path in singles[:_SINGLES_FIRST]))
    if table.time_path is not None and table.time_path in columns:
        found.update(dict.fromkeys(Key(Kind.ROLL_UP, (table.time_path,), unit=unit) for unit in UNITS[::-1]))
    groupers = _groupers(table, singles, asked)
    found.update(dict.fromkeys(_hierarchies(table, groupers, asked)))
    found.update(dict.fromkeys(_synthetic(table, groupers)))
    found.update(dict.fromkeys(path_key(path) for path in singles))
    usable = [key for key in found if all(name in table.columns for name in key.column_names)]
    return usable[:CANDIDATES_MAX]


def coverage(column: Column) -> float:
    """The share of the items that have a value there that is not null."""
    kinds = column.kinds
    there = kinds.boolean + kinds.number + kinds.text
    total = kinds.total
    return there / total if total else 0.0


def _asked(demands: Demands) -> dict[str, int]:
    """How often each path is demanded to be equal to something by requests that do not know the item."""
    by_query = demands.ways >= 1
    return {
        path: int(((codes != NOT_ASKED) & by_query).sum())
        for path, codes in demands.equals.items()
        if ((codes != NOT_ASKED) & by_query).any()
    }


def _groupers(table: Table, paths: Iterable[str], asked: dict[str, int]) -> list[str]:
    """Paths that put several items together, those that requests ask for first."""
    found = []
    for path in paths:
        column = table.columns[path]
        is_grouping = 2 <= column.distinct <= table.rows / 2 and coverage(column) >= NEARLY_ALL
        if path != ID_PATH and is_grouping:
            found.append(path)
    many = max(2.0, table.rows / 10)
    # Neither nearly constant nor nearly unique: what lies in between groups best.
    return sorted(
        found,
        key=lambda path: (
            -asked.get(path, 0),
            abs(np.log(table.columns[path].distinct) - np.log(many) / 2),
        ),
    )[:_GROUPERS_MAX]


def _hierarchies(table: Table, groupers: Sequence[str], asked: dict[str, int]) -> list[Key]:
    found = [hierarchy(path, ID_PATH) for path in groupers[:3]]
    pairs = []
    for number, first in enumerate(groupers):
        for second in groupers[number + 1 :]:
            coarse, fine = sorted((first, second), key=lambda path: table.columns[path].distinct)
            pairs.append(hierarchy(coarse, fine))
            if second in asked and first in asked:
                pairs.append(hierarchy(fine, coarse))
    found += pairs[:4]
    if pairs:
        found.append(hierarchy(*pairs[0].paths, ID_PATH))
    return found


def _synthetic(table: Table, groupers: Sequence[str]) -> list[Key]:
    found: list[Key] = []
    if len(groupers) >= 2:
        found.append(Key(Kind.CONCAT, tuple(groupers[:2])))
    for path in groupers[:2]:
        column = table.columns[path]
        largest = float(np.bincount(column.codes, minlength=1).max() / max(1, table.rows))
        if largest > _HOT_SHARE:
            count = next(
                (each for each in _SUFFIX_COUNTS if largest / each < _HOT_SHARE / 8), _SUFFIX_COUNTS[-1]
            )
            found += [Key(Kind.SUFFIX, (path, ID_PATH), count=count), Key(Kind.RANDOM, (path,), count=count)]
    return found
