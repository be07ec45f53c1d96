"""Functions turned round: the arguments for which they have one of some values, where these are few."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

from pleiad.query.functions import casing
from pleiad.query.values import is_number, neg3

_CASINGS_MAX: Final = 1_024


def casings(text: str) -> list[str] | None:
    """Every text that differs from this one in case alone, None when there are too many."""
    choices = [sorted({char, casing.upper(char), casing.lower(char)}) for char in text]
    count = 1
    for each in choices:
        count *= len(each)
        if count > _CASINGS_MAX:
            return None
    return ["".join(chars) for chars in product(*choices)]


def sources_of(name: str, values: Sequence[Any]) -> list[Any] | None:
    """The arguments for which a function gives one of the values; None where they are not few."""
    texts = [value for value in values if isinstance(value, str)]
    match name:
        case "LOWER" | "UPPER":
            change = casing.lower if name == "LOWER" else casing.upper
            found: list[Any] = []
            for text in texts:
                written = casings(text)
                if written is None:
                    return None
                found.extend(each for each in written if change(each) == text)
            return found
        case "REVERSE":
            return [text[::-1] for text in texts]
        case "LENGTH" | "ARRAY_LENGTH" if all(is_number(value) and value < 0 for value in values):
            return []
        case "LENGTH" if all(is_number(value) and value == 0 for value in values):
            return [""]
        case "FLOOR" | "CEILING" | "TRUNC" if all(is_number(value) and value % 1 for value in values):
            return []
        case "SIGN" if all(value not in (-1, 0, 1) for value in values):
            return []
        case "ABS":
            numbers = [value for value in values if is_number(value)]
            return [each for value in numbers if value >= 0 for each in (value, neg3(value))]
    return None
