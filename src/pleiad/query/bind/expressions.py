"""Syntax tree to bound plan: expressions.

Constant arrays and objects are folded to one constant. In a grouped scope a name may appear only inside an
aggregate or as part of a GROUP BY expression. Complaints are gathered in the order in which the service finds them, so
that a client sees all of them; where one was made, the bound form is only a stand-in.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pleiad.limits import Limits
from pleiad.query import errors, plan
from pleiad.query.bind.calls import CallRules
from pleiad.query.bind.made_values import array_of, object_of
from pleiad.query.bind.order import reduced
from pleiad.query.bind.parameters import parameter_problems
from pleiad.query.functions import REGISTRY
from pleiad.query.pace import worked
from pleiad.query.rank import INTERNAL_FUNCTIONS
from pleiad.query.syntax import ast
from pleiad.query.syntax.print import print_expression
from pleiad.query.syntax.shape import shape
from pleiad.query.values import is_number, member, neg3
from pleiad.values.undefined import UNDEFINED

AGGREGATES: Final = {kind.name: kind for kind in plan.AggregateKind}
_EXPRESSION_STEPS: Final = 8
_NO_AGGREGATES: Final = {"WHERE": "SC2104", "GROUP BY": "SC2111", "RANK": "SC2226"}
NOTHING: Final = plan.Constant(UNDEFINED)
"""What stands for an expression about which there is a complaint."""


class Scope:
    """The aliases of one block, over those of the block around it."""

    def __init__(self, outer: Scope | None, number: int = 0) -> None:
        self.outer = outer
        self.number = number
        self.names: dict[str, int] = {}
        self.last_slot = -1
        self.hidden = 0
        """How many input sets beside the names there are."""
        self.group_shapes: dict[Hashable, int] | None = None
        self.is_single = False
        """Whether the groups are of one row, so that its names may be used as they are."""
        self.row_scope: Scope | None = None
        self.aggregates: dict[Hashable, tuple[int, plan.Aggregate]] = {}
        self.clause = "SELECT"

    def holder(self, name: str) -> Scope | None:
        """The nearest scope that has the alias."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope
            scope = scope.outer
        return None

    def names_around(self) -> int:
        """How many input sets the blocks around this one have."""
        found, scope = 0, self.outer
        while scope is not None:
            found += len(scope.names) + scope.hidden
            scope = scope.outer
        return found

    def name_around(self) -> str | None:
        """The first alias of the blocks around this one."""
        scope = self.outer
        while scope is not None:
            if scope.names:
                return next(iter(scope.names))
            scope = scope.outer
        return None

    def grouped(self, group_shapes: dict[Hashable, int], is_single: bool) -> Scope:
        """The scope of the select list over the groups of this scope's rows."""
        scope = Scope(self.outer, self.number)
        scope.names = self.names
        scope.last_slot = self.last_slot
        scope.hidden = self.hidden
        scope.group_shapes = group_shapes
        scope.is_single = is_single
        scope.row_scope = self
        return scope

    def groups_around(self, holder: Scope) -> Scope | None:
        """The nearest scope, up to the holder of a name, that sees many rows as groups."""
        scope: Scope | None = self
        while scope is not None:
            if scope.group_shapes is not None and not scope.is_single:
                return scope
            if scope is holder:
                return None
            scope = scope.outer
        return None

    def in_clause(self, clause: str) -> Scope:
        """The same scope while another clause is bound; its aggregates are the same."""
        scope = Scope(self.outer, self.number)
        scope.names = self.names
        scope.last_slot = self.last_slot
        scope.hidden = self.hidden
        scope.group_shapes = self.group_shapes
        scope.is_single = self.is_single
        scope.row_scope = self.row_scope
        scope.aggregates = self.aggregates
        scope.clause = clause
        return scope

    def aggregates_bound(self) -> tuple[plan.Aggregate, ...]:
        return tuple(aggregate for _, aggregate in self.aggregates.values())


