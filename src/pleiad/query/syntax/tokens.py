"""Query text to tokens, each with its place in the text.

Keywords are recognised in any case; ``true``, ``false``, ``null``, ``undefined``, ``NaN``, ``Infinity`` and ``udf``
only as written here. Comments (``-- …``) and white space are dropped. One pass, linear in the length of the text.

What is no token becomes a token of its own kind, BAD, with the complaint about it: the parser raises it when it
gets there, so that an error before it is the one that is told.
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from typing import Any, Final, NamedTuple

from pleiad.query.errors import Complaint, complaint
from pleiad.query.pace import worked


class Kind(Enum):
    """What a token is."""

    NAME = "name"
    KEYWORD = "keyword"
    NUMBER = "number"
    STRING = "string"
    PARAMETER = "parameter"
    SYMBOL = "symbol"
    BAD = "bad"
    END = "end"


KEYWORDS: Final = frozenset(
    (
        *("SELECT", "TOP", "DISTINCT", "VALUE", "AS", "FROM", "IN", "JOIN", "WHERE", "GROUP", "ORDER", "BY"),
        *("ASC", "DESC", "OFFSET", "LIMIT", "AND", "OR", "NOT", "BETWEEN", "LIKE", "ESCAPE", "EXISTS"),
        *("ARRAY", "LEFT", "RIGHT"),
        # Reserved by the service, though nothing uses them.
        *(
            "CASE",
            "CAST",
            "CONVERT",
            "CROSS",
            "ELSE",
            "END",
            "FOR",
            "HAVING",
            "INNER",
            "INSERT",
            "INTO",
            "IS",
        ),
        *("ON", "OUTER", "OVER", "SET", "THEN", "UPDATE", "WHEN", "WITH"),
    )
)
LITERAL_WORDS: Final = frozenset(("true", "false", "null", "undefined", "NaN", "Infinity", "udf"))


class Token(NamedTuple):
    """One token; ``word`` is what the parser compares: a symbol, upper-cased keyword or literal word."""

    kind: Kind
    word: str
    value: Any
    start: int
    end: int


# White space is what the service takes for it: the separators of Unicode and the control characters of ASCII that move
# the cursor. A name is of letters and digits of the Basic Multilingual Plane.
_TOKEN: Final = re.compile(
    r"""
      (?P<space>[ \t\n\v\f\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+|--[^\r\n]*)
    | (?P<number>(?:0[xX]\w*|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?\w*|\w*)))
    | (?P<name>[^\W\d]\w*)
    | (?P<parameter>@[^\W\d]\w*)
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<symbol>>>>|<<|>>|<=|>=|<>|!=|\?\?|\|\||[-+*/%&|^~<>=?:,.()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_BEYOND_PLANE: Final = re.compile(r"[\U00010000-\U0010ffff]")
_DECIMAL: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]+")
_BROKEN_UNICODE: Final = re.compile(
    r"(?:[^\\]|\\[^u]|\\u[0-9a-fA-F]{4})*?\\u[0-9a-fA-F]{0,3}(?![0-9a-fA-F])(?:.|\Z)", re.DOTALL
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SIMPLE_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_INT64_MAX: Final = 2**63 - 1
_UINT64_MAX: Final = 2**64 - 1
_INTEGER_DIGITS_MAX: Final = 400
_TOKEN_STEPS: Final = 4


def tokenize(text: str) -> list[Token]:
    """The tokens of the text, closed by one END token; what follows a BAD token is left out."""
    tokens: list[Token] = []
    position, length = 0, len(text)
    match_at = _TOKEN.match
    while position < length:
        worked(_TOKEN_STEPS)
        match = match_at(text, position)
        if match is None:
            tokens.append(_bad_token(text, position))
            break
        end = match.end()
        group = match.lastgroup
        if group != "space":
            token = _token(group, match.group(), position, end)
            tokens.append(token)
            if token.kind is Kind.BAD:
                break
            end = token.end
        position = end
    tokens.append(Token(Kind.END, "", None, length, length))
    return tokens


def _token(group: str | None, raw: str, start: int, end: int) -> Token:
    if not raw.isascii() and group in ("name", "parameter"):
        return _wide_name(group, raw, start)
    if group == "name":
        upper = raw.upper()
        if upper in KEYWORDS:
            return Token(Kind.KEYWORD, upper, raw, start, end)
        if raw in LITERAL_WORDS:
            return Token(Kind.KEYWORD, raw, raw, start, end)
        return Token(Kind.NAME, "", raw, start, end)
    if group == "symbol":
        return Token(Kind.SYMBOL, raw, raw, start, end)
    if group == "string":
        return _string(raw, start, end)
    if group == "parameter":
        return Token(Kind.PARAMETER, "", raw, start, end)
    value = number_of(raw)
    return _bad("SC1011", raw, start, end) if value is None else Token(Kind.NUMBER, "", value, start, end)


def _wide_name(group: str, raw: str, start: int) -> Token:
    """A name or parameter with letters beyond ASCII: up to the first one beyond the Basic Multilingual Plane."""
    beyond = _BEYOND_PLANE.search(raw)
    if beyond is not None:
        raw = raw[: beyond.start()]
    first = raw.removeprefix("@")[:1]
    if not first or unicodedata.category(first) == "No":
        character = raw[:1] or (beyond.group() if beyond else "")
        return _bad("SC1010", character, start, start + 1)
    kind = Kind.PARAMETER if group == "parameter" else Kind.NAME
    return Token(kind, "", raw, start, start + len(raw))


def number_of(raw: str) -> int | float | None:
    """The number that a token writes: an integer of 64 bits where it fits, else a double; None for neither."""
    if _HEXADECIMAL.fullmatch(raw):
        bits = int(raw[:_INTEGER_DIGITS_MAX], 16)
        if bits > _UINT64_MAX:
            return None
        return bits if bits <= _INT64_MAX else bits - _UINT64_MAX - 1
    if not raw.isascii() or not _DECIMAL.fullmatch(raw):
        return None
    if raw.isdigit() and len(raw) <= _INTEGER_DIGITS_MAX:
        whole = int(raw)
        if whole <= _INT64_MAX:
            return whole
    value = float(raw)
    return None if value == float("inf") else value


def _bad(code: str, raw: str, start: int, end: int) -> Token:
    problem: Complaint = complaint(code, start, end, token=raw)
    return Token(Kind.BAD, "", problem, start, end)


def _string(raw: str, start: int, end: int) -> Token:
    body = raw[1:-1]
    if "\\" in body:
        broken = _BROKEN_UNICODE.match(raw) if "\\u" in body else None
        if broken is not None:
            return _bad("SC1012", broken.group(), start, start + broken.end())
        body = _ESCAPE.sub(_unescaped, body)
    if not body.isascii():
        # A pair of surrogates is one character; one alone is none.
        body = body.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return Token(Kind.STRING, "", body, start, end)


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return _SIMPLE_ESCAPES.get(code, code)


def _bad_token(text: str, position: int) -> Token:
    if text[position] in "\"'":
        rest = text[position:]
        broken = _BROKEN_UNICODE.match(rest) if "\\u" in rest else None
        if broken is not None:
            rest = broken.group()
        return _bad("SC1012", rest, position, position + len(rest))
    return _bad("SC1010", text[position], position, position + 1)
