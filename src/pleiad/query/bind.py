"""Syntax tree to bound plan: statements, sources, select lists. Expressions are in ``bind_expressions``.

Names are resolved to slots. The first name after FROM is the container unless an outer alias has it, and
only where the container can be meant: in the outermost query and in a chain of subqueries that each stand
first in FROM.
"""

from __future__ import annotations

from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import ast, errors, plan
from pleiad.query.bind_expressions import ExpressionBinder, Scope
from pleiad.query.bind_rank import bind_rank
from pleiad.query.print import print_expression


class Binder(ExpressionBinder):
    """Binds one text."""

    def block(
        self, query: ast.Query, outer: Scope | None, root_allowed: bool, is_top: bool = False
    ) -> plan.Block:
        """One SELECT seen from an outer scope."""
        if not is_top:
            _refuse_outer_clauses(query)
        scope = Scope(outer)
        sources: list[plan.Source] = []
        for number, source in enumerate(query.sources):
            sources.extend(self._source(source, scope, root_allowed and number == 0))
        where = None if query.where is None else self.bind(query.where, scope)
        is_grouped = bool(query.group_by) or self.has_aggregate(query.selection)
        select_scope = scope
        group_by: tuple[plan.Expression, ...] = ()
        if is_grouped:
            if isinstance(query.selection, ast.SelectStar):
                star = query.selection
                raise errors.complain(
                    "SC2041", "'SELECT *' is not allowed with GROUP BY.", star.start, star.end
                )
            group_by = tuple(self._group_key(key, scope) for key in query.group_by)
            texts = {print_expression(key): index for index, key in reversed(list(enumerate(query.group_by)))}
            select_scope = scope.grouped(texts)
        selection, is_star = self._selection(query, select_scope, scope)
        order_by: tuple[plan.SortKey, ...] = ()
        rank = None
        if query.is_rank:
            rank = bind_rank(self, query, scope, is_grouped)
        elif query.order_by and (query.group_by or not is_grouped):
            order_by = self._order_by(query, select_scope, sources)
        self.raise_complaints()
        return plan.Block(
            sources=tuple(sources),
            where=where,
            group_by=group_by,
            aggregates=select_scope.aggregates_bound(),
            is_grouped=is_grouped,
            selection=selection,
            is_value=isinstance(query.selection, ast.SelectValue),
            is_star=is_star,
            distinct=query.distinct,
            order_by=order_by,
            rank=rank,
            top=self._count(query.top),
            offset=self._count(query.offset),
            limit=self._count(query.limit),
        )

    def _count(self, node: ast.Count | None) -> int | plan.Parameter | None:
        if node is None:
            return None
        if isinstance(node, ast.Parameter):
            self.parameters.setdefault(node.name)
            return plan.Parameter(node.name)
        return int(node.value)

    # -- sources ---------------------------------------------------------------------------------

    def _source(self, source: ast.Source, scope: Scope, root_allowed: bool) -> list[plan.Source]:
        """The bound source, after a hidden one for the item when the source is a path into it."""
        collection = source.collection
        if isinstance(collection, ast.Query):
            inner = self.block(collection, scope, root_allowed)
            kind = plan.SourceKind.ROW_ELEMENTS if source.iterates else plan.SourceKind.ROWS
            return [plan.Source(self._declare(source, source.alias, scope), kind, block=inner)]
        kind = plan.SourceKind.ELEMENTS if source.iterates else plan.SourceKind.VALUE
        base = _base_of(collection)
        alias = source.alias or _inferred_alias(collection)
        if base is None or scope.lookup(base.name) is not None or not root_allowed:
            expression = self.bind(collection, scope)
            slot = self._declare(source, alias, scope)
            if (
                isinstance(expression, plan.Slot)
                and expression.index in self.root_slots
                and not source.iterates
            ):
                self.root_slots.add(slot)
            return [plan.Source(slot, kind, expression)]
        if collection is base and not source.iterates:
            slot = self._declare(source, alias, scope)
            self.root_slots.add(slot)
            return [plan.Source(slot, plan.SourceKind.ITEMS)]
        hidden = self.new_slot()
        self.root_slots.add(hidden)
        path_scope = Scope(None)
        path_scope.names[base.name] = hidden
        expression = self.bind(collection, path_scope)
        slot = self._declare(source, alias, scope)
        return [plan.Source(hidden, plan.SourceKind.ITEMS), plan.Source(slot, kind, expression)]

    def _declare(self, source: ast.Source, alias: str | None, scope: Scope) -> int:
        slot = self.new_slot()
        if alias is None:
            scope.last_slot = slot
            return slot
        if alias in scope.names:
            raise errors.complain(
                "SC2011",
                f"The input alias '{alias}' is specified more than once in the FROM clause.",
                source.start,
                source.end,
            )
        scope.names[alias] = slot
        scope.last_slot = slot
        return slot

    # -- select list -----------------------------------------------------------------------------

    def _selection(self, query: ast.Query, scope: Scope, row_scope: Scope) -> tuple[plan.Expression, bool]:
        selection = query.selection
        if isinstance(selection, ast.SelectStar):
            return plan.Slot(_star_slot(query, row_scope)), True
        if isinstance(selection, ast.SelectValue):
            return self.bind(selection.expression, scope), False
        names = output_names(selection)
        pairs = [
            (name, self.bind(item.expression, scope))
            for name, item in zip(names, selection.items, strict=True)
        ]
        return plan.MakeObject(tuple(pairs)), False

    def _group_key(self, node: ast.Expression, scope: Scope) -> plan.Expression:
        if self.contains_subquery(node) or self.has_aggregate(node):
            raise errors.complain(
                "SC2101",
                "A GROUP BY expression cannot contain an aggregate or a subquery.",
                node.start,
                node.end,
            )
        return self.bind(node, scope)

    # -- order -----------------------------------------------------------------------------------

    def _order_by(
        self, query: ast.Query, scope: Scope, sources: list[plan.Source]
    ) -> tuple[plan.SortKey, ...]:
        keys: list[plan.SortKey] = []
        for item in query.order_by:
            scope.clause = "ORDER BY clause"
            expression = self.bind(item.expression, scope)
            scope.clause = "select list"
            if not query.group_by:
                _check_sort_path(expression, sources, len(query.sources))
            keys.append(plan.SortKey(expression, item.direction == "DESC"))
        return tuple(keys)