class ExpressionBinder:
    """The expression part of binding; the statement part adds ``block``."""

    if TYPE_CHECKING:

        def block(
            self, query: ast.Query, outer: Scope | None, root_allowed: bool, is_top: bool = False
        ) -> plan.Block: ...

    def __init__(self, limits: Limits, text: str = "", given: Mapping[str, Any] | None = None) -> None:
        self.limits = limits
        self.text = text
        self.given = given
        self.group_complaints: list[tuple[int, errors.Complaint]] = []
        self.slot_count = 0
        self.root_slots: set[int] = set()
        self.parameters: dict[str, None] = {}
        self.parameter_rules: list[plan.ParameterRule] = []
        self.udfs: list[str] = []
        self.complaints: list[errors.Complaint] = []
        self.references = 0
        self.variables: set[int] = set()
        """The slots of LET."""
        self.inlined: dict[int, plan.Block] = {}
        """The subqueries without a source of their own that are sources, by slot."""
        self.is_sound = True
        """Whether nothing was wrong with the text up to the select list of the last subquery."""
        self._call_rules = CallRules(self)

    def new_slot(self) -> int:
        self.slot_count += 1
        return self.slot_count - 1

    def complain(self, row: str, node: ast.Node | ast.Place, **facts: Any) -> None:
        start, end = node if isinstance(node, tuple) else (node.start, node.end)
        self.complaints.append(errors.complaint(row, start, end, **facts))

    def rule(self, row: str, name: str, start: int, end: int) -> bool:
        """Keeps what the value of a parameter must be; where the values are given, whether this one is."""
        kept = plan.ParameterRule(row, name, start, end)
        self.parameter_rules.append(kept)
        if self.given is None:
            return True
        found = list(parameter_problems(kept, self.given.get(name)))
        self.complaints += found
        return not found

    def raise_complaints(self) -> None:
        if self.complaints:
            raise errors.query_error(self.complaints)

    # -- what a tree contains --------------------------------------------------------------------

    def has_aggregate(self, node: Any) -> bool:
        """Whether an aggregate of this block, not of a subquery, is at or below the node."""
        return any(map(is_aggregate, own_nodes(node)))

    # -- expressions -----------------------------------------------------------------------------

    def bind(self, node: ast.Expression, scope: Scope) -> plan.Expression:
        """The bound form of an expression."""
        worked(_EXPRESSION_STEPS)
        kind = node.__class__
        if kind is ast.Literal:
            return plan.Constant(node.value)  # type: ignore[union-attr]
        if scope.group_shapes and not (scope.clause == "ORDER BY" and _is_numbered(node)):
            index = scope.group_shapes.get(shape(node))
            if index is not None:
                return plan.GroupKey(index, scope.number)
        if kind is ast.Identifier or kind is ast.Property or kind is ast.Element:
            return self._path(node, scope)
        match node:
            case ast.Parameter(name=name):
                self.parameters.setdefault(name)
                return plan.Parameter(name)
            case ast.Unary(operator=operator, operand=operand):
                bound = self.bind(operand, scope)
                if operator == "-" and isinstance(bound, plan.Constant):
                    return plan.Constant(neg3(bound.value))
                return plan.Unary(operator, bound)
            case ast.Binary(operator=operator, left=left, right=right):
                return plan.Binary(operator, self.bind(left, scope), self.bind(right, scope))
            case ast.Chain(operator=operator, operands=operands):
                return plan.Chain(operator, self.bind_all(operands, scope))
            case ast.Conditional(test=test, then=then, otherwise=otherwise):
                return plan.Conditional(*self.bind_all((test, then, otherwise), scope))
            case ast.FunctionCall():
                return self._call(node, scope)
            case ast.Subquery(kind=kind_of_subquery, query=query):
                return self._subquery(node, kind_of_subquery, query, scope)
        return self._compound(node, scope)

    def bind_all(self, nodes: tuple[ast.Expression, ...], scope: Scope) -> tuple[plan.Expression, ...]:
        return tuple([self.bind(node, scope) for node in nodes])

    def _compound(self, node: ast.Expression, scope: Scope) -> plan.Expression:
        bound: plan.Expression
        match node:
            case ast.In(needle=needle, items=items, negated=negated):
                bound = plan.In(self.bind(needle, scope), self.bind_all(items, scope))
            case ast.Between(value=value, low=low, high=high, negated=negated):
                bound = plan.Between(*self.bind_all((value, low, high), scope))
            case ast.Like(value=value, pattern=pattern, escape=escape, negated=negated):
                if escape is not None and len(escape) != 1:
                    self.complain("SC2207", node.escape_place, name=escape)
                    return NOTHING
                bound = plan.Like(self.bind(value, scope), self.bind(pattern, scope), escape)
            case ast.ArrayLiteral(items=items):
                return array_of(self.bind_all(items, scope))
            case ast.ObjectLiteral(properties=properties, name_places=places):
                self._complain_repeated(properties, places)
                return object_of(tuple([(name, self.bind(value, scope)) for name, value in properties]))
            case ast.Let():
                return self._let(node, scope)
            case _:
                raise errors.refusal("SC1001", node.start, node.end, token=print_expression(node))
        return plan.Unary("NOT", bound) if negated else bound

    def _complain_repeated(
        self, properties: tuple[tuple[str, ast.Expression], ...], places: tuple[ast.Place, ...]
    ) -> None:
        seen: set[str] = set()
        for (name, _), place in zip(properties, places, strict=False):
            if name in seen:
                self.complain("SC2022", place, name=name)
            seen.add(name)

    def _let(self, node: ast.Let, scope: Scope) -> plan.Expression:
        if scope.clause in ("GROUP BY", "ORDER BY"):
            self.complain("SC2090" if scope.clause == "GROUP BY" else "SC2091", node)
            return NOTHING
        value = self.bind(node.value, scope)
        if scope.holder(node.name) is not None:
            self.complain("SC2023", node.name_place, name=node.name)
        inner = Scope(scope, scope.number)
        inner.clause = scope.clause
        slot = self.new_slot()
        self.variables.add(slot)
        inner.names[node.name] = slot
        inner.row_scope = None if scope.row_scope is None else Scope(scope.row_scope, scope.number)
        if inner.row_scope is not None:
            inner.row_scope.names[node.name] = slot
        inner.aggregates = scope.aggregates
        return plan.Let(slot, value, self.bind(node.body, inner))

    def _subquery(
        self, node: ast.Expression, kind: ast.SubqueryKind, query: ast.Query, scope: Scope
    ) -> plan.Expression:
        if scope.clause == "GROUP BY":
            self.complain("SC2111", node)
            return NOTHING
        block = self.block(query, scope, root_allowed=False)
        # With a fault before or in it an aggregate is not seen.
        if kind is ast.SubqueryKind.SCALAR and _gives_many(query, self.is_sound):
            problem = errors.complaint("SC2201", node.start, node.end)
            if scope.group_shapes is None or scope.is_single:
                self.complaints.append(problem)
            else:
                self.group_complaints.append((scope.number, problem))
        return plan.Subquery(kind, block)

    # -- paths -----------------------------------------------------------------------------------

    def _path(self, node: ast.Expression, scope: Scope) -> plan.Expression:
        """A name with its members: a slot, a part of a group's key, or a complaint."""
        steps: list[plan.Expression] = []
        current, before = node, self.references
        while True:
            if isinstance(current, ast.Property):
                steps.append(plan.Constant(current.name))
            elif isinstance(current, ast.Element):
                index = self._index(current, scope)
                if index is None:
                    self.references = before
                    return NOTHING
                steps.append(index)
            else:
                break
            current = current.target
        if not isinstance(current, ast.Identifier):
            return self._path_of_value(node, current, steps, scope)
        holder = scope.holder(current.name)
        if holder is None:
            self.complain("SC2001", current, name=current.name)
            return NOTHING
        bound = with_steps(plan.Slot(holder.names[current.name]), steps)
        self.references += self._is_reference(bound)
        groups = scope.groups_around(holder)
        if groups is not None:
            return self._grouped_path(node, steps, scope, groups)
        if holder.group_shapes is None:
            return bound
        # The row of a group of one: all that there are of it, of which there is one.
        row = self._aggregate_result(holder, plan.AggregateKind.MAKELIST, shape(node), bound)
        return plan.Member(row, plan.Constant(0))

    def _is_reference(self, path: plan.Expression) -> bool:
        """Whether a path is one into an item, or to what a subquery has from one."""
        taken = reduced(path, self.inlined) if self.inlined else path
        return any(
            isinstance(each, plan.GroupKey)
            or (isinstance(each, plan.Slot) and each.index not in self.variables)
            for each in plan.walk(taken)
        )

    def _path_of_value(
        self, node: ast.Expression, base: ast.Expression, steps: list[plan.Expression], scope: Scope
    ) -> plan.Expression:
        """Members of something that is no name; of what is no part of a group it is told as a whole."""
        before, known = len(self.group_complaints), self.references
        bound = self.bind(base, scope)
        shown = _without_numbers(node)
        if len(self.group_complaints) > before and isinstance(shown, ast.Property):
            holder = self.group_complaints[before][0]
            del self.group_complaints[before:]
            self._complain_of_group(shown, scope, holder)
        whole = with_steps(bound, steps)
        if isinstance(bound, plan.MakeArray | plan.MakeObject):
            taken = reduced(whole)
            if not any(isinstance(each, plan.Slot | plan.GroupKey) for each in plan.walk(taken)):
                self.references = known
        return whole

    def _index(self, node: ast.Element, scope: Scope) -> plan.Expression | None:
        """The key between brackets: a number, or a parameter that is checked when its value is known."""
        index = node.index
        if isinstance(index, ast.Literal) and type(index.value) in (int, float):
            return plan.Constant(index.value)
        if isinstance(index, ast.Parameter):
            self.parameters.setdefault(index.name)
            is_legal = self.rule("SC2990", index.name, node.start, node.end)
            return plan.Parameter(index.name) if is_legal else None
        self.bind(index, scope)
        self.complain("SC2990", node)
        return None

    def _grouped_path(
        self, node: ast.Expression, steps: list[plan.Expression], scope: Scope, holder: Scope
    ) -> plan.Expression:
        """A path into rows that are seen only as groups: the key of the group, or a part of it."""
        shapes = holder.group_shapes or {}
        current = node
        for position in range(len(steps) + 1):
            index = shapes.get(shape(current))
            is_refused = position == 0 and scope.clause == "ORDER BY" and _is_numbered(current)
            if index is not None and not is_refused:
                return with_steps(plan.GroupKey(index, holder.number), steps[:position])
            if isinstance(current, ast.Property | ast.Element):
                current = current.target
        self._complain_of_group(_without_numbers(node), scope, holder.number)
        return NOTHING

    def _complain_of_group(self, shown: ast.Expression, scope: Scope, number: int) -> None:
        row = "SC2103" if scope.clause == "ORDER BY" else "SC2102"
        written = self.text[shown.start : shown.end] or print_expression(shown)
        problem = errors.complaint(row, shown.start, shown.end, name=written)
        self.group_complaints.append((number, problem))

    # -- calls -----------------------------------------------------------------------------------

    def _call(self, node: ast.FunctionCall, scope: Scope) -> plan.Expression:
        if node.is_udf:
            arguments = self.bind_all(node.arguments, scope)
            self.udfs.append(node.name)
            return plan.UdfCall(node.name, arguments)
        name = node.name.upper()
        if name in AGGREGATES:
            return self._aggregate(node, AGGREGATES[name], scope)
        before = self.references
        arguments = self.bind_all(node.arguments, scope)
        function = INTERNAL_FUNCTIONS.get(name) or REGISTRY.get(name)
        if not self._call_rules.hold(node, function) or function is None:
            self.references = before
            return NOTHING
        if function.name in INTERNAL_FUNCTIONS:
            arguments = (plan.Constant(self.path_text(arguments[0])), *arguments)
            function = INTERNAL_FUNCTIONS[function.name]
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
        row_scope = scope if scope.row_scope is None else scope.row_scope
        is_elsewhere = scope.clause in _NO_AGGREGATES
        bound = self.bind_all(node.arguments, scope if is_elsewhere else row_scope.in_clause("AGGREGATE"))
        if len(node.arguments) != 1:
            self.complain("SC2050", node, name=node.name, count=1)
            return NOTHING
        if is_elsewhere:
            self.complain(_NO_AGGREGATES[scope.clause], node)
            return NOTHING
        if scope.clause == "AGGREGATE" or scope.row_scope is None:
            return NOTHING
        argument = node.arguments[0]
        if self.has_aggregate(argument):
            self.complain("SC2101", node)
            return NOTHING
        return self._aggregate_result(scope, kind, shape(argument), bound[0])

    def _aggregate_result(
        self, scope: Scope, kind: plan.AggregateKind, form: Hashable, argument: plan.Expression
    ) -> plan.Expression:
        key = (kind, form)
        if key not in scope.aggregates:
            scope.aggregates[key] = (len(scope.aggregates), plan.Aggregate(kind, argument))
        return plan.AggregateResult(scope.aggregates[key][0], scope.number, kind)


