"""Conditions on one path that no value can pass together, such as ``c.x < 1 AND c.x > 2``.

Only comparisons with constants are looked at; what is not understood is taken for possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pleiad.query import plan
from pleiad.query.pace import in_turns, worked
from pleiad.query.values import eq3, ge3, gt3, le3, lt3, ne3

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {"<": lt3, "<=": le3, ">": gt3, ">=": ge3}


def is_contradiction(operands: Sequence[plan.Expression]) -> bool:
    """Whether comparisons of one path with constants cannot all be true."""
    asked: dict[Any, list[tuple[str, Any]]] = {}
    for node in in_turns(operands):
        for operator, left, right in _comparisons(node):
            path = _path_of(left)
            if path is not None:
                asked.setdefault(path, []).append((operator, right))
    return any(len(each) > 1 and not _can_hold(each) for each in asked.values())


def _comparisons(node: plan.Expression) -> list[tuple[str, plan.Expression, Any]]:
    match node:
        case plan.Unary(operator="NOT", operand=plan.Binary(operator="=", left=left, right=right)):
            return _comparisons(plan.Binary("!=", left, right))
        case plan.Binary(
            operator="=" | "!=" | "<" | "<=" | ">" | ">=" as operator,
            left=left,
            right=plan.Constant(value=value),
        ):
            return [(operator, left, value)]
        case plan.Binary(
            operator="=" | "!=" | "<" | "<=" | ">" | ">=" as operator,
            left=plan.Constant(value=value),
            right=right,
        ):
            return [(_FLIPPED.get(operator, operator), right, value)]
        case plan.Between(value=value, low=plan.Constant(value=low), high=plan.Constant(value=high)):
            return [(">=", value, low), ("<=", value, high)]
        case plan.Chain(operator="AND", operands=operands):
            return [each for operand in operands for each in _comparisons(operand)]
    return []


def _path_of(node: plan.Expression) -> tuple[Any, ...] | None:
    names: list[Any] = []
    while isinstance(node, plan.Member):
        if not isinstance(node.key, plan.Constant) or not isinstance(node.key.value, str):
            return None
        names.append(node.key.value)
        node = node.target
    return (node.index, *names) if isinstance(node, plan.Slot) else None


def _can_hold(asked: list[tuple[str, Any]]) -> bool:
    """Whether one value passes all comparisons: an equal one is tried, else the highest low and the lowest high."""
    compare = {**_COMPARE, "=": eq3, "!=": ne3}
    for operator, value in asked:
        if operator == "=":
            return all(compare[other](value, limit) is True for other, limit in asked)
    lows = [(operator, value) for operator, value in asked if operator in (">", ">=")]
    highs = [(operator, value) for operator, value in asked if operator in ("<", "<=")]
    for low_operator, low in lows:
        worked(len(highs))
        for high_operator, high in highs:
            is_open = low_operator == ">" or high_operator == "<"
            if (lt3 if is_open else le3)(low, high) is not True:
                return False
    return True
