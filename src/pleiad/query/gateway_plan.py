"""The answer of the plan endpoint: what a client must do to merge the partitions of a query itself.

The rewritten query is built as a syntax tree and printed. Ranges are the caller's: it turns the partition
keys that the filter allows into effective partition key ranges.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from pleiad.errors import PleiadError
from pleiad.query import ast, errors, plan
from pleiad.query.bind import output_names
from pleiad.query.bind_expressions import AGGREGATES
from pleiad.query.hybrid_plan import hybrid_document
from pleiad.query.parser import check_count
from pleiad.query.print import print_expression, print_query
from pleiad.query.rank import more_is_nearer
from pleiad.query.rewrite import ordered_rewrite
from pleiad.query.routing import key_values
from pleiad.query.run import Query

VERSION: Final = 2
Ranges = Callable[[list[tuple[Any, ...]] | None], list[dict[str, Any]]]


def gateway_plan(
    query: Query,
    parameters: Mapping[str, Any],
    key_paths: Sequence[tuple[str, ...]],
    ranges: Ranges,
    *,
    features: Collection[str] | None = None,
    vector_policy: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The plan document.

    ``ranges`` gets what ``routing.key_values`` says: keys, an empty list for none, or None for all.
    ``features`` are the names the client announced; None stands for all. ``vector_policy`` is the
    container's, which says whether more or less of a measure is nearer.
    """
    keys = key_values(query.plan, parameters, key_paths)
    is_pinned = keys is not None and len(keys) <= 1 and all(len(key) == len(key_paths) for key in keys)
    document: dict[str, Any] = {"partitionedQueryExecutionInfoVersion": VERSION}
    if query.is_ranked:
        needed = {"HybridSearch"}
        document["hybridSearchQueryInfo"] = hybrid_document(query, parameters, vector_policy)
    else:
        info = _QueryInfo(query, parameters, is_pinned, vector_policy)
        document["queryInfo"] = info.document()
        needed = info.features()
    _check_features(needed, features)
    document["queryRanges"] = ranges(keys)
    return document


def _check_features(needed: set[str], features: Collection[str] | None) -> None:
    missing = sorted(needed - set(features)) if features is not None else []
    if missing:
        raise errors.plain_error(
            "Query contains the following features, which the calling client does not support: "
            + " ".join(missing)
        )


def compositions_error() -> PleiadError:
    """What the plan cannot express: an aggregate inside another expression."""
    return errors.plain_error("Compositions of aggregates and other expressions are not allowed.")


