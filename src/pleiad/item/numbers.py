"""Numbers as the service gives them back: in their shortest form, however they were written.

An integer of 64 bits, with a sign or without, is exact. Every other number is a double, and its shortest form is the
one with the fewest digits that is the same double, without a fraction of zeros: `1.0` and `1e0` are 1, `0.10` is 0.1,
twenty digits are what a double keeps of them, and a negative zero is 0. Only in an item whose partition key is a
negative zero the sign stays, because it is part of the hash of the key.

An item is put into this form when it is written, so that reading it needs no look at its text.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from pleiad.keys.definition import KeyDefinition

_EXACT_MAX: Final = 2**53
_INTEGER_CHARS_MAX: Final = 19
_MINUS: Final = ord("-")
_INTEGERS: Final = range(-(2**63), 2**64)
WHOLE_FRACTION: Final = re.compile(rb"\.0(?![0-9])")
"""What a writer of JSON gives a double that is whole; it has no other form that is not the shortest one."""
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?[0-9][0-9.eE+-]*+', re.DOTALL)


def in_shortest_form(text: bytes, value: dict[str, Any], key: KeyDefinition) -> bytes:
    """The JSON text of an item, whose value is given with it, with each number in its shortest form.

    A text that is what orjson writes for its value, and has no WHOLE_FRACTION, is in that form.
    """
    if b"-0" not in text and not has_double(value):
        return text
    is_signed = b"-0" in text and any(map(_is_negative_zero, key.extract(value)))
    return _TOKEN.sub(_shortest_signed if is_signed else _shortest, text)


def has_double(value: Any) -> bool:
    """Whether some number of a value is none that was written as an integer of 64 bits."""
    level = [value]
    while level:
        below: list[Any] = []
        for each in level:
            for part in (
                each.values() if each.__class__ is dict else each if each.__class__ is list else (each,)
            ):
                if part.__class__ is float:
                    return True
                if part.__class__ is dict or part.__class__ is list:
                    below.append(part)
        level = below
    return False


def shortest(value: Any) -> Any:
    """A value with its whole doubles as integers, as a text in the shortest form would give it."""
    if value.__class__ is float:
        is_whole = value.is_integer() and -_EXACT_MAX <= value <= _EXACT_MAX
        return int(value) if is_whole else value
    if value.__class__ is list:
        return [shortest(part) for part in value]
    if value.__class__ is dict:
        return {name: shortest(part) for name, part in value.items()}
    return value


def _shortest(token: re.Match[bytes]) -> bytes:
    text = token[0]
    if text[0] == 0x22 or (text.isdigit() and len(text) < _INTEGER_CHARS_MAX):
        return text
    if text.removeprefix(b"-").isdigit() and int(text) in _INTEGERS:
        return text if text != b"-0" else b"0"
    number = shortest(float(text))
    if number.__class__ is int:
        return b"%d" % number
    # A copy: what orjson gives takes kilobytes of memory, however short it is.
    return b"%b" % orjson.dumps(number).removesuffix(b".0")


def _shortest_signed(token: re.Match[bytes]) -> bytes:
    text = token[0]
    is_zero = text[0] == _MINUS and text != b"-0" and _is_negative_zero(float(text))
    return b"-0.0" if is_zero else _shortest(token)


def _is_negative_zero(value: object) -> bool:
    return value.__class__ is float and not value and str(value)[0] == "-"