def _without_numbers(node: ast.Expression) -> ast.Expression:
    """A path as far as its last name."""
    while isinstance(node, ast.Element):
        node = node.target
    return node


def is_aggregate(node: Any) -> bool:
    """Whether a node of a syntax tree is an aggregate."""
    return isinstance(node, ast.FunctionCall) and not node.is_udf and node.name.upper() in AGGREGATES


def own_nodes(node: Any) -> list[Any]:
    """The nodes at and below a node, without going into subqueries."""
    found: list[Any] = []
    stack = [node]
    while stack:
        current = stack.pop()
        found.append(current)
        if not isinstance(current, ast.Subquery):
            stack.extend(ast.children(current))
    return found


def _is_numbered(node: ast.Expression) -> bool:
    """Whether an expression is an element of an array by its number, by which groups cannot be ordered."""
    return (
        isinstance(node, ast.Element) and isinstance(node.index, ast.Literal) and is_number(node.index.value)
    )


def _gives_many(query: ast.Query, is_sound: bool = True) -> bool:
    """Whether a query may give more than one row for one row around it, as far as its form tells."""
    if is_sound and not query.group_by and any(map(is_aggregate, own_nodes(query.selection))):
        return False
    return any(
        source.iterates or (isinstance(source.collection, ast.Query) and _gives_many(source.collection))
        for source in query.sources
    )


def with_steps(base: plan.Expression, steps: list[plan.Expression]) -> plan.Expression:
    """The base with members, of which the last one comes first."""
    for step in reversed(steps):
        if isinstance(base, plan.Constant) and isinstance(step, plan.Constant):
            base = plan.Constant(member(base.value, step.value))
        else:
            base = plan.Member(base, step)
    return base
