"""Conditions on paths that no value can pass together, such as ``c.x < 1 AND c.x > 2``.

Only comparisons with constants are looked at; what is not understood is taken for possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pleiad.query import plan
from pleiad.query.like import literal_of, prefix_of
from pleiad.query.pace import in_turns, worked
from pleiad.query.route.kinds import Path, path_of
from pleiad.query.values import eq3, ge3, gt3, le3, lt3, member, ne3
from pleiad.values.undefined import UNDEFINED

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": lt3,
    "<=": le3,
    ">": gt3,
    ">=": ge3,
    "=": eq3,
    "!=": ne3,
    "defined": lambda value, _: value is not UNDEFINED,
}


def is_contradiction(operands: Sequence[plan.Expression]) -> bool:
    """Whether comparisons of paths with constants cannot all be true."""
    asked: dict[Path, list[tuple[str, Any]]] = {}
    for node in in_turns(operands):
        for operator, left, right in _comparisons(node):
            path = path_of(left)
            if path is not None:
                asked.setdefault(path, []).append((operator, right))
    if any(len(each) > 1 and not _can_hold(each) for each in asked.values()):
        return True
    return any(
        operator == "=" and isinstance(value, list | dict) and not _holds_within(path, value, asked)
        for path, each in asked.items()
        for operator, value in each
    )


def _holds_within(path: Path, value: Any, asked: Mapping[Path, list[tuple[str, Any]]]) -> bool:
    """Whether the parts of an array or object that a path equals pass what is asked of the paths below it."""
    for other, comparisons in asked.items():
        if len(other) > len(path) and other[: len(path)] == path:
            part = value
            for step in other[len(path) :]:
                part = member(part, step)
            if not all(_COMPARE[operator](part, limit) is True for operator, limit in comparisons):
                return False
    return True


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
        case plan.Like(value=value, pattern=plan.Constant(value=str(pattern)), escape=escape):
            literal = literal_of(pattern, escape)
            if literal is not None:
                return [("=", value, literal)]
            return _begins(value, prefix_of(pattern, escape) or "")
        case plan.Call(function=function, arguments=(first,)) if function.name == "IS_DEFINED":
            return [("defined", first, None)]
        case plan.Call(function=function, arguments=arguments) if function.name == "STARTSWITH":
            prefix = arguments[1].value if isinstance(arguments[1], plan.Constant) else None
            is_exact = len(arguments) == 2 or arguments[2] == plan.Constant(False)
            return _begins(arguments[0], prefix) if isinstance(prefix, str) and is_exact else []
        case plan.Chain(operator="AND", operands=operands):
            return [each for operand in operands for each in _comparisons(operand)]
    return []


def _begins(value: plan.Expression, prefix: str) -> list[tuple[str, plan.Expression, Any]]:
    """A text that begins with another one stands between it and the next one of its length."""
    if not prefix or not prefix[-1] < "\ud7ff":
        return []
    return [(">=", value, prefix), ("<", value, prefix[:-1] + chr(ord(prefix[-1]) + 1))]


def _can_hold(asked: list[tuple[str, Any]]) -> bool:
    """Whether one value passes all comparisons: an equal one is tried, else the highest low and the lowest high."""
    for operator, value in asked:
        if operator == "=":
            return all(_COMPARE[other](value, limit) is True for other, limit in asked)
    lows = [(operator, value) for operator, value in asked if operator in (">", ">=")]
    highs = [(operator, value) for operator, value in asked if operator in ("<", "<=")]
    for low_operator, low in lows:
        worked(len(highs))
        for high_operator, high in highs:
            is_open = low_operator == ">" or high_operator == "<"
            if (lt3 if is_open else le3)(low, high) is not True:
                return False
    return True
