"""The query language: text, tokens, syntax tree, bound plan, generated Python, execution.

    query = compile_query("SELECT VALUE c.name FROM c WHERE c.age > @age", limits)
    names = query.run(items, {"@age": 30}, QueryContext(limits=limits))

Each stage is one file with its own nodes. Compiled queries are cached by text. A head with a language of its own
makes a syntax tree and compiles that (``compile_tree``), or asks the engine with a ``TreeText`` in place of the text:
binding, routing, pushdown and generated Python are the same.
"""

from __future__ import annotations

from pleiad.query.cache import compile_condition, compile_query, compile_tree, compile_turn, known_query
from pleiad.query.context import QueryContext
from pleiad.query.run import Execution, Query
from pleiad.query.syntax.tree import TreeText

__all__ = [
    "Execution",
    "Query",
    "QueryContext",
    "TreeText",
    "compile_condition",
    "compile_query",
    "compile_tree",
    "compile_turn",
    "known_query",
]