def _check_sort_path(expression: plan.Expression, sources: list[plan.Source], source_count: int) -> None:
    """ORDER BY takes paths of the item, constants, and scores."""
    if isinstance(expression, plan.Constant | plan.Parameter):
        return
    if isinstance(expression, plan.Call) and expression.function.name in ("VECTORDISTANCE", "_FULLTEXTSCORE"):
        return
    target: plan.Expression = expression
    while isinstance(target, plan.Member) and isinstance(target.key, plan.Constant | plan.Parameter):
        target = target.target
    if not isinstance(target, plan.Slot):
        raise errors.complain(
            2206,
            "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.",
        )
    for source in sources:
        if source.slot == target.index:
            is_joined = source_count > 1 and source is not sources[0]
            if is_joined or source.kind in (plan.SourceKind.ELEMENTS, plan.SourceKind.ROW_ELEMENTS):
                raise errors.plain_error("Order-by over correlated collections is not supported.")


def _star_slot(query: ast.Query, scope: Scope) -> int:
    star = query.selection
    if not query.sources:
        raise errors.complain(
            "SC2039", "'SELECT *' is not valid if FROM clause is omitted.", star.start, star.end
        )
    if len(query.sources) > 1:
        raise errors.complain(
            "SC2040", "'SELECT *' is only valid with a single input set.", star.start, star.end
        )
    return scope.last_slot


def output_names(selection: ast.SelectList) -> list[str]:
    """The names of a select list: alias, last property of a path, or ``$1``, ``$2`` for the others."""
    names: list[str] = []
    unnamed = 0
    for item in selection.items:
        if item.alias is not None:
            names.append(item.alias)
        elif isinstance(item.expression, ast.Property | ast.Identifier):
            names.append(item.expression.name)
        else:
            unnamed += 1
            names.append(f"${unnamed}")
    return names


def _base_of(node: ast.Expression) -> ast.Identifier | None:
    while isinstance(node, ast.Property | ast.Element):
        node = node.target
    return node if isinstance(node, ast.Identifier) else None


def _inferred_alias(node: ast.Expression) -> str | None:
    return node.name if isinstance(node, ast.Property | ast.Identifier) else None


def _refuse_outer_clauses(query: ast.Query) -> None:
    refusal: PleiadError | None = None
    if query.is_rank:
        refusal = _refused("SC2228", "ORDER BY RANK", query)
    elif query.order_by:
        refusal = _refused("SC2202", "ORDER BY", query)
    elif query.top is not None:
        refusal = _refused("SC2203", "TOP", query)
    elif query.offset is not None:
        refusal = _refused("SC2204", "OFFSET LIMIT", query)
    if refusal is not None:
        raise refusal


def _refused(code: str, clause: str, query: ast.Query) -> PleiadError:
    return errors.complain(code, f"'{clause}' clause is not supported in subqueries.", query.start, query.end)


def bind(query: ast.Query, limits: Limits) -> plan.Plan:
    """The bound plan of a parsed query."""
    binder = Binder(limits)
    block = binder.block(query, None, root_allowed=True, is_top=True)
    return plan.Plan(
        block,
        binder.slot_count,
        frozenset(binder.root_slots),
        tuple(binder.parameters),
        tuple(binder.udfs),
    )
