"""Putting requests into columns one by one: what a record and a file of queries share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pleiad.advise.column import Hashes, hashes_of
from pleiad.advise.demand import NOT_ASKED, SEVERAL, UNKNOWN, Basis, Demands, Way
from pleiad.advise.table import Table, codes_of
from pleiad.advise.uniform import empty_demands
from pleiad.values.undefined import UNDEFINED


class Gathering:
    """Requests while they are put together; values become codes at the end, all of a path at once."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._at: list[float] = []
        self._operation: list[str] = []
        self._ways: list[int] = []
        self._rows: list[int] = []
        self._own_ru: list[float] = []
        self._visit_ru: list[float] = []
        self._is_write: list[bool] = []
        self._marks: list[Any] = []
        self._values: dict[str, list[tuple[int, tuple[Any, ...]]]] = {}
        self._codes: dict[str, list[tuple[int, int]]] = {}
        self._ranges: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._at)

    def add(
        self,
        *,
        at: float,
        operation: str,
        way: Way,
        mark: str,
        own_ru: float,
        visit_ru: float = 0.0,
        row: int = -1,
        is_write: bool = False,
        equals: Mapping[str, Sequence[Any]] = {},
        equal_codes: Mapping[str, int] = {},
        ranges: Iterable[str] = (),
    ) -> None:
        """The next request; ``equals`` has values, and ``equal_codes`` the codes of values that are known already.

        Paths that are no column of the table can be no key, and there may be as many of them as requests: they are
        passed over.
        """
        number = len(self._at)
        self._at.append(at)
        self._operation.append(operation)
        self._ways.append(way)
        self._rows.append(row)
        self._own_ru.append(own_ru)
        self._visit_ru.append(visit_ru)
        self._is_write.append(is_write)
        self._marks.append(mark)
        columns = self._table.columns
        for path, values in equals.items():
            if path not in columns:
                continue
            self._values.setdefault(path, []).append((number, tuple(values)))
        for path, code in equal_codes.items():
            self._codes.setdefault(path, []).append((number, code))
        for path in ranges:
            if path in columns:
                self._ranges.setdefault(path, []).append(number)

    def finish(self, basis: Basis, **facts: Any) -> Demands:
        """The requests in the order of their time."""
        if not self._at:
            return empty_demands(basis)
        at = np.array(self._at)
        order = np.argsort(at, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        operations = tuple(dict.fromkeys(self._operation))
        index = {name: number for number, name in enumerate(operations)}
        equals, several = self._equals(place)
        ranges = {}
        for path, numbers in self._ranges.items():
            ranges[path] = np.zeros(len(order), bool)
            ranges[path][place[numbers]] = True
        return Demands(
            basis=basis,
            at=at[order],
            operations=operations,
            operation=np.array([index[name] for name in self._operation], np.int16)[order],
            ways=np.array(self._ways, np.int8)[order],
            rows=np.array(self._rows, np.int64)[order],
            own_ru=np.array(self._own_ru)[order],
            visit_ru=np.array(self._visit_ru)[order],
            equals=equals,
            several=several,
            ranges=ranges,
            marks=hashes_of(self._marks)[order],
            is_write=np.array(self._is_write, bool)[order],
            **facts,
        )

    def _equals(
        self, place: NDArray[np.int64]
    ) -> tuple[dict[str, NDArray[np.int64]], dict[tuple[int, str], tuple[int, ...]]]:
        equals: dict[str, NDArray[np.int64]] = {}
        several: dict[tuple[int, str], tuple[int, ...]] = {}
        for path in {**self._values, **self._codes}:
            found = equals[path] = np.full(len(place), NOT_ASKED, np.int64)
            for number, code in self._codes.get(path, ()):
                found[place[number]] = code
            asked = self._values.get(path, [])
            flat = self.codes(path, [value for _, values in asked for value in values]).tolist()
            start = 0
            for number, values in asked:
                codes = flat[start : start + len(values)]
                start += len(values)
                spot = int(place[number])
                found[spot] = codes[0] if len(codes) == 1 else SEVERAL if codes else UNKNOWN
                if len(codes) > 1:
                    several[spot, path] = tuple(codes)
        return equals, several

    def codes(self, path: str, values: Sequence[Any]) -> NDArray[np.int64]:
        """The codes of values in the column of a path."""
        column = self._table.columns.get(path)
        if column is None or not values:
            return np.full(len(values), UNKNOWN, np.int64)
        return codes_of(column, hashes_of(key_values(values)))


def key_values(values: Iterable[Any]) -> list[Any]:
    """Values of a record as key values: ``{}`` is what an item does not have."""
    return [UNDEFINED if value.__class__ is dict else value for value in values]


def mixed(parts: Sequence[Hashes]) -> Hashes:
    """One hash of several columns of hashes."""
    found = parts[0].copy()
    for part in parts[1:]:
        found = (found * np.uint64(0x9E3779B97F4A7C15)) ^ part
    return found
