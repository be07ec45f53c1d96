"""A reader of the constant expressions in the public examples: literals, calls, and little more.

It exists so that the functions can be tested on the examples without the query engine.
"""

from __future__ import annotations

import math
import re
from typing import Any

from pleiad.query.context import QueryContext
from pleiad.query.functions import REGISTRY
from pleiad.values.undefined import UNDEFINED

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<sign>[][{}(),:.*/-]))"""
)
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": UNDEFINED,
    "NaN": math.nan,
    "Infinity": math.inf,
}


class NotConstant(Exception):
    """The text is more than a constant expression over built-in functions."""


class Expression:
    """Evaluates one text from left to right while reading it."""

    def __init__(self, text: str, context: QueryContext) -> None:
        self.tokens = self._split(text)
        self.context = context
        self.called: set[str] = set()

    @staticmethod
    def _split(text: str) -> list[str]:
        tokens, at, text = [], 0, text.strip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise NotConstant(text[at : at + 20])
            tokens.append(match[0].strip())
            at = match.end()
        return tokens

    def value(self) -> Any:
        result = self._product()
        if self.tokens:
            raise NotConstant(self.tokens[0])
        return result

    def _take(self, wanted: str | None = None) -> str:
        if not self.tokens or (wanted is not None and self.tokens[0] != wanted):
            raise NotConstant(str(self.tokens[:1]))
        return self.tokens.pop(0)

    def _next_is(self, sign: str) -> bool:
        return bool(self.tokens) and self.tokens[0] == sign

    def _product(self) -> Any:
        result = self._unary()
        while self._next_is("*") or self._next_is("/"):
            sign, right = self._take(), self._unary()
            if sign == "*":
                result = result * right
            else:
                result = result / right if right else math.inf
        return result

    def _unary(self) -> Any:
        if self._next_is("-"):
            self._take()
            return -self._unary()
        result = self._primary()
        while self._next_is("."):
            self._take()
            name = self._take()
            result = result.get(name, UNDEFINED) if isinstance(result, dict) else UNDEFINED
        return result

    def _list(self, end: str) -> list[Any]:
        values = []
        while not self._next_is(end):
            values.append(self._product())
            if not self._next_is(end):
                self._take(",")
        self._take(end)
        return values

    def _object(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not self._next_is("}"):
            name = self._take()
            name = self._text(name) if name[0] in "\"'" else name
            self._take(":")
            members[name] = self._product()
            if not self._next_is("}"):
                self._take(",")
        self._take("}")
        return {name: value for name, value in members.items() if value is not UNDEFINED}

    @staticmethod
    def _text(token: str) -> str:
        return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), token[1:-1])

    def _primary(self) -> Any:
        token = self._take()
        if token == "[":
            return [value for value in self._list("]") if value is not UNDEFINED]
        if token == "{":
            return self._object()
        if token[0].isdigit():
            return int(token) if token.isdigit() else float(token)
        if token[0] in "\"'":
            return self._text(token)
        if self._next_is("("):
            self._take()
            return self._call(token.upper(), self._list(")"))
        if token not in _WORDS:
            raise NotConstant(token)
        return _WORDS[token]

    def _call(self, name: str, arguments: list[Any]) -> Any:
        function = REGISTRY.get(name)
        if function is None:
            raise NotConstant(name)
        self.called.add(name)
        assert len(arguments) >= function.min_args
        assert function.max_args is None or len(arguments) <= function.max_args
        return (
            function.call(self.context, *arguments) if function.needs_context else function.call(*arguments)
        )
