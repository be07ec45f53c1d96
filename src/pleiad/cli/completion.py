"""What the Tab key offers at the prompt: verbs and options, names, words of the query language, and properties."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import click

from pleiad.cli.main import VERBS, verb
from pleiad.cli.options import names_beginning_with
from pleiad.client.account import Account
from pleiad.client.admin import RequestRefusedError
from pleiad.client.connection import Connection, ConnectionFailedError

QUERY_WORDS = (
    "SELECT", "DISTINCT", "TOP", "VALUE", "FROM", "IN", "JOIN", "WHERE", "AND", "OR", "NOT", "BETWEEN",
    "LIKE", "EXISTS", "ARRAY", "GROUP", "BY", "ORDER", "ASC", "DESC", "OFFSET", "LIMIT", "AS", "UNDEFINED",
    "NULL", "TRUE", "FALSE", "COUNT", "SUM", "MIN", "MAX", "AVG", "CONTAINS", "STARTSWITH", "ENDSWITH",
    "LOWER", "UPPER", "LENGTH", "SUBSTRING", "CONCAT", "ARRAY_CONTAINS", "ARRAY_LENGTH", "IS_DEFINED",
    "IS_NULL", "IS_STRING", "IS_NUMBER", "RegexMatch", "ST_DISTANCE", "VectorDistance",
    "GetCurrentDateTime", "ABS", "FLOOR", "CEILING", "ROUND", "ToString",
)  # fmt: skip
NOT_HERE = frozenset({"serve", "shell", "copy-data", "check"})
"""Verbs that are no use at the prompt of a running server."""
_FIRST_WORDS = (*(name for name in VERBS if name not in NOT_HERE), "use", "help", "exit", "explain", "SELECT")
_SAMPLE_ITEMS = 20
_FRESH_SECONDS = 10.0


class Completion:
    """Looks at the server for names; without an answer it offers none."""

    def __init__(self, endpoint: str, key: str, container: Callable[[], tuple[str, str] | None]) -> None:
        self._endpoint = endpoint
        self._key = key
        self._container = container
        self._offered: list[str] = []
        self._known: dict[str, tuple[float, list[str]]] = {}

    def offered(self, before: str, word: str, state: int) -> str | None:
        """The way readline asks: number after number until there is none."""
        if state == 0:
            self._offered = self.offers(before, word)
        return self._offered[state] if state < len(self._offered) else None

    def offers(self, before: str, word: str) -> list[str]:
        """What may stand in place of a word, after what stands before it in the line."""
        words = before.split()
        if not words:
            return [each for each in _FIRST_WORDS if each.lower().startswith(word.lower())]
        if words[0].lower() in ("select", "explain"):
            return self._in_query(word)
        if words[0] == "help":
            return [each for each in VERBS if each.startswith(word)]
        if word.startswith("-"):
            return [each for each in _options(words[0]) if each.startswith(word)]
        return self._asked(f"names {word}", lambda account: names_beginning_with(account, word))

    def _in_query(self, word: str) -> list[str]:
        container = self._container()
        alias, dot, rest = word.partition(".")
        if not dot:
            return [each for each in QUERY_WORDS if word and each.lower().startswith(word.lower())]
        if container is None:
            return []
        paths = self._asked(f"properties {container}", lambda account: _properties(account, container))
        return [f"{alias}.{path}" for path in paths if path.startswith(rest)]

    def _asked(self, question: str, ask: Callable[[Account], list[str]]) -> list[str]:
        """The answer to a question, which stays good for a moment."""
        at, answer = self._known.get(question, (0.0, []))
        if time.monotonic() - at < _FRESH_SECONDS and question in self._known:
            return answer
        try:
            with Connection(self._endpoint, self._key) as connection:
                answer = ask(Account(connection))
        except (ConnectionFailedError, RequestRefusedError):
            return []
        self._known[question] = (time.monotonic(), answer)
        return answer


def _options(name: str) -> list[str]:
    if name not in VERBS:
        return []
    return [
        option
        for parameter in verb(name).params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
    ]


def _properties(account: Account, container: tuple[str, str]) -> list[str]:
    """The properties that some items have, and those of objects in them."""
    items = account.query(container, f"SELECT TOP {_SAMPLE_ITEMS} * FROM c", limit=_SAMPLE_ITEMS)
    return sorted({path for item in items for path in _paths(item)})


def _paths(item: Any) -> Iterable[str]:
    for name, value in item.items():
        if name.isidentifier():
            yield name
            if isinstance(value, dict):
                yield from (f"{name}.{inner}" for inner in value if inner.isidentifier())
