"""Bound plan to Python source: expressions, in three forms.

- ``value``: the value, UNDEFINED included;
- ``truth``: a Python condition that holds exactly when the value is true;
- ``falsity``: one that holds exactly when the value is false.

Filters use the last two, so three-valued logic costs nothing where only "exactly true" matters.
Comparisons with constants and parameters are specialised by their type. Expressions are cut into functions
before they nest deeper than Python's own parser allows. Every name and constant of the query enters the
source as a quoted literal or through the environment, never as code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pleiad.keys.undefined import UNDEFINED
from pleiad.query import plan
from pleiad.query.ast import SubqueryKind
from pleiad.query.compile_support import ENVIRONMENT, tag_of
from pleiad.query.functions.registry import Function
from pleiad.query.values import EXACT_INT

_NESTING_MAX: Final = 12
_BINARY: Final = {
    "+": "add3",
    "-": "sub3",
    "*": "mul3",
    "/": "div3",
    "%": "mod3",
    "&": "bitand3",
    "|": "bitor3",
    "^": "bitxor3",
    "<<": "shl3",
    ">>": "sar3",
    ">>>": "shr3",
    "=": "eq3",
    "!=": "ne3",
    "<": "lt3",
    "<=": "le3",
    ">": "gt3",
    ">=": "ge3",
}
_UNARY: Final = {"NOT": "not3", "-": "neg3", "+": "pos3", "~": "bitnot3"}
_CHAIN: Final = {"AND": "and3", "OR": "or3", "||": "concat3"}
_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_SUBQUERY: Final = {
    SubqueryKind.SCALAR: "scalar",
    SubqueryKind.EXISTS: "exists",
    SubqueryKind.ARRAY: "array_of",
    SubqueryKind.FIRST: "first",
    SubqueryKind.LAST: "last",
}
_MAY_BE_INFINITE: Final = (
    *(plan.Binary, plan.Unary, plan.Call, plan.UdfCall, plan.Conditional, plan.Constant, plan.Let),
    *(plan.Parameter, plan.AggregateResult),
)


class ExpressionEmitter:
    """Generates expressions; the statement part adds ``block``."""

    def __init__(self, bound: plan.Plan, tags: dict[str, str], computed: tuple[str, ...]) -> None:
        self.plan = bound
        self.tags = tags
        self.computed = {name: index for index, name in enumerate(computed)}
        self.environment: dict[str, Any] = dict(ENVIRONMENT)
        self.prologue: list[str] = []
        self.definitions: list[str] = []
        self.parameters = {name: f"p{index}" for index, name in enumerate(bound.parameters)}
        self.frame: tuple[str, ...] = ()
        self.level = 0
        self._numbers = 0
        self._functions: dict[str, str] = {}

    def fresh(self, prefix: str) -> str:
        """A name that nothing else has."""
        self._numbers += 1
        return f"{prefix}{self._numbers}"

    # -- nesting ---------------------------------------------------------------------------------

    def _nested(self, emit: Callable[[plan.Expression], str], node: plan.Expression) -> str:
        """Emit a part, as a function of its own when it would nest too deeply."""
        self.level += 1
        if self.level <= _NESTING_MAX:
            text = emit(node)
            self.level -= 1
            return text
        saved, self.level = self.level, 0
        body = emit(node)
        self.level = saved - 1
        name = self.fresh("h")
        arguments = ", ".join(self.frame)
        self.definitions.append(f"def {name}({arguments}):\n    return {body}")
        return f"{name}({arguments})"

    def value(self, node: plan.Expression) -> str:
        """Python for the value."""
        return self._nested(self._value, node)

    def truth(self, node: plan.Expression) -> str:
        """A Python condition, in parentheses or atomic, for "is exactly true"."""
        return self._nested(self._truth, node)

    def falsity(self, node: plan.Expression) -> str:
        """A Python condition, in parentheses or atomic, for "is exactly false"."""
        return self._nested(self._falsity, node)

    # -- constants -------------------------------------------------------------------------------

    def tag(self, node: plan.Expression) -> str | None:
        """The type of a constant or parameter as far as it is specialised, None for other expressions."""
        if isinstance(node, plan.Constant):
            return tag_of(node.value)
        if isinstance(node, plan.Parameter):
            return self.tags.get(node.name, "other")
        return None

    def constant(self, value: Any) -> str:
        if value is UNDEFINED:
            return "U"
        if tag_of(value) != "other":
            text = repr(value)
            return f"({text})" if text.startswith("-") else text
        name = self.fresh("k")
        self.environment[name] = value
        return name

    def bound(self, node: plan.Expression) -> tuple[str, str]:
        """The value for a first use and for later uses, evaluated once."""
        text = self.value(node)
        if text.isidentifier():
            return text, text
        name = self.fresh("t")
        return f"({name} := {text})", name

    # -- values ----------------------------------------------------------------------------------

    def _value(self, node: plan.Expression) -> str:
        match node:
            case plan.Constant(value=value):
                return self.constant(value)
            case plan.Parameter(name=name):
                return self.parameters[name]
            case plan.Slot(index=index):
                return f"a{index}"
            case plan.GroupKey(index=index, scope=scope):
                return f"K{scope}[{index}]"
            case plan.AggregateResult(index=index, scope=scope):
                return f"G{scope}[{index}]"
            case plan.Member():
                return self._member(node)
            case plan.Unary(operator=operator, operand=operand):
                return f"{_UNARY[operator]}({self.value(operand)})"
            case plan.Binary(operator="??", left=left, right=right):
                once, again = self.bound(left)
                return f"({again} if {once} is not U else {self.value(right)})"
            case plan.Binary(operator=operator, left=left, right=right):
                return f"{_BINARY[operator]}({self.value(left)}, {self.value(right)})"
            case plan.Chain(operator=operator, operands=operands):
                return f"{_CHAIN[operator]}({self._list(operands)})"
            case plan.Conditional(test=test, then=then, otherwise=otherwise):
                return f"({self.value(then)} if {self.truth(test)} else {self.value(otherwise)})"
        return self._compound(node)

    def _compound(self, node: plan.Expression) -> str:
        match node:
            case plan.In(needle=needle, items=items):
                has = self._membership(items)
                if has is None:
                    return f"in3({self.value(needle)}, ({self._list(items)},))"
                once, again = self.bound(needle)
                return f"(U if {once} is U else {has}({again}))"
            case plan.Between(value=value, low=low, high=high):
                return f"between3({self.value(value)}, {self.value(low)}, {self.value(high)})"
            case plan.Like(value=value, pattern=pattern, escape=escape):
                if self.tag(pattern) is None:
                    return f"like3({self.value(value)}, {self.value(pattern)}, {escape!r})"
                name = self.fresh("l")
                self.prologue.append(f"{name} = like_matcher({self.value(pattern)}, {escape!r})")
                return f"{name}({self.value(value)})"
            case plan.MakeArray(items=items):
                return f"make_array({', '.join(map(self.output, items))})"
            case plan.MakeObject(properties=properties):
                pairs = ", ".join(
                    f"{self.constant(name)}: {self.output(value)}" for name, value in properties
                )
                return f"make_object({{{pairs}}})"
            case plan.Call(function=function, arguments=arguments):
                return self._call(self._function(function), function.needs_context, arguments)
            case plan.UdfCall(name=name, arguments=arguments):
                listed = ", ".join([repr(name), *map(self.value, arguments)])
                return f"call_udf(X, {listed})"
            case plan.Let(slot=slot, value=value, body=body):
                bound_value = self.value(value)
                saved, self.frame = self.frame, (*self.frame, f"a{slot}")
                text = self.value(body)
                self.frame = saved
                return f"((a{slot} := {bound_value}), {text})[1]"
            case plan.Subquery(kind=kind, block=block):
                name, arguments_text = self.subquery(block)
                return f"{_SUBQUERY[kind]}({name}({arguments_text}))"
        raise AssertionError(f"there is no code for {type(node).__name__}")

    def subquery(self, block: plan.Block) -> tuple[str, str]:
        """The generator function of a block inside this frame, and the arguments to call it with."""
        raise AssertionError("the statement emitter generates blocks")

    def _list(self, nodes: tuple[plan.Expression, ...]) -> str:
        return ", ".join(map(self.value, nodes))

    def output(self, node: plan.Expression) -> str:
        """A value that goes into the output, where a number that is not finite is left out."""
        text = self.value(node)
        if isinstance(node, _MAY_BE_INFINITE) and self.tag(node) in (None, "other"):
            return f"finite({text})"
        return text

    def _function(self, function: Function) -> str:
        name = self._functions.get(function.name)
        if name is None:
            name = self._functions[function.name] = self.fresh("f")
            self.environment[name] = function.call
        return name

    def _call(self, name: str, needs_context: bool, arguments: tuple[plan.Expression, ...]) -> str:
        listed = self._list(arguments)
        if needs_context:
            listed = f"X, {listed}" if listed else "X"
        return f"{name}({listed})"

    def _membership(self, items: tuple[plan.Expression, ...]) -> str | None:
        """The name of a test for a list of constants and parameters, None when an item is neither."""
        if any(self.tag(item) is None for item in items):
            return None
        name = self.fresh("m")
        self.prologue.append(f"{name} = membership(({self._list(items)},))")
        return name

    def _member(self, node: plan.Member) -> str:
        target, key = node.target, node.key
        is_item = isinstance(target, plan.Slot) and target.index in self.plan.root_slots
        if not isinstance(key, plan.Constant):
            if is_item and self.computed:
                return f"computed_member(C, {self.value(target)}, {self.value(key)})"
            return f"member({self.value(target)}, {self.value(key)})"
        name = key.value
        if isinstance(name, str):
            if is_item and name in self.computed:
                return f"C[{self.constant(name)}]({self.value(target)})"
            if is_item:
                return f"{self.value(target)}.get({self.constant(name)}, U)"
            once, again = self.bound(target)
            return f"({again}.get({self.constant(name)}, U) if {once}.__class__ is dict else U)"
        if type(name) is float and 0 <= name < EXACT_INT:
            name = int(name)
        if type(name) is int and name >= 0:
            once, again = self.bound(target)
            return f"({again}[{name}] if {once}.__class__ is list and len({again}) > {name} else U)"
        return f"member({self.value(target)}, {self.value(key)})"

    # -- conditions ------------------------------------------------------------------------------

    def _truth(self, node: plan.Expression) -> str:
        match node:
            case plan.Constant(value=value):
                return "True" if value is True else "False"
            case plan.Unary(operator="NOT", operand=operand):
                return self.falsity(operand)
            case plan.Chain(operator="AND" | "OR" as operator, operands=operands):
                return "(" + f" {operator.lower()} ".join(map(self.truth, operands)) + ")"
            case plan.Binary(operator="=" | "!=" as operator, left=left, right=right):
                return self._equality(operator == "=", left, right)
            case plan.Binary(operator="<" | "<=" | ">" | ">=" as operator, left=left, right=right):
                return self._relation(operator, left, right, True)
            case plan.Between(value=value, low=low, high=high):
                return self._between(value, low, high, node)
            case plan.In(needle=needle, items=items):
                has = self._membership(items)
                if has is not None:
                    return f"{has}({self.value(needle)})"
        return f"({self.value(node)} is True)"

    def _falsity(self, node: plan.Expression) -> str:
        match node:
            case plan.Constant(value=value):
                return "True" if value is False else "False"
            case plan.Unary(operator="NOT", operand=operand):
                return self.truth(operand)
            case plan.Chain(operator="AND" | "OR" as operator, operands=operands):
                word = " or " if operator == "AND" else " and "
                return "(" + word.join(map(self.falsity, operands)) + ")"
            case plan.Binary(operator="=" | "!=" as operator, left=left, right=right):
                return self._equality(operator == "!=", left, right)
            case plan.Binary(operator="<" | "<=" | ">" | ">=" as operator, left=left, right=right):
                return self._relation(operator, left, right, False)
            case plan.In(needle=needle, items=items):
                has = self._membership(items)
                if has is not None:
                    once, again = self.bound(needle)
                    return f"({once} is not U and not {has}({again}))"
        return f"({self.value(node)} is False)"

    def _equality(self, wanted: bool, left: plan.Expression, right: plan.Expression) -> str:
        """A condition for "both are defined and (un)equal"."""
        if self.tag(right) is None and self.tag(left) is not None:
            left, right = right, left
        tag = self.tag(right)
        text = "None" if tag is None or tag == "other" else self.value(right)
        match tag:
            case "string":
                if wanted:
                    return f"({self.value(left)} == {text})"
                once, again = self.bound(left)
                return f"({once} is not U and {again} != {text})"
            case "number":
                once, again = self.bound(left)
                if wanted:
                    return f"({once} == {text} and {again}.__class__ is not bool)"
                return f"({once} is not U and ({again} != {text} or {again}.__class__ is bool))"
            case "null" | "true" | "false":
                once, again = self.bound(left)
                if wanted:
                    return f"({once} is {text})"
                return f"({once} is not U and {again} is not {text})"
        name = "eq3" if wanted else "ne3"
        return f"({name}({self.value(left)}, {self.value(right)}) is True)"

    def _relation(self, operator: str, left: plan.Expression, right: plan.Expression, wanted: bool) -> str:
        """A condition for "comparable, and the comparison is (not) so"."""
        if self.tag(right) is None and self.tag(left) is not None:
            left, right, operator = right, left, _FLIPPED[operator]
        tag = self.tag(right)
        if tag not in ("number", "string"):
            return f"({_BINARY[operator]}({self.value(left)}, {self.value(right)}) is {wanted})"
        if not wanted and isinstance(left, _MAY_BE_INFINITE):
            # What is not a number is not comparable, and Python says it is not less.
            return f"({_BINARY[operator]}({self.value(left)}, {self.value(right)}) is False)"
        once, again = self.bound(left)
        compared = f"{again} {operator} {self.value(right)}"
        if not wanted:
            compared = f"not {compared}"
        return f"({self._is_kind(tag, once, again)} and {compared})"

    def _is_kind(self, tag: str, once: str, again: str) -> str:
        if tag == "string":
            return f"{once}.__class__ is str"
        return f"({once}.__class__ is int or {again}.__class__ is float)"

    def _between(
        self, value: plan.Expression, low: plan.Expression, high: plan.Expression, node: plan.Expression
    ) -> str:
        tag = self.tag(low)
        if tag != self.tag(high) or tag not in ("number", "string"):
            return f"({self._value(node)} is True)"
        once, again = self.bound(value)
        return f"({self._is_kind(tag, once, again)} and {self.value(low)} <= {again} <= {self.value(high)})"
