"""A slow, obvious interpreter of the query language: the second opinion on the compiled one.

It walks the syntax tree with dictionaries of names and shares no code with binding, compilation or the value
functions; only the parser and the built-in functions are the same.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from pleiad.limits import Limits
from pleiad.query.functions import REGISTRY
from pleiad.query.syntax import ast
from pleiad.query.syntax.parser import parse
from pleiad.values.undefined import UNDEFINED

AGGREGATES = {"COUNT", "SUM", "AVG", "MIN", "MAX", "COUNTIF", "MAKELIST", "MAKESET"}
Names = dict[str, Any]


class OracleError(Exception):
    """The query is valid but fails on these items."""


def run(text: str, items: list[Any], parameters: Mapping[str, Any]) -> list[Any]:
    """The result of a query over the items."""
    return Oracle(items, parameters).query(parse(text, Limits()), {}, is_top=True)


def canon(value: Any) -> Any:
    """A form in which two values are equal exactly when the language says so."""
    if value is UNDEFINED:
        return ("undefined",)
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        return ("number", value)
    if isinstance(value, str):
        return ("string", value)
    if isinstance(value, list):
        return ("array", tuple(canon(part) for part in value))
    return ("object", tuple(sorted((name, canon(part)) for name, part in value.items())))


def rank(value: Any) -> tuple[int, Any]:
    """Type first, then value; arrays and objects by nothing but their type."""
    kind = canon(value)[0]
    order = ["undefined", "null", "bool", "number", "string", "array", "object"].index(kind)
    if kind == "number":
        # Sorted as indexes have them, by their doubles; compared exactly.
        return (order, float(value))
    if kind == "bool":
        return (order, value)
    if kind == "string":
        return (order, value.encode("utf-16-be"))
    return (order, 0)


def compare(operator: str, left: Any, right: Any) -> Any:
    """``<``, ``<=``, ``>`` and ``>=``."""
    kind, other = canon(left)[0], canon(right)[0]
    if kind != other or kind not in ("null", "bool", "number", "string"):
        return UNDEFINED
    one, two = (left, right) if kind == "number" else (rank(left)[1], rank(right)[1])
    if kind == "number" and (one != one or two != two):
        return UNDEFINED
    return {"<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two}[operator]


def number(value: float) -> Any:
    """A number as results show it: a whole double without its fraction."""
    if math.isfinite(value) and value == int(value) and abs(value) < 2**53:
        return int(value)
    return value


def fits(value: int) -> bool:
    """Whether 64 bits hold the result of two integers; otherwise they are computed as doubles."""
    return -(2**63) <= value < 2**63


def int32(value: float) -> int:
    if not math.isfinite(value):
        return 0
    wrapped = int(value) & 0xFFFFFFFF
    return wrapped - 2**32 if wrapped >= 2**31 else wrapped


def conjunction(values: list[Any]) -> Any:
    if any(value is False for value in values):
        return False
    return True if all(value is True for value in values) else UNDEFINED


def negation(value: Any) -> Any:
    return (not value) if isinstance(value, bool) else UNDEFINED


def equality(left: Any, right: Any) -> Any:
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    return canon(left) == canon(right)


def output(value: Any) -> Any:
    if isinstance(value, float):
        return number(value) if math.isfinite(value) else UNDEFINED
    if isinstance(value, list):
        return [part for part in map(output, value) if part is not UNDEFINED]
    if isinstance(value, dict):
        parts = {name: output(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part is not UNDEFINED}
    return value


def like(text: Any, pattern: Any, escape: str | None) -> Any:
    if not isinstance(text, str) or not isinstance(pattern, str):
        return UNDEFINED
    expression, position = "", 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        if char == escape and position < len(pattern):
            expression += re.escape(pattern[position])
            position += 1
        elif char == "%":
            expression += ".*"
        elif char == "_":
            expression += "."
        else:
            expression += re.escape(char)
    return re.fullmatch(expression, text, re.DOTALL) is not None


class Oracle:
    """One evaluation over fixed items and parameters."""

    def __init__(self, items: list[Any], parameters: Mapping[str, Any]) -> None:
        self.items = items
        self.parameters = parameters

    def query(self, query: ast.Query, outer: Names, is_top: bool = False, root: bool = True) -> list[Any]:
        rows = [
            row
            for row in self.rows(query, outer, root)
            if query.where is None or self.value(query.where, row, None) is True
        ]
        groups: list[tuple[Names, list[Names] | None]]
        if query.group_by or self.aggregates(query.selection):
            keyed: dict[Any, list[Names]] = {}
            for row in rows:
                keyed.setdefault(
                    tuple(canon(output(self.value(key, row, None))) for key in query.group_by), []
                ).append(row)
            if not query.group_by:
                keyed = {(): rows}
            if is_top:
                keyed = dict(sorted(keyed.items(), key=lambda pair: self.first(pair[1])))
            groups = [(members[0] if members else dict(outer), members) for members in keyed.values()]
        else:
            groups = [(row, None) for row in rows]
        if is_top and query.order_by and (query.group_by or not self.aggregates(query.selection)):
            if query.order_by[0].direction == "DESC":
                groups.reverse()
            for item in reversed(query.order_by):
                groups.sort(
                    key=lambda pair: rank(self.value(item.expression, *pair)),
                    reverse=item.direction == "DESC",
                )
        results = [self.project(query, row, members) for row, members in groups]
        if is_top:
            results = [output(result) for result in results]
        results = [result for result in results if result is not UNDEFINED]
        if query.distinct:
            unique: dict[Any, Any] = {}
            for result in results:
                unique.setdefault(canon(result), result)
            results = list(unique.values())
        if query.limit is not None and query.offset is not None:
            start = self.value(query.offset, {}, None)
            results = results[start : start + self.value(query.limit, {}, None)]
        return results if query.top is None else results[: self.value(query.top, {}, None)]

    def first(self, rows: list[Names]) -> int:
        """The lowest number of the documents that some rows come from; 0 for items that have none."""
        rids = [
            value["_rid"] for row in rows for value in row.values() if type(value) is dict and "_rid" in value
        ]
        return min(
            (int.from_bytes(b64decode(rid.replace("-", "/"))[8:], "little") for rid in rids), default=0
        )

    def rows(self, query: ast.Query, outer: Names, root: bool) -> list[Names]:
        rows = [dict(outer)]
        for position, source in enumerate(query.sources):
            produced: list[Names] = []
            for row in rows:
                values = self.source(source, row, root and position == 0)
                if source.iterates:
                    values = [part for value in values if isinstance(value, list) for part in value]
                alias = source.alias
                if alias is None and isinstance(source.collection, ast.Identifier | ast.Property):
                    alias = source.collection.name
                produced.extend({**row, alias or "": value} for value in values)
            rows = produced
        return rows

    def source(self, source: ast.Source, row: Names, root: bool) -> list[Any]:
        node = source.collection
        if isinstance(node, ast.Query):
            return self.query(node, row, root=root)
        base: Any = node
        while isinstance(base, ast.Property | ast.Element):
            base = base.target
        if isinstance(base, ast.Identifier) and base.name not in row and root:
            values = [self.value(node, {base.name: item}, None) for item in self.items]
        else:
            values = [self.value(node, row, None)]
        return [value for value in values if value is not UNDEFINED]

    def project(self, query: ast.Query, row: Names, members: list[Names] | None) -> Any:
        selection = query.selection
        if isinstance(selection, ast.SelectStar):
            return list(row.values())[-1]
        if isinstance(selection, ast.SelectValue):
            return self.value(selection.expression, row, members)
        result: dict[str, Any] = {}
        unnamed = 0
        for item in selection.items:
            name = item.alias
            if name is None and isinstance(item.expression, ast.Identifier | ast.Property):
                name = item.expression.name
            if name is None:
                unnamed += 1
                name = f"${unnamed}"
            result[name] = self.value(item.expression, row, members)
        return {name: value for name, value in result.items() if value is not UNDEFINED}

    def aggregates(self, node: Any) -> bool:
        if isinstance(node, ast.FunctionCall) and node.name.upper() in AGGREGATES:
            return True
        if isinstance(node, ast.Subquery):
            return False
        return any(self.aggregates(child) for child in ast.children(node))

    def aggregate(self, name: str, values: list[Any]) -> Any:
        defined = [value for value in values if value is not UNDEFINED]
        kinds = {canon(value)[0] for value in defined}
        if name == "COUNT":
            return len(defined)
        if name == "COUNTIF":
            return sum(value is True for value in defined)
        if name == "MAKELIST":
            return defined
        if name == "MAKESET":
            unique: dict[Any, Any] = {}
            for value in defined:
                unique.setdefault(canon(value), value)
            return list(unique.values())
        if name in ("SUM", "AVG"):
            if kinds - {"number"} or (name == "AVG" and not defined):
                return UNDEFINED
            total = math.fsum(float(value) for value in defined)
            return output(number(total if name == "SUM" else total / len(defined)))
        if kinds & {"array", "object"} or not kinds:
            return UNDEFINED
        return min(defined, key=rank) if name == "MIN" else max(defined, key=rank)

    def value(self, node: Any, row: Names, members: list[Names] | None) -> Any:
        """The value of an expression in a row, or in a group whose first row it is."""

        def here(each: Any) -> Any:
            return self.value(each, row, members)

        match node:
            case ast.Literal(value=value):
                return value
            case ast.Parameter(name=name):
                return self.parameters.get(name, UNDEFINED)
            case ast.Identifier(name=name):
                return row[name]
            case ast.Property(target=target, name=name):
                base = here(target)
                return base.get(name, UNDEFINED) if isinstance(base, dict) else UNDEFINED
            case ast.Element(target=target, index=index):
                base, key = here(target), here(index)
                if isinstance(base, dict) and isinstance(key, str):
                    return base.get(key, UNDEFINED)
                is_index = (
                    isinstance(base, list) and isinstance(key, int | float) and not isinstance(key, bool)
                )
                if is_index and (int(key) & 0xFFFFFFFF) < len(base):
                    return base[int(key) & 0xFFFFFFFF]
                return UNDEFINED
            case ast.Chain(operator="AND", operands=operands):
                return conjunction([here(operand) for operand in operands])
            case ast.Chain(operator="OR", operands=operands):
                return negation(conjunction([negation(here(operand)) for operand in operands]))
            case ast.Chain(operands=operands):
                parts = [here(operand) for operand in operands]
                return "".join(parts) if all(isinstance(part, str) for part in parts) else UNDEFINED
            case ast.Unary(operator="NOT", operand=operand):
                return negation(here(operand))
            case ast.Unary(operator=operator, operand=operand):
                return self.arithmetic(operator, 0, here(operand), is_unary=True)
            case ast.Binary(operator="??", left=left, right=right):
                return here(right) if here(left) is UNDEFINED else here(left)
            case ast.Binary(operator=operator, left=left, right=right):
                return self.binary(operator, here(left), here(right))
            case ast.Conditional(test=test, then=then, otherwise=otherwise):
                return here(then) if here(test) is True else here(otherwise)
            case ast.In(needle=needle, items=items, negated=negated):
                wanted, listed = here(needle), [here(item) for item in items]
                found: Any = UNDEFINED
                if wanted is not UNDEFINED:
                    found = any(equality(wanted, item) is True for item in listed)
                return negation(found) if negated else found
            case ast.Between(value=value, low=low, high=high, negated=negated):
                inner = here(value)
                held = conjunction([compare(">=", inner, here(low)), compare("<=", inner, here(high))])
                return negation(held) if negated else held
            case ast.Like(value=value, pattern=pattern, escape=escape, negated=negated):
                matched = like(here(value), here(pattern), escape)
                return negation(matched) if negated else matched
            case ast.ArrayLiteral(items=items):
                return [part for item in items if (part := here(item)) is not UNDEFINED]
            case ast.ObjectLiteral(properties=properties):
                pairs = {name: here(each) for name, each in properties}
                return {name: part for name, part in pairs.items() if part is not UNDEFINED}
            case ast.FunctionCall(name=name, arguments=arguments):
                if name.upper() in AGGREGATES:
                    assert members is not None
                    values = [self.value(arguments[0], each, None) for each in members]
                    if name.upper() in ("MAKELIST", "MAKESET"):
                        values = [output(value) for value in values]
                    return self.aggregate(name.upper(), values)
                return REGISTRY[name.upper()].call(*[here(argument) for argument in arguments])
            case ast.Subquery(kind=kind, query=query):
                return self.subquery(kind, query, row)
            case ast.Let(name=name, value=value, body=body):
                return self.value(body, {**row, name: here(value)}, members)
        raise AssertionError(f"the oracle does not know {node}")

    def subquery(self, kind: ast.SubqueryKind, query: ast.Query, row: Names) -> Any:
        rows = self.query(query, row, root=False)
        if kind is ast.SubqueryKind.EXISTS:
            return bool(rows)
        if kind is ast.SubqueryKind.ARRAY:
            return rows
        if kind is ast.SubqueryKind.LAST:
            return rows[-1] if rows else UNDEFINED
        if kind is ast.SubqueryKind.SCALAR and len(rows) > 1:
            raise OracleError(json.dumps("more than one row"))
        return rows[0] if rows else UNDEFINED

    def binary(self, operator: str, left: Any, right: Any) -> Any:
        if operator == "=":
            return equality(left, right)
        if operator == "!=":
            return negation(equality(left, right))
        if operator in ("<", "<=", ">", ">="):
            return compare(operator, left, right)
        return self.arithmetic(operator, left, right)

    def arithmetic(self, operator: str, left: Any, right: Any, is_unary: bool = False) -> Any:
        if canon(left)[0] != "number" or canon(right)[0] != "number":
            return UNDEFINED
        if is_unary:
            negative = -right if right != -(2**63) else right
            return {"-": negative, "+": right, "~": float(~int32(float(right)))}[operator]
        if isinstance(left, int) and isinstance(right, int):
            match operator:
                case "+" if fits(left + right):
                    return left + right
                case "-" if fits(left - right):
                    return left - right
                case "*" if fits(left * right):
                    return left * right
                case "/" if right and left % right == 0:
                    return left // right if fits(left // right) else float(left // right)
                case "%" if right:
                    return abs(left) % abs(right) * (-1 if left < 0 else 1)
        one, two = float(left), float(right)
        match operator:
            case "+":
                return one + two
            case "-":
                return one - two
            case "*":
                return one * two
            case "/":
                if two == 0:
                    is_nothing = one == 0 or one != one
                    return math.nan if is_nothing else math.copysign(math.inf, one) * math.copysign(1, two)
                return one / two
            case "%":
                rest = math.nan if two == 0 or math.isinf(one) else math.fmod(one, two)
                return int(rest) if rest.is_integer() and abs(rest) < 2**53 else rest
            case "&":
                return float(int32(one) & int32(two))
            case "|":
                return float(int32(one) | int32(two))
            case "^":
                return float(int32(one) ^ int32(two))
            case "<<":
                return float(int32(int32(one) << (int32(two) & 31)))
            case ">>":
                return float(int32(one) >> (int32(two) & 31))
        return float(int32((int32(one) & 0xFFFFFFFF) >> (int32(two) & 31)))
