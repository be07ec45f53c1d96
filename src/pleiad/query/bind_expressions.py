"""Syntax tree to bound plan: expressions.

Constant arrays and objects are folded to one constant. In a grouped scope a name may appear only inside an
aggregate or as part of a GROUP BY expression; such complaints are gathered so that a client sees all of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from pleiad.keys.undefined import UNDEFINED
from pleiad.limits import Limits
from pleiad.query import ast, errors, plan
from pleiad.query.functions import REGISTRY
from pleiad.query.functions.registry import Function
from pleiad.query.pace import worked
from pleiad.query.print import print_expression
from pleiad.query.rank import INTERNAL_FUNCTIONS
from pleiad.query.values import neg3

AGGREGATES: Final = {kind.name: kind for kind in plan.AggregateKind}
_EXPRESSION_STEPS: Final = 8
_RANK_ONLY: Final = frozenset(("FULLTEXTSCORE", "RRF"))


class Scope:
    """The aliases of one block, over those of the block around it."""

    def __init__(self, outer: Scope | None) -> None:
        self.outer = outer
        self.names: dict[str, int] = {}
        self.last_slot = -1
        self.group_texts: dict[str, int] | None = None
        self.row_scope: Scope | None = None
        self.aggregates: dict[str, tuple[int, plan.Aggregate]] = {}
        self.clause = "select list"

    def lookup(self, name: str) -> int | None:
        """The slot of an alias, the nearest one first."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def is_ungrouped_here(self, name: str) -> bool:
        """Whether the name belongs to rows that this grouped scope no longer sees one by one."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.group_texts is not None
            scope = scope.outer
        return False

    def grouped(self, group_texts: dict[str, int]) -> Scope:
        """The scope of the select list over the groups of this scope's rows."""
        scope = Scope(self.outer)
        scope.names = self.names
        scope.last_slot = self.last_slot
        scope.group_texts = group_texts
        scope.row_scope = self
        return scope

    def aggregates_bound(self) -> tuple[plan.Aggregate, ...]:
        return tuple(aggregate for _, aggregate in self.aggregates.values())


