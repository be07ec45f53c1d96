"""LIKE: patterns of ``%``, ``_`` and ``[set]``, matched against a whole string in linear steps per part.

A pattern is cut at its ``%`` signs. Each part matches a fixed number of characters, so the first is tried
at the front, the last at the back, and those between at the leftmost place that fits: no backtracking
over ``%``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from pleiad.query import errors
from pleiad.query.functions.registry import CHARS_OF_A_STEP, LARGE
from pleiad.query.pace import tick, worked
from pleiad.values.undefined import UNDEFINED

Matcher = Callable[[Any], Any]
PATTERN_CHARS_MAX: Final = 65_536
PART_CHARS_MAX: Final = 8_192
_KEPT_CHARS_MAX: Final = 500
_CHARS_OF_A_LOOK: Final = 256
_NEVER: Final = "(?!)"


def like_parts(pattern: str, escape: str | None) -> list[list[str]]:
    """The parts between the ``%`` signs, each a list of regular expressions of one character."""
    parts: list[list[str]] = [[]]
    position = looked_at = 0
    while position < len(pattern):
        if position - looked_at >= _CHARS_OF_A_LOOK:
            worked(position - looked_at)
            looked_at = position
        char = pattern[position]
        position += 1
        if escape is not None and char == escape and position < len(pattern):
            parts[-1].append(re.escape(pattern[position]))
            position += 1
        elif char == "%":
            parts.append([])
        elif char == "_":
            parts[-1].append("(?s:.)")
        elif char == "[":
            end = pattern.find("]", position + 1)
            # A set that is not closed matches nothing.
            parts[-1].append(_set(pattern[position:end]) if end > 0 else _NEVER)
            position = end + 1 if end > 0 else len(pattern)
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
        return "(?s:.)" if negated else _NEVER
    return f"[{'^' if negated else ''}{''.join(pieces)}]"


def can_match(pattern: str, escape: str | None) -> bool:
    """Whether some text matches the pattern."""
    return not any(_NEVER in part for part in like_parts(pattern, escape))


def literal_of(pattern: str, escape: str | None) -> str | None:
    """The one string that a pattern without wildcards matches, else None."""
    parts = like_parts(pattern, escape)
    return _plain_text(parts[0]) if len(parts) == 1 else None


def prefix_of(pattern: str, escape: str | None) -> str | None:
    """What a text begins with that a pattern of plain text and one ``%`` behind it matches, else None."""
    parts = like_parts(pattern, escape)
    return _plain_text(parts[0]) if len(parts) == 2 and not parts[1] else None


def _plain_text(parts: list[str]) -> str | None:
    """The text that pieces of a pattern stand for when none of them is a wildcard."""
    pieces: list[str] = []
    for piece in parts:
        plain = piece[1:] if len(piece) == 2 and piece[0] == "\\" else piece
        if len(plain) != 1 or piece == "(?s:.)":
            return None
        pieces.append(plain)
    return "".join(pieces)


class _Part:
    """What stands between two ``%`` signs: as many pieces as it matches characters.

    It is searched by the longest plain text in it, and tried only where that is found.
    """

    __slots__ = ("_anchor", "_anchor_at", "_is_plain", "_pattern", "length")

    def __init__(self, pieces: list[str]) -> None:
        self.length = len(pieces)
        self._anchor, self._anchor_at = _longest_text(pieces)
        self._is_plain = len(self._anchor) == self.length
        self._pattern: re.Pattern[str] | None = None
        if not self._is_plain:
            if self.length > PART_CHARS_MAX:
                raise errors.plain_error(
                    f"A part of the pattern of LIKE with wildcards is longer than {PART_CHARS_MAX} characters."
                )
            self._pattern = re.compile("".join(pieces))

    def is_at(self, text: str, position: int) -> bool:
        if self._pattern is None:
            return text.startswith(self._anchor, position)
        return self._pattern.match(text, position) is not None

    def end_of_first(self, text: str, position: int, end: int) -> int | None:
        """Where the first place from a position on ends that the part fits."""
        at = position + self._anchor_at
        last = end - self.length + self._anchor_at + len(self._anchor)
        while (at := text.find(self._anchor, at, last)) >= 0:
            start = at - self._anchor_at
            if self._is_plain or self.is_at(text, start):
                return start + self.length
            tick(1 + self.length // CHARS_OF_A_STEP)
            at += 1
        return None


def _longest_text(pieces: list[str]) -> tuple[str, int]:
    """The longest run of plain characters, and where it begins."""
    best, best_at = "", 0
    run: list[str] = []
    for number, piece in enumerate([*pieces, _NEVER]):
        char = piece[1:] if len(piece) == 2 and piece[0] == "\\" else piece
        if len(char) == 1:
            run.append(char)
            continue
        if len(run) > len(best):
            best, best_at = "".join(run), number - len(run)
        run = []
    return best, best_at


def _parts_of(pattern: str, escape: str | None) -> tuple[_Part, ...]:
    if len(pattern) > PATTERN_CHARS_MAX:
        raise errors.plain_error(f"The pattern of LIKE is longer than {PATTERN_CHARS_MAX} characters.")
    worked(len(pattern))
    return tuple(map(_Part, like_parts(pattern, escape)))


_kept_parts = lru_cache(maxsize=512)(_parts_of)


def _compiled(pattern: str, escape: str | None) -> tuple[_Part, ...]:
    return (_kept_parts if len(pattern) <= _KEPT_CHARS_MAX else _parts_of)(pattern, escape)


def _matches(text: str, parts: tuple[_Part, ...]) -> bool:
    if len(text) > LARGE:
        tick(len(text) // CHARS_OF_A_STEP)
    first = parts[0]
    if len(parts) == 1:
        return len(text) == first.length and first.is_at(text, 0)
    last = parts[-1]
    end = len(text) - last.length
    if end < first.length or not first.is_at(text, 0) or not last.is_at(text, end):
        return False
    position = first.length
    for part in parts[1:-1]:
        if part.length == 0:
            continue
        found = part.end_of_first(text, position, end)
        if found is None:
            return False
        tick(1 + (found - position) // CHARS_OF_A_STEP)
        position = found
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
