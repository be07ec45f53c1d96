"""CSV: a row is an item, a column a property; `address.city` is a property of an object.

A cell that is a JSON number, true, false, null, an array or an object is read as that, every other as text; an empty
cell is no property at all. Numbers that a double would change, and those with leading zeros, stay text, and so does the
id. What is written follows the same rule the other way round.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import IO, Any

import orjson

from pleiad.job.item_file.entry import TEXT_BYTES_MAX, Entry, ItemFileError, entry_of_value

ALL_COLUMNS = "*"
"""In place of the names of columns that are kept as text."""
COLUMNS_MAX = 10_000
_STEPS_MAX = 128
"""How deep a column lies at most, as deep as an item may be."""
_EXACT_INTEGER_MAX = 2**53 - 1
_EXACT_DIGITS_MAX = 17
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_WORDS = {"true": True, "TRUE": True, "false": False, "FALSE": False, "null": None}
_DOT = "."
_DELIMITERS = {";": ";", "\t": "\\t", "|": "|", ",": ","}
"""What stands between cells elsewhere, and the words for it."""


def cell_value(text: str) -> Any:
    """The value that a cell shows."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first in "[{":
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    number = _NUMBER.fullmatch(text) if first in "-0123456789" else None
    if number is None:
        return text
    if number[1] is None and number[2] is None:
        whole = int(text) if len(text) <= _EXACT_DIGITS_MAX else _EXACT_INTEGER_MAX + 1
        return whole if abs(whole) <= _EXACT_INTEGER_MAX else text
    digits = sum(each.isdigit() for each in text.lower().partition("e")[0])
    value = float(text)
    return value if digits <= _EXACT_DIGITS_MAX and abs(value) != float("inf") else text


def read_rows(
    file: IO[bytes], delimiter: str, text_columns: Collection[str], is_guess: bool = False
) -> Iterator[Entry]:
    """The items of a CSV file, whose first row names the columns; the delimiter may be one that nobody has told."""
    csv.field_size_limit(TEXT_BYTES_MAX)
    # Bytes that are no UTF-8 reach the row they stand in, which is refused alone.
    letters = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
    lines = _Lines(letters)
    rows = csv.reader(lines, delimiter=delimiter)
    line = 1
    try:
        names = next(rows, [])
        _refuse_open(lines, line)
        if is_guess:
            _refuse_one_column(names, delimiter)
        columns = [tuple(name.split(_DOT)) for name in _header(names)]
        kept = [_is_text(steps, text_columns) for steps in columns]
        number = 0
        while True:
            line = rows.line_num + 1
            lines.row_characters = 0
            row = next(rows, None)
            if row is None:
                return
            if row:
                _refuse_open(lines, line)
                number += 1
                yield _entry(number, line, row, columns, kept)
    except csv.Error as error:
        raise ItemFileError(f"line {line}: {error}") from None
    finally:
        letters.detach()


class _Lines:
    """The lines of a file, as long as those of one row stay within bounds: packed, any length takes no room at all.

    Behind the last one comes an empty one: a row that takes it in has not ended with the file.
    """

    def __init__(self, letters: io.TextIOWrapper) -> None:
        self._letters = letters
        self.row_characters = 0
        self.is_over = False

    def __iter__(self) -> Iterator[str]:
        while text := self._letters.readline(TEXT_BYTES_MAX):
            self.row_characters += len(text)
            if self.row_characters >= TEXT_BYTES_MAX:
                raise csv.Error(f"a row is longer than {TEXT_BYTES_MAX:,} characters")
            yield text
        self.is_over = True
        yield "\n"


def _refuse_one_column(names: list[str], delimiter: str) -> None:
    """A file with another delimiter would be read as one of a single column, and every row be one text."""
    for other, word in _DELIMITERS.items():
        if len(names) == 1 and other != delimiter and other in names[0]:
            raise ItemFileError(f"line 1: there is one column, {names[0][:100]!r}: give --delimiter '{word}'")


def _refuse_open(lines: _Lines, line: int) -> None:
    """A cell that is never closed has all that follows it in it: rows, and nobody would notice."""
    if lines.is_over and lines.row_characters:
        raise ItemFileError(f"line {line}: the row that begins here has a quote that is never closed")


def _header(names: list[str]) -> list[str]:
    if not names:
        raise ItemFileError("the file is empty: its first row must name the columns")
    if len(names) > COLUMNS_MAX:
        raise ItemFileError(f"line 1: there are more than {COLUMNS_MAX:,} columns: bring the items as jsonl")
    for name, count in Counter(names).items():
        if not all(name.split(_DOT)):
            raise ItemFileError(f"line 1: '{name}' is no name of a column")
        if name.count(_DOT) >= _STEPS_MAX:
            raise ItemFileError(f"line 1: a column lies deeper than the {_STEPS_MAX} levels of an item")
        if count > 1:
            raise ItemFileError(f"line 1: the column '{name}' is there twice")
    return names


def _is_text(steps: tuple[str, ...], text_columns: Collection[str]) -> bool:
    return steps == ("id",) or ALL_COLUMNS in text_columns or _DOT.join(steps) in text_columns


def _entry(number: int, line: int, row: list[str], columns: list[tuple[str, ...]], kept: list[bool]) -> Entry:
    if len(row) != len(columns):
        problem = f"the row has {len(row)} cells, and the header {len(columns)}"
        return Entry(number, line, orjson.dumps(list(map(ascii, row[:COLUMNS_MAX]))), None, problem)
    item: dict[str, Any] = {}
    for text, steps, is_text in zip(row, columns, kept, strict=True):
        if not text:
            continue
        value = text if is_text else cell_value(text)
        if len(steps) == 1 and steps[0] not in item:
            item[steps[0]] = value
        elif not _put(item, steps, value):
            name = _DOT.join(steps)
            return Entry(number, line, orjson.dumps(list(map(ascii, row))), None, f"'{name}' has two values")
    return entry_of_value(number, line, item)


def _put(item: dict[str, Any], steps: tuple[str, ...], value: Any) -> bool:
    """Puts a value where the steps lead; whether there was room for it."""
    place = item
    for name in steps[:-1]:
        place = place.setdefault(name, {})
        if not isinstance(place, dict):
            return False
    return place.setdefault(steps[-1], value) is value


# -- writing -------------------------------------------------------------------------------------


def flat(item: Mapping[str, Any]) -> dict[str, str]:
    """The cells of an item by the names of their columns."""
    cells: dict[str, str] = {}
    # From the end, so that what is found comes out in the order of the item, however deep it is.
    waiting = list(item.items())[::-1]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict) and value and all(value):
            waiting += [(f"{name}{_DOT}{inner}", deeper) for inner, deeper in reversed(value.items())]
        elif name in cells:
            raise ItemFileError(
                f"CSV cannot tell two properties '{name}' of an item apart: export it as jsonl"
            )
        else:
            cells[name] = value if isinstance(value, str) else orjson.dumps(value).decode()
    return cells


class Columns:
    """The columns that the items seen so far need, in the order in which they appeared."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def note(self, names: Iterable[str]) -> None:
        self.names.update(dict.fromkeys(names))
        if len(self.names) > COLUMNS_MAX:
            raise ItemFileError(f"the items have more than {COLUMNS_MAX:,} properties: export them as jsonl")


def write_rows(file: IO[bytes], columns: Columns, items: Iterable[Mapping[str, Any]], delimiter: str) -> None:
    """Writes items under the columns that all of them together have."""
    letters = io.TextIOWrapper(file, encoding="utf-8", newline="")
    names = list(columns.names)
    if names:
        writer = csv.writer(letters, delimiter=delimiter, lineterminator="\n")
        writer.writerow(names)
        for item in items:
            cells = flat(item)
            writer.writerow([cells.get(name, "") for name in names])
    letters.flush()
    letters.detach()
