"""Selecting, ordering and counting the rows of a segment by predicates.

A selection is answered in pieces, each one short statement in one snapshot; between pieces other work of the
event loop runs. The pieces follow each other by document number (or by place in an index), so that every row is
looked at once however long it takes.

Where the pieces come from, the cheapest first:
- few rows: an index, or the key index for the range of one key, finds at most FEW_MATCHES numbers, which are
  sorted;
- one value: the index holds the numbers of one value in order, so they are read on from the last one;
- a scan of the table by number.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import apsw

from pleiad.item.ttl import is_expired
from pleiad.keys.range import WHOLE, EpkRange
from pleiad.store.path_index import State
from pleiad.store.predicate import ROW_COLUMNS, merged_selection
from pleiad.store.rows import Row
from pleiad.store.selection import IndexedPath, Predicate, Selection
from pleiad.store.sqlite.path_index import SqliteIndex
from pleiad.store.sqlite.predicate_sql import (
    Entries,
    Place,
    Sql,
    all_of,
    condition,
    entries,
    entry_of,
)
from pleiad.store.sqlite.reads import Read, Reading
from pleiad.store.sqlite.rows import ROW, checked_row
from pleiad.store.sqlite.schema import has_age_index

FEW_MATCHES = 2_000
_PIECE_NUMBERS = 1_000
_PIECE_NUMBERS_MAX = 20_000
_PIECE_SECONDS = 0.003
"""How long others wait for a piece of a scan, about."""
PIECE_ENTRIES = 500
SHORT_ROWS_MAX = 1_000
ROWS_KEPT_MAX = 200
"""Rows that a query finds by an index are looked for among those that are kept, and kept, where they are no more."""
_PIECE_ENTRIES_COUNTED = 20_000
_ROWS_SCANNED_PER_LOOKUP = 10

_NEXT_NUMBER = "SELECT min(number) FROM item WHERE number > ?"
_ENDS = "SELECT (SELECT min(epk) FROM item), (SELECT max(epk) FROM item)"
_EXPIRED_OWN = "SELECT 1 FROM item WHERE ttl > 0 AND ts + ttl <= ? LIMIT 1"
_EXPIRED_DEFAULT = "SELECT 1 FROM item INDEXED BY item_age WHERE ttl IS NULL AND ts <= ? LIMIT 1"
_TOTALS = "SELECT coalesce(sum(items), 0), coalesce(sum(size_bytes), 0) FROM partition"


@dataclass(frozen=True, slots=True)
class RowPlan:
    """Where the rows of a selection come from, and the predicates that are left to test on each row."""

    rest: tuple[Predicate, ...]
    index: SqliteIndex | None = None
    few: Sql | None = None
    """Finds few numbers."""
    one_value: Sql | None = None
    """A condition on the entries of the index."""

    @property
    def is_valid(self) -> bool:
        return self.index is None or self.index.state is State.READY


async def select(read: Read, selection: Selection, after: int, limit: int) -> list[Row]:
    """Rows of a selection above a document number, in the order of their numbers."""
    rows = _rows_of_one_value(read, selection, after, limit)
    if rows is not None:
        return rows
    walk = Walk(read, merged_selection(selection), after)
    rows = []
    while limit > len(rows) and (piece := walk.next_piece()) is not None:
        rows += map(checked_row, piece.rows(Sql(ROW), limit - len(rows)))
        if len(rows) < limit:
            await walk.rest()
    return rows


def select_at_once(read: Read, selection: Selection, limit: int) -> list[Row] | None:
    """The same from the first row on where they are few and fewer than the limit; None for all others."""
    return _rows_of_one_value(read, selection, 0, limit, few_only=True)


def _rows_of_one_value(
    read: Read, selection: Selection, after: int, limit: int, few_only: bool = False
) -> list[Row] | None:
    """The short way of the commonest selection: one path, one value, an index that has it. None for all others.

    The index holds the numbers of one value in order, so one statement reads on from the last one.
    """
    if len(selection.predicates) != 1 or limit > SHORT_ROWS_MAX:
        return None
    predicate = selection.predicates[0]
    if predicate.one_of is None or len(predicate.one_of) != 1:
        return None
    reading = read()
    index = None if reading is None else reading.indexes.ready(IndexedPath(predicate.path, predicate.element))
    entry = entry_of(predicate.one_of[0])
    if reading is None or index is None or entry is None:
        return None
    span, default_ttl = selection.span, selection.default_ttl
    is_whole = span.min == WHOLE.min and span.max == WHOLE.max
    numbers: Any = reading.execute(
        _numbers_text(index.id), (*entry, after, min(limit, ROWS_KEPT_MAX + 1))
    ).fetchall()
    if len(numbers) < min(limit, ROWS_KEPT_MAX + 1):
        return _live(reading.rows([number for (number,) in numbers]), selection, is_whole)
    if few_only:
        return None
    bounds = () if is_whole else (span.min, span.max)
    age = () if default_ttl is None else (default_ttl, default_ttl, selection.now)
    text = _one_value_text(index.id, not is_whole, default_ttl is not None)
    found: Any = reading.execute(text, (*entry, after, *bounds, *age, limit)).fetchall()
    return list(map(checked_row, found))


def _live(rows: list[Row], selection: Selection, is_whole: bool) -> list[Row]:
    """The rows of a selection among those that satisfy its predicates."""
    if not is_whole:
        low, high = selection.span.min, selection.span.max
        rows = [row for row in rows if low <= row.epk < high]
    if selection.default_ttl is not None:
        now, default_ttl = selection.now, selection.default_ttl
        rows = [row for row in rows if not is_expired(row.ts, row.ttl, default_ttl, now)]
    return rows


@lru_cache(maxsize=256)
def _numbers_text(id: int) -> str:
    return f"SELECT number FROM path_{id} WHERE rank = ? AND value = ? AND number > ? ORDER BY number LIMIT ?"


@lru_cache(maxsize=256)
def _one_value_text(id: int, has_bounds: bool, has_age: bool) -> str:
    bounds = " AND epk >= ? AND epk < ?" if has_bounds else ""
    age = " AND (coalesce(ttl, ?) <= 0 OR ts + coalesce(ttl, ?) > ?)" if has_age else ""
    return (
        f"SELECT {ROW} FROM path_{id} AS entry CROSS JOIN item ON item.number = entry.number WHERE rank = ? "
        f"AND value = ? AND entry.number > ?{bounds}{age} ORDER BY entry.number LIMIT ?"
    )


async def count(read: Read, selection: Selection, count_only: bool) -> tuple[int, int]:
    """How many rows a selection has and the sum of their sizes, which is 0 with `count_only`."""
    selection = merged_selection(selection)
    reading = read()
    if reading is None:
        return 0, 0
    if not selection.predicates and not row_conditions(reading.connection, selection):
        totals: Any = reading.connection.execute(_TOTALS).fetchone()
        return (totals[0], 0) if count_only else totals
    counted = await _count_entries(read, selection, count_only)
    return counted if counted is not None else await _count_rows(read, selection, count_only)


# -- planning ----------------------------------------------------------------------------------


def plan_rows(reading: Reading, selection: Selection, except_path: tuple[str, ...] | None = None) -> RowPlan:
    """Chooses where rows come from by looking how many each index would give."""
    best: RowPlan | None = None
    best_count = FEW_MATCHES + 1
    one_value: RowPlan | None = None
    predicates = selection.predicates
    if (key := _key_numbers(selection)) is not None:
        best_count = _matches(reading.connection, key, best_count)
        best = RowPlan(predicates, few=key) if best_count <= FEW_MATCHES else None
    for position, predicate in enumerate(predicates):
        index = reading.indexes.ready(IndexedPath(predicate.path, predicate.element))
        if index is None or (predicate.path == except_path and not predicate.element):
            continue
        rest = predicates[:position] + predicates[position + 1 :]
        terms = entries(predicate)
        numbers = _numbers_of(index, terms)
        matches = _matches(reading.connection, numbers, best_count)
        if matches < best_count:
            best, best_count = RowPlan(rest, index, few=numbers), matches
        elif best is None and len(terms) == 1 and terms[0].one_value:
            one_value = RowPlan(rest, index, one_value=terms[0].where)
    return best or one_value or RowPlan(predicates)


def _numbers_of(index: SqliteIndex, terms: Sequence[Entries]) -> Sql:
    wheres = [term.where for term in terms] or [Sql("0")]
    text = " UNION ALL ".join(f"SELECT number FROM {index.table} WHERE {where.text}" for where in wheres)
    return Sql(text, tuple(value for where in wheres for value in where.params))


def _key_numbers(selection: Selection) -> Sql | None:
    """The numbers of the rows of one key, or of one prefix of a key; None for a wider range."""
    span = selection.span
    if not (span.min and span.max.startswith(span.min)):
        return None
    ids = [condition(p) for p in selection.predicates if p.path == ("id",) and not p.element]
    where = all_of(Sql("epk >= ? AND epk < ?", (span.min, span.max)), *ids)
    return Sql(f"SELECT number FROM item INDEXED BY item_key WHERE {where.text}", where.params)


def _matches(connection: apsw.Connection, numbers: Sql, limit: int = -1) -> int:
    found: Any = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM ({numbers.text}) LIMIT ?)", (*numbers.params, limit)
    ).fetchone()
    return int(found[0])


def row_conditions(connection: apsw.Connection, selection: Selection) -> list[Sql]:
    """What is to be tested on each row beside the predicates; nothing where all rows of the snapshot pass."""
    conditions = []
    if not _covers(connection, selection.span):
        conditions.append(Sql("epk >= ? AND epk < ?", (selection.span.min, selection.span.max)))
    default_ttl = selection.default_ttl
    if default_ttl is not None and _may_expire(connection, selection.now, default_ttl):
        conditions.append(
            Sql(
                "coalesce(ttl, ?) <= 0 OR ts + coalesce(ttl, ?) > ?",
                (default_ttl, default_ttl, selection.now),
            )
        )
    return conditions


def predicate_conditions(predicates: Sequence[Predicate]) -> list[Sql]:
    """The predicates as tests of a row, the cheapest first."""
    return [condition(predicate) for predicate in sorted(predicates, key=_cost)]


def _cost(predicate: Predicate) -> int:
    if predicate.path in ROW_COLUMNS:
        return 0
    return 2 if predicate.element else 1


def _covers(connection: apsw.Connection, span: EpkRange) -> bool:
    """Whether all rows of the segment lie in a range."""
    if span == WHOLE:
        return True
    ends: Any = connection.execute(_ENDS).fetchone()
    return ends[0] is None or (span.min <= ends[0] and ends[1] < span.max)


def _may_expire(connection: apsw.Connection, now: int, default_ttl: int) -> bool:
    """Whether some row's time to live may be over; sure where an index tells so."""
    if connection.execute(_EXPIRED_OWN, (now,)).fetchone() is not None:
        return True
    if default_ttl <= 0:
        return False
    if not has_age_index(connection):
        return True
    return connection.execute(_EXPIRED_DEFAULT, (now - default_ttl,)).fetchone() is not None


