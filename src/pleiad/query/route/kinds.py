"""Which types an expression can have, whatever the item: enough to see that a filter can never be true.

A kind is a set of types as bits. The answer is a superset: a value always has one of the types said.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, Final

from pleiad.query import plan
from pleiad.query.pace import in_turns
from pleiad.query.route.signatures import (
    ANYTHING,
    ARRAY,
    BOOLEAN,
    DEFINED,
    FALSE,
    MISSING,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
    call_kinds,
)
from pleiad.query.syntax.ast import SubqueryKind
from pleiad.query.values import array_index, is_number
from pleiad.values.undefined import UNDEFINED

_AGGREGATES: Final = {
    plan.AggregateKind.COUNT: NUMBER,
    plan.AggregateKind.COUNTIF: NUMBER,
    plan.AggregateKind.SUM: NUMBER | MISSING,
    plan.AggregateKind.AVG: NUMBER | MISSING,
    plan.AggregateKind.MAKELIST: ARRAY,
    plan.AggregateKind.MAKESET: ARRAY,
}


_FLIPPED: Final = {"<": ">", ">": "<"}
_EXTREMES: Final = (plan.AggregateKind.MIN, plan.AggregateKind.MAX)
"""Neither is ever an array or an object, though the service compares them with such."""


def kind_of_value(value: Any) -> int:
    """The type of a value."""
    if value is UNDEFINED:
        return MISSING
    if value is None:
        return NULL
    if value is True or value is False:
        return TRUE if value else FALSE
    if isinstance(value, int | float):
        return NUMBER
    if isinstance(value, str):
        return STRING
    return ARRAY if isinstance(value, list) else OBJECT


Path = tuple[int | str, ...]
"""A slot, and the names and places below it."""


def path_of(node: plan.Expression) -> Path | None:
    """The path that an expression is, None when it is more than that."""
    steps: list[int | str] = []
    while isinstance(node, plan.Member):
        key = node.key.value if isinstance(node.key, plan.Constant) else None
        if isinstance(key, str):
            steps.append(key)
        elif isinstance(key, int | float) and is_number(key):
            steps.append(array_index(key))
        else:
            return None
        node = node.target
    return (node.index, *reversed(steps)) if isinstance(node, plan.Slot) else None


def kinds(node: plan.Expression, items: Collection[int] = ()) -> int:
    """The types that an expression can have. An item is taken for anything that is defined, as the service does."""
    match node:
        case plan.Constant(value=value):
            return kind_of_value(value)
        case plan.Slot(index=index):
            return DEFINED if index in items else ANYTHING
        case plan.Member(target=target, key=key):
            if isinstance(target, plan.AggregateResult) and target.kind in _EXTREMES:
                return MISSING
            return ANYTHING if kinds(target, items) & _holder(key) else MISSING
        case plan.Unary(operator="NOT", operand=operand):
            inner = kinds(operand, items)
            return (
                (FALSE if inner & TRUE else 0)
                | (TRUE if inner & FALSE else 0)
                | (MISSING if inner & ~BOOLEAN else 0)
            )
        case plan.Unary(operand=operand):
            return _number_or_missing(kinds(operand, items))
        case plan.Binary(operator=operator, left=left, right=right) if _is_beyond(operator, left, right):
            return FALSE | MISSING
        case plan.Binary(operator=operator, left=left, right=right):
            return _binary(operator, kinds(left, items), kinds(right, items))
        case plan.Chain(operator=operator, operands=operands):
            return _chain(operator, [kinds(each, items) for each in in_turns(operands)])
        case plan.Conditional(test=test, then=then, otherwise=otherwise):
            tested = kinds(test, items)
            found = kinds(then, items) if tested & TRUE else 0
            return found | (kinds(otherwise, items) if tested & ~TRUE else 0)
    return _compound(node, items)


def _compound(node: plan.Expression, items: Collection[int]) -> int:
    match node:
        case plan.In(needle=needle, items=listed):
            inner = kinds(needle, items)
            others = [kinds(each, items) for each in in_turns(listed)]
            can_match = any(_may_equal(inner, other) for other in others)
            is_known = MISSING if inner & MISSING else 0
            return is_known | (FALSE if inner & ~MISSING else 0) | (TRUE if can_match else 0)
        case plan.Between(value=value, low=low, high=high):
            inner = kinds(value, items)
            return _chain(
                "AND", [_binary(">=", inner, kinds(low, items)), _binary("<=", inner, kinds(high, items))]
            )
        case plan.Like(value=value, pattern=pattern):
            both = kinds(value, items) & kinds(pattern, items) & STRING
            return BOOLEAN | MISSING if both else MISSING
        case plan.MakeArray():
            return ARRAY
        case plan.MakeObject():
            return OBJECT
        case plan.Call(function=function):
            return call_kinds(
                function.name, [kinds(each, items) for each in in_turns(written_arguments(node))]
            )
        case plan.Subquery(kind=kind, block=block):
            return _subquery(kind, block, items)
        case plan.AggregateResult(kind=kind):
            return _AGGREGATES.get(kind, ANYTHING)
    return ANYTHING


def _subquery(kind: SubqueryKind, block: plan.Block, items: Collection[int]) -> int:
    """What stands first or last of many rows is taken for anything, as the service does."""
    if kind is SubqueryKind.EXISTS:
        is_never = block.where is not None and not kinds(block.where, items) & TRUE
        return FALSE if is_never and (block.group_by or not block.is_grouped) else BOOLEAN
    if kind is SubqueryKind.ARRAY:
        return ARRAY
    return kinds(block.selection, items) | MISSING if kind is SubqueryKind.SCALAR else ANYTHING


def written_arguments(node: plan.Call) -> tuple[plan.Expression, ...]:
    """The arguments of a call as the text has them, without the path that stands before those of a search."""
    return node.arguments[1:] if node.function.family in ("fulltext", "vector") else node.arguments


def _holder(key: plan.Expression) -> int:
    """The types that have members under a key."""
    if not isinstance(key, plan.Constant):
        return ARRAY | OBJECT
    return OBJECT if isinstance(key.value, str) else ARRAY


def _is_beyond(operator: str, left: plan.Expression, right: plan.Expression) -> bool:
    """Whether a comparison asks for more than an infinity, for less than its opposite, or for what NaN is near to."""
    if isinstance(left, plan.Constant):
        left, right, operator = right, left, _FLIPPED.get(operator, operator)
    if not isinstance(right, plan.Constant) or not isinstance(right.value, float):
        return False
    if right.value != right.value:
        return operator in ("<", "<=", ">", ">=") or (operator == "=" and path_of(left) is not None)
    return (operator, right.value) in ((">", math.inf), ("<", -math.inf))


def _number_or_missing(inner: int) -> int:
    return (NUMBER if inner & NUMBER else 0) | (MISSING if inner & ~NUMBER else 0)


def _may_equal(one: int, two: int) -> bool:
    return bool(one & two & ~MISSING)


def _binary(operator: str, left: int, right: int) -> int:
    if operator == "??":
        return (left & ~MISSING) | (right if left & MISSING else 0)
    if operator in ("=", "!="):
        missing = MISSING if (left | right) & MISSING else 0
        if not left & ~MISSING or not right & ~MISSING:
            return MISSING
        same, other = (TRUE, FALSE) if operator == "=" else (FALSE, TRUE)
        return missing | other | (same if _may_equal(left, right) else 0)
    if operator in ("<", "<=", ">", ">="):
        common = left & right & (NULL | NUMBER | STRING)
        booleans = left & BOOLEAN and right & BOOLEAN
        return (BOOLEAN if common or booleans else 0) | MISSING
    return NUMBER | MISSING if left & right & NUMBER else MISSING


def _chain(operator: str, parts: list[int]) -> int:
    if operator == "||":
        return STRING | MISSING if all(part & STRING for part in parts) else MISSING
    decisive, other = (FALSE, TRUE) if operator == "AND" else (TRUE, FALSE)
    found = decisive if any(part & decisive for part in parts) else 0
    if all(part & other for part in parts):
        found |= other
    # Some operand may be no boolean while none decides.
    if any(part & ~BOOLEAN for part in parts) and all(part & ~decisive for part in parts):
        found |= MISSING
    return found
