"""The part of the plan endpoint for ORDER BY RANK: statistics first, one query for each score, fusion by the
client.

Each component query gives, beside the row, the scores of all components, so that the client can rank rows
that only one component brought.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from pleiad.query.bind.calls import FUSIONS
from pleiad.query.rank import more_is_nearer
from pleiad.query.run import Query
from pleiad.query.syntax import ast
from pleiad.query.syntax.parser import COUNT_MAX, check_count
from pleiad.query.syntax.print import print_expression, print_query
from pleiad.query.syntax.rewrite import payload_of, root_name, with_filter

_PREFIX: Final = "documentdb-formattablehybridsearchquery-"
_COMPONENT_ROWS_MIN: Final = 120
_NO_SCORE: Final = -1
_COMBINATIONS: Final = {"RRF": "Rrf", "COMBINEDSCORE": "CombinedScore"}
_NO_SIMILARITY: Final = -1.7976900000000001e308


@dataclasses.dataclass(frozen=True, slots=True)
class _Score:
    """One component's score as a partition computes it."""

    call: ast.FunctionCall
    is_full_text: bool
    more_is_better: bool

    def absent(self) -> ast.Literal:
        """What stands for the score of a row that has none: worse than every score."""
        if self.is_full_text:
            return ast.Literal(_NO_SCORE)
        return ast.Literal(_NO_SIMILARITY if self.more_is_better else -_NO_SIMILARITY)


