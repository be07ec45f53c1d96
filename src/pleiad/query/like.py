"""LIKE: patterns of ``%``, ``_`` and ``[set]``, matched against a whole string in linear steps per part.

A pattern is cut at its ``%`` signs. Each part matches a fixed number of characters, so the first is tried
at the front, the last at the back, and those between at the leftmost place that fits: no backtracking
over ``%``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pleiad.keys.undefined import UNDEFINED

Matcher = Callable[[Any], Any]


def like_parts(pattern: str, escape: str | None) -> list[list[str]]:
    """The parts between the ``%`` signs, each a list of regular expressions of one character."""
    parts: list[list[str]] = [[]]
    position = 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        if escape is not None and char == escape and position < len(pattern):
            parts[-1].append(re.escape(pattern[position]))
            position += 1
        elif char == "%":
            parts.append([])
        elif char == "_":
            parts[-1].append("(?s:.)")
        elif char == "[" and (end := pattern.find("]", position + 1)) > 0:
            parts[-1].append(_set(pattern[position:end]))
            position = end + 1
        else:
            parts[-1].append(re.escape(char))
    return parts


def _set(body: str) -> str:
    """The regular expression of a character set such as ``a-f`` or ``^abc``."""
    negated = body.startswith("^") and len(body) > 1
    body = body[1:] if negated else body
    pieces: list[str] = []
    position = 0
    while position < len(body):
        low = body[position]
        if position + 2 < len(body) and body[position + 1] == "-":
            high = body[position + 2]
            if low <= high:
                pieces.append(f"{re.escape(low)}-{re.escape(high)}")
            position += 3
        else:
            pieces.append(re.escape(low))
            position += 1
    if not pieces:
        return "(?s:.)" if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(pieces)}]"


def literal_of(pattern: str, escape: str | None) -> str | None:
    """The one string that a pattern without wildcards matches, else None."""
    parts = like_parts(pattern, escape)
    if len(parts) > 1:
        return None
    pieces: list[str] = []
    for piece in parts[0]:
        plain = piece[1:] if len(piece) == 2 and piece[0] == "\\" else piece
        if len(plain) != 1 or piece == "(?s:.)":
            return None
        pieces.append(plain)
    return "".join(pieces)


@lru_cache(maxsize=512)
def _compiled(pattern: str, escape: str | None) -> tuple[tuple[re.Pattern[str], int], ...]:
    return tuple((re.compile("".join(part)), len(part)) for part in like_parts(pattern, escape))


def _matches(text: str, parts: tuple[tuple[re.Pattern[str], int], ...]) -> bool:
    first, first_length = parts[0]
    if len(parts) == 1:
        return len(text) == first_length and first.match(text) is not None
    last, last_length = parts[-1]
    end = len(text) - last_length
    if end < first_length or first.match(text) is None or last.match(text, end) is None:
        return False
    position = first_length
    for part, length in parts[1:-1]:
        if length == 0:
            continue
        found = part.search(text, position, end)
        if found is None:
            return False
        position = found.end()
    return position <= end


def like3(value: Any, pattern: Any, escape: str | None) -> Any:
    """``value LIKE pattern ESCAPE escape``: undefined unless both are strings."""
    if value.__class__ is not str or pattern.__class__ is not str:
        return UNDEFINED
    return _matches(value, _compiled(pattern, escape))


def like_matcher(pattern: Any, escape: str | None) -> Matcher:
    """``LIKE`` with a pattern known beforehand."""
    if pattern.__class__ is not str:
        return lambda value: UNDEFINED
    parts = _compiled(pattern, escape)

    def match(value: Any) -> Any:
        return _matches(value, parts) if value.__class__ is str else UNDEFINED

    return match
