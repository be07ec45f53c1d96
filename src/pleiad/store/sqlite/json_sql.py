"""How a property of a JSONB body is addressed and read in SQL, with its JSON type.

Type ranks order values of different types: undefined, null, boolean, number, string, array, object. A value
beside a rank is 0 or 1 for booleans, a REAL for numbers, the text for strings and 0 for all that has no order
of its own.

SQLite reads a number of more than 19 digits up to one unit in the last place too low, so such a number is read
by Python. All other numbers are read exactly, and integers become doubles as IEEE rounds them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import apsw

from pleiad.store.checksum import fields_checksum
from pleiad.store.predicate import (
    RANK_ARRAY,
    RANK_BOOLEAN,
    RANK_NULL,
    RANK_NUMBER,
    RANK_OBJECT,
    RANK_STRING,
    RANK_UNDEFINED,
)

_DIGITS_SUSPECT = 20
_LONG_NUMBER_GLOB = "*" + "[0-9.]" * _DIGITS_SUSPECT + "*"
_LONG_NUMBER = re.compile(rf"[0-9.]{{{_DIGITS_SUSPECT}}}")


def json_path(path: tuple[str, ...]) -> str:
    """The SQLite JSON path of property names; quoted, a name is never taken for a position in an array."""
    return "$" + "".join(f".{_quoted(name)}" for name in path)


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\0", "\\u0000")
    return f'"{escaped}"'


def literal(text: str) -> str:
    """An SQL string literal; the text has no NUL."""
    return "'" + text.replace("'", "''") + "'"


def rank_of(body: str, path: str) -> str:
    """SQL for the type rank of the value at a path; both arguments are SQL."""
    return (
        f"CASE json_type({body}, {path}) WHEN 'text' THEN {RANK_STRING} WHEN 'integer' THEN {RANK_NUMBER} "
        f"WHEN 'real' THEN {RANK_NUMBER} WHEN 'true' THEN {RANK_BOOLEAN} WHEN 'false' THEN {RANK_BOOLEAN} "
        f"WHEN 'null' THEN {RANK_NULL} WHEN 'array' THEN {RANK_ARRAY} WHEN 'object' THEN {RANK_OBJECT} "
        f"ELSE {RANK_UNDEFINED} END"
    )


def value_of(body: str, path: str) -> str:
    """SQL for the comparable value beside the rank of the value at a path."""
    return (
        f"CASE json_type({body}, {path}) WHEN 'text' THEN json_extract({body}, {path}) "
        f"WHEN 'integer' THEN {_double(body, path)} WHEN 'real' THEN {_double(body, path)} "
        "WHEN 'true' THEN 1 ELSE 0 END"
    )


def number_of(body: str, path: str) -> str:
    """SQL for the number at a path as a double, NULL when there is none."""
    return f"CASE WHEN json_type({body}, {path}) IN ('integer', 'real') THEN {_double(body, path)} END"


def _double(body: str, path: str) -> str:
    return (
        f"CASE WHEN length({body} -> {path}) < {_DIGITS_SUSPECT} "
        f"THEN CAST(json_extract({body}, {path}) AS REAL) ELSE double_of({body} -> {path}) END"
    )


def elements_of(body: str, path: str) -> str:
    """SQL for the JSON text at a path, for json_each: its numbers are read exactly."""
    text = f"({body} -> {path})"
    return f"CASE WHEN {text} GLOB '{_LONG_NUMBER_GLOB}' THEN short_numbers_of({text}) ELSE {text} END"


ELEMENT_RANK = (
    f"CASE type WHEN 'text' THEN {RANK_STRING} WHEN 'integer' THEN {RANK_NUMBER} "
    f"WHEN 'real' THEN {RANK_NUMBER} WHEN 'null' THEN {RANK_NULL} ELSE {RANK_BOOLEAN} END"
)
ELEMENT_VALUE = (
    "CASE type WHEN 'text' THEN atom WHEN 'integer' THEN CAST(atom AS REAL) WHEN 'real' THEN atom "
    "WHEN 'true' THEN 1 ELSE 0 END"
)
"""Rank and value of a scalar row of json_each."""


def _double_of(*values: Any) -> float:
    return float(values[0])


def _short_numbers_of(*values: Any) -> str:
    """The same JSON value with every number written in its shortest form."""
    text: str = values[0]
    if _LONG_NUMBER.search(text) is None:
        return text
    return json.dumps(json.loads(text, parse_int=float))


def _fields_checksum(*values: Any) -> int:
    return fields_checksum(*values)


def register_functions(connection: apsw.Connection) -> None:
    """Gives a connection the functions that conditions, index triggers and the table of versions call."""
    connection.create_scalar_function("fields_checksum", _fields_checksum, deterministic=True)
    connection.create_scalar_function("double_of", _double_of, 1, deterministic=True)
    connection.create_scalar_function("short_numbers_of", _short_numbers_of, 1, deterministic=True)
