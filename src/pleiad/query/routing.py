"""Which partition key values a filter can be true for.

The answer is a superset: every item that the query returns has one of the keys. It is found from
equalities, IN lists, OR and AND of them, and the few functions whose truth pins a value. Nothing is
evaluated on items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

from pleiad.keys.undefined import UNDEFINED
from pleiad.query import plan
from pleiad.query.like import literal_of
from pleiad.query.values import hash_key, is_number

KEYS_MAX: Final = 20_000
_BOXES_MAX: Final = 2_000

# For each level of the key the values that it may have, by hash key; None when it may have any.
_Levels = tuple[dict[Any, Any] | None, ...]
# The filter can be true only inside one of these; None when nothing is known.
_Boxes = list[_Levels] | None


def key_values(
    bound: plan.Plan, parameters: Mapping[str, Any], key_paths: Sequence[tuple[str, ...]]
) -> list[tuple[Any, ...]] | None:
    """The partition keys, or prefixes of hierarchical ones, that the filter allows; None for all of them.

    ``key_paths`` has the property names of each level. An empty list means that no item can match.
    """
    block = bound.block
    while block.sources and block.sources[0].block is not None:
        block = block.sources[0].block
    if not block.reads_items:
        return []
    slot = block.sources[0].slot
    if block.where is None or not key_paths:
        return None
    boxes = _Reader(slot, parameters, tuple(key_paths)).when_true(block.where)
    return None if boxes is None else _expand(boxes)


def _expand(boxes: list[_Levels]) -> list[tuple[Any, ...]] | None:
    """The keys of the boxes, each once: for every box the product of its leading known levels."""
    found: dict[Any, tuple[Any, ...]] = {}
    for box in boxes:
        known: list[list[Any]] = []
        for level in box:
            if level is None:
                break
            known.append(list(level.values()))
        if not known:
            return None
        size = 1
        for values in known:
            size *= len(values)
        if size + len(found) > KEYS_MAX:
            return None
        for key in product(*known):
            found.setdefault(tuple(map(hash_key, key)), key)
    return list(found.values())


class _Reader:
    """Reads a filter for one container's key paths."""

    def __init__(
        self, slot: int, parameters: Mapping[str, Any], key_paths: tuple[tuple[str, ...], ...]
    ) -> None:
        self._slot = slot
        self._parameters = parameters
        self._key_paths = key_paths

    def when_true(self, node: plan.Expression) -> _Boxes:
        """Where the expression can be exactly true."""
        match node:
            case plan.Constant(value=value):
                return None if value is True else []
            case plan.Parameter(name=name):
                return None if self._parameters.get(name) is True else []
            case plan.Chain(operator="AND", operands=operands):
                return self._all([self.when_true(operand) for operand in operands])
            case plan.Chain(operator="OR", operands=operands):
                return self._any([self.when_true(operand) for operand in operands])
            case plan.Unary(operator="NOT", operand=operand):
                return self._when_false(operand)
            case plan.Binary(operator="=", left=left, right=right):
                return self._equality(left, right)
            case plan.In(needle=needle, items=items):
                values = [self._constant(item) for item in items]
                return None if None in values else self._one_of(needle, [each[0] for each in values if each])
            case plan.Like(value=value, pattern=pattern, escape=escape):
                constant = self._constant(pattern)
                text = constant[0] if constant is not None else None
                literal = literal_of(text, escape) if isinstance(text, str) else None
                return None if literal is None else self._one_of(value, [literal])
            case plan.Member():
                return self._one_of(node, [True])
            case plan.Call():
                return self._call(node)
        return None

    def _when_false(self, node: plan.Expression) -> _Boxes:
        match node:
            case plan.Constant(value=value):
                return None if value is False else []
            case plan.Unary(operator="NOT", operand=operand):
                return self.when_true(operand)
            case plan.Chain(operator="AND", operands=operands):
                return self._any([self._when_false(operand) for operand in operands])
            case plan.Chain(operator="OR", operands=operands):
                return self._all([self._when_false(operand) for operand in operands])
            case plan.Binary(operator="!=", left=left, right=right):
                return self._equality(left, right)
            case plan.Member():
                return self._one_of(node, [False])
        return None

    def _call(self, node: plan.Call) -> _Boxes:
        arguments = node.arguments
        match node.function.name:
            case "IS_NULL":
                return self._one_of(arguments[0], [None])
            case "IS_BOOL":
                return self._one_of(arguments[0], [False, True])
            case "STRINGEQUALS" if len(arguments) == 2:
                return self._equality(arguments[0], arguments[1])
            case "ARRAY_CONTAINS" if len(arguments) == 2:
                constant = self._constant(arguments[0])
                if constant is not None and isinstance(constant[0], list):
                    return self._one_of(arguments[1], constant[0])
        return None

    def _equality(self, left: plan.Expression, right: plan.Expression) -> _Boxes:
        constant = self._constant(right)
        if constant is None:
            left, constant = right, self._constant(left)
        if constant is None:
            return None
        value = constant[0]
        if isinstance(left, plan.Call) and left.function.name == "ABS":
            if not is_number(value):
                return []
            return self._one_of(left.arguments[0], [value, -value])
        return self._one_of(left, [value])

    def _constant(self, node: plan.Expression) -> tuple[Any] | None:
        """The value of a constant or parameter, in a tuple, or None."""
        if isinstance(node, plan.Constant):
            return (node.value,)
        if isinstance(node, plan.Parameter) and node.name in self._parameters:
            return (self._parameters[node.name],)
        return None

    def _one_of(self, node: plan.Expression, values: list[Any]) -> _Boxes:
        """Boxes for "the path has one of these values"; None when the path is no level of the key."""
        level = self._level(node)
        if level is None:
            return None
        if any(isinstance(value, list | dict) for value in values):
            return None
        allowed = {hash_key(value): value for value in values if value is not UNDEFINED}
        if not allowed:
            return []
        box: list[dict[Any, Any] | None] = [None] * len(self._key_paths)
        box[level] = allowed
        return [tuple(box)]

    def _level(self, node: plan.Expression) -> int | None:
        names: list[str] = []
        while isinstance(node, plan.Member):
            constant = self._constant(node.key)
            if constant is None or not isinstance(constant[0], str):
                return None
            names.append(constant[0])
            node = node.target
        if not isinstance(node, plan.Slot) or node.index != self._slot:
            return None
        path = tuple(reversed(names))
        return self._key_paths.index(path) if path in self._key_paths else None

    def _any(self, parts: list[_Boxes]) -> _Boxes:
        """The union; boxes that differ only in one level are joined, so that a long OR stays small."""
        merged: dict[Any, list[dict[Any, Any] | None]] = {}
        for part in parts:
            if part is None:
                return None
            for box in part:
                known = [number for number, level in enumerate(box) if level is not None]
                joint: Any = known[0] if len(known) == 1 else ("box", len(merged))
                if joint in merged:
                    only = merged[joint][known[0]]
                    if only is not None:
                        only.update(box[known[0]] or {})
                else:
                    merged[joint] = [None if level is None else dict(level) for level in box]
        if len(merged) > _BOXES_MAX:
            return None
        return [tuple(box) for box in merged.values()]

    def _all(self, parts: list[_Boxes]) -> _Boxes:
        """The intersection, or one of the parts where the product would be too large."""
        result: _Boxes = None
        for part in parts:
            if part is None:
                continue
            if result is None:
                result = part
            elif len(result) * len(part) > _BOXES_MAX:
                result = min(result, part, key=len)
            else:
                crossed = [_intersection(one, two) for one in result for two in part]
                result = [box for box in crossed if box is not None]
        return result


def _intersection(one: _Levels, two: _Levels) -> _Levels | None:
    levels: list[dict[Any, Any] | None] = []
    for left, right in zip(one, two, strict=True):
        if left is None or right is None:
            levels.append(right if left is None else left)
            continue
        both = {key: value for key, value in left.items() if key in right}
        if not both:
            return None
        levels.append(both)
    return tuple(levels)
