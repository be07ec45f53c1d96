"""Constant folding: the plan of an expression with everything that does not depend on an item computed.

Used for routing and plans only, where the parameters are known. What is left is equal in value to what was given. Not
folded, as in the service: LIKE and the REGEX functions, user-defined functions, whatever depends on time, chance or a
container's policies but for what its geometries lie in; and calls that fail.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from pleiad.errors import PleiadError
from pleiad.query import plan, values
from pleiad.query.context import QueryContext
from pleiad.query.functions import REGISTRY
from pleiad.query.functions.numbers import whole
from pleiad.query.like import prefix_of
from pleiad.query.pace import in_turns
from pleiad.query.syntax.ast import SubqueryKind
from pleiad.values.undefined import UNDEFINED

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
_IS_ARRAY: Final = REGISTRY["IS_ARRAY"]
_IS_DEFINED: Final = REGISTRY["IS_DEFINED"]
_MEANT_NODES_MAX: Final = 2_000
_KEPT: Final = ("REGEXMATCH", "REGEXEXTRACT", "REGEXEXTRACTALL", "REGEXREPLACE", "REGEXREPLACEALL")


@dataclasses.dataclass(frozen=True, slots=True)
class Meanings:
    """The expressions that aliases stand for, by slot, and those of groups, by block and number."""

    slots: dict[int, plan.Expression] = dataclasses.field(default_factory=dict)
    groups: dict[tuple[int, int], plan.Expression] = dataclasses.field(default_factory=dict)


def block_meanings(block: plan.Block, found: Meanings) -> None:
    """Adds what the aliases of a block, and of the subqueries it selects from, stand for."""
    for source in block.sources:
        if source.kind is plan.SourceKind.VALUE and source.expression is not None:
            found.slots[source.slot] = source.expression
        elif source.block is not None:
            if source.kind is plan.SourceKind.ROWS:
                found.slots[source.slot] = source.block.selection
            own_groups(source.block, found)
            block_meanings(source.block, found)


def own_groups(block: plan.Block, found: Meanings) -> None:
    """Adds what the groups of a block stand for."""
    for index, key in enumerate(block.group_by):
        found.groups[block.scope, index] = key


def is_defined(node: plan.Expression) -> plan.Expression:
    """The condition that an expression has a value."""
    return plan.Call(_IS_DEFINED, (node,))


def _is_of_known_type(block: plan.Block, number: int) -> bool:
    """Whether the service looks at the type of the rows of a subquery, which stands at a place in FROM."""
    if isinstance(block.selection, plan.Conditional | plan.Subquery):
        return False
    return number == 0 or block.where is None


def row_conditions(block: plan.Block, is_whole: bool = True) -> list[plan.Expression]:
    """What has to be true for a block to have a row; ``is_whole`` asks for one with a value, whatever it is made of.

    Without it the first source is left out where it is a subquery, and so is the selection.
    """
    if is_whole and block.is_grouped and not block.group_by:
        return []
    found = [] if block.where is None else [block.where]
    for number, source in enumerate(block.sources):
        if source.expression is not None:
            is_iterated = source.kind is plan.SourceKind.ELEMENTS
            found.append(plan.Call(_IS_ARRAY if is_iterated else _IS_DEFINED, (source.expression,)))
        elif source.block is not None:
            if is_whole or number:
                found += row_conditions(source.block)
            elif source.block.is_value:
                found.append(is_defined(source.block.selection))
            if source.kind is plan.SourceKind.ROW_ELEMENTS and _is_of_known_type(source.block, number):
                found.append(plan.Call(_IS_ARRAY, (source.block.selection,)))
    if is_whole and block.is_value:
        found.append(is_defined(block.selection))
    return found


class Folder:
    """Folds expressions with the values of the parameters.

    ``known`` gives expressions a value of their own, ``meanings`` the expressions that aliases stand for. With
    ``calls`` only functions of these names are computed, and LIKE where it asks for a beginning. Functions of
    geometries are computed where ``is_planar`` says what they lie in.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any],
        known: Callable[[plan.Expression], tuple[Any] | None] | None = None,
        meanings: Meanings | None = None,
        calls: Collection[str] | None = None,
        is_planar: bool | None = None,
    ) -> None:
        self._parameters = parameters
        self._known = known
        self._meanings = meanings or Meanings()
        self._calls = calls
        self._is_planar = is_planar
        self._depth = self._meant_nodes = 0

    def fold(self, node: plan.Expression) -> plan.Expression:
        """The expression with its constant parts computed."""
        if isinstance(node, plan.Constant):
            return node
        self._meant_nodes += self._depth > 0
        if self._known is not None and (given := self._known(node)) is not None:
            return plan.Constant(given[0])
        match node:
            case plan.Parameter(name=name):
                return plan.Constant(self._parameters.get(name, UNDEFINED))
            case plan.Slot(index=index) if index in self._meanings.slots:
                return self._meant(node, self._meanings.slots[index])
            case plan.GroupKey(index=index, scope=scope) if (scope, index) in self._meanings.groups:
                return self._meant(node, self._meanings.groups[scope, index])
            case plan.Let(slot=slot, value=value, body=body):
                self._meanings.slots[slot] = value
                return self.fold(body)
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

    def _meant(self, node: plan.Expression, meaning: plan.Expression) -> plan.Expression:
        """What an alias stands for; aliases of aliases would grow without end, so at some size they stay."""
        if self._meant_nodes > _MEANT_NODES_MAX:
            return node
        self._depth += 1
        try:
            return self.fold(meaning)
        finally:
            self._depth -= 1

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
                return self._like(self.fold(value), self.fold(pattern), escape)
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
        if isinstance(target, plan.MakeArray) and values.is_number(key.value):
            place = values.array_index(key.value)
            if place >= len(target.items):
                return plan.Constant(UNDEFINED)
            # Only a place alone is sure: what is undefined before another one moves it.
            if place == 0 and len(target.items) == 1:
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
        is_asked = self._calls is None or function.name in self._calls
        is_pure = function.deterministic and not function.needs_context and function.name not in _KEPT
        is_measured = function.family == "spatial" and self._is_planar is not None
        if is_asked and is_measured and _is_constant(*arguments):
            context = QueryContext(is_planar=bool(self._is_planar))
            return plan.Constant(function.call(context, *map(_value, arguments)))
        if is_asked and is_pure and _is_constant(*arguments):
            try:
                return plan.Constant(function.call(*map(_value, arguments)))
            except PleiadError:
                return node
        return plan.Call(function, arguments)

    def _like(self, value: plan.Expression, pattern: plan.Expression, escape: str | None) -> plan.Expression:
        if self._calls is not None and _is_constant(value, pattern):
            text, wanted = _value(value), _value(pattern)
            prefix = prefix_of(wanted, escape) if isinstance(wanted, str) else None
            if prefix is not None and isinstance(text, str):
                return plan.Constant(text.startswith(prefix))
        return plan.Like(value, pattern, escape)

    def _subquery(self, node: plan.Subquery) -> plan.Expression:
        """A subquery without a source has one row, or none; of an EXISTS what it needs for a row is folded."""
        block = node.block
        if block.is_grouped and not block.group_by:
            return node
        if block.sources or block.is_grouped:
            if node.kind is not SubqueryKind.EXISTS:
                return node
            block_meanings(block, self._meanings)
            own_groups(block, self._meanings)
            needed = row_conditions(block)
            where = self.fold(plan.Chain("AND", tuple(needed))) if needed else None
            return plan.Subquery(node.kind, dataclasses.replace(block, where=where))
        where = plan.Constant(True) if block.where is None else self.fold(block.where)
        selection = self.fold(block.selection)
        if node.kind is SubqueryKind.EXISTS:
            return self._exists(node, where, selection)
        if node.kind is SubqueryKind.ARRAY:
            made = self._compound(plan.MakeArray((selection,)))
            return self._conditional(where, made, plan.Constant([]))
        return self._conditional(where, selection, plan.Constant(UNDEFINED))

    def _exists(
        self, node: plan.Subquery, where: plan.Expression, selection: plan.Expression
    ) -> plan.Expression:
        is_made = isinstance(selection, plan.MakeObject | plan.MakeArray)
        has_value = plan.Constant(True) if is_made else self.fold(is_defined(selection))
        whole = self._chain("AND", [where, has_value])
        if isinstance(whole, plan.Constant):
            return plan.Constant(whole.value is True)
        return plan.Subquery(node.kind, dataclasses.replace(node.block, where=whole, selection=selection))


def _is_constant(*nodes: plan.Expression) -> bool:
    return all(isinstance(node, plan.Constant) for node in nodes)


def _value(node: plan.Expression) -> Any:
    assert isinstance(node, plan.Constant)
    return node.value
