"""The answer of the plan endpoint: what a client must do to merge the partitions of a query itself.

The rewritten query is built as a syntax tree and printed. Ranges are the caller's: it turns the partition
keys that the filter allows into effective partition key ranges.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from pleiad.errors import PleiadError
from pleiad.query import errors, plan
from pleiad.query.bind.expressions import AGGREGATES, own_nodes
from pleiad.query.bind.order import is_between_geometries, is_distance, is_of_one_count, is_path_like
from pleiad.query.client_plan.hybrid import hybrid_document
from pleiad.query.rank import more_is_nearer
from pleiad.query.route.emptiness import gives_nothing
from pleiad.query.route.keys import key_values
from pleiad.query.run import Query
from pleiad.query.syntax import ast
from pleiad.query.syntax.outputs import output_names
from pleiad.query.syntax.parser import check_count
from pleiad.query.syntax.print import print_expression, print_query
from pleiad.query.syntax.rewrite import group_items, ordered_rewrite

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
    is_planar: bool = False,
) -> dict[str, Any]:
    """The plan document.

    ``ranges`` gets what ``route.keys.key_values`` says: keys, an empty list for none, or None for all.
    ``features`` are the names the client announced; None stands for all. ``vector_policy`` is the
    container's, which says whether more or less of a measure is nearer; ``is_planar`` what its geometries lie in.
    """
    keys = key_values(query.plan, parameters, key_paths, is_planar)
    is_pinned = keys is not None and len(keys) <= 1 and all(len(key) == len(key_paths) for key in keys)
    document: dict[str, Any] = {"partitionedQueryExecutionInfoVersion": VERSION}
    if query.is_ranked:
        needed = {"HybridSearch"}
        document["hybridSearchQueryInfo"] = hybrid_document(query, parameters, vector_policy)
    else:
        is_never = keys == [] or gives_nothing(query.plan, parameters, is_planar)
        info = _QueryInfo(query, parameters, keys, is_pinned, is_never, vector_policy)
        document["queryInfo"] = info.document()
        needed = info.features()
        if info.is_empty:
            keys = []
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
        keys: list[tuple[Any, ...]] | None,
        is_pinned: bool,
        is_never: bool,
        vector_policy: Mapping[str, Any] | None,
    ) -> None:
        self._query = query
        self._syntax = query.syntax
        self._block = query.plan.block
        self._parameters = parameters
        self._is_pinned = is_pinned
        self._vector_policy = vector_policy
        self.is_empty = not query.reads_items if not keys and not is_never else is_never
        """Whether the query gives no row, or the same from every partition, so that a client asks one."""
        self._is_plain = not query.syntax.sources or (is_never and not query.syntax.distinct)
        self._is_distinct_count = not self._is_plain and self._find_distinct_count()

    def document(self) -> dict[str, Any]:
        syntax, block = self._syntax, self._block
        document: dict[str, Any] = {
            "distinctType": "None",
            "top": None,
            "offset": None,
            "limit": None,
            "orderBy": [],
            "orderByExpressions": [],
            "groupByExpressions": [],
            "groupByAliases": [],
            "aggregates": [],
            "groupByAliasToAggregateType": {},
            "rewrittenQuery": "",
            "hasSelectValue": isinstance(syntax.selection, ast.SelectValue),
            "dCountInfo": None,
            "hasNonStreamingOrderBy": False,
            "requiresExtendedQueryPlan": False,
        }
        if self._is_plain:
            return document
        counts = self._counts()
        document.update(top=counts["TOP"], offset=counts["OFFSET"], limit=counts["LIMIT"])
        document["distinctType"] = self._distinct_type()
        document["groupByExpressions"] = [print_expression(key) for key in syntax.group_by]
        document["requiresExtendedQueryPlan"] = not self._is_distinct_count and _nests_groups(block)
        if self._is_distinct_count:
            self._distinct_count(document)
        elif block.is_grouped and (block.aggregates or syntax.group_by) and self._selects_groups():
            self._grouped(document)
        elif syntax.order_by:
            self._ordered(document)
        elif syntax.distinct and (syntax.top is not None or syntax.limit is not None):
            document["rewrittenQuery"] = print_query(_without_cut(syntax))
        elif counts["LIMIT"] is not None:
            document["rewrittenQuery"] = print_query(self._with_counts(syntax))
        return document

    def _selects_groups(self) -> bool:
        """Whether the client merges groups: not where ORDER BY over the keys of groups lets it merge rows."""
        if not self._query_has_aggregate(self._syntax.selection):
            return bool(self._syntax.group_by) and not self._syntax.order_by
        return True

    # -- counts ----------------------------------------------------------------------------------

    def _count(self, word: str, node: ast.Count | None) -> int | None:
        if node is None:
            return None
        value = node.value if isinstance(node, ast.Literal) else self._parameters.get(node.name)
        return check_count(word, value, node.start, node.end)

    def _counts(self) -> dict[str, int | None]:
        """TOP, OFFSET and LIMIT as the client applies them; one partition key cuts its rows itself."""
        syntax = self._syntax
        counts = {
            "TOP": self._count("TOP", syntax.top),
            "OFFSET": self._count("OFFSET", syntax.offset),
            "LIMIT": self._count("LIMIT", syntax.limit),
        }
        if self._is_distinct_count:
            return dict.fromkeys(counts)
        is_single_value = self._block.is_grouped and isinstance(syntax.selection, ast.SelectValue)
        if self._is_pinned and not syntax.distinct and not syntax.group_by and not is_single_value:
            counts["OFFSET"] = counts["LIMIT"] = None
        return counts

    def _with_counts(self, syntax: ast.Query) -> ast.Query:
        """The query with ``OFFSET o LIMIT l`` widened to what a client needs of each partition."""
        if syntax.distinct or self._syntax.distinct or self._syntax.group_by:
            return _without_cut(syntax)
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
        is_ordered = (
            isinstance(syntax.selection, ast.SelectValue)
            and len(syntax.order_by) == 1
            and print_expression(syntax.selection.expression)
            == print_expression(syntax.order_by[0].expression)
        )
        return "Ordered" if is_ordered else "Unordered"

    def _find_distinct_count(self) -> bool:
        """COUNT of a constant over nothing but a DISTINCT subquery, which the client counts."""
        syntax = self._syntax
        if len(syntax.sources) != 1 or syntax.where is not None or syntax.group_by or syntax.order_by:
            return False
        source = syntax.sources[0]
        inner = source.collection
        selection = syntax.selection
        if isinstance(selection, ast.SelectList) and len(selection.items) == 1:
            call: Any = selection.items[0].expression
        else:
            call = selection.expression if isinstance(selection, ast.SelectValue) else None
        counts_rows = _aggregate_of(call) is plan.AggregateKind.COUNT and isinstance(
            call.arguments[0], ast.Literal
        )
        return isinstance(inner, ast.Query) and inner.distinct and not source.iterates and counts_rows

    def _distinct_count(self, document: dict[str, Any]) -> None:
        inner = self._syntax.sources[0].collection
        assert isinstance(inner, ast.Query)
        alias = ""
        if isinstance(self._syntax.selection, ast.SelectList):
            alias = output_names(self._syntax.selection)[0]
        document["dCountInfo"] = {"dCountAlias": alias}
        document["rewrittenQuery"] = print_query(inner)

    # -- order -----------------------------------------------------------------------------------

    def _ordered(self, document: dict[str, Any]) -> None:
        syntax = self._syntax
        document["orderByExpressions"] = [print_expression(item.expression) for item in syntax.order_by]
        document["orderBy"] = [
            self._direction(item, key)
            for item, key in zip_longest(syntax.order_by, self._block.order_by)
            if item is not None
        ]
        document["hasNonStreamingOrderBy"] = self._is_buffered()
        if syntax.group_by:
            document["groupByAliases"], document["groupByAliasToAggregateType"] = self._names()
        document["rewrittenQuery"] = print_query(self._with_counts(ordered_rewrite(syntax)))

    def _names(self) -> tuple[list[str], dict[str, str | None]]:
        selection = self._syntax.selection
        if not isinstance(selection, ast.SelectList):
            return [], {}
        names = output_names(selection)
        kinds = [_aggregate_of(item.expression) for item in selection.items]
        return names, {name: kind and kind.value for name, kind in zip(names, kinds, strict=True)}

    def _is_buffered(self) -> bool:
        """Whether the client must see all rows: nearest vectors, or one row sorted by what is no path."""
        block = self._block
        if any(map(_is_measured, block.order_by)) or is_of_one_count(block.order_by, block.sources):
            return True
        is_single = self._block.is_grouped and not self._syntax.group_by
        return is_single and not all(is_path_like(item.expression) for item in self._syntax.order_by)

    def _direction(self, item: ast.SortItem, key: plan.SortKey | None) -> str:
        descending = item.direction == "DESC"
        if key is not None and _is_distance(key) and isinstance(key.expression, plan.Call):
            descending = more_is_nearer(key.expression.arguments, self._parameters, self._vector_policy)
        return "Descending" if descending else "Ascending"

    # -- aggregates and groups -------------------------------------------------------------------

    def _grouped(self, document: dict[str, Any]) -> None:
        syntax = self._syntax
        document["hasNonStreamingOrderBy"] = bool(syntax.order_by) and self._is_buffered()
        if isinstance(syntax.selection, ast.SelectValue):
            self._grouped_value(document, syntax.selection.expression)
            return
        assert isinstance(syntax.selection, ast.SelectList)
        document["groupByAliases"], document["groupByAliasToAggregateType"] = self._names()
        payload: list[tuple[str, ast.Expression]] = []
        for name, item in zip(document["groupByAliases"], syntax.selection.items, strict=True):
            kind = _aggregate_of(item.expression)
            if kind is None and self._query_has_aggregate(item.expression):
                raise compositions_error()
            payload.append((name, item.expression if kind is None else _partial(item.expression, kind)))
        items = [ast.SelectItem(ast.ObjectLiteral(tuple(payload)), "payload")]
        if syntax.group_by:
            items.insert(0, group_items(syntax))
        rewritten = dataclasses.replace(syntax, selection=ast.SelectList(tuple(items)))
        document["rewrittenQuery"] = print_query(self._with_counts(rewritten))

    def _grouped_value(self, document: dict[str, Any], expression: ast.Expression) -> None:
        kind = _aggregate_of(expression)
        if kind is None and self._query_has_aggregate(expression):
            raise compositions_error()
        payload = expression if kind is None else ast.ArrayLiteral((_partial(expression, kind),))
        if kind is not None:
            document["aggregates"] = [kind.value]
        selection: ast.Selection = ast.SelectValue(payload)
        if self._syntax.group_by:
            selection = ast.SelectList((group_items(self._syntax), ast.SelectItem(payload, "payload")))
        rewritten = dataclasses.replace(self._syntax, selection=selection)
        document["rewrittenQuery"] = print_query(_without_cut(rewritten))

    def _query_has_aggregate(self, node: Any) -> bool:
        return any(_aggregate_of(each) is not None for each in own_nodes(node))

    # -- features --------------------------------------------------------------------------------

    def features(self) -> set[str]:
        """The names of what a client must be able to do to run the plan."""
        syntax, block = self._syntax, self._block
        if self._is_plain:
            return set()
        counts = self._counts()
        found = {
            "Top": counts["TOP"] is not None,
            "OffsetAndLimit": counts["LIMIT"] is not None,
            "Distinct": syntax.distinct,
            "GroupBy": bool(syntax.group_by),
            "OrderBy": len(block.order_by) == 1,
            "MultipleOrderBy": len(block.order_by) > 1,
            "NonStreamingOrderBy": any(map(_is_measured, block.order_by)),
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
    return is_distance(key.expression)


def _is_measured(key: plan.SortKey) -> bool:
    """Whether a key is a distance, of vectors or of geometries, which no index has in its order."""
    return _is_distance(key) or is_between_geometries(key.expression)


def _aggregate_of(node: Any) -> plan.AggregateKind | None:
    if isinstance(node, ast.FunctionCall) and not node.is_udf:
        return AGGREGATES.get(node.name.upper())
    return None


def _without_cut(syntax: ast.Query) -> ast.Query:
    """The query without TOP, OFFSET and LIMIT, which the client applies when it has merged the partitions."""
    return dataclasses.replace(syntax, top=None, offset=None, limit=None)


def _nests_groups(block: plan.Block) -> bool:
    """Whether a source has rows that one partition alone cannot give: distinct ones, or groups."""
    inner = [source.block for source in block.sources if source.block is not None]
    return any(
        (bool(each.sources) and (each.distinct or each.is_grouped)) or _nests_groups(each) for each in inner
    )


def _partial(node: ast.Expression, kind: plan.AggregateKind) -> ast.Expression:
    """The object in which a partition reports its part of an aggregate."""
    assert isinstance(node, ast.FunctionCall)
    arguments = node.arguments

    def call(name: str) -> ast.Expression:
        return ast.FunctionCall(name, arguments)

    if kind is plan.AggregateKind.AVG:
        parts = ast.ObjectLiteral((("sum", call("SUM")), ("count", call("COUNT"))))
        return ast.ObjectLiteral((("item", parts),))
    own = call(node.name)
    if kind in (plan.AggregateKind.MIN, plan.AggregateKind.MAX):
        second = ast.ObjectLiteral(((kind.name.lower(), call(kind.name)), ("count", call("COUNT"))))
        return ast.ObjectLiteral((("item", own), ("item2", second)))
    return ast.ObjectLiteral((("item", own),))
