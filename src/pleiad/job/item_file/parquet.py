"""Parquet, through DuckDB: one library of moderate size that turns rows into JSON and back in C++.

A column has the type that all its values share. Where they share none, or where null or an empty object is among them,
it is a column of JSON, which is read back as what it was. Cells that are null are no property, as empty ones of CSV.
"""

from __future__ import annotations

import glob
import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from pleiad.job.item_file.csv_table import COLUMNS_MAX
from pleiad.job.item_file.entry import TEXT_BYTES_MAX, Entry, ItemFileError, entry_of_value

_ROWS = 500
_JSON = "JSON"
_DEPTH_MAX = 20
"""Objects that nest deeper are a column of JSON."""
_INTEGER_BITS = 63
_EXACT_INTEGER_MAX = 2**53
_SHARED = {frozenset(("INTEGER", "DOUBLE")): "DOUBLE", frozenset(("INTEGER", "LONG")): "LONG"}
"""Types of numbers that go into one column without a loss."""
_SETTINGS = {
    "threads": 1,
    "memory_limit": "1GB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


# -- reading -------------------------------------------------------------------------------------


def read_rows(path: Path) -> Iterator[Entry]:
    """The items of a Parquet file, one of each row."""
    with _duckdb(path.name) as connection:
        # Brackets and stars in the name of a file are a pattern to the library, and would find other files.
        source = f"read_parquet({_quoted(glob.escape(str(path)))})"
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        names = {str(name) for name, *_ in described}
        json_names = [str(name) for name, kind, *_ in described if kind == _JSON]
        row = "item_row"
        while row in names:  # an alias that is a column as well would mean the column
            row += "_"
        there = "".join(f", {_named(name)} IS NOT NULL" for name in json_names)
        connection.execute(f"SELECT to_json({row}){there} FROM {source} {row}")
        number = 0
        while rows := connection.fetchmany(_ROWS):
            for text, *are_there in rows:
                number += 1
                kept = {name for name, is_there in zip(json_names, are_there, strict=True) if is_there}
                yield _entry(number, text, kept)


def _entry(number: int, text: str, kept: set[str]) -> Entry:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:  # doubles that are not finite are written as what no JSON has
        return Entry(
            number, number, text.encode(), None, "a number is not finite, and JSON has no such number"
        )
    item = {
        name: value if name in kept else _without_nulls(value)
        for name, value in found.items()
        if value is not None or name in kept
    }
    if type(item.get("id")) is int:
        item["id"] = str(item["id"])
    return entry_of_value(number, number, item)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


# -- writing -------------------------------------------------------------------------------------


class Schema:
    """The types that the columns need for the items seen so far."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}
        self._names: dict[str, str] = {}

    def note(self, item: Mapping[str, Any]) -> None:
        for name, value in item.items():
            kind = self._kinds.get(name)
            if kind is None:
                kind = self._new(name)
            kind.note(value, 0)

    def _new(self, name: str) -> _Kind:
        other = self._names.setdefault(name.casefold(), name)
        if other != name:
            raise ItemFileError(f"Parquet cannot hold both '{other}' and '{name}': export the items as jsonl")
        if not name or len(self._kinds) >= COLUMNS_MAX:
            raise ItemFileError(
                f"Parquet needs names for its columns, {COLUMNS_MAX:,} at most: export the items as jsonl"
            )
        kind = self._kinds[name] = _Kind()
        return kind

    def types(self) -> dict[str, str]:
        """The type of each column in the words of SQL."""
        return {name: kind.type or _JSON for name, kind in self._kinds.items()}


def row_of(item: Mapping[str, Any], types: Mapping[str, str]) -> bytes:
    """An item as `write_rows` takes it: what goes into a column of JSON is the text of it."""
    return orjson.dumps(
        {
            name: orjson.dumps(value).decode() if types[name] == _JSON else value
            for name, value in item.items()
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


class _Kind:
    """What one column or one place in it holds."""

    __slots__ = ("_fields", "_is_mixed", "_item", "_scalar")

    def __init__(self) -> None:
        self._scalar: str | None = None
        self._fields: dict[str, _Kind] | None = None
        self._item: _Kind | None = None
        self._is_mixed = False

    def note(self, value: Any, depth: int) -> None:
        if self._is_mixed:
            return
        if isinstance(value, dict):
            self._note_object(value, depth)
        elif isinstance(value, list):
            self._note_list(value, depth)
        else:
            self._note_scalar(_scalar_type(value))

    def _note_object(self, value: dict[str, Any], depth: int) -> None:
        if self._scalar is not None or self._item is not None or depth > _DEPTH_MAX:
            self._is_mixed = True
            return
        if self._fields is None:
            self._fields = {}
        for name, inner in value.items():
            self._fields.setdefault(name, _Kind()).note(inner, depth + 1)
        self._is_mixed = len(self._fields) > COLUMNS_MAX

    def _note_list(self, value: list[Any], depth: int) -> None:
        if self._scalar is not None or self._fields is not None or depth > _DEPTH_MAX:
            self._is_mixed = True
            return
        if self._item is None:
            self._item = _Kind()
        for inner in value:
            self._item.note(inner, depth + 1)

    def _note_scalar(self, found: str | None) -> None:
        known = self._scalar
        if found is None or self._fields is not None or self._item is not None:
            self._is_mixed = True
        elif known is None or known == found:
            self._scalar = found
        else:
            self._scalar = _SHARED.get(frozenset((known, found)))
            self._is_mixed = self._scalar is None

    @property
    def type(self) -> str | None:
        """The type in the words of SQL; None when only JSON holds all of it."""
        if self._is_mixed:
            return None
        if self._item is not None:
            inner = self._item.type
            return None if inner is None else f"{inner}[]"
        if self._fields is not None:
            types = {name: kind.type for name, kind in self._fields.items()}
            is_whole = types and all(types) and None not in types.values()
            if not is_whole or len({name.casefold() for name in types}) < len(types):
                return None
            return f"STRUCT({', '.join(f'{_named(name)} {kind}' for name, kind in types.items())})"
        return "BIGINT" if self._scalar in ("INTEGER", "LONG") else self._scalar


def _scalar_type(value: Any) -> str | None:
    if isinstance(value, str):
        return "VARCHAR"
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, float):
        return "DOUBLE"
    if isinstance(value, int) and value.bit_length() <= _INTEGER_BITS:
        # Among doubles a long one would lose digits, so it shares a column with integers only.
        return "INTEGER" if abs(value) <= _EXACT_INTEGER_MAX else "LONG"
    return None


def write_rows(rows: Path, types: Mapping[str, str], target: Path) -> None:
    """Writes a Parquet file of rows that `row_of` made."""
    if not types:
        raise ItemFileError("there is no item, and Parquet cannot be written without a column")
    columns = ", ".join(
        f"{_quoted(name)}: {_quoted('VARCHAR' if kind == _JSON else kind)}" for name, kind in types.items()
    )
    chosen = ", ".join(
        f"{_named(name)}::JSON AS {_named(name)}" if kind == _JSON else _named(name)
        for name, kind in types.items()
    )
    with _duckdb(target.name) as connection:
        connection.execute(
            f"COPY (SELECT {chosen} FROM read_json({_quoted(glob.escape(str(rows)))}, format = 'newline_delimited', "
            f"auto_detect = false, maximum_object_size = {4 * TEXT_BYTES_MAX}, columns = {{{columns}}})) "
            f"TO {_quoted(str(target))} (FORMAT parquet, COMPRESSION zstd)"
        )


# -- the library ---------------------------------------------------------------------------------


@contextmanager
def _duckdb(name: str) -> Iterator[Any]:
    try:
        duckdb: Any = importlib.import_module("duckdb")
    except ImportError:
        raise ItemFileError("Parquet needs a library more: pip install duckdb") from None
    connection = duckdb.connect(":memory:", config=_SETTINGS)
    try:
        yield connection
    except duckdb.Error as error:
        raise ItemFileError(f"{name}: {str(error).splitlines()[0]}") from None
    finally:
        connection.close()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
