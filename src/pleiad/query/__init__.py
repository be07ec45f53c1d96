"""The query language: text, tokens, syntax tree, bound plan, generated Python, execution.

    query = compile_query("SELECT VALUE c.name FROM c WHERE c.age > @age", limits)
    names = query.run(items, {"@age": 30}, QueryContext(limits=limits))

Each stage is one file with its own nodes. Compiled queries are cached by text.
"""

from __future__ import annotations

from pleiad.query.cache import compile_condition, compile_query, compile_turn
from pleiad.query.context import QueryContext
from pleiad.query.run import Execution, Query

__all__ = ["Execution", "Query", "QueryContext", "compile_condition", "compile_query", "compile_turn"]