class ExpressionBinder:
    """The expression part of binding; the statement part adds ``block``."""

    if TYPE_CHECKING:

        def block(
            self, query: ast.Query, outer: Scope | None, root_allowed: bool, is_top: bool = False
        ) -> plan.Block: ...

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.slot_count = 0
        self.root_slots: set[int] = set()
        self.parameters: dict[str, None] = {}
        self.udfs: list[str] = []
        self.complaints: list[errors.Complaint] = []

    def new_slot(self) -> int:
        self.slot_count += 1
        return self.slot_count - 1

    def raise_complaints(self) -> None:
        if self.complaints:
            raise errors.query_error(self.complaints)

    # -- what a tree contains --------------------------------------------------------------------

    def has_aggregate(self, node: Any) -> bool:
        """Whether an aggregate of this block, not of a subquery, is at or below the node."""
        return any(
            isinstance(each, ast.FunctionCall) and not each.is_udf and each.name.upper() in AGGREGATES
            for each in _own_nodes(node)
        )

    def contains_subquery(self, node: Any) -> bool:
        return any(isinstance(each, ast.Subquery) for each in _own_nodes(node))

    # -- expressions -----------------------------------------------------------------------------

    def bind(self, node: ast.Expression, scope: Scope) -> plan.Expression:
        """The bound form of an expression."""
        worked(_EXPRESSION_STEPS)
        if scope.group_texts is not None and not isinstance(node, ast.Literal):
            index = scope.group_texts.get(print_expression(node))
            if index is not None:
                return plan.GroupKey(index)
        match node:
            case ast.Literal(value=value):
                return plan.Constant(value)
            case ast.Parameter(name=name):
                self.parameters.setdefault(name)
                return plan.Parameter(name)
            case ast.Identifier() | ast.Property() | ast.Element():
                return self._path(node, scope)
            case ast.Unary(operator=operator, operand=operand):
                bound = self.bind(operand, scope)
                if operator == "-" and isinstance(bound, plan.Constant):
                    return plan.Constant(neg3(bound.value))
                return plan.Unary(operator, bound)
            case ast.Binary(operator=operator, left=left, right=right):
                return plan.Binary(operator, self.bind(left, scope), self.bind(right, scope))
            case ast.Chain(operator=operator, operands=operands):
                return plan.Chain(operator, self._all(operands, scope))
            case ast.Conditional(test=test, then=then, otherwise=otherwise):
                return plan.Conditional(*self._all((test, then, otherwise), scope))
            case ast.FunctionCall():
                return self._call(node, scope)
            case ast.Subquery(kind=kind, query=query):
                return plan.Subquery(kind, self.block(query, scope, root_allowed=False))
        return self._compound(node, scope)

    def _all(self, nodes: tuple[ast.Expression, ...], scope: Scope) -> tuple[plan.Expression, ...]:
        return tuple([self.bind(node, scope) for node in nodes])

    def _compound(self, node: ast.Expression, scope: Scope) -> plan.Expression:
        bound: plan.Expression
        match node:
            case ast.In(needle=needle, items=items, negated=negated):
                bound = plan.In(self.bind(needle, scope), self._all(items, scope))
            case ast.Between(value=value, low=low, high=high, negated=negated):
                bound = plan.Between(*self._all((value, low, high), scope))
            case ast.Like(value=value, pattern=pattern, escape=escape, negated=negated):
                bound = plan.Like(self.bind(value, scope), self.bind(pattern, scope), escape)
            case ast.ArrayLiteral(items=items):
                return _array(self._all(items, scope))
            case ast.ObjectLiteral(properties=properties):
                return _object(tuple([(name, self.bind(value, scope)) for name, value in properties]))
            case _:
                raise errors.syntax_error(print_expression(node), node.start, node.end)
        return plan.Unary("NOT", bound) if negated else bound

    def _path(self, node: ast.Expression, scope: Scope) -> plan.Expression:
        if isinstance(node, ast.Property):
            base = _path_base(node)
            if base is not None and scope.group_texts is not None:
                return self._grouped_path(node, base, scope)
            return plan.Member(self.bind(node.target, scope), plan.Constant(node.name))
        if isinstance(node, ast.Element):
            base = _path_base(node)
            if base is not None and scope.group_texts is not None:
                return self._grouped_path(node, base, scope)
            return plan.Member(self.bind(node.target, scope), self.bind(node.index, scope))
        assert isinstance(node, ast.Identifier)
        slot = scope.lookup(node.name)
        if slot is None:
            raise errors.complain(
                "SC2001", f"Identifier '{node.name}' could not be resolved.", node.start, node.end
            )
        if scope.is_ungrouped_here(node.name):
            self._complain_ungrouped(node, scope)
        return plan.Slot(slot)

    def _grouped_path(
        self, node: ast.Property | ast.Element, base: ast.Identifier, scope: Scope
    ) -> plan.Expression:
        """A path in a select list over groups: part of a group key, of an outer row, or a complaint."""
        steps: list[plan.Expression] = []
        current: ast.Expression = node
        texts = scope.group_texts or {}
        while isinstance(current, ast.Property | ast.Element):
            index = texts.get(print_expression(current))
            if index is not None:
                return _with_steps(plan.GroupKey(index), steps)
            steps.append(
                plan.Constant(current.name)
                if isinstance(current, ast.Property)
                else self.bind(current.index, scope)
            )
            current = current.target
        index = texts.get(base.name)
        if index is not None:
            return _with_steps(plan.GroupKey(index), steps)
        slot = scope.lookup(base.name)
        if slot is None:
            raise errors.complain(
                "SC2001", f"Identifier '{base.name}' could not be resolved.", base.start, base.end
            )
        if scope.is_ungrouped_here(base.name):
            self._complain_ungrouped(node, scope)
        return _with_steps(plan.Slot(slot), steps)

    def _complain_ungrouped(self, node: ast.Expression, scope: Scope) -> None:
        code = "SC2102" if scope.clause == "select list" else "SC2103"
        self.complaints.append(
            errors.Complaint(
                code,
                f"Property reference '{print_expression(node)}' is invalid in the {scope.clause} because it "
                "is not contained in either an aggregate function or the GROUP BY clause.",
                node.start,
                node.end,
            )
        )

    # -- calls -----------------------------------------------------------------------------------

    def _call(self, node: ast.FunctionCall, scope: Scope) -> plan.Expression:
        if node.is_udf:
            self.udfs.append(node.name)
            if len(self.udfs) > self.limits.query_udfs:
                raise errors.complain(
                    "SC2990",
                    f"The query calls more than the {self.limits.query_udfs} user-defined functions allowed.",
                    node.start,
                    node.end,
                )
            return plan.UdfCall(node.name, self._all(node.arguments, scope))
        name = node.name.upper()
        if name in AGGREGATES:
            return self._aggregate(node, AGGREGATES[name], scope)
        if name in _RANK_ONLY:
            raise errors.complain(
                "SC2240",
                f"The {node.name} function is only allowed in the ORDER BY RANK clause.",
                node.start,
                node.end,
            )
        function = INTERNAL_FUNCTIONS.get(name) or REGISTRY.get(name)
        if function is None:
            raise errors.complain(
                "SC2005",
                f"'{node.name}' is not a recognized built-in function name.",
                node.start,
                node.name_end,
            )
        check_arguments(function, node)
        arguments = self._all(node.arguments, scope)
        if name in INTERNAL_FUNCTIONS:
            arguments = (plan.Constant(self.path_text(arguments[0])), *arguments)
        return plan.Call(function, arguments)

    def path_text(self, expression: plan.Expression) -> str | None:
        """The policy path of a plain path into the item, such as ``/embedding``, else None."""
        names: list[str] = []
        while isinstance(expression, plan.Member):
            if not isinstance(expression.key, plan.Constant) or not isinstance(expression.key.value, str):
                return None
            names.append(expression.key.value)
            expression = expression.target
        is_item = isinstance(expression, plan.Slot) and expression.index in self.root_slots
        return "/" + "/".join(reversed(names)) if is_item and names else None

    def _aggregate(self, node: ast.FunctionCall, kind: plan.AggregateKind, scope: Scope) -> plan.Expression:
        if len(node.arguments) != 1:
            raise errors.complain(
                "SC2050", f"The {kind.name} function requires 1 argument(s).", node.start, node.end
            )
        argument = node.arguments[0]
        if scope.row_scope is None or self.has_aggregate(argument) or self.contains_subquery(argument):
            message = (
                "Cannot perform an aggregate function on an expression containing an aggregate or a subquery."
            )
            if scope.row_scope is None:
                message = f"The aggregate function {kind.name} is not allowed in this clause."
            raise errors.complain("SC2101", message, node.start, node.end)
        text = f"{kind.name}({print_expression(argument)})"
        if text not in scope.aggregates:
            bound = plan.Aggregate(kind, self.bind(argument, scope.row_scope))
            scope.aggregates[text] = (len(scope.aggregates), bound)
        return plan.AggregateResult(scope.aggregates[text][0])


