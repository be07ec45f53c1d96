"""Upper and lower case one character at a time, the same for every culture.

A character whose other case is several characters (ß, İ) stays as it is, so a text keeps its length, and the
lower case of a letter does not depend on its neighbours.
"""

from __future__ import annotations

from pleiad.query.pace import paced


def upper(text: str) -> str:
    """The text in upper case, of the same length."""
    raised = text.upper()
    if len(raised) == len(text):
        return raised
    return "".join([up if len(up := char.upper()) == 1 else char for char in paced(text)])


def lower(text: str) -> str:
    """The text in lower case, of the same length."""
    if text.isascii():
        return text.lower()
    return "".join([low if len(low := char.lower()) == 1 else char for char in paced(text)])


def fold(text: str) -> str:
    """The text with its case removed, for comparisons that ignore case."""
    return upper(text)
