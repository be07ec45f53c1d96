"""Syntax tree to canonical text, to the letter as the service prints it: every operator in parentheses, strings in
double quotes, keywords in capitals, names as written, clauses on lines of their own, subqueries four spaces deeper.

The text parses back to the same tree, except for placeholders, which a client replaces first.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from pleiad.query.functions.numbers import number_text
from pleiad.query.pace import worked
from pleiad.query.syntax import ast
from pleiad.query.syntax.tokens import KEYWORDS, LITERAL_WORDS
from pleiad.values.undefined import UNDEFINED

_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*")
_INDENT: Final = "    "
_NODE_STEPS: Final = 4


def print_query(query: ast.Query, depth: int = 0) -> str:
    """The canonical text of a query whose lines begin that many levels deep."""
    head = ["SELECT"]
    if query.distinct:
        head.append("DISTINCT")
    if query.top is not None:
        head.append(f"TOP {print_expression(query.top)}")
    head.append(_selection(query.selection, depth))
    clauses = [" ".join(head)]
    for number, source in enumerate(query.sources):
        clauses.append(("FROM " if number == 0 else "JOIN ") + _source(source, depth))
    if query.where is not None:
        clauses.append(f"WHERE {print_expression(query.where, depth)}")
    if query.group_by:
        clauses.append("GROUP BY " + _list(query.group_by, depth))
    if query.order_by:
        word = "ORDER BY RANK " if query.is_rank else "ORDER BY "
        clauses.append(word + ", ".join(_sort_item(item, depth) for item in query.order_by))
    if query.offset is not None and query.limit is not None:
        clauses.append(f"OFFSET {print_expression(query.offset)} LIMIT {print_expression(query.limit)}")
    return ("\n" + _INDENT * depth).join(clauses)


def _nested(query: ast.Query, depth: int) -> str:
    """A query in parentheses, on lines of its own one level deeper."""
    inner = "\n" + _INDENT * (depth + 1)
    return f"({inner}{print_query(query, depth + 1)}\n{_INDENT * depth})"


def _selection(selection: ast.Selection, depth: int) -> str:
    if isinstance(selection, ast.SelectStar):
        return "*"
    if isinstance(selection, ast.SelectValue):
        return "VALUE " + print_expression(selection.expression, depth)
    return ", ".join(_aliased(item, depth) for item in selection.items)


def _aliased(item: ast.SelectItem, depth: int) -> str:
    text = print_expression(item.expression, depth)
    if item.alias is None:
        return text
    return f"{text} AS {item.alias if is_plain_name(item.alias) else _quoted(item.alias)}"


def _source(source: ast.Source, depth: int) -> str:
    collection = source.collection
    text = _nested(collection, depth) if isinstance(collection, ast.Query) else print_expression(collection)
    if source.iterates:
        return f"{source.alias} IN {text}"
    if source.alias is None:
        return text
    return f"{text} AS {source.alias}"


def _sort_item(item: ast.SortItem, depth: int) -> str:
    text = print_expression(item.expression, depth)
    return text if item.direction is None else f"{text} {item.direction}"


def print_expression(node: ast.Expression, depth: int = 0) -> str:
    """The canonical text of an expression."""
    worked(_NODE_STEPS)
    match node:
        case ast.Literal(value=value):
            return print_literal(value)
        case ast.Parameter(name=name) | ast.Identifier(name=name):
            return name
        case ast.Property(target=target, name=name, bracket=bracket):
            base = _target(target, depth)
            return f"{base}[{_quoted(name)}]" if bracket or not is_plain_name(name) else f"{base}.{name}"
        case ast.Element(target=target, index=index):
            return f"{_target(target, depth)}[{print_expression(index, depth)}]"
        case ast.Unary(operator=operator, operand=operand):
            return f"({operator} {print_expression(operand, depth)})"
        case ast.Binary(operator=operator, left=left, right=right):
            return f"({print_expression(left, depth)} {operator} {print_expression(right, depth)})"
        case ast.Chain(operator=operator, operands=operands):
            first, *rest = [print_expression(operand, depth) for operand in operands]
            return "(" * len(rest) + first + "".join(f" {operator} {text})" for text in rest)
        case ast.Conditional(test=test, then=then, otherwise=otherwise):
            parts = [print_expression(part, depth) for part in (test, then, otherwise)]
            return f"({parts[0]} ? {parts[1]} : {parts[2]})"
    return _print_compound(node, depth)


def _target(node: ast.Expression, depth: int) -> str:
    text = print_expression(node, depth)
    return f"({text})" if isinstance(node, ast.Literal) else text


def _print_compound(node: ast.Expression, depth: int) -> str:
    match node:
        case ast.In(needle=needle, items=items, negated=negated):
            # The service prints two spaces here.
            word = "NOT  IN" if negated else "IN"
            return f"({print_expression(needle, depth)} {word} ({_list(items, depth)}))"
        case ast.Between(value=value, low=low, high=high, negated=negated):
            bounds = f"{print_expression(low, depth)} AND {print_expression(high, depth)}"
            return f"({print_expression(value, depth)}{_not(negated)} BETWEEN {bounds})"
        case ast.Like(value=value, pattern=pattern, escape=escape, negated=negated):
            tail = "" if escape is None else f" ESCAPE {_quoted(escape)}"
            shown = print_expression(pattern, depth)
            return f"({print_expression(value, depth)}{_not(negated)} LIKE {shown}{tail})"
        case ast.ArrayLiteral(items=items):
            return f"[{_list(items, depth)}]"
        case ast.ObjectLiteral(properties=properties):
            pairs = (f"{_quoted(name)}: {print_expression(value, depth)}" for name, value in properties)
            return "{" + ", ".join(pairs) + "}"
        case ast.FunctionCall(name=name, arguments=arguments, is_udf=is_udf):
            return f"{'udf.' if is_udf else ''}{name}({_list(arguments, depth)})"
        case ast.Subquery(kind=kind, query=query):
            # The lines of ARRAY stand one level deeper than those of the others.
            deeper = depth + (kind is ast.SubqueryKind.ARRAY)
            return kind.value + _nested(query, deeper)
        case ast.Let(name=name, value=value, body=body):
            return f"(LET {name} = {print_expression(value, depth + 1)} IN ({print_expression(body, depth + 1)}))"
        case ast.Placeholder(text=text):
            return text
    raise AssertionError(f"there is no text for {type(node).__name__}")


def _not(negated: bool) -> str:
    return " NOT" if negated else ""


def _list(items: tuple[ast.Expression, ...], depth: int) -> str:
    return ", ".join(print_expression(item, depth) for item in items)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def print_literal(value: Any) -> str:
    """The text of a constant."""
    if value is UNDEFINED:
        return "undefined"
    if type(value) is int or type(value) is float:
        return "Infinity" if value == math.inf else number_text(value)
    return json.dumps(value, ensure_ascii=False)


def is_plain_name(name: str) -> bool:
    """Whether the name can stand after a dot or as an alias without quotes."""
    return bool(_IDENTIFIER.fullmatch(name)) and name.upper() not in KEYWORDS and name not in LITERAL_WORDS
