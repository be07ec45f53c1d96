"""Conversions between strings and the values they write down: TOSTRING and the STRINGTO functions.

Parsing is JSON of the one kind asked for, with JSON white space around it; anything else is undefined. It is read as
the service reads it: numbers may have leading zeros, strings may hold control characters, and half of a surrogate pair
is a replacement character.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

from pleiad.limits import Limits
from pleiad.query.functions.numbers import INT64_MAX, INT64_MIN, number_text
from pleiad.query.functions.registry import (
    CHARS_OF_A_STEP,
    LARGE,
    TEXT_CHARS_MAX,
    check_text_chars,
    register,
    weigh_built,
)
from pleiad.query.functions.strings import WHITE_SPACE
from pleiad.query.pace import paced, tick
from pleiad.values.undefined import UNDEFINED

_FAMILY = "conversions"
_PARSED_TIMES = 8
"""How many times its text a parsed value takes in memory."""
_JSON_SPACE = " \t\r\n"
_JSON_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LOOSE = re.compile(r'"(?:[^"\\]|\\.)*+"?|(?<![\w.+-])-?[0-9]+(?:\.0+(?![0-9eE]))?', re.DOTALL)
_LOOSE_PART = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.|[\x00-\x1f]",
    re.DOTALL,
)
_INT64_DIGITS_MAX = 19
_ESCAPE_CHARS = len(r"\ud83d")
_DEPTH_MAX = Limits().item_depth


class _JsonWriter:
    """Compact JSON, given up as soon as it is longer than a result may be."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.chars = 0

    def write(self, text: str) -> None:
        self.chars += len(text)
        if self.chars > TEXT_CHARS_MAX:
            check_text_chars(self.chars)
        self.parts.append(text)

    def write_value(self, value: Any) -> None:
        tick(1)
        kind = type(value)
        if kind is list:
            self.write("[")
            for position, element in enumerate(value):
                if position:
                    self.write(",")
                self.write_value(element)
            self.write("]")
        elif kind is dict:
            self.write("{")
            for position, (name, element) in enumerate(value.items()):
                self.write("," if position else "")
                self.write(json.dumps(name, ensure_ascii=False))
                self.write(":")
                self.write_value(element)
            self.write("}")
        elif kind is str:
            self.write(json.dumps(value, ensure_ascii=False))
        elif kind is bool:
            self.write("true" if value else "false")
        elif kind is int or kind is float:
            # Inside an array or object zero has no sign.
            self.write(number_text(value if value else 0))
        else:
            self.write("null")


@register(_FAMILY, "TOSTRING", 1, 1, also="TO_STRING")
def to_string(value: Any) -> Any:
    """Strings as they are, other values as compact JSON."""
    if value is UNDEFINED or type(value) is str:
        return value
    if type(value) is int or type(value) is float:
        return number_text(value)
    writer = _JsonWriter()
    writer.write_value(value)
    check_text_chars(writer.chars)
    return "".join(writer.parts)


def _depth_is_legal(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(_DEPTH_MAX + 1):
        deeper: list[Any] = []
        for element in paced(level):
            if type(element) is list:
                deeper.extend(element)
            elif type(element) is dict:
                deeper.extend(element.values())
        if not deeper:
            return True
        level = deeper
    return False


def _strict_part(part: re.Match[str]) -> str:
    """An escape or a control character of a string as JSON has it."""
    tick(1)
    text = part[0]
    if len(text) == 1:
        return f"\\u{ord(text):04x}"
    return r"\ufffd" if len(text) == _ESCAPE_CHARS else text


def _strict(found: re.Match[str]) -> str:
    """A string or a whole number as JSON has it; the fraction of zeros would make a double of the number."""
    tick(1)
    text = found[0]
    if text[0] == '"':
        return _LOOSE_PART.sub(_strict_part, text)
    digits = text.partition(".")[0].lstrip("-").lstrip("0") or "0"
    return "-" + digits if text[0] == "-" else digits


def _loads(text: str) -> Any:
    """The value that a text writes down; ValueError when it writes none."""
    try:
        if ".0" not in text:
            return orjson.loads(text)
    except ValueError:
        pass
    return orjson.loads(_LOOSE.sub(_strict, text))


def _parse(text: Any, kind: type) -> Any:
    if type(text) is not str:
        return UNDEFINED
    if len(text) > LARGE:
        weigh_built(len(text) // CHARS_OF_A_STEP, _PARSED_TIMES * len(text))
    try:
        value = _loads(text)
    except ValueError:
        return UNDEFINED
    return value if type(value) is kind and _depth_is_legal(value) else UNDEFINED


@register(_FAMILY, "STRINGTOARRAY", 1, 1, also="STRING_TO_ARRAY")
def string_to_array(text: Any) -> Any:
    return _parse(text, list)


@register(_FAMILY, "STRINGTOOBJECT", 1, 1, also="STRING_TO_OBJECT")
def string_to_object(text: Any) -> Any:
    return _parse(text, dict)


@register(_FAMILY, "STRINGTOBOOLEAN", 1, 1, also="STRING_TO_BOOLEAN")
def string_to_boolean(text: Any) -> Any:
    word = text.strip(WHITE_SPACE) if type(text) is str else ""
    return True if word == "true" else False if word == "false" else UNDEFINED


@register(_FAMILY, "STRINGTONULL", 1, 1, also="STRING_TO_NULL")
def string_to_null(text: Any) -> Any:
    return None if type(text) is str and text.strip(WHITE_SPACE) == "null" else UNDEFINED


@register(_FAMILY, "STRINGTONUMBER", 1, 1, also="STRING_TO_NUMBER")
def string_to_number(text: Any) -> Any:
    if type(text) is not str:
        return UNDEFINED
    digits = text.strip(_JSON_SPACE)
    match = _JSON_NUMBER.fullmatch(digits)
    if match is None:
        return UNDEFINED
    whole, _, fraction = digits.partition(".")
    # A fraction of zeros is none.
    if match[2] is None and not fraction.strip("0"):
        figures = whole.lstrip("-").lstrip("0") or "0"
        exact = int(figures[: _INT64_DIGITS_MAX + 1]) * (-1 if whole[0] == "-" else 1)
        if INT64_MIN <= exact <= INT64_MAX:
            return exact
    number = float(digits)
    return number if math.isfinite(number) else UNDEFINED
