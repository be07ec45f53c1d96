"""Syntax tree to bound plan: statements, sources, select lists. Expressions are in ``expressions``.

Names are resolved to slots. The first name after FROM is the container unless an outer alias has it, and
only where the container can be meant: in the outermost query and in a chain of subqueries that each stand
first in FROM.

Complaints are gathered clause by clause in the service's order: sources, filter, groups, order, select list, counts.
What can only be said of a query that is right otherwise, such as SELECT * over several sources or an ORDER BY that is
no path, is said last and alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from pleiad.limits import Limits
from pleiad.query import errors, plan
from pleiad.query.bind.expressions import ExpressionBinder, Scope, is_aggregate, own_nodes
from pleiad.query.bind.order import check_sort_path, is_distance, is_path_like
from pleiad.query.bind.rank import bind_rank, complain_about_sources
from pleiad.query.syntax import ast
from pleiad.query.syntax.outputs import output_name, output_names
from pleiad.query.syntax.parser import count_problem
from pleiad.query.syntax.rewrite import root_name
from pleiad.query.syntax.shape import shape

_OF_GROUPS: Final = ("SC2102", "SC2103")


class Binder(ExpressionBinder):
    """Binds one text."""

    def __init__(self, limits: Limits, text: str = "", given: Mapping[str, Any] | None = None) -> None:
        super().__init__(limits, text, given)
        self.block_count = 0
        self.bad_keys: set[int] = set()

    def block(
        self, query: ast.Query, outer: Scope | None, root_allowed: bool, is_top: bool = False
    ) -> plan.Block:
        """One SELECT seen from an outer scope."""
        before = len(self.complaints)
        if query.top is not None and query.offset is not None:
            self.complain("SC2205", query)
        self.block_count += 1
        scope = Scope(outer, self.block_count)
        if query.is_rank:
            complain_about_sources(self, query)
        sources: list[plan.Source] = []
        for number, source in enumerate(query.sources):
            sources.extend(self._source(source, scope, root_allowed and number == 0, query))
        where = None if query.where is None else self.bind(query.where, scope.in_clause("WHERE"))
        if query.is_rank and query.group_by:
            self.complain("SC2227", query.group_place)
        group_by = tuple([self._group_key(key, scope) for key in query.group_by])
        is_grouped = self._is_grouped(query)
        select_scope = scope
        is_single = _gives_one(tuple(sources), root_allowed)
        if is_grouped:
            select_scope = scope.grouped(self._group_shapes(query), is_single)
        if query.order_by and not is_top:
            self.complain("SC2228" if query.is_rank else "SC2202", query.order_place)
        rank = bind_rank(self, query, scope) if query.is_rank else None
        if query.is_rank and query.distinct:
            self.complain("SC2220", (query.start, query.selection.end))
        order_by = () if query.is_rank else self._order_by(query, select_scope, scope)
        selection = self._selection(query, scope.in_clause("RANK") if query.is_rank else select_scope, scope)
        is_sound = self._check_groups(scope.number, before)
        self.is_sound = not any(each.code not in _OF_GROUPS for each in self.complaints)
        top = None
        is_counted = bool(query.group_by) or bool(select_scope.aggregates)
        if is_sound or not (is_counted or (query.is_rank and self.has_aggregate(query.selection))):
            self._check_star(query, is_grouped, scope)
            top = self._top(query, is_top)
        offset, limit = self._cut(query, is_top)
        if not self.complaints and order_by and is_top:
            check_sort_path(query, order_by, sources, group_by, is_grouped)
        is_sorted = bool(order_by) and (bool(query.group_by) or not is_grouped)
        return plan.Block(
            sources=tuple(sources),
            where=where,
            group_by=group_by,
            aggregates=select_scope.aggregates_bound(),
            is_grouped=is_grouped,
            selection=selection,
            is_value=isinstance(query.selection, ast.SelectValue),
            is_star=isinstance(query.selection, ast.SelectStar),
            distinct=query.distinct,
            order_by=order_by if is_sorted and sources else (),
            rank=rank,
            top=top,
            offset=offset,
            limit=limit,
            scope=scope.number,
            is_from_path=len(sources) > 1 and len(query.sources) == 1,
        )

    def _group_shapes(self, query: ast.Query) -> dict[Hashable, int]:
        """The keys by their shape; one about which there is a complaint is none."""
        return {
            shape(key): index
            for index, key in reversed(list(enumerate(query.group_by)))
            if id(key) not in self.bad_keys
        }

    def _check_groups(self, number: int, before: int) -> bool:
        """Whether nothing is wrong with the block so far; only then what is no part of a group is told."""
        is_sound = len(self.complaints) == before
        own = [problem for holder, problem in self.group_complaints if holder == number]
        self.group_complaints = [each for each in self.group_complaints if each[0] != number]
        if is_sound:
            self.complaints.extend(own)
        return is_sound

    def _is_grouped(self, query: ast.Query) -> bool:
        if query.is_rank or query.group_by:
            return bool(query.group_by) and not query.is_rank
        return self.has_aggregate(query.selection) or any(map(self.has_aggregate, query.order_by))

    # -- counts ----------------------------------------------------------------------------------

    def _top(self, query: ast.Query, is_top: bool) -> int | plan.Parameter | None:
        if query.top is not None and not is_top:
            self.complain("SC2203", query.top_place)
        return self._count("TOP", query.top)

    def _cut(self, query: ast.Query, is_top: bool) -> list[int | plan.Parameter | None]:
        if query.offset is not None and not is_top:
            self.complain("SC2204", query.cut_place)
        return [self._count("OFFSET", query.offset), self._count("LIMIT", query.limit)]

    def _count(self, word: str, node: ast.Count | None) -> int | plan.Parameter | None:
        if node is None:
            return None
        if isinstance(node, ast.Parameter):
            self.parameters.setdefault(node.name)
            self.rule(word, node.name, node.start, node.end)
            return plan.Parameter(node.name)
        problem = count_problem(word, node.value, node.start, node.end)
        if problem is not None:
            self.complaints.append(problem)
            return None
        return int(node.value)

    # -- sources ---------------------------------------------------------------------------------

    def _source(
        self, source: ast.Source, scope: Scope, root_allowed: bool, query: ast.Query
    ) -> list[plan.Source]:
        """The bound source, after a hidden one for the item when the source is a path into it."""
        collection = source.collection
        if isinstance(collection, ast.Query):
            inner = self.block(collection, scope, root_allowed)
            kind = plan.SourceKind.ROW_ELEMENTS if source.iterates else plan.SourceKind.ROWS
            # What the elements of rows are of is an input set as well.
            scope.hidden += source.iterates and root_allowed
            is_of_many = not source.iterates and not _gives_one(inner.sources, False)
            slot = self._declare(source, scope, may_repeat=is_of_many)
            is_alone = not root_allowed and len(query.sources) == 1
            if is_alone and not source.iterates and not inner.sources and inner.where is None:
                self.inlined[slot] = inner
            if source.iterates and root_allowed and _is_rewritten(query):
                scope.names.setdefault(root_name(query), slot)
            return [plan.Source(slot, kind, block=inner)]
        kind = plan.SourceKind.ELEMENTS if source.iterates else plan.SourceKind.VALUE
        base = _base_of(collection)
        if scope.holder(base.name) is not None or not root_allowed:
            expression = self.bind(collection, scope)
            slot = self._declare(source, scope)
            is_item = isinstance(expression, plan.Slot) and expression.index in self.root_slots
            if is_item and not source.iterates:
                self.root_slots.add(slot)
            return [plan.Source(slot, kind, expression)]
        if collection is base and not source.iterates:
            slot = self._declare(source, scope)
            self.root_slots.add(slot)
            return [plan.Source(slot, plan.SourceKind.ITEMS)]
        hidden = self.new_slot()
        self.root_slots.add(hidden)
        path_scope = Scope(None)
        path_scope.names[base.name] = hidden
        expression = self.bind(collection, path_scope)
        slot = self._declare(source, scope)
        if _is_rewritten(query, base.name):
            scope.names.setdefault(base.name, hidden)
        return [plan.Source(hidden, plan.SourceKind.ITEMS), plan.Source(slot, kind, expression)]

    def _declare(self, source: ast.Source, scope: Scope, may_repeat: bool = False) -> int:
        """A slot for the source, under its alias; the bare name of another alias is a reference to it."""
        slot = self.new_slot()
        scope.last_slot = slot
        collection = source.collection
        alias = source.alias
        place: ast.Place = source.alias_place or (source.start, source.end)
        if alias is None and isinstance(collection, ast.Property):
            alias = collection.name
            written = len(alias) if not collection.bracket else collection.end - collection.name_start - 1
            place = (collection.name_start, collection.name_start + written)
        elif (
            isinstance(collection, ast.Identifier)
            and alias in (None, collection.name)
            and not source.iterates
        ):
            alias = collection.name
            if scope.holder(alias) is not None:
                scope.names[alias] = slot
                return slot
        if alias is None:
            return slot
        if scope.holder(alias) is not None and not may_repeat:
            self.complain("SC2021", place, name=alias)
            return slot
        scope.names[alias] = slot
        return slot

    # -- select list -----------------------------------------------------------------------------

    def _selection(self, query: ast.Query, scope: Scope, row_scope: Scope) -> plan.Expression:
        selection = query.selection
        if isinstance(selection, ast.SelectStar):
            if query.sources:
                return plan.Slot(row_scope.last_slot)
            # Without a source of its own a subquery has the one input set around it.
            around = row_scope.name_around()
            if around is None:
                return plan.MakeObject(())
            return self.bind(ast.Identifier(around, start=selection.start, end=selection.end), scope)
        if isinstance(selection, ast.SelectValue):
            return self.bind(selection.expression, scope)
        seen: set[str] = set()
        pairs: list[tuple[str, plan.Expression]] = []
        # A group has no _rid; the rows of a plan over groups have an empty one in its place.
        is_rid_free = scope.group_shapes is not None and _is_rewritten(query)
        for number, (name, item) in enumerate(zip(output_names(selection), selection.items, strict=True)):
            is_free = is_rid_free and number == 0
            pairs.append((name, plan.Constant("") if is_free else self.bind(item.expression, scope)))
            written = "" if item.alias == "" else name
            # A name that was not written repeats no other, though it may be the same.
            is_written = item.alias is not None or name == output_name(item.expression)
            if written in seen and is_written:
                self.complain("SC2022", _name_place(item), name=written)
            seen.add(written)
        return plan.MakeObject(tuple(pairs))

    def _check_star(self, query: ast.Query, is_grouped: bool, scope: Scope) -> None:
        star = query.selection
        if not isinstance(star, ast.SelectStar):
            return
        if is_grouped:
            self.complain("SC2041" if query.group_by else "SC2040", star)
        elif len(query.sources) > 1 or scope.hidden > 0 or (not query.sources and scope.names_around() > 1):
            self.complain("SC2042", star)

    def _group_key(self, node: ast.Expression, scope: Scope) -> plan.Expression:
        before, known = self.references, len(self.complaints)
        bound = self.bind(node, scope.in_clause("GROUP BY"))
        if self.references == before:
            self.complain("SC2110", node)
        if len(self.complaints) > known:
            self.bad_keys.add(id(node))
        return bound

    # -- order -----------------------------------------------------------------------------------

    def _order_by(self, query: ast.Query, scope: Scope, row_scope: Scope) -> tuple[plan.SortKey, ...]:
        """The keys; one aggregate row may be ordered by paths, which order nothing."""
        is_single = scope.group_shapes is not None and not query.group_by
        if is_single and all(is_path_like(item.expression) for item in query.order_by):
            scope = row_scope
        clause = scope.in_clause("ORDER BY")
        keys: list[plan.SortKey] = []
        for item in query.order_by:
            expression = self.bind(item.expression, clause)
            if is_distance(expression):
                if item.direction is not None:
                    self.complain("SC2210 order", item)
                for vector in expression.arguments[1:3]:
                    if isinstance(vector, plan.Parameter):
                        rule = plan.ParameterRule("2206", vector.name, 0, 0)
                        self.parameter_rules.append(rule)
            keys.append(plan.SortKey(expression, item.direction == "DESC"))
        return tuple(keys)

    def check_totals(self, query: ast.Query) -> None:
        """Limits on the query as a whole, told of one that is right otherwise."""
        if self.complaints:
            return
        if joins_along(query) > self.limits.query_joins:
            self.complain("SC3002", query, limit=self.limits.query_joins)
        if len(self.udfs) > self.limits.query_udfs:
            self.complain("SC3005", query, limit=self.limits.query_udfs)


def joins_along(query: ast.Query, is_nested: bool = False) -> int:
    """The most JOINs on one way from the query into its subqueries; FROM … IN of a subquery counts as one."""
    own = max(0, len(query.sources) - 1)
    if is_nested and query.sources and query.sources[0].iterates:
        own += 1
    nested = 0
    stack: list[object] = list(ast.children(query))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Query):
            nested = max(nested, joins_along(node, True))
        else:
            stack.extend(ast.children(node))  # type: ignore[arg-type]
    return own + nested


def _is_rewritten(query: ast.Query, root: str | None = None) -> bool:
    """Whether the query is one that a plan gave to a client: only such a one names the item behind a path."""
    selection = query.selection
    if not isinstance(selection, ast.SelectList) or len(selection.items) != 3:
        return False
    first = selection.items[0].expression
    is_rid = isinstance(first, ast.Property) and first.name == "_rid"
    if root is not None and is_rid and isinstance(first, ast.Property):
        is_rid = first.target_name == root
    return is_rid and [item.alias for item in selection.items[1:]] == ["orderByItems", "payload"]


def _name_place(item: ast.SelectItem) -> ast.Place:
    """Where the name of an output stands: its alias, or the last name of its path."""
    if item.alias_place is not None:
        return item.alias_place
    node = item.expression
    if isinstance(node, ast.Property):
        return (node.name_start, node.end - node.bracket)
    return (node.start, node.end)


def _gives_one(sources: tuple[plan.Source, ...], is_outside: bool) -> bool:
    """Whether sources have one row together; ``is_outside`` says that they stand for rows of the container."""
    for source in sources:
        if source.kind is plan.SourceKind.VALUE:
            continue
        inner = source.block
        if source.kind is not plan.SourceKind.ROWS or inner is None:
            return False
        is_counted = inner.is_grouped and not inner.group_by
        if not is_counted and (is_outside or not _gives_one(inner.sources, False)):
            return False
    return bool(sources) or not is_outside


def _base_of(node: ast.Expression) -> ast.Identifier:
    while isinstance(node, ast.Property | ast.Element):
        node = node.target
    assert isinstance(node, ast.Identifier)
    return node


def bind(
    query: ast.Query, limits: Limits, text: str = "", given: Mapping[str, Any] | None = None
) -> plan.Plan:
    """The bound plan of a query parsed from a text.

    With the values of its parameters what is wrong with them is told among the other complaints, in its place.
    """
    if isinstance(query.selection, ast.SelectStar) and not query.sources:
        raise errors.refusal("SC1021", query.selection.start, query.selection.end)
    binder = Binder(limits, text, given)
    block = binder.block(query, None, root_allowed=True, is_top=True)
    binder.check_totals(query)
    binder.raise_complaints()
    return plan.Plan(
        block,
        binder.slot_count,
        frozenset(binder.root_slots),
        tuple(binder.parameters),
        tuple(binder.udfs),
        tuple(binder.parameter_rules),
    )


__all__ = ["Binder", "bind", "is_aggregate", "joins_along", "own_nodes"]