# -- pieces ------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """Some rows to look at: a connection with a snapshot, and the condition that they satisfy."""

    connection: apsw.Connection
    where: Sql

    def rows(self, columns: Sql, limit: int) -> apsw.Cursor:
        """Columns of the rows, in the order of their numbers."""
        return self.connection.execute(
            f"SELECT {columns.text} FROM item NOT INDEXED WHERE {self.where.text} ORDER BY number LIMIT ?",
            (*columns.params, *self.where.params, limit),
        )


class Walk:
    """The pieces of a selection behind a document number, one after the other.

    A scan takes as many numbers at a time as others can wait for, whatever the size of the items.
    """

    def __init__(self, read: Read, selection: Selection, after: int = 0) -> None:
        self._read = read
        self._selection = selection
        self._after: int | None = after
        self._plan: RowPlan | None = None
        self._tests: list[Sql] = []
        self.numbers = _PIECE_NUMBERS
        self._began_at = 0.0

    def next_piece(self) -> Piece | None:
        """The next piece, to be read before `rest`; None when there is none."""
        reading = self._read() if self._after is not None else None
        if reading is None or self._after is None:
            return None
        self._began_at = time.perf_counter()
        plan = self._plan
        if plan is None or not plan.is_valid:
            plan = self._plan = plan_rows(reading, self._selection)
            self._tests = predicate_conditions(plan.rest)
        where, self._after = self._bounds(reading.connection, plan, self._after)
        if where is None:
            return None
        tests = (*row_conditions(reading.connection, self._selection), *self._tests)
        return Piece(reading.connection, all_of(where, *tests))

    async def rest(self) -> None:
        """Lets others have their turn, unless the walk is over."""
        if self._after is None:
            return
        seconds = time.perf_counter() - self._began_at
        if seconds > _PIECE_SECONDS:
            self.numbers = max(1, self.numbers // 2)
        elif seconds < _PIECE_SECONDS / 3:
            self.numbers = min(2 * self.numbers, _PIECE_NUMBERS_MAX)
        await asyncio.sleep(0)

    def _bounds(
        self, connection: apsw.Connection, plan: RowPlan, after: int
    ) -> tuple[Sql | None, int | None]:
        """A condition on the numbers of the next rows, and the number to go on behind; None for no more."""
        if plan.few is not None:
            return Sql(f"number > ? AND number IN ({plan.few.text})", (after, *plan.few.params)), None
        found: Any
        if plan.one_value is not None and plan.index is not None:
            numbers = f"SELECT number FROM {plan.index.table} WHERE {plan.one_value.text} AND number > ?"
            params = (*plan.one_value.params, after)
            found = connection.execute(
                f"{numbers} ORDER BY number LIMIT 1 OFFSET ?", (*params, PIECE_ENTRIES - 1)
            ).fetchone()
            if found is None:
                return Sql(f"number IN ({numbers})", params), None
            return Sql(f"number IN ({numbers} AND number <= ?)", (*params, found[0])), found[0]
        found = connection.execute(_NEXT_NUMBER, (after,)).fetchone()
        if found[0] is None:
            return None, None
        # Numbers are dense within a partition, so a span of numbers holds about as many rows and never more.
        upto = found[0] + self.numbers - 1
        return Sql("number BETWEEN ? AND ?", (found[0], upto)), upto


async def _count_rows(read: Read, selection: Selection, count_only: bool) -> tuple[int, int]:
    rows = size_bytes = 0
    columns = "count(*), 0" if count_only else "count(*), coalesce(sum(size_bytes), 0)"
    walk = Walk(read, selection)
    while (piece := walk.next_piece()) is not None:
        found: Any = piece.connection.execute(
            f"SELECT {columns} FROM item NOT INDEXED WHERE {piece.where.text}", piece.where.params
        ).fetchone()
        rows, size_bytes = rows + found[0], size_bytes + found[1]
        await walk.rest()
    return rows, size_bytes


async def _count_entries(read: Read, selection: Selection, count_only: bool) -> tuple[int, int] | None:
    """Counts by the index of the only predicate; None when that is not possible or not cheaper."""
    if len(selection.predicates) != 1:
        return None
    predicate = selection.predicates[0]
    terms = entries(predicate)
    if predicate.element and not (len(terms) == 1 and terms[0].one_value):
        return None  # An item with two of the elements would count twice.
    path = IndexedPath(predicate.path, predicate.element)
    rows = size_bytes = 0
    for term in terms:
        place: Place | None = None
        while True:
            reading = read()
            index = reading.indexes.ready(path) if reading else None
            if reading is None or index is None:
                return None
            connection = reading.connection
            tests = row_conditions(connection, selection)
            if (tests or not count_only) and not _is_sparse(connection, _numbers_of(index, [term])):
                return None
            found, place = _count_piece(connection, index, term, place, tests, count_only)
            rows, size_bytes = rows + found[0], size_bytes + found[1]
            if place is None:
                break
            await asyncio.sleep(0)
    return rows, size_bytes


def _is_sparse(connection: apsw.Connection, numbers: Sql) -> bool:
    """Whether to look up the rows one by one is cheaper than to read them all in order."""
    totals: Any = connection.execute(_TOTALS).fetchone()
    most = int(totals[0]) // _ROWS_SCANNED_PER_LOOKUP
    return _matches(connection, numbers, most + 1) <= most


def _count_piece(
    connection: apsw.Connection,
    index: SqliteIndex,
    term: Entries,
    place: Place | None,
    tests: list[Sql],
    count_only: bool,
) -> tuple[tuple[int, int], Place | None]:
    """Counts the next entries of an index; rows are looked at only for their size or for tests."""
    behind = term.where if place is None else term.behind(place)
    needs_rows = bool(tests) or not count_only
    entries_max = PIECE_ENTRIES if needs_rows else _PIECE_ENTRIES_COUNTED
    last: Any = connection.execute(
        f"SELECT rank, value, number FROM {index.table} WHERE {behind.text} "
        "ORDER BY rank, value, number LIMIT 1 OFFSET ?",
        (*behind.params, entries_max - 1),
    ).fetchone()
    if not needs_rows:
        if last is not None:
            return (entries_max, 0), last
        return (
            _matches(connection, Sql(f"SELECT 1 FROM {index.table} WHERE {behind.text}", behind.params)),
            0,
        ), None
    among = (
        f"SELECT number AS found FROM {index.table} WHERE {behind.text} ORDER BY rank, value, number LIMIT ?"
    )
    also = all_of(*tests) if tests else Sql("1")
    counted: Any = connection.execute(
        f"SELECT count(*), coalesce(sum(size_bytes), 0) FROM ({among}) CROSS JOIN item ON number = found "
        f"WHERE {also.text}",
        (*behind.params, entries_max, *also.params),
    ).fetchone()
    return (counted[0], 0 if count_only else counted[1]), last
