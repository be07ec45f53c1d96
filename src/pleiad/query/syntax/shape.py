"""When two expressions are the same to GROUP BY and ORDER BY: ``c["a"]`` is ``c.a``, and ``upper(x)`` is ``UPPER(x)``.

The shape of an expression is a hashable value that is equal for expressions that are the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

from pleiad.query.pace import worked
from pleiad.query.syntax import ast
from pleiad.values.undefined import UNDEFINED

_NODE_STEPS = 4


def shape(node: Any) -> Hashable:
    """The shape of a syntax tree: everything but places, spelling of names and the form of brackets."""
    worked(_NODE_STEPS)
    match node:
        case ast.Literal(value=value):
            return ("literal", "undefined" if value is UNDEFINED else (type(value) is bool, value))
        case ast.Property(target=target, name=name):
            return ("member", shape(target), name)
        case ast.FunctionCall(name=name, arguments=arguments, is_udf=is_udf):
            return ("call", name if is_udf else name.upper(), is_udf, tuple(map(shape, arguments)))
        case ast.ObjectLiteral(properties=properties):
            return ("object", tuple((name, shape(value)) for name, value in properties))
        case ast.Node():
            parts = [getattr(node, each.name) for each in dataclasses.fields(node) if counts(each.name)]
            return (type(node).__name__, *map(shape, parts))
        case tuple():
            return tuple(map(shape, node))
    found: Hashable = node
    return found


def counts(name: str) -> bool:
    """Whether the field of a node is more than a place in the text."""
    return name not in ("start", "end", "name_start", "name_end") and not name.endswith(("_place", "_places"))