class _QueryInfo:
    """Builds the queryInfo of one query."""

    def __init__(
        self,
        query: Query,
        parameters: Mapping[str, Any],
        is_pinned: bool,
        vector_policy: Mapping[str, Any] | None,
    ) -> None:
        self._query = query
        self._syntax = query.syntax
        self._block = query.plan.block
        self._parameters = parameters
        self._is_pinned = is_pinned or not query.reads_items
        self._vector_policy = vector_policy
        self._is_distinct_count = self._find_distinct_count()

    def document(self) -> dict[str, Any]:
        syntax, block = self._syntax, self._block
        counts = self._counts()
        document: dict[str, Any] = {
            "distinctType": self._distinct_type(),
            "top": counts["TOP"],
            "offset": counts["OFFSET"],
            "limit": counts["LIMIT"],
            "orderBy": [],
            "orderByExpressions": [],
            "groupByExpressions": [print_expression(key) for key in syntax.group_by],
            "groupByAliases": [],
            "aggregates": [],
            "groupByAliasToAggregateType": {},
            "rewrittenQuery": "",
            "hasSelectValue": isinstance(syntax.selection, ast.SelectValue),
            "dCountInfo": None,
            "hasNonStreamingOrderBy": False,
        }
        if self._is_distinct_count:
            self._distinct_count(document)
        elif block.is_grouped:
            self._grouped(document)
        elif block.order_by:
            self._ordered(document)
        elif counts["LIMIT"] is not None:
            document["rewrittenQuery"] = print_query(self._with_counts(syntax), "\n")
        return document

    # -- counts ----------------------------------------------------------------------------------

    def _count(self, word: str, node: ast.Count | None) -> int | None:
        if node is None:
            return None
        value = node.value if isinstance(node, ast.Literal) else self._parameters.get(node.name)
        return check_count(word, value, node.start, node.end)

    def _counts(self) -> dict[str, int | None]:
        """TOP, OFFSET and LIMIT as the client applies them; none where one partition key answers alone."""
        syntax = self._syntax
        counts = {
            "TOP": self._count("TOP", syntax.top),
            "OFFSET": self._count("OFFSET", syntax.offset),
            "LIMIT": self._count("LIMIT", syntax.limit),
        }
        if not self._query.reads_items:
            return dict.fromkeys(counts)
        if (
            self._is_pinned
            and not self._block.is_grouped
            and not self._block.order_by
            and not syntax.distinct
        ):
            counts["OFFSET"] = counts["LIMIT"] = None
        return counts

    def _with_counts(self, syntax: ast.Query) -> ast.Query:
        """The query with ``OFFSET o LIMIT l`` widened to what a client needs of each partition."""
        counts = self._counts()
        if counts["LIMIT"] is None or counts["OFFSET"] is None:
            return syntax
        reach = ast.Literal(counts["OFFSET"] + counts["LIMIT"])
        return dataclasses.replace(syntax, offset=ast.Literal(0), limit=reach)

    # -- distinct --------------------------------------------------------------------------------

    def _distinct_type(self) -> str:
        syntax = self._syntax
        if self._is_distinct_count:
            return "Unordered"
        if not syntax.distinct:
            return "None"
        selected: list[ast.Expression] = []
        if isinstance(syntax.selection, ast.SelectValue):
            selected = [syntax.selection.expression]
        elif isinstance(syntax.selection, ast.SelectList):
            selected = [item.expression for item in syntax.selection.items]
        sorted_by = [print_expression(item.expression) for item in syntax.order_by]
        is_ordered = bool(sorted_by) and [print_expression(node) for node in selected] == sorted_by
        return "Ordered" if is_ordered else "Unordered"

    def _find_distinct_count(self) -> bool:
        """COUNT over nothing but a DISTINCT subquery, which the client counts."""
        syntax = self._syntax
        if len(syntax.sources) != 1 or syntax.where is not None or syntax.group_by or syntax.order_by:
            return False
        inner = syntax.sources[0].collection
        kinds = [aggregate.kind for aggregate in self._block.aggregates]
        counts_rows = kinds == [plan.AggregateKind.COUNT] and isinstance(
            self._block.aggregates[0].argument, plan.Constant | plan.Slot
        )
        return (
            isinstance(inner, ast.Query)
            and inner.distinct
            and counts_rows
            and self._selects_bare_aggregates()
        )

    def _selects_bare_aggregates(self) -> bool:
        selection = self._syntax.selection
        if isinstance(selection, ast.SelectValue):
            return _aggregate_of(selection.expression) is not None
        return isinstance(selection, ast.SelectList) and all(
            _aggregate_of(item.expression) is not None for item in selection.items
        )

    def _distinct_count(self, document: dict[str, Any]) -> None:
        inner = self._syntax.sources[0].collection
        assert isinstance(inner, ast.Query)
        alias = ""
        if isinstance(self._syntax.selection, ast.SelectList):
            alias = output_names(self._syntax.selection)[0]
        document["dCountInfo"] = {"dCountAlias": alias}
        document["rewrittenQuery"] = print_query(inner, "\n")

    # -- order -----------------------------------------------------------------------------------

    def _ordered(self, document: dict[str, Any]) -> None:
        syntax = self._syntax
        document["orderByExpressions"] = [print_expression(item.expression) for item in syntax.order_by]
        document["orderBy"] = [self._direction(key) for key in self._block.order_by]
        document["hasNonStreamingOrderBy"] = any(map(_is_distance, self._block.order_by))
        document["rewrittenQuery"] = print_query(self._with_counts(ordered_rewrite(syntax)), "\n")

    def _direction(self, key: plan.SortKey) -> str:
        descending = key.descending
        if _is_distance(key) and isinstance(key.expression, plan.Call):
            descending = more_is_nearer(key.expression.arguments, self._parameters, self._vector_policy)
        return "Descending" if descending else "Ascending"

    # -- aggregates and groups -------------------------------------------------------------------

    def _grouped(self, document: dict[str, Any]) -> None:
        syntax = self._syntax
        if isinstance(syntax.selection, ast.SelectValue):
            self._grouped_value(document, syntax.selection.expression)
            return
        assert isinstance(syntax.selection, ast.SelectList)
        names = output_names(syntax.selection)
        payload: list[tuple[str, ast.Expression]] = []
        types: dict[str, str | None] = {}
        for name, item in zip(names, syntax.selection.items, strict=True):
            kind = _aggregate_of(item.expression)
            if kind is None and self._query_has_aggregate(item.expression):
                raise compositions_error()
            types[name] = None if kind is None else kind.value
            payload.append((name, item.expression if kind is None else _partial(item.expression, kind)))
        document["groupByAliases"] = names
        document["groupByAliasToAggregateType"] = types
        items = [ast.SelectItem(ast.ObjectLiteral(tuple(payload)), "payload")]
        if syntax.group_by:
            items.insert(0, _group_items(syntax))
        document["rewrittenQuery"] = self._without_counts(ast.SelectList(tuple(items)))

    def _grouped_value(self, document: dict[str, Any], expression: ast.Expression) -> None:
        kind = _aggregate_of(expression)
        if kind is None and self._query_has_aggregate(expression):
            raise compositions_error()
        payload = expression if kind is None else ast.ArrayLiteral((_partial(expression, kind),))
        if kind is not None:
            document["aggregates"] = [kind.value]
        if self._syntax.group_by:
            items = (_group_items(self._syntax), ast.SelectItem(payload, "payload"))
            document["rewrittenQuery"] = self._without_counts(ast.SelectList(items))
        else:
            document["rewrittenQuery"] = self._without_counts(ast.SelectValue(payload))

    def _without_counts(self, selection: ast.Selection) -> str:
        rewritten = dataclasses.replace(
            self._syntax, selection=selection, top=None, offset=None, limit=None, distinct=False
        )
        return print_query(rewritten, "\n")

    def _query_has_aggregate(self, node: ast.Expression) -> bool:
        stack: list[Any] = [node]
        while stack:
            current = stack.pop()
            if _aggregate_of(current) is not None:
                return True
            if not isinstance(current, ast.Subquery):
                stack.extend(ast.children(current))
        return False

    # -- features --------------------------------------------------------------------------------

    def features(self) -> set[str]:
        """The names of what a client must be able to do to run the plan."""
        syntax, block = self._syntax, self._block
        counts = self._counts()
        found = {
            "Top": counts["TOP"] is not None,
            "OffsetAndLimit": counts["LIMIT"] is not None,
            "Distinct": syntax.distinct,
            "GroupBy": bool(syntax.group_by),
            "OrderBy": len(block.order_by) == 1,
            "MultipleOrderBy": len(block.order_by) > 1,
            "NonStreamingOrderBy": any(map(_is_distance, block.order_by)),
            "DCount": self._is_distinct_count,
        }
        kinds = {aggregate.kind for aggregate in block.aggregates}
        if kinds and not self._is_distinct_count:
            is_value = isinstance(syntax.selection, ast.SelectValue)
            found["Aggregate"] = True
            found["NonValueAggregate"] = not is_value
            found["MultipleAggregates"] = len(block.aggregates) > 1
            found["CountIf"] = plan.AggregateKind.COUNTIF in kinds
            found["ListAndSetAggregate"] = bool(
                kinds & {plan.AggregateKind.MAKELIST, plan.AggregateKind.MAKESET}
            )
        return {name for name, is_needed in found.items() if is_needed}