def check_arguments(function: Function, node: ast.FunctionCall) -> None:
    """SC2050 unless the call has a legal number of arguments."""
    low, high, given = function.min_args, function.max_args, len(node.arguments)
    if given >= low and (high is None or given <= high):
        return
    if high is None:
        wanted = f"at least {low}"
    elif high == low:
        wanted = str(low)
    else:
        wanted = f"{low} to {high}"
    raise errors.complain(
        "SC2050", f"The {function.name} function requires {wanted} argument(s).", node.start, node.end
    )


def _own_nodes(node: Any) -> list[Any]:
    """The nodes at and below a node, without going into subqueries."""
    found: list[Any] = []
    stack = [node]
    while stack:
        current = stack.pop()
        found.append(current)
        if not isinstance(current, ast.Subquery):
            stack.extend(ast.children(current))
    return found


def _path_base(node: ast.Expression) -> ast.Identifier | None:
    while isinstance(node, ast.Property | ast.Element):
        node = node.target
    return node if isinstance(node, ast.Identifier) else None


def _with_steps(base: plan.Expression, steps: list[plan.Expression]) -> plan.Expression:
    for step in reversed(steps):
        base = plan.Member(base, step)
    return base


def _is_plain(part: plan.Expression) -> bool:
    """Whether the part is a constant that stands in an array or object as it is."""
    if not isinstance(part, plan.Constant) or part.value is UNDEFINED:
        return False
    return not isinstance(part.value, float) or math.isfinite(part.value)


def _array(items: tuple[plan.Expression, ...]) -> plan.Expression:
    if all(map(_is_plain, items)):
        return plan.Constant([item.value for item in items if isinstance(item, plan.Constant)])
    return plan.MakeArray(items)


def _object(properties: tuple[tuple[str, plan.Expression], ...]) -> plan.Expression:
    if all(_is_plain(value) for _, value in properties):
        return plan.Constant(
            {name: value.value for name, value in properties if isinstance(value, plan.Constant)}
        )
    return plan.MakeObject(properties)
