"""Results of a query as text for a terminal: aligned columns, or JSON.

Text from the database is never sent to a terminal as it is: characters that do not print are written as
escapes, so that an item cannot move the cursor or change colours.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

_GAP = "  "
_COLUMN_WIDTH_MIN = 6
_CUT = "…"


def json_text(value: Any, indented: bool = False) -> str:
    """A value as JSON that every terminal and file can take."""
    text = json.dumps(value, ensure_ascii=False, indent=2 if indented else None)
    # Beyond ASCII there are characters that steer a terminal and halves of pairs that no file holds.
    is_plain = text.isascii() or all(letter.isprintable() or letter == "\n" for letter in text)
    return text if is_plain and "\x7f" not in text else json.dumps(value, indent=2 if indented else None)


def shown(text: str) -> str:
    """A text with an escape for each character that does not print."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text).replace(
        "\x7f", "\\u007f"
    )


def width_of(text: str) -> int:
    """How many columns a text takes: wide letters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(map(_letter_width, text))


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def table(results: Sequence[Any], columns: int | None) -> str | None:
    """Aligned columns for results that are objects of plain values, a line for each of plain values alone.

    None for results of any other shape. `columns` is the width to keep within.
    """
    if all(_is_plain(result) for result in results):
        return "\n".join(_fitted(json_text(result), columns) for result in results)
    if not all(isinstance(result, dict) and all(map(_is_plain, result.values())) for result in results):
        return None
    names = list(dict.fromkeys(name for result in results for name in result))
    if not names:
        return None
    rows = [[_cell(result[name]) if name in result else "" for name in names] for result in results]
    heads = [shown(name) for name in names]
    widths = [max(map(width_of, column)) for column in zip(heads, *rows, strict=True)]
    if columns is not None:
        widths = _narrowed(widths, columns - len(_GAP) * (len(names) - 1))
    is_right = [_is_numeric([result[name] for result in results if name in result]) for name in names]
    lines = [heads, ["-" * width for width in widths], *rows]
    return "\n".join(_fitted(_line(line, widths, is_right), columns) for line in lines)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_numeric(values: list[Any]) -> bool:
    """Whether a column has numbers and, beside them, nothing but null."""
    given = [value for value in values if value is not None]
    return bool(given) and all(isinstance(each, int | float) and not isinstance(each, bool) for each in given)


def _cell(value: Any) -> str:
    return shown(value) if isinstance(value, str) else json_text(value)


def _line(cells: list[str], widths: list[int], is_right: list[bool]) -> str:
    parts = []
    for cell, width, right in zip(cells, widths, is_right, strict=True):
        text = _fitted(cell, width)
        blanks = " " * (width - width_of(text))
        parts.append(blanks + text if right else text + blanks)
    return _GAP.join(parts).rstrip()


def _narrowed(widths: list[int], room: int) -> list[int]:
    """Widths that fit the room: the widest columns give way first, none below the least width."""
    cap = max(widths)
    while cap > _COLUMN_WIDTH_MIN and sum(min(width, cap) for width in widths) > room:
        cap -= 1
    return [min(width, cap) for width in widths]


def _fitted(text: str, width: int | None) -> str:
    """A text cut to a width."""
    if width is None or width_of(text) <= width:
        return text
    kept, used = [], width_of(_CUT)
    for letter in text:
        used += _letter_width(letter)
        if used > width:
            break
        kept.append(letter)
    return "".join(kept) + _CUT