def _is_distance(key: plan.SortKey) -> bool:
    return isinstance(key.expression, plan.Call) and key.expression.function.name == "VECTORDISTANCE"


def _aggregate_of(node: Any) -> plan.AggregateKind | None:
    if isinstance(node, ast.FunctionCall) and not node.is_udf:
        return AGGREGATES.get(node.name.upper())
    return None


def _group_items(syntax: ast.Query) -> ast.SelectItem:
    parts = tuple(ast.ObjectLiteral((("item", key),)) for key in syntax.group_by)
    return ast.SelectItem(ast.ArrayLiteral(parts), "groupByItems")


def _partial(node: ast.Expression, kind: plan.AggregateKind) -> ast.Expression:
    """The object in which a partition reports its part of an aggregate."""
    assert isinstance(node, ast.FunctionCall)
    arguments = node.arguments

    def call(name: str) -> ast.Expression:
        return ast.FunctionCall(name, arguments)

    if kind is plan.AggregateKind.AVG:
        parts = ast.ObjectLiteral((("sum", call("SUM")), ("count", call("COUNT"))))
        return ast.ObjectLiteral((("item", parts),))
    own = call(kind.name)
    if kind in (plan.AggregateKind.MIN, plan.AggregateKind.MAX):
        second = ast.ObjectLiteral(((kind.name.lower(), own), ("count", call("COUNT"))))
        return ast.ObjectLiteral((("item", own), ("item2", second)))
    return ast.ObjectLiteral((("item", own),))
