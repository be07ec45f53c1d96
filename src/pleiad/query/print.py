"""Syntax tree to canonical text: every operator in parentheses, strings in double quotes, keywords in
capitals.

The text parses back to the same tree, except for placeholders, which a client replaces first.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from pleiad.keys.undefined import UNDEFINED
from pleiad.query import ast
from pleiad.query.pace import worked
from pleiad.query.tokens import KEYWORDS, LITERAL_WORDS

_NODE_STEPS: Final = 4
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def print_query(query: ast.Query, separator: str = " ") -> str:
    """The canonical text of a query, its clauses joined by the separator."""
    head = ["SELECT"]
    if query.distinct:
        head.append("DISTINCT")
    if query.top is not None:
        head.append(f"TOP {print_expression(query.top)}")
    head.append(_selection(query.selection))
    clauses = [" ".join(head)]
    for number, source in enumerate(query.sources):
        clauses.append(("FROM " if number == 0 else "JOIN ") + _source(source))
    if query.where is not None:
        clauses.append(f"WHERE {print_expression(query.where)}")
    if query.group_by:
        clauses.append("GROUP BY " + ", ".join(map(print_expression, query.group_by)))
    if query.order_by:
        word = "ORDER BY RANK " if query.is_rank else "ORDER BY "
        clauses.append(word + ", ".join(map(_sort_item, query.order_by)))
    if query.offset is not None and query.limit is not None:
        clauses.append(f"OFFSET {print_expression(query.offset)} LIMIT {print_expression(query.limit)}")
    return separator.join(clauses)


def _selection(selection: ast.Selection) -> str:
    if isinstance(selection, ast.SelectStar):
        return "*"
    if isinstance(selection, ast.SelectValue):
        return "VALUE " + _aliased(selection.expression, selection.alias)
    return ", ".join(_aliased(item.expression, item.alias) for item in selection.items)


def _aliased(expression: ast.Expression, alias: str | None) -> str:
    text = print_expression(expression)
    return text if alias is None else f"{text} AS {alias}"


def _source(source: ast.Source) -> str:
    collection = source.collection
    text = (
        f"({print_query(collection)})" if isinstance(collection, ast.Query) else print_expression(collection)
    )
    if source.iterates:
        return f"{source.alias} IN {text}"
    return text if source.alias is None else f"{text} AS {source.alias}"


def _sort_item(item: ast.SortItem) -> str:
    text = print_expression(item.expression)
    return text if item.direction is None else f"{text} {item.direction}"


def print_expression(node: ast.Expression) -> str:
    """The canonical text of an expression."""
    worked(_NODE_STEPS)
    match node:
        case ast.Literal(value=value):
            return print_literal(value)
        case ast.Parameter(name=name) | ast.Identifier(name=name):
            return name
        case ast.Property(target=target, name=name, bracket=bracket):
            if bracket or not is_plain_name(name):
                return f"{print_expression(target)}[{json.dumps(name, ensure_ascii=False)}]"
            return f"{print_expression(target)}.{name}"
        case ast.Element(target=target, index=index):
            return f"{print_expression(target)}[{print_expression(index)}]"
        case ast.Unary(operator=operator, operand=operand):
            return f"({operator} {print_expression(operand)})"
        case ast.Binary(operator=operator, left=left, right=right):
            return f"({print_expression(left)} {operator} {print_expression(right)})"
        case ast.Chain(operator=operator, operands=operands):
            first, *rest = map(print_expression, operands)
            return "(" * len(rest) + first + "".join(f" {operator} {text})" for text in rest)
        case ast.Conditional(test=test, then=then, otherwise=otherwise):
            parts = [print_expression(part) for part in (test, then, otherwise)]
            return f"({parts[0]} ? {parts[1]} : {parts[2]})"
    return _print_compound(node)


def _print_compound(node: ast.Expression) -> str:
    match node:
        case ast.In(needle=needle, items=items, negated=negated):
            return f"({print_expression(needle)}{_not(negated)} IN ({_list(items)}))"
        case ast.Between(value=value, low=low, high=high, negated=negated):
            bounds = f"{print_expression(low)} AND {print_expression(high)}"
            return f"({print_expression(value)}{_not(negated)} BETWEEN {bounds})"
        case ast.Like(value=value, pattern=pattern, escape=escape, negated=negated):
            tail = "" if escape is None else f" ESCAPE {json.dumps(escape, ensure_ascii=False)}"
            return f"({print_expression(value)}{_not(negated)} LIKE {print_expression(pattern)}{tail})"
        case ast.ArrayLiteral(items=items):
            return f"[{_list(items)}]"
        case ast.ObjectLiteral(properties=properties):
            pairs = (
                f"{json.dumps(name, ensure_ascii=False)}: {print_expression(value)}"
                for name, value in properties
            )
            return "{" + ", ".join(pairs) + "}"
        case ast.FunctionCall(name=name, arguments=arguments, is_udf=is_udf):
            return f"{'udf.' if is_udf else ''}{name}({_list(arguments)})"
        case ast.Subquery(kind=kind, query=query):
            return f"{kind.value}({print_query(query)})"
        case ast.Placeholder(text=text):
            return text
    raise AssertionError(f"there is no text for {type(node).__name__}")


def _not(negated: bool) -> str:
    return " NOT" if negated else ""


def _list(items: tuple[ast.Expression, ...]) -> str:
    return ", ".join(map(print_expression, items))


def print_literal(value: Any) -> str:
    """The text of a constant."""
    if value is UNDEFINED:
        return "undefined"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "(- Infinity)"
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def is_plain_name(name: str) -> bool:
    """Whether the name can stand after a dot or as an alias without quotes."""
    return bool(_IDENTIFIER.match(name)) and name.upper() not in KEYWORDS and name not in LITERAL_WORDS
