"""Rows of a selection in the order of a path.

An index on the path is walked in its own order; where another index leaves few rows, those are found first and sorted.
Both give the same order: type rank, value, document number, the whole turned round when descending.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any

import apsw

from pleiad.keys.range import WHOLE
from pleiad.store.path_index import State
from pleiad.store.predicate import RANK_NUMBER, RANK_STRING, ROW_COLUMNS, merged_selection
from pleiad.store.rows import Row
from pleiad.store.selection import IndexedPath, OrderPosition, PathOrder, Predicate, Selection
from pleiad.store.sqlite.json_sql import json_path, rank_of, value_of
from pleiad.store.sqlite.path_index import SqliteIndex
from pleiad.store.sqlite.predicate_sql import ALWAYS, Entries, Place, Sql, all_of, entries
from pleiad.store.sqlite.reads import Read
from pleiad.store.sqlite.rows import ROW, ROW_COLUMNS_COUNT, checked_row
from pleiad.store.sqlite.select import (
    PIECE_ENTRIES,
    ROWS_KEPT_MAX,
    RowPlan,
    plan_rows,
    predicate_conditions,
    row_conditions,
)


async def ordered(
    read: Read, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
) -> list[tuple[Row, OrderPosition]] | None:
    """Rows of a selection in the order of a path behind a position; None when the path has no ready index."""
    selection = merged_selection(selection)
    if (rows := ordered_at_once(read, selection, order, after, limit)) is not None:
        return rows
    reading = read()
    if reading is None:
        return []
    index = reading.indexes.ready(IndexedPath(order.path))
    if index is None:
        return None
    plan = plan_rows(reading, selection, except_path=order.path)
    if plan.few is not None:
        return _sort_few(reading.connection, selection, plan, plan.few, order, after, limit)
    return await _walk(read, selection, index, order, after, limit)


def ordered_at_once(
    read: Read, selection: Selection, order: PathOrder, after: OrderPosition | None, limit: int
) -> list[tuple[Row, OrderPosition]] | None:
    """The same where a few entries of the index, one after the other, are the rows; None for all others."""
    if limit > ROWS_KEPT_MAX:
        return None
    reading = read()
    index = None if reading is None else reading.indexes.ready(IndexedPath(order.path))
    if reading is None or index is None:
        return None
    bound, rest = _order_bound(selection.predicates, order.path)
    has_tests = selection.span != WHOLE or selection.default_ttl is not None
    if rest or (has_tests and row_conditions(reading.connection, selection)):
        return None
    behind = _behind(bound, None if after is None else _place(after), order)
    places: Any = reading.execute(
        _entries_text(index.id, behind.text, order.descending), (*behind.params, limit)
    ).fetchall()
    rows = reading.rows([number for _, _, number in places])
    return [(row, OrderPosition(*place)) for row, place in zip(rows, places, strict=True)]


@lru_cache(maxsize=256)
def _entries_text(id: int, where: str, is_falling: bool) -> str:
    direction = "DESC" if is_falling else "ASC"
    return (
        f"SELECT rank, value, number FROM path_{id} WHERE {where} "
        f"ORDER BY rank {direction}, value {direction}, number {direction} LIMIT ?"
    )


def _behind(bound: Entries | None, place: Place | None, order: PathOrder) -> Sql:
    """The entries of an index behind a place, of those that a predicate leaves."""
    if place is None:
        return bound.where if bound is not None else ALWAYS
    if bound is not None:
        return bound.behind(place, order.descending)
    return Sql(f"(rank, value, number) {'<' if order.descending else '>'} (?, ?, ?)", place)


def _place(position: OrderPosition) -> Place:
    return position.rank, position.value, position.number


def _placed(found: Any) -> tuple[Row, OrderPosition]:
    rank, value = found[ROW_COLUMNS_COUNT:]
    return checked_row(found[:ROW_COLUMNS_COUNT]), OrderPosition(rank, value, found[0])


def _sort_few(
    connection: apsw.Connection,
    selection: Selection,
    plan: RowPlan,
    few: Sql,
    order: PathOrder,
    after: OrderPosition | None,
    limit: int,
) -> list[tuple[Row, OrderPosition]]:
    """Sorts the few rows another index finds, which is cheaper than to walk along the whole order."""
    where = all_of(
        Sql(f"number IN ({few.text})", few.params),
        *row_conditions(connection, selection),
        *predicate_conditions(plan.rest),
    )
    rank, value = _order_keys(order.path)
    keys = Sql(
        f"SELECT number AS found, {rank.text} AS rank, {value.text} AS value FROM item NOT INDEXED "
        f"WHERE {where.text}",
        (*rank.params, *value.params, *where.params),
    )
    direction, operator = ("DESC", "<") if order.descending else ("ASC", ">")
    text, params = f"SELECT found, rank, value FROM ({keys.text})", keys.params
    if after is not None:
        text += f" WHERE (rank, value, found) {operator} (?, ?, ?)"
        params = (*params, *_place(after))
    text += f" ORDER BY rank {direction}, value {direction}, found {direction} LIMIT ?"
    rows: Any = connection.execute(
        f"SELECT {ROW}, rank, value FROM ({text}) CROSS JOIN item ON item.number = found "
        f"ORDER BY rank {direction}, value {direction}, found {direction}",
        (*params, limit),
    )
    return [_placed(row) for row in rows]


def _order_keys(path: tuple[str, ...]) -> tuple[Sql, Sql]:
    column = ROW_COLUMNS.get(path)
    if column:
        if column == "id":
            return Sql(str(RANK_STRING)), Sql("item.id")
        return Sql(str(RANK_NUMBER)), Sql(f"CAST(item.{column} AS REAL)")
    where = json_path(path)
    rank, value = rank_of("body", "?"), value_of("body", "?")
    return Sql(rank, (where,) * rank.count("?")), Sql(value, (where,) * value.count("?"))


async def _walk(
    read: Read,
    selection: Selection,
    index: SqliteIndex,
    order: PathOrder,
    after: OrderPosition | None,
    limit: int,
) -> list[tuple[Row, OrderPosition]] | None:
    """Goes along the index in pieces until enough rows are found."""
    direction = "DESC" if order.descending else "ASC"
    by_place = f"ORDER BY rank {direction}, value {direction}, number {direction}"
    bound, rest = _order_bound(selection.predicates, order.path)
    rest_tests = predicate_conditions(rest)
    place = None if after is None else _place(after)
    rows: list[tuple[Row, OrderPosition]] = []
    while len(rows) < limit:
        reading = read()
        if reading is None or index.state is not State.READY:
            return None
        connection = reading.connection
        behind = _behind(bound, place, order)
        tests = [*row_conditions(connection, selection), *rest_tests]
        entries_max = max(PIECE_ENTRIES, limit) if tests else limit - len(rows)
        among = (
            f"SELECT rank, value, number AS found FROM {index.table} WHERE {behind.text} {by_place} LIMIT ?"
        )
        also = all_of(*tests) if tests else Sql("1")
        found: Any = connection.execute(
            f"SELECT {ROW}, rank, value FROM ({among}) CROSS JOIN item ON item.number = found "
            f"WHERE {also.text} ORDER BY rank {direction}, value {direction}, found {direction} LIMIT ?",
            (*behind.params, entries_max, *also.params, limit - len(rows)),
        )
        rows += [_placed(row) for row in found]
        if not tests or len(rows) >= limit:
            break
        place = connection.execute(
            f"SELECT rank, value, number FROM {index.table} WHERE {behind.text} {by_place} LIMIT 1 OFFSET ?",
            (*behind.params, entries_max - 1),
        ).fetchone()
        if place is None:
            break
        await asyncio.sleep(0)
    return rows


def _order_bound(
    predicates: tuple[Predicate, ...], path: tuple[str, ...]
) -> tuple[Entries | None, tuple[Predicate, ...]]:
    """The part of the index a predicate on its own path leaves, and the predicates that are left to test."""
    for position, predicate in enumerate(predicates):
        terms = entries(predicate) if predicate.path == path and not predicate.element else []
        if len(terms) == 1:
            return terms[0], predicates[:position] + predicates[position + 1 :]
    return None, predicates
