"""Upper and lower case one character at a time, the same for every culture.

A character changes only where its upper and its lower case are each one character and each other's inverse: ß, ı, İ,
ς, µ, ſ and ǅ stay as they are. So a text keeps its length, and the case of a letter does not depend on its neighbours.
"""

from __future__ import annotations

from functools import cache

_LAST_CASED = 0x1E943


@cache
def _tables() -> tuple[dict[int, int], dict[int, int]]:
    """Upper case by lower case and the other way round, made when the first text beyond ASCII needs them."""
    raised: dict[int, int] = {}
    lowered: dict[int, int] = {}
    for code in range(_LAST_CASED + 1):
        char = chr(code)
        low = char.lower()
        if len(low) == 1 and low != char and low.upper() == char:
            lowered[code] = ord(low)
            raised[ord(low)] = code
    return raised, lowered


def upper(text: str) -> str:
    """The text in upper case, of the same length."""
    return text.upper() if text.isascii() else text.translate(_tables()[0])


def lower(text: str) -> str:
    """The text in lower case, of the same length."""
    return text.lower() if text.isascii() else text.translate(_tables()[1])


def fold(text: str) -> str:
    """The text with its case removed, for comparisons that ignore case."""
    return upper(text)
