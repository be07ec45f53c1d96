"""Constant folding: the plan of an expression with everything that does not depend on an item computed.

Used for routing and plans only, where the parameters are known. What is left is equal in value to what was given. Not
folded, as in the service: LIKE and the REGEX functions, user-defined functions, whatever depends on time, chance or a
container's policies; and calls that fail.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

from pleiad.errors import PleiadError
from pleiad.keys.undefined import UNDEFINED
from pleiad.query import plan, values
from pleiad.query.ast import SubqueryKind
from pleiad.query.functions.numbers import whole
from pleiad.query.pace import in_turns

_BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": values.add3,
    "-": values.sub3,
    "*": values.mul3,
    "/": values.div3,
    "%": values.mod3,
    "&": values.bitand3,
    "|": values.bitor3,
    "^": values.bitxor3,
    "<<": values.shl3,
    ">>": values.sar3,
    ">>>": values.shr3,
    "=": values.eq3,
    "!=": values.ne3,
    "<": values.lt3,
    "<=": values.le3,
    ">": values.gt3,
    ">=": values.ge3,
}
_UNARY: Final[dict[str, Callable[[Any], Any]]] = {
    "NOT": values.not3,
    "-": values.neg3,
    "+": values.pos3,
    "~": values.bitnot3,
}
_KEPT: Final = ("REGEXMATCH", "REGEXEXTRACT", "REGEXEXTRACTALL", "REGEXREPLACE", "REGEXREPLACEALL")


class Folder:
    """Folds expressions with the values of the parameters.

    ``known`` gives expressions a value of their own, ``slots`` the expressions that aliases stand for.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any],
        known: Callable[[plan.Expression], tuple[Any] | None] | None = None,
        slots: Mapping[int, plan.Expression] | None = None,
    ) -> None:
        self._parameters = parameters
        self._known = known
        self._slots = slots or {}

    def fold(self, node: plan.Expression) -> plan.Expression:
        """The expression with its constant parts computed."""
        if isinstance(node, plan.Constant):
            return node
        if self._known is not None and (given := self._known(node)) is not None:
            return plan.Constant(given[0])
        match node:
            case plan.Parameter(name=name):
                return plan.Constant(self._parameters.get(name, UNDEFINED))
            case plan.Slot(index=index) if index in self._slots:
                return self.fold(self._slots[index])
            case plan.Member(target=target, key=key):
                return self._member(self.fold(target), self.fold(key))
            case plan.Unary(operator=operator, operand=operand):
                inner = self.fold(operand)
                if isinstance(inner, plan.Constant):
                    return plan.Constant(_UNARY[operator](inner.value))
                return plan.Unary(operator, inner)
            case plan.Binary(operator=operator, left=left, right=right):
                return self._binary(operator, self.fold(left), self.fold(right))
            case plan.Chain(operator=operator, operands=operands):
                return self._chain(operator, [self.fold(each) for each in in_turns(operands)])
            case plan.Conditional(test=test, then=then, otherwise=otherwise):
                return self._conditional(self.fold(test), self.fold(then), self.fold(otherwise))
            case plan.Call():
                return self._call(node)
            case plan.Subquery():
                return self._subquery(node)
        return self._compound(node)

    def _all(self, nodes: tuple[plan.Expression, ...]) -> tuple[plan.Expression, ...]:
        return tuple(self.fold(each) for each in in_turns(nodes))

    def _compound(self, node: plan.Expression) -> plan.Expression:
        match node:
            case plan.In(needle=needle, items=items):
                return self._in(self.fold(needle), self._all(items))
            case plan.Between(value=value, low=low, high=high):
                parts = self._all((value, low, high))
                if _is_constant(*parts):
                    return plan.Constant(values.between3(*map(_value, parts)))
                return plan.Between(*parts)
            case plan.Like(value=value, pattern=pattern, escape=escape):
                return plan.Like(self.fold(value), self.fold(pattern), escape)
            case plan.MakeArray(items=items):
                parts = self._all(items)
                if _is_constant(*parts):
                    return plan.Constant(values.make_array(*map(_value, parts)))
                return plan.MakeArray(parts)
            case plan.MakeObject(properties=properties):
                folded = tuple((name, self.fold(value)) for name, value in properties)
                if _is_constant(*(value for _, value in folded)):
                    return plan.Constant(values.make_object({name: _value(value) for name, value in folded}))
                return plan.MakeObject(folded)
        return node

    def _member(self, target: plan.Expression, key: plan.Expression) -> plan.Expression:
        if not isinstance(key, plan.Constant):
            return plan.Member(target, key)
        if isinstance(target, plan.Constant):
            return plan.Constant(values.member(target.value, key.value))
        if isinstance(target, plan.MakeObject) and isinstance(key.value, str):
            return dict(target.properties).get(key.value, plan.Constant(UNDEFINED))
        if isinstance(target, plan.MakeArray) and key.value == 0 and len(target.items) == 1:
            # Only a place alone is sure: what is undefined before another one moves it.
            return target.items[0]
        return plan.Member(target, key)

    def _binary(self, operator: str, left: plan.Expression, right: plan.Expression) -> plan.Expression:
        if operator == "??":
            if isinstance(left, plan.Constant):
                return right if left.value is UNDEFINED else left
            return plan.Binary(operator, left, right)
        if isinstance(left, plan.Constant) and isinstance(right, plan.Constant):
            return plan.Constant(_BINARY[operator](left.value, right.value))
        return plan.Binary(operator, left, right)

    def _chain(self, operator: str, operands: list[plan.Expression]) -> plan.Expression:
        if operator == "||":
            if _is_constant(*operands):
                parts = [_value(each) for each in operands]
                is_text = all(isinstance(part, str) for part in parts)
                return plan.Constant("".join(parts) if is_text else UNDEFINED)
            return plan.Chain(operator, tuple(operands))
        decisive = operator == "OR"
        for each in operands:
            if isinstance(each, plan.Constant) and each.value is decisive:
                return plan.Constant(decisive)
        left = [
            each
            for each in operands
            if not (isinstance(each, plan.Constant) and each.value is (not decisive))
        ]
        if not left:
            return plan.Constant(not decisive)
        if _is_constant(*left):
            return plan.Constant(UNDEFINED)
        return plan.Chain(operator, tuple(operands))

    def _conditional(
        self, test: plan.Expression, then: plan.Expression, otherwise: plan.Expression
    ) -> plan.Expression:
        if isinstance(test, plan.Constant):
            return then if test.value is True else otherwise
        return plan.Conditional(test, then, otherwise)

    def _in(self, needle: plan.Expression, items: tuple[plan.Expression, ...]) -> plan.Expression:
        if _is_constant(needle, *items):
            return plan.Constant(values.in3(_value(needle), [_value(item) for item in items]))
        return plan.In(needle, items)

    def _call(self, node: plan.Call) -> plan.Expression:
        arguments = self._all(node.arguments)
        function = node.function
        if function.name == "IIF":
            return self._conditional(*arguments)
        if function.name == "CHOOSE" and isinstance(arguments[0], plan.Constant):
            place = whole(arguments[0].value)
            if place is None or not 1 <= place < len(arguments):
                return plan.Constant(UNDEFINED)
            return arguments[place]
        is_pure = function.deterministic and not function.needs_context and function.name not in _KEPT
        if is_pure and _is_constant(*arguments):
            try:
                return plan.Constant(function.call(*map(_value, arguments)))
            except PleiadError:
                return node
        return plan.Call(function, arguments)

    def _subquery(self, node: plan.Subquery) -> plan.Expression:
        """A subquery without a source has one row, or none; of one with sources the filter is folded."""
        block = node.block
        if block.is_grouped or node.kind is SubqueryKind.ARRAY:
            return node
        if block.sources:
            if block.where is None:
                return node
            return plan.Subquery(node.kind, dataclasses.replace(block, where=self.fold(block.where)))
        where = plan.Constant(True) if block.where is None else self.fold(block.where)
        selection = self.fold(block.selection)
        if not isinstance(where, plan.Constant):
            return node
        if where.value is not True:
            return plan.Constant(False if node.kind is SubqueryKind.EXISTS else UNDEFINED)
        if node.kind is not SubqueryKind.EXISTS:
            return selection
        if isinstance(selection, plan.Constant):
            return plan.Constant(selection.value is not UNDEFINED)
        return plan.Constant(True) if isinstance(selection, plan.MakeObject | plan.MakeArray) else node


def _is_constant(*nodes: plan.Expression) -> bool:
    return all(isinstance(node, plan.Constant) for node in nodes)


def _value(node: plan.Expression) -> Any:
    assert isinstance(node, plan.Constant)
    return node.value
