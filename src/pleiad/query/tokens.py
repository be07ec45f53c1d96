"""Query text to tokens, each with its place in the text.

Keywords are recognised in any case; ``true``, ``false``, ``null``, ``undefined`` and ``udf`` only in
lower case. Comments (``-- …`` and ``/* … */``) and white space are dropped. One pass, linear in the
length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from pleiad.errors import PleiadError
from pleiad.query import errors
from pleiad.query.pace import worked


class Kind(Enum):
    """What a token is."""

    NAME = "name"
    KEYWORD = "keyword"
    NUMBER = "number"
    STRING = "string"
    PARAMETER = "parameter"
    SYMBOL = "symbol"
    END = "end"


KEYWORDS: Final = frozenset(
    (
        *("SELECT", "TOP", "DISTINCT", "VALUE", "AS", "FROM", "IN", "JOIN", "WHERE", "GROUP", "ORDER", "BY"),
        *("ASC", "DESC", "OFFSET", "LIMIT", "AND", "OR", "NOT", "BETWEEN", "LIKE", "ESCAPE", "EXISTS"),
        *("ARRAY", "LEFT", "RIGHT"),
    )
)
LITERAL_WORDS: Final = frozenset(("true", "false", "null", "undefined", "udf"))


@dataclass(frozen=True, slots=True)
class Token:
    """One token; ``word`` is what the parser compares: a symbol, upper-cased keyword or literal word."""

    kind: Kind
    word: str
    value: Any
    start: int
    end: int


_TOKEN: Final = re.compile(
    r"""
      (?P<space>[ \t\r\n]+|--[^\r\n]*|/\*.*?\*/)
    | (?P<open_comment>/\*)
    | (?P<number>0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[^\W\d]\w*)
    | (?P<parameter>@\w+)
    | (?P<string>"(?:[^"\\\x00-\x1f]|\\.)*"|'(?:[^'\\\x00-\x1f]|\\.)*')
    | (?P<symbol>>>>|<<|>>|<=|>=|<>|!=|\?\?|\|\||[-+*/%&|^~<>=?:,.()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SIMPLE_ESCAPES: Final = {
    "'": "'",
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
_INTEGER_DIGITS_MAX: Final = 18
_TOKEN_STEPS: Final = 4


def tokenize(text: str) -> list[Token]:
    """The tokens of the text, closed by one END token."""
    tokens: list[Token] = []
    position, length = 0, len(text)
    match_at = _TOKEN.match
    while position < length:
        match = match_at(text, position)
        if match is None:
            raise _unknown(text, position)
        end = match.end()
        worked(_TOKEN_STEPS)
        group = match.lastgroup
        if group == "open_comment":
            raise errors.syntax_error("/*", position, length)
        if group != "space":
            tokens.append(_token(group, match.group(), position, end, text))
        position = end
    tokens.append(Token(Kind.END, "", None, length, length))
    return tokens


def _token(group: str | None, raw: str, start: int, end: int, text: str) -> Token:
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
        return Token(Kind.STRING, "", _unescape(raw, start, end), start, end)
    if group == "parameter":
        return Token(Kind.PARAMETER, "", raw, start, end)
    if end < len(text) and (text[end].isalnum() or text[end] == "_"):
        raise errors.syntax_error(_word_at(text, start), start, start + len(_word_at(text, start)))
    return Token(Kind.NUMBER, "", _number(raw), start, end)


def _number(raw: str) -> int | float:
    if raw[:2] in ("0x", "0X"):
        return int(raw, 16) if len(raw) <= _INTEGER_DIGITS_MAX else float(int(raw[:250], 16))
    if raw.isdigit() and len(raw) <= _INTEGER_DIGITS_MAX + 1:
        return int(raw)
    value = float(raw)
    return int(value) if value.is_integer() and abs(value) <= 2**53 else value


def _unescape(raw: str, start: int, end: int) -> str:
    body = raw[1:-1]
    if "\\" not in body:
        _refuse_lone_surrogates(body, raw, start, end)
        return body

    def replace(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] == "u" and len(code) == 5:
            return chr(int(code[1:], 16))
        if code not in _SIMPLE_ESCAPES:
            raise errors.syntax_error(raw, start, end)
        return _SIMPLE_ESCAPES[code]

    joined = _ESCAPE.sub(replace, body)
    try:
        joined = joined.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise errors.syntax_error(raw, start, end) from None
    return joined


def _refuse_lone_surrogates(body: str, raw: str, start: int, end: int) -> None:
    if not body.isascii():
        try:
            body.encode("utf-8")
        except UnicodeEncodeError:
            raise errors.syntax_error(ascii(raw), start, end) from None


def _word_at(text: str, start: int) -> str:
    match = re.compile(r"[\w.]+").match(text, start)
    return match.group() if match else text[start : start + 1]


def _unknown(text: str, position: int) -> PleiadError:
    if text[position] in "\"'":
        rest = text[position:].encode("utf-8", "replace").decode("utf-8")
        return errors.syntax_error(rest, position, len(text))
    character = text[position].encode("utf-8", "replace").decode("utf-8")
    return errors.invalid_token(character, position, position + 1)
