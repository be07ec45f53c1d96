"""Syntax trees that no text was parsed to: what a head with a language of its own hands in.

A tree is held to what the grammar lets a text say, and to the limits of texts, so that everything behind the parser may
rely on the same of both, and its printed text parses back. Its property names and strings are free, its places are 0.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from pleiad.limits import Limits
from pleiad.query import errors
from pleiad.query.pace import worked
from pleiad.query.syntax import ast
from pleiad.query.syntax.parser import DEPTH_SLACK
from pleiad.query.syntax.print import print_query
from pleiad.query.syntax.shape import counts
from pleiad.query.syntax.tokens import Kind, tokenize
from pleiad.query.values import INT64_MAX, INT64_MIN, is_number
from pleiad.values.stored import to_stored
from pleiad.values.undefined import Undefined

_NODE_STEPS: Final = 4
_FIELDS: Final[dict[type, tuple[str, ...]]] = {
    kind: tuple(reversed([field.name for field in dataclasses.fields(kind) if counts(field.name)]))
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.Node)
}
"""What counts of each node, the last first."""
_SCALARS: Final = frozenset({str, int, float, bool, type(None), Undefined, ast.SubqueryKind})
_LITERALS: Final = _SCALARS - {ast.SubqueryKind}
_UNARY: Final = frozenset({"NOT", "+", "-", "~"})
_BINARY: Final = frozenset(
    {*("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>"), *("=", "!=", "<", "<=", ">", ">=", "??")}
)
_CHAINS: Final = frozenset({"AND", "OR", "||"})
_CALLED_WORDS: Final = frozenset({"LEFT", "RIGHT"})


class TreeText(str):
    """A syntax tree where a text is asked for: its identity as a string, and the tree.

    Whatever remembers something by the text of a query remembers it by this one, without knowing of trees.
    """

    __slots__ = ("syntax",)
    syntax: ast.Query

    def __new__(cls, syntax: ast.Query) -> TreeText:
        made = super().__new__(cls, identity(syntax))
        made.syntax = syntax
        return made


def identity(syntax: ast.Query) -> str:
    """A text that two trees share exactly when they say the same; no query text is like it.

    1 and 1.0 differ in it, as they do to the language, but not where a node stood in a text.
    """
    parts: list[str] = []
    stack: list[Any] = [syntax]
    while stack:
        node = stack.pop()
        kind = node.__class__
        fields = _FIELDS.get(kind)
        if fields is not None:
            worked(_NODE_STEPS)
            parts.append(kind.__name__)
            stack.extend([getattr(node, field) for field in fields])
        elif kind is tuple:
            parts.append(f"({len(node)}")
            stack.extend(reversed(node))
        elif kind in _SCALARS:
            parts.append(repr(node))
        else:
            raise _refused(f"a value of the type {kind.__name__}")
    return " ".join(parts)


def constant(value: Any) -> ast.Expression:
    """The syntax of a value as items keep it: of what JSON has no word for, its stored form."""
    return _constant(to_stored(value))


def _constant(stored: Any) -> ast.Expression:
    if stored.__class__ is list:
        return ast.ArrayLiteral(tuple(map(_constant, stored)))
    if stored.__class__ is dict:
        return ast.ObjectLiteral(tuple((name, _constant(each)) for name, each in stored.items()))
    return ast.Literal(stored)


def checked_text(syntax: ast.Query, limits: Limits) -> str:
    """The text that a tree is printed as; a 400 for one that no text, or only one over a limit, is parsed to."""
    stack: list[tuple[Any, int]] = [(syntax, 1)]
    while stack:
        node, depth = stack.pop()
        worked(_NODE_STEPS)
        kind = node.__class__
        if kind not in _FIELDS:
            raise _refused(f"a value of the type {kind.__name__}")
        if depth > limits.query_nesting + DEPTH_SLACK:
            raise errors.refusal("SC1030", 0, 0)
        _check_node(node, limits)
        stack.extend([(child, depth + 1) for child in ast.children(node)])
    text = print_query(syntax)
    if len(text) > limits.query_text_bytes:
        raise errors.refusal("SC3020", 0, len(text), limit=limits.query_text_bytes)
    return text


def _check_node(node: Any, limits: Limits) -> None:
    match node:
        case ast.Literal(value=value):
            if value.__class__ not in _LITERALS:
                raise _refused(f"a literal of the type {value.__class__.__name__}")
            if value.__class__ is int and not INT64_MIN <= value <= INT64_MAX:
                raise _refused("an integer of more than 64 bits")
        case ast.Identifier(name=name) | ast.Let(name=name):
            _check_name(name)
        case ast.Parameter(name=name):
            _check_name(name, Kind.PARAMETER)
        case ast.FunctionCall(name=name):
            if name not in _CALLED_WORDS:
                _check_name(name)
        case ast.Property(name=name):
            _check_string(name)
        case ast.SelectItem(alias=name) | ast.Like(escape=name) if name is not None:
            _check_string(name)
        case ast.Unary(operator=operator) if operator not in _UNARY:
            raise _refused(f"the operator {operator}")
        case ast.Binary(operator=operator) if operator not in _BINARY:
            raise _refused(f"the operator {operator}")
        case ast.Chain(operator=operator, operands=operands) if operator not in _CHAINS or len(operands) < 2:
            raise _refused(f"a chain of {operator}")
        case ast.In(items=items):
            if not items or len(items) > limits.query_in_items:
                raise errors.refusal("SC3004", 0, 0, limit=limits.query_in_items)
        case ast.ObjectLiteral(properties=properties):
            names = [_check_string(name) for name, _ in properties]
            if len(set(names)) != len(names) and not node.name_places:
                raise _refused("an object that has a property twice")
        case ast.Placeholder():
            raise _refused("a placeholder")
        case ast.Source():
            _check_source(node)
        case ast.SelectList(items=items) if not items:
            raise _refused("an empty select list")
        case ast.Query():
            _check_statement(node)


def _check_source(source: ast.Source) -> None:
    if source.alias is not None:
        _check_name(source.alias)
    elif source.iterates:
        raise _refused("a source that iterates without an alias")
    base = source.collection
    while isinstance(base, ast.Property | ast.Element):
        base = base.target
    if not isinstance(base, ast.Identifier | ast.Query) or (
        isinstance(base, ast.Query) and base is not source.collection
    ):
        raise _refused("a source that is neither a path nor a subquery")


def _check_statement(query: ast.Query) -> None:
    if (query.offset is None) != (query.limit is None):
        raise _refused("one of OFFSET and LIMIT")
    for count in (query.top, query.offset, query.limit):
        if isinstance(count, ast.Parameter):
            _check_name(count.name, Kind.PARAMETER)
        elif count is not None and not (isinstance(count, ast.Literal) and is_number(count.value)):
            raise _refused("a count that is no number")
    if any(item.direction not in (None, "ASC", "DESC") for item in query.order_by):
        raise _refused("a direction of its own")
    if query.is_rank and len(query.order_by) != 1:
        raise _refused("ORDER BY RANK of several")


def _check_string(name: Any) -> str:
    if name.__class__ is not str:
        raise _refused(f"a name of the type {name.__class__.__name__}")
    found: str = name
    return found


def _check_name(name: str, kind: Kind = Kind.NAME) -> None:
    """Refuses a name that is none in a text: then the printed text would say something else than the tree."""
    tokens = tokenize(name) if name.__class__ is str else []
    if len(tokens) != 2 or tokens[0].kind is not kind or tokens[0].value != name:
        raise _refused(f"the name {name!r:.80}")


def _refused(what: str) -> Exception:
    return errors.plain_error(f"The query tree has {what}, which no query text has.")
