"""Upper and lower case one character at a time, the same for every culture.

A character changes only where its upper and its lower case are each one character and each other's inverse: ß, ı, İ,
ς, µ, ſ and ǅ stay as they are. So a text keeps its length, and the case of a letter does not depend on its neighbours.

The service has the letters of Unicode 5.1: pairs that were added later, as those of Cherokee, have no case.
"""

from __future__ import annotations

from functools import cache

from pleiad.query.pace import STEPS_OF_A_LOOK, worked

_PIECE_CHARS = 64 * STEPS_OF_A_LOOK
"""Characters that are looked up before others have their turn."""
_LAST_CASED = 0x1044F
_GREEK_WITH_IOTA = range(0x1F88, 0x1FFD)
"""Their upper case in full is two letters, so that Python knows the single one as the case of titles."""
_CASED_LATER = frozenset(
    code
    for first, last in (
        *((0x37F, 0x37F), (0x524, 0x52F), (0x10C7, 0x10CD), (0x13A0, 0x13F5), (0x1C89, 0x1CBF)),
        *((0x2C2F, 0x2C2F), (0x2C70, 0x2C70), (0x2C7E, 0x2C7F), (0x2CEB, 0x2CF2)),
        *((0xA660, 0xA660), (0xA698, 0xA69A), (0xA78D, 0xA7FF)),
    )
    for code in range(first, last + 1)
)


@cache
def _tables() -> tuple[dict[int, int], dict[int, int]]:
    """Upper case by lower case and the other way round, made when the first text beyond ASCII needs them."""
    raised: dict[int, int] = {}
    lowered: dict[int, int] = {}
    for code in range(_LAST_CASED + 1):
        char = chr(code)
        low = char.lower()
        if len(low) != 1 or low == char or code in _CASED_LATER:
            continue
        if low.upper() == char or (code in _GREEK_WITH_IOTA and low.title() == char):
            lowered[code] = ord(low)
            raised[ord(low)] = code
    return raised, lowered


def upper(text: str) -> str:
    """The text in upper case, of the same length."""
    return text.upper() if text.isascii() else _translated(text, _tables()[0])


def lower(text: str) -> str:
    """The text in lower case, of the same length."""
    return text.lower() if text.isascii() else _translated(text, _tables()[1])


def _translated(text: str, table: dict[int, int]) -> str:
    if len(text) <= _PIECE_CHARS:
        return text.translate(table)
    pieces = []
    for start in range(0, len(text), _PIECE_CHARS):
        worked(STEPS_OF_A_LOOK)
        pieces.append(text[start : start + _PIECE_CHARS].translate(table))
    return "".join(pieces)


def fold(text: str) -> str:
    """The text with its case removed, for comparisons that ignore case."""
    return text.upper() if text.isascii() else upper(text)
