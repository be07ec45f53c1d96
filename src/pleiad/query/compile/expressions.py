"""Bound plan to Python source: expressions, in three forms.

- ``value``: the value, UNDEFINED included;
- ``truth``: a Python condition that holds exactly when the value is true;
- ``falsity``: one that holds exactly when the value is false.

Filters use the last two, so three-valued logic costs nothing where only "exactly true" matters.
Comparisons with constants and parameters are specialised by their type. Expressions are cut into functions
before they nest deeper than Python's own parser allows or become longer than it reads in a moment, so a text of any
length is many short definitions. Every name and constant of the query enters the source as a quoted literal or
through the environment, never as code; long ones only through the environment.

A definition uses only what is defined before it. What is computed once for an execution (``once``) is a definition
too, and is made of constants and parameters alone, which never become functions of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pleiad.query import plan
from pleiad.query.compile.computed_numbers import MAY_BE_INFINITE, holds_numbers, inner_numbers, item_slots
from pleiad.query.compile.support import ENVIRONMENT, TEXT_TESTS, membership, tag_of
from pleiad.query.functions.registry import LARGE, Function
from pleiad.query.pace import worked
from pleiad.query.syntax.ast import SubqueryKind
from pleiad.query.values import all_finite, array_index, is_number
from pleiad.values.undefined import UNDEFINED

_NESTING_MAX: Final = 12
_TEXT_CHARS_MAX: Final = 1_500
_LIST_MAX: Final = 64
_CONSTANT_CHARS_MAX: Final = 200
_NODES_OF_A_TICK: Final = 100
_NODE_STEPS: Final = 8
"""What generating code for a node takes, in steps."""
_ATOMS: Final = (plan.Constant, plan.Parameter, plan.Slot, plan.GroupKey, plan.AggregateResult)
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
_WEIGHED: Final = {
    "strings": "weigh",
    "arrays": "weigh",
    "conversions": "weigh",
    "spatial": "weigh",
    "fulltext": "weigh",
    "items": "weigh",
}
_COPYING: Final = frozenset(
    (
        *("LOWER", "UPPER", "LTRIM", "RTRIM", "TRIM", "REVERSE", "LEFT", "RIGHT", "SUBSTRING", "STRINGSPLIT"),
        *("ARRAY_SLICE", "SETINTERSECT", "SETDIFFERENCE", "SETUNION"),
    )
)
"""Functions whose result may be as large as an argument, and is not counted by themselves."""
BUILDING: Final = _COPYING | frozenset(
    (
        *("CONCAT", "REPLACE", "REPLICATE", "STRINGJOIN", "TOSTRING", "STRINGTOARRAY", "STRINGTOOBJECT"),
        *("ARRAY_CONCAT", "OBJECTTOARRAY"),
    )
)
"""Functions whose result may be large and is a new value."""
_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_SUBQUERY: Final = {
    SubqueryKind.SCALAR: "scalar",
    SubqueryKind.EXISTS: "exists",
    SubqueryKind.ARRAY: "array_of",
    SubqueryKind.FIRST: "first",
    SubqueryKind.LAST: "last",
}


class ExpressionEmitter:
    """Generates expressions; the statement part adds ``block``."""

    def __init__(self, bound: plan.Plan, tags: dict[str, str], computed: tuple[str, ...]) -> None:
        self.plan = bound
        self.tags = tags
        self._inner_numbers = inner_numbers(bound.block)
        self._item_slots = item_slots(bound.block)
        self.computed = {name: index for index, name in enumerate(computed)}
        self.environment: dict[str, Any] = dict(ENVIRONMENT)
        self.definitions: list[str] = []
        self.parameters = {name: f"p{index}" for index, name in enumerate(bound.parameters)}
        self.frame: tuple[str, ...] = ()
        self.level = 0
        self._numbers = 0
        self._nodes = 0
        self._functions: dict[str, str] = {}

    def fresh(self, prefix: str) -> str:
        """A name that nothing else has."""
        self._numbers += 1
        return f"{prefix}{self._numbers}"

    # -- nesting ---------------------------------------------------------------------------------

    def _nested(self, emit: Callable[[plan.Expression], str], node: plan.Expression) -> str:
        """Emit a part, as a function of its own when it would nest too deeply or be too long."""
        worked(_NODE_STEPS)
        if isinstance(node, _ATOMS):
            return emit(node)
        self._nodes += 1
        has_tick = not self._nodes % _NODES_OF_A_TICK
        self.level += 1
        if self.level <= _NESTING_MAX:
            text = emit(node)
            self.level -= 1
        else:
            saved, self.level = self.level, 0
            text = self.helper(emit(node))
            self.level = saved - 1
        if len(text) > _TEXT_CHARS_MAX:
            text = self.helper(text)
        return f"(tick({_NODES_OF_A_TICK}) or {text})" if has_tick else text

    def helper(self, body: str) -> str:
        """Define a function of the frame that returns what an expression gives; returns the call of it."""
        name = self.fresh("h")
        arguments = ", ".join(self.frame)
        self.definitions.append(f"def {name}({arguments}):\n    return {body}")
        return f"{name}({arguments})"

    def once(self, prefix: str, body: Callable[[], str]) -> str:
        """Define a value that is computed once for an execution, outside of any row; returns its name."""
        saved, self.frame = self.frame, ()
        text = body()
        self.frame = saved
        name = self.fresh(prefix)
        self.definitions.append(f"{name} = {text}")
        return name

    def _groups(self, emit: Callable[[Any], str], nodes: Sequence[Any]) -> Iterator[list[str]]:
        """The texts of many nodes, cut into groups that are short enough for one function."""
        texts: list[str] = []
        chars = 0
        for node in nodes:
            text = emit(node)
            chars += len(text)
            texts.append(text)
            if len(texts) == _LIST_MAX or chars > _TEXT_CHARS_MAX:
                yield texts
                texts, chars = [], 0
        if texts:
            yield texts

    def _joined(self, emit: Callable[[plan.Expression], str], nodes: Sequence[plan.Expression]) -> str:
        """Values separated by commas, for a call, a tuple or a list."""
        groups = list(self._groups(emit, nodes))
        if len(groups) <= 1:
            return ", ".join(groups[0]) if groups else ""
        return ", ".join("*" + self.helper(f"({', '.join(group)},)") for group in groups)

    def _chained(
        self, word: str, emit: Callable[[plan.Expression], str], nodes: Sequence[plan.Expression]
    ) -> str:
        """Conditions joined by ``and`` or ``or``."""
        groups = ["(" + f" {word} ".join(group) + ")" for group in self._groups(emit, nodes)]
        if len(groups) == 1:
            return groups[0]
        return "(" + f" {word} ".join(map(self.helper, groups)) + ")"

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
        if tag_of(value) != "other" and (value.__class__ is not str or len(value) <= _CONSTANT_CHARS_MAX):
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
                matcher = self.once("l", lambda: f"like_matcher({self.value(pattern)}, {escape!r})")
                return f"{matcher}({self.value(value)})"
            case plan.MakeArray(items=items):
                return f"make_array({self._list(items)})"
            case plan.MakeObject(properties=properties):
                return f"make_object({self._pairs(properties, self.value)})"
            case plan.Call(function=function, arguments=arguments):
                return self._weighed_call(function, arguments)
            case plan.UdfCall(name=name, arguments=arguments):
                return f"call_udf(X, {self.constant(name)}, {self._list(arguments)})"
            case plan.Let(slot=slot, value=value, body=body):
                bound_value = self.value(value)
                saved, self.frame = self.frame, (*self.frame, f"a{slot}")
                text = self.value(body)
                self.frame = saved
                return f"((a{slot} := {bound_value}), {text})[1]"
            case plan.Subquery(kind=SubqueryKind.EXISTS, block=block) if not (
                block.is_grouped or block.distinct
            ):
                return self.found(block)
            case plan.Subquery(kind=kind, block=block):
                name, arguments_text = self.subquery(block)
                return f"{_SUBQUERY[kind]}({name}({arguments_text}))"
        raise AssertionError(f"there is no code for {type(node).__name__}")

    def subquery(self, block: plan.Block) -> tuple[str, str]:
        """The generator function of a block inside this frame, and the arguments to call it with."""
        raise AssertionError("the statement emitter generates blocks")

    def found(self, block: plan.Block) -> str:
        """A test whether a block inside this frame has a row."""
        raise AssertionError("the statement emitter generates blocks")

    def _list(self, nodes: tuple[plan.Expression, ...]) -> str:
        return self._joined(self.value, nodes)

    def _pairs(
        self,
        properties: tuple[tuple[str, plan.Expression], ...],
        form: Callable[[plan.Expression], str],
    ) -> str:
        """A dict of the properties."""

        def pair(each: tuple[str, plan.Expression]) -> str:
            return f"{self.constant(each[0])}: {form(each[1])}"

        groups = ["{" + ", ".join(group) + "}" for group in self._groups(pair, properties)]
        if len(groups) <= 1:
            return groups[0] if groups else "{}"
        return "{" + ", ".join(f"**{self.helper(group)}" for group in groups) + "}"

    def output(self, node: plan.Expression) -> str:
        """A value that goes into the output, where a number that is not finite is left out."""
        if isinstance(node, plan.MakeArray):
            return f"make_array({self._joined(self.output, node.items)})"
        if isinstance(node, plan.MakeObject):
            return f"make_object({self._pairs(node.properties, self.output)})"
        if isinstance(node, plan.Constant):
            return self.constant(all_finite(node.value))
        text = self.value(node)
        if holds_numbers(node) or self._reads_subquery(node):
            return f"all_finite({text})"
        if isinstance(node, MAY_BE_INFINITE) and self.tag(node) in (None, "other"):
            return f"finite({text})"
        return text

    def _reads_subquery(self, node: plan.Expression) -> bool:
        """Whether a number that a subquery computed may be in the value."""
        return self._inner_numbers and any(
            isinstance(each, plan.Subquery)
            or (isinstance(each, plan.Slot) and each.index not in self._item_slots)
            for each in plan.walk(node)
        )

    def _function(self, function: Function) -> str:
        name = self._functions.get(function.name)
        if name is None:
            name = self._functions[function.name] = self.fresh("f")
            self.environment[name] = function.call
        return name

    def _weighed_call(self, function: Function, arguments: tuple[plan.Expression, ...]) -> str:
        """A call, with its first arguments weighed where the function may take long over them or copies them."""
        name = self._function(function)
        weigh = "weigh_copied" if function.name in _COPYING else _WEIGHED.get(function.family)
        if weigh is None or function.needs_context:
            return self._call(name, function.needs_context, arguments)
        tests, texts = [], []
        for node in arguments[:2]:
            if isinstance(node, plan.Constant):
                texts.append(self.value(node))
                continue
            once, again = self.bound(node)
            tests.append(f"{once}.__class__ in SIZED and len({again}) > {LARGE} and {weigh}({again})")
            texts.append(again)
        rest = self._list(arguments[2:])
        call = f"{name}({', '.join([*texts, rest] if rest else texts)})"
        is_string = len(arguments) == 2 and self.tag(arguments[1]) == "string"
        if is_string and function.name in TEXT_TESTS and not isinstance(arguments[0], plan.Constant):
            call = f"({TEXT_TESTS[function.name].format(*texts)} if {texts[0]}.__class__ is str else U)"
        return f"({' or '.join([*tests, call])})" if tests else call

    def _call(self, name: str, needs_context: bool, arguments: tuple[plan.Expression, ...]) -> str:
        listed = self._list(arguments)
        if needs_context:
            listed = f"X, {listed}" if listed else "X"
        return f"{name}({listed})"

    def _membership(self, items: tuple[plan.Expression, ...]) -> str | None:
        """The name of a test for a list of constants and parameters, None when an item is neither."""
        if any(self.tag(item) is None for item in items):
            return None
        known = tuple(item.value for item in items if isinstance(item, plan.Constant))
        if len(known) == len(items):
            name = self.fresh("m")
            self.environment[name] = membership(known)
            return name
        given = tuple(item for item in items if not isinstance(item, plan.Constant))
        return self.once("m", lambda: f"membership(({self._list(given)}, *{self.constant(list(known))}))")

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
        if is_number(name):
            name = array_index(name)
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
                return self._chained(operator.lower(), self.truth, operands)
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
                return self._chained("or" if operator == "AND" else "and", self.falsity, operands)
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
        if not wanted and isinstance(left, MAY_BE_INFINITE):
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
