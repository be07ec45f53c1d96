"""Glances at the rows of a selection: their numbers, sizes and some properties.

The rows of a piece come as one row, with the texts of each property as lines, since a row that is handed over by itself
takes longer than all that is looked at of it.

Invariants:
- the texts that are given are together at most twice as long as `_CHARS_MAX`, and one row more;
- while they are read no more bytes than that are held a second time, however long the rows turn out to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import orjson

from pleiad.limits import MB
from pleiad.store.glances import Glances
from pleiad.store.predicate import merged_selection
from pleiad.store.selection import Selection
from pleiad.store.sqlite.json_sql import json_path
from pleiad.store.sqlite.predicate_sql import Sql
from pleiad.store.sqlite.reads import Read
from pleiad.store.sqlite.select import Piece, Walk

_PIECE_GLANCES = 2_000
_CHARS_MAX = 8 * MB
"""Where the texts of glances together are longer, those of further rows are left for the next time: nobody knows
beforehand how long they are."""


async def glance(read: Read, selection: Selection, names: Sequence[str], after: int, limit: int) -> Glances:
    """Numbers, sizes and some properties of the rows of a selection."""
    walk = Walk(read, merged_selection(selection), after)
    walk.numbers = _PIECE_GLANCES
    parts: list[Glances] = []
    left = limit
    chars = 0
    while left and (piece := walk.next_piece()) is not None:
        part = _glanced(piece, names, left)
        if len(part):
            parts.append(part)
            left -= len(part)
            chars += part.chars
            if part.is_cut or chars > _CHARS_MAX:
                part.is_cut = True
                break
        if left:
            await walk.rest()
    return Glances.joined(parts, len(names))


def _glanced(piece: Piece, names: Sequence[str], limit: int) -> Glances:
    """Glances at the rows of a piece, in one row of all of them: rows that are handed over one by one take longer."""
    paths = tuple(json_path((name,)) for name in names)
    columns = Sql("number, size_bytes" + _texts("body -> ? AS text_{}", names), paths)
    among = f"SELECT {columns.text} FROM item NOT INDEXED WHERE {piece.where.text} ORDER BY number LIMIT ?"
    grouped = "json_group_array(number), json_group_array(size_bytes)"
    joined = _texts("group_concat(ifnull(text_{}, ''), char(10))", names)
    connection = piece.connection
    bytes_max = connection.limit(apsw.SQLITE_LIMIT_LENGTH)
    try:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, min(bytes_max, _CHARS_MAX // max(1, len(names))))
        found: Any = connection.execute(
            f"SELECT {grouped}{joined} FROM ({among})", (*paths, *piece.where.params, limit)
        ).fetchone()
    except apsw.TooBigError:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, bytes_max)
        return _glanced_one_by_one(piece, columns, len(names), limit)
    finally:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, bytes_max)
    numbers, sizes, *lines = found
    numbers = orjson.loads(numbers)
    if not numbers:
        return Glances.of((), len(names))
    if all(text.count("\n") == len(numbers) - 1 for text in lines):
        return Glances(numbers, orjson.loads(sizes), lines=lines)
    return _glanced_one_by_one(piece, columns, len(names), limit)  # no JSON text: the row is damaged


def _glanced_one_by_one(piece: Piece, columns: Sql, names_count: int, limit: int) -> Glances:
    """The same of as many rows as are not too long together."""
    found: list[Any] = []
    chars = 0
    for glance in piece.rows(columns, limit):
        found.append(glance)
        chars += sum(len(text) for text in glance[2:] if text is not None)
        if chars > _CHARS_MAX:
            break
    glances = Glances.of(found, names_count)
    glances.is_cut = chars > _CHARS_MAX
    return glances


def _texts(column: str, names: Sequence[str]) -> str:
    return "".join(f", {column.format(at)}" for at in range(len(names)))
