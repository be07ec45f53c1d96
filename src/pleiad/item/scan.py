"""Cuts one JSON text into the exact texts of its members or elements, without interpreting them.

The scanner exists so that strings reach the store as the client wrote them, and a text without system properties needs
no writing anew.

Invariants: the text was accepted by a strict JSON parser before it comes here; every pass is linear in the
length of the text; nesting is counted, never recursed into.
"""

from __future__ import annotations

import re

import orjson

_STRING_PATTERN = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRING = re.compile(_STRING_PATTERN, re.DOTALL)
# Strings and what stands between them are skipped within one match: brackets are few, strings are many.
_UP_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING_PATTERN + rb")*+[\[\]{}]", re.DOTALL)
# A member up to its value, and the value as well unless it is an object or array.
_MEMBER = re.compile(
    rb"\s*+(" + _STRING_PATTERN + rb")\s*+:\s*+(" + _STRING_PATTERN + rb'|[^"\[\]{},\s]++)?+\s*+', re.DOTALL
)
_SCALAR = re.compile(rb"[^,\]}\s]+")
_SPACE = re.compile(rb"[ \t\r\n]*")
_BRACKETS_OPEN = b"[{"


def _skip_space(text: bytes, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _skip_value(text: bytes, position: int) -> int:
    """The position behind the value that starts at ``position``."""
    first = text[position : position + 1]
    if first == b'"':
        match = _STRING.match(text, position)
    elif first not in (b"{", b"["):
        match = _SCALAR.match(text, position)
    else:
        nesting = 0
        for token in _UP_TO_BRACKET.finditer(text, position):
            end = token.end()
            nesting += 1 if text[end - 1] in _BRACKETS_OPEN else -1
            if nesting == 0:
                return end
        match = None
    if match is None:
        raise ValueError(f"not a JSON value at byte {position}")
    return match.end()


def _name(token: bytes) -> str:
    if b"\\" in token:
        name: str = orjson.loads(token)
        return name
    return token[1:-1].decode()


def members(text: bytes) -> list[tuple[str, bytes, bytes]]:
    """The members of an object text in order: name, text of the value, text of the whole member."""
    position = _skip_space(text, 0)
    if text[position : position + 1] != b"{":
        raise ValueError("not a JSON object")
    found = []
    position += 1
    while (match := _MEMBER.match(text, position)) is not None:
        start, name_end = match.span(1)
        value_start, value_end = match.span(2)
        position = match.end()
        if value_start < 0:
            value_start, value_end = position, _skip_value(text, position)
            position = _skip_space(text, value_end)
        found.append((_name(text[start:name_end]), text[value_start:value_end], text[start:value_end]))
        if text[position : position + 1] != b",":
            break
        position += 1
    return found


def elements(text: bytes) -> list[bytes]:
    """The texts of the elements of an array text, in order."""
    position = _skip_space(text, 0)
    if text[position : position + 1] != b"[":
        raise ValueError("not a JSON array")
    found = []
    position = _skip_space(text, position + 1)
    while text[position : position + 1] not in (b"]", b""):
        end = _skip_value(text, position)
        found.append(text[position:end])
        position = _skip_space(text, end)
        if text[position : position + 1] == b",":
            position = _skip_space(text, position + 1)
    return found
