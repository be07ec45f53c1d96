"""How texts and JSON bodies become what PostgreSQL can hold, and how a property of a body is read in SQL.

PostgreSQL's text has no U+0000. Everywhere a text is kept or compared, U+0000 is written as U+0001 U+0001 and
U+0001 as U+0001 U+0002: no two texts become one, and their order by UTF-8 bytes stays.

A body is kept as the bytes it came in. Its value is read from them as jsonb, but for the rare body that jsonb could
not hold or would hold at a dear price (those characters, numbers with very many digits or a large exponent): such a
body has an equivalent document beside it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

SqlValue = Any


class Sql(NamedTuple):
    """A piece of SQL and the values of its placeholders, in order."""

    text: str
    params: tuple[SqlValue, ...] = ()


_SHAPE = bytes.maketrans(b"123456789E", b"000000000e")
_LARGE_EXPONENTS = (b"0e000", b"0e+000", b"0e-000")
_MANY_DIGITS = b"0" * 400
_MAPPED = re.compile("\x01(.)", re.DOTALL)
_BEYOND_DOUBLES = 10**400

DOCUMENT = "CROSS JOIN LATERAL (SELECT pleiad.document(body, doc) AS value OFFSET 0) AS document"
"""Joins the value of the body to a row, read once however often it is looked at."""


def to_text(text: str) -> str:
    """A text as PostgreSQL keeps it."""
    if "\0" in text or "\x01" in text:
        return text.replace("\x01", "\x01\x02").replace("\0", "\x01\x01")
    return text


def from_text(kept: str) -> str:
    """The text that was kept."""
    if "\x01" not in kept:
        return kept
    return _MAPPED.sub(lambda pair: "\0" if pair[1] == "\x01" else "\x01", kept)


def document_of(body: bytes) -> str | None:
    """The document to keep beside a body; None where the body itself will do."""
    if not _has_mapped_character(body) and not _has_dear_number(body):
        return None
    return json.dumps(_mapped(json.loads(body, parse_int=_number, parse_float=_number)))


def _has_mapped_character(body: bytes) -> bool:
    return b"\\" in body and (b"\\u0000" in body or b"\\u0001" in body)


def _has_dear_number(body: bytes) -> bool:
    """Whether there may be a number of very many digits or with an exponent of three: every digit is seen as a 0."""
    shape = body.translate(_SHAPE)
    return any(exponent in shape for exponent in _LARGE_EXPONENTS) or _MANY_DIGITS in shape


def _number(text: str) -> float | int:
    number = float(text)
    if math.isfinite(number):
        return number
    return _BEYOND_DOUBLES if number > 0 else -_BEYOND_DOUBLES


def _mapped(value: Any) -> Any:
    if isinstance(value, str):
        return to_text(value)
    if isinstance(value, list):
        return [_mapped(element) for element in value]
    if isinstance(value, dict):
        return {to_text(name): _mapped(member) for name, member in value.items()}
    return value


def texts_of(body: bytes, names: Sequence[str]) -> list[str | None]:
    """The JSON text of each property, None where there is none, of a body that PostgreSQL cannot read itself."""
    value = orjson.loads(body)
    return [orjson.dumps(value[name]).decode() if name in value else None for name in names]


def member(path: tuple[str, ...]) -> Sql:
    """The value at a path of a joined document; a step never is a position in an array."""
    return Sql("(document.value" + " -> %s::text" * len(path) + ")", tuple(to_text(name) for name in path))


def address(path: tuple[str, ...]) -> str:
    """The path as a jsonpath; strict, so that no step goes into the elements of an array."""
    return "strict $" + "".join("." + json.dumps(to_text(name), ensure_ascii=False) for name in path)