def hybrid_document(
    query: Query, parameters: Mapping[str, Any], vector_policy: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The hybridSearchQueryInfo of a query with ORDER BY RANK."""
    syntax = query.syntax
    calls = _component_calls(syntax)
    weights = _weights(query, parameters)
    skip, take = _window(syntax, parameters)
    rank = query.block.rank
    assert rank is not None
    scores = [
        _Score(
            # The client puts the statistics in by the number of the text score, vectors not counted.
            _score_call(call, sum(map(_is_full_text, calls[:number]))),
            component.is_full_text,
            component.is_full_text or more_is_nearer(component.arguments, parameters, vector_policy),
        )
        for number, (call, component) in enumerate(zip(calls, rank.components, strict=True))
    ]
    full_text = [call for call in calls if _is_full_text(call)]
    components = [
        _component(syntax, score, scores, weights[number] if weights else 1.0, skip, take)
        for number, score in enumerate(scores)
    ]
    return {
        "globalStatisticsQuery": _statistics(syntax, full_text),
        "componentQueryInfos": components,
        "componentWithoutPayloadQueryInfos": [],
        "projectionQueryInfo": None,
        "componentWeights": weights,
        "skip": skip,
        "take": take,
        "requiresGlobalStatistics": bool(full_text),
        "fullTextSearchTerms": [_search_terms(call) for call in full_text],
        "scoreCombinationKind": _COMBINATIONS[rank.fusion],
    }


def _search_terms(call: ast.FunctionCall) -> dict[str, Any]:
    """Path and terms of one full-text score."""
    steps: list[str | int] = []
    node = call.arguments[0]
    while isinstance(node, ast.Property | ast.Element):
        if isinstance(node, ast.Property):
            steps.append(node.name)
        elif isinstance(node.index, ast.Literal):
            steps.append(node.index.value)
        node = node.target
    terms: list[dict[str, Any]] = []
    for term in _terms(call):
        if isinstance(term, ast.ObjectLiteral):
            members = {name: value.value for name, value in term.properties if isinstance(value, ast.Literal)}
            terms.append(members)
        elif isinstance(term, ast.Literal):
            terms.append({"term": term.value})
        else:
            terms.append({"term": print_expression(term)})
    return {"path": steps[::-1], "terms": terms}


def _component_calls(syntax: ast.Query) -> list[ast.FunctionCall]:
    call = syntax.order_by[0].expression
    assert isinstance(call, ast.FunctionCall)
    if call.name.upper() not in FUSIONS:
        return [call]
    return [argument for argument in call.arguments if isinstance(argument, ast.FunctionCall)]


def _weights(query: Query, parameters: Mapping[str, Any]) -> list[float]:
    rank = query.block.rank
    assert rank is not None
    if rank.weights_parameter is not None:
        given = parameters.get(rank.weights_parameter.name)
        return list(given) if isinstance(given, list) else []
    return list(rank.weights or ())


def _window(syntax: ast.Query, parameters: Mapping[str, Any]) -> tuple[int | None, int | None]:
    def count(word: str, node: ast.Count | None) -> int | None:
        if node is None:
            return None
        value = node.value if isinstance(node, ast.Literal) else parameters.get(node.name)
        return check_count(word, value, node.start, node.end)

    top = count("TOP", syntax.top)
    if top is not None:
        return None, top
    return count("OFFSET", syntax.offset), count("LIMIT", syntax.limit)


def _is_full_text(call: ast.FunctionCall) -> bool:
    return call.name.upper() == "FULLTEXTSCORE"


def _terms(call: ast.FunctionCall) -> tuple[ast.Expression, ...]:
    terms = call.arguments[1:]
    if len(terms) == 1 and isinstance(terms[0], ast.ArrayLiteral):
        return terms[0].items
    return terms


def _score_call(call: ast.FunctionCall, number: int) -> ast.FunctionCall:
    """The score as a partition computes it, with places for the statistics."""
    if not _is_full_text(call):
        return ast.FunctionCall("_VectorScore", call.arguments)
    places = tuple(
        ast.Placeholder(f"{{{_PREFIX}{name}}}")
        for name in ("totaldocumentcount", f"totalwordcount-{number}", f"hitcountsarray-{number}")
    )
    return ast.FunctionCall("_FullTextScore", (call.arguments[0], ast.ArrayLiteral(_terms(call)), *places))


def _component(
    syntax: ast.Query,
    score: _Score,
    scores: list[_Score],
    weight: float,
    skip: int | None,
    take: int | None,
) -> dict[str, Any]:
    """The queryInfo of one component."""
    is_descending = (weight >= 0) == score.more_is_better
    known = tuple(ast.Binary("??", each.call, each.absent()) for each in scores)
    payload = ast.ObjectLiteral(
        (("payload", payload_of(syntax)), ("componentScores", ast.ArrayLiteral(known)))
    )
    items = (
        ast.SelectItem(ast.Property(ast.Identifier(root_name(syntax)), "_rid")),
        ast.SelectItem(ast.ArrayLiteral((ast.ObjectLiteral((("item", score.call),)),)), "orderByItems"),
        ast.SelectItem(payload, "payload"),
    )
    direction = ("DESC" if is_descending else "ASC") if score.is_full_text else None
    rows = None
    if take is not None:
        rows = ast.Literal(min(max(2 * ((skip or 0) + take), _COMPONENT_ROWS_MIN), COUNT_MAX))
    rewritten = dataclasses.replace(
        syntax,
        selection=ast.SelectList(items),
        where=with_filter(syntax.where),
        order_by=(ast.SortItem(score.call, direction),),
        is_rank=False,
        top=rows if syntax.top is not None else None,
        offset=ast.Literal(0) if syntax.offset is not None else None,
        limit=rows if syntax.limit is not None else None,
    )
    return {
        "distinctType": "None",
        "top": rows.value if rows is not None and syntax.top is not None else None,
        "offset": 0 if rows is not None and syntax.offset is not None else None,
        "limit": rows.value if rows is not None and syntax.limit is not None else None,
        "orderBy": ["Descending" if is_descending else "Ascending"],
        "orderByExpressions": [print_expression(score.call)],
        "groupByExpressions": [],
        "groupByAliases": [],
        "aggregates": [],
        "groupByAliasToAggregateType": {},
        "rewrittenQuery": print_query(rewritten),
        "hasSelectValue": False,
        "dCountInfo": None,
        "hasNonStreamingOrderBy": True,
    }


def _statistics(syntax: ast.Query, calls: list[ast.FunctionCall]) -> str:
    """The query whose one row a client sums up over all partitions."""
    entries: list[ast.Expression] = []
    for call in calls:
        path = call.arguments[0]
        words = ast.FunctionCall("SUM", (ast.FunctionCall("_FullTextWordCount", (path,)),))
        hits = tuple(
            ast.FunctionCall("COUNTIF", (ast.FunctionCall("FullTextContains", (path, term)),))
            for term in _terms(call)
        )
        entries.append(ast.ObjectLiteral((("totalWordCount", words), ("hitCounts", ast.ArrayLiteral(hits)))))
    items = (
        ast.SelectItem(ast.FunctionCall("COUNT", (ast.Literal(1),)), "documentCount"),
        ast.SelectItem(ast.ArrayLiteral(tuple(entries)), "fullTextStatistics"),
    )
    return print_query(ast.Query(ast.SelectList(items), sources=syntax.sources))
