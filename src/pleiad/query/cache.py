"""Compiled queries by text: least recently used ones go first, by count and by what they take in memory."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from pleiad.limits import Limits
from pleiad.query import errors
from pleiad.query.pace import Pace
from pleiad.query.run import LONG_TEXT_CHARS, Query
from pleiad.query.syntax import ast
from pleiad.query.syntax.tree import TreeText

QUERIES_MAX: Final = 1_000
_CONDITION_PREFIX: Final = "SELECT * "


class QueryCache:
    """A bounded map from text to compiled query."""

    def __init__(self, queries_max: int, bytes_max: int) -> None:
        self._queries_max = queries_max
        self._bytes_max = bytes_max
        self._queries: OrderedDict[str, Query] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str, limits: Limits, parameters: Mapping[str, Any] | None = None) -> Query:
        """The compiled query of a text, or of the tree of a TreeText; a wrong one is told with its parameters."""
        with self._lock:
            query = self._queries.get(text)
            if query is not None and (query.limits is limits or query.limits == limits):
                self._queries.move_to_end(text)
                return query
        try:
            if isinstance(text, TreeText):
                query = Query.of_tree(text.syntax, limits, self.trim)
            else:
                query = Query(text, limits, self.trim, parameters)
        except RecursionError:
            raise errors.plain_error("The query is nested too deeply.") from None
        with self._lock:
            self._queries[text] = query
            self._queries.move_to_end(text)
        self.trim()
        return query

    def known(self, text: str) -> Query | None:
        """The query of a text if it is here."""
        with self._lock:
            return self._queries.get(text)

    @property
    def size_bytes(self) -> int:
        with self._lock:
            return self._sum_bytes()

    def _sum_bytes(self) -> int:
        return sum(query.size_bytes for query in self._queries.values())

    def trim(self) -> None:
        """Forgets what is too much; a query that was compiled for more shapes of parameters has grown."""
        with self._lock:
            size_bytes = self._sum_bytes()
            while self._queries and (len(self._queries) > self._queries_max or size_bytes > self._bytes_max):
                size_bytes -= self._queries.popitem(last=False)[1].size_bytes


_CACHE: Final = QueryCache(QUERIES_MAX, Limits().query_cache_bytes)


def compile_query(text: str, limits: Limits, parameters: Mapping[str, Any] | None = None) -> Query:
    """The compiled form of a query text; one that is wrong raises a 400, which tells of its parameters too."""
    return _CACHE.get(text, limits, parameters)


def known_query(text: str) -> Query | None:
    """The compiled form of a text that was asked not long ago; None where that would have to be made."""
    return _CACHE.known(text)


def compile_tree(syntax: ast.Query, limits: Limits) -> Query:
    """The compiled form of a syntax tree; one that no text could say raises a 400."""
    return _CACHE.get(TreeText(syntax), limits)


@contextlib.asynccontextmanager
async def compile_turn(pace: Pace, text: str) -> AsyncIterator[None]:
    """The turn of a request with a long text: such texts are read and compiled one at a time."""
    if len(text) <= LONG_TEXT_CHARS:
        yield
        return
    lock = pace.one_at_a_time()
    try:
        await asyncio.wait_for(lock.acquire(), max(pace.seconds_left, 0.0))
    except TimeoutError:
        pace.look()
        raise
    try:
        yield
    finally:
        lock.release()


def compile_condition(text: str, limits: Limits) -> Query:
    """The compiled form of a condition such as ``FROM c WHERE c.n = 1``; ask it with ``matches``."""
    return _CACHE.get(_CONDITION_PREFIX + text, limits)
