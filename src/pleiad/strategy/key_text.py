"""Scalars as the text that synthetic keys are made of.

A value and its text survive being stored: what is computed from an item that was read back is what was computed before
it was written. Numbers are doubles there, so 2018 and 2018.0 are the same text, and integers that a double cannot hold
are refused. A number and the text of its digits are the same text too.
"""

from __future__ import annotations

import math
from typing import Any

KEY_BYTES_MAX = 2048
_WHOLE_MAX = 2**53 - 1


class BadKeyPart(ValueError):
    """A value that no key can be made of."""


def text_of(value: Any, path: str) -> str:
    """A string as it is, a number in its shortest form, true and false."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadKeyPart(f"{path} is a text with half a character, which cannot be stored") from None
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number_text(value, path)
    raise BadKeyPart(f"{path} is {_shown(value)}: a key is made of texts, numbers and booleans")


def whole_number(value: Any, path: str) -> int:
    """A number without sign and fraction that is stored exactly."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _WHOLE_MAX or value != int(value):
        raise BadKeyPart(f"{path} is {_shown(value)}: to be padded it has to be a whole number from 0")
    return int(value)


def checked_key(key: str) -> str:
    """The key, when a partition key value can be as long."""
    size_bytes = len(key.encode())
    if size_bytes > KEY_BYTES_MAX:
        raise BadKeyPart(f"the key has {size_bytes} bytes, and a partition key value at most {KEY_BYTES_MAX}")
    return key


def _number_text(value: float, path: str) -> str:
    if not math.isfinite(value):
        raise BadKeyPart(f"{path} is {value}, which cannot be stored")
    if value != int(value):
        return repr(float(value))
    if abs(value) > _WHOLE_MAX:
        raise BadKeyPart(f"{path} is {_shown(value)}, which is not stored exactly: write it as a text")
    return str(int(value))


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
