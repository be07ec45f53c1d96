"""Syntax tree to bound plan: ORDER BY RANK, with FullTextScore, VectorDistance, and RRF or COMBINEDSCORE of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pleiad.errors import PleiadError
from pleiad.query import errors, plan
from pleiad.query.bind.calls import FULL_TEXT_SCORE, FUSIONS, CallRules
from pleiad.query.functions import REGISTRY
from pleiad.query.syntax import ast

if TYPE_CHECKING:
    from pleiad.query.bind.expressions import ExpressionBinder, Scope

_SCORES: Final = {FULL_TEXT_SCORE: True, "VECTORDISTANCE": False}
_WEIGHTS: Final = {"RRF": "SC2229", "COMBINEDSCORE": "SC2230"}
_FUZZY_DISTANCE_MAX: Final = 2


def complain_about_sources(binder: ExpressionBinder, query: ast.Query) -> None:
    """What FROM may not be beside ORDER BY RANK."""
    for last in reversed(query.sources[1:]):
        binder.complain("SC2224", (query.sources[0].start, last.end))
    for source in query.sources:
        if source.iterates:
            binder.complain("SC2223", source)
        if isinstance(source.collection, ast.Query):
            start = source.collection.start - 1 if source.iterates else source.start
            binder.complain("SC2225", (start, source.collection.end + 1))


def bind_rank(binder: ExpressionBinder, query: ast.Query, scope: Scope) -> plan.Rank | None:
    """The scores that order the rows, best first; None after a complaint."""
    before = len(binder.complaints)
    item = query.order_by[0]
    if item.direction is not None:
        binder.complain("SC2222", query.order_place)
    call = item.expression
    if not isinstance(call, ast.FunctionCall) or call.is_udf:
        binder.complain("SC2221", query.order_place)
        return None
    name = call.name.upper()
    rank = _fused(binder, query, call, scope) if name in FUSIONS else _single(binder, query, call, scope)
    return rank if len(binder.complaints) == before else None


def _single(
    binder: ExpressionBinder, query: ast.Query, call: ast.FunctionCall, scope: Scope
) -> plan.Rank | None:
    if call.name.upper() not in _SCORES:
        before = len(binder.complaints)
        binder.bind(call, scope)
        told = [each.code for each in binder.complaints[before:]]
        if not told or (call.name.upper() in REGISTRY and told[-1] != "SC2050"):
            binder.complain("SC2221", query.order_place)
        return None
    component = _component(binder, call, scope)
    return None if component is None else plan.Rank((component,), None)


def _fused(
    binder: ExpressionBinder, query: ast.Query, call: ast.FunctionCall, scope: Scope
) -> plan.Rank | None:
    name, place = call.name.upper(), query.order_place
    arguments = list(call.arguments)
    scores = [each for each in arguments if isinstance(each, ast.FunctionCall)]
    others = arguments[len(scores) :]
    before = len(binder.complaints)
    components = _components(binder, query, arguments, scope)
    if len(binder.complaints) > before:
        return None
    is_known = arguments[: len(scores)] == scores and None not in components and len(others) <= 2
    if others and not isinstance(others[0], ast.ArrayLiteral | ast.Parameter):
        is_known = False
    if not is_known:
        binder.complain("SC2221", place)
        return None
    if len(scores) < 2:
        binder.complain("SC2233", place)
        return None
    if name == "COMBINEDSCORE" and not all(each is not None and each.is_full_text for each in components):
        binder.complain("SC2231", place)
        return None
    weights: tuple[float, ...] | None = None
    parameter: plan.Parameter | None = None
    if others and isinstance(others[0], ast.Parameter):
        binder.parameters.setdefault(others[0].name)
        parameter = plan.Parameter(others[0].name)
    elif others:
        weights = _weights(others[0])
        if weights is None or len(weights) != len(scores):
            binder.complain(_WEIGHTS[name], place)
            return None
    if len(others) == 2 and not _is_positive(others[1]):
        binder.complain("SC2232", place)
        return None
    return plan.Rank(tuple(each for each in components if each is not None), weights, parameter, name)


def _components(
    binder: ExpressionBinder, query: ast.Query, arguments: list[ast.Expression], scope: Scope
) -> list[plan.RankComponent | None]:
    """The scores of a fusion. The last argument is looked at first, since it may be the weights."""
    last = arguments[-1] if arguments else None
    found: dict[int, plan.RankComponent | None] = {}
    if isinstance(last, ast.FunctionCall):
        found[id(last)] = _component_or_complaint(binder, last, scope)
    elif last is not None:
        binder.bind(last, scope)
    for each in arguments:
        if isinstance(each, ast.FunctionCall):
            if each is not last:
                found[id(each)] = _component_or_complaint(binder, each, scope)
            if not each.is_udf and each.name.upper() in REGISTRY and each.name.upper() not in _SCORES:
                binder.complain("SC2221", query.order_place)
        elif isinstance(each, ast.Property | ast.Identifier) and each is not last:
            binder.bind(each, scope)
            binder.complain("SC2221", query.order_place)
    return [found[id(each)] for each in arguments if isinstance(each, ast.FunctionCall)]


def _component_or_complaint(
    binder: ExpressionBinder, call: ast.FunctionCall, scope: Scope
) -> plan.RankComponent | None:
    """A score of a fusion; of another call what is wrong with it by itself. A fusion is no function inside of one."""
    name = call.name.upper()
    if name in _SCORES and not call.is_udf:
        return _component(binder, call, scope)
    if name in FUSIONS and not call.is_udf:
        for each in call.arguments:
            if isinstance(each, ast.FunctionCall):
                _component_or_complaint(binder, each, scope)
        binder.complain("SC2005", (call.start, call.name_end), name=call.name)
    else:
        binder.bind(call, scope)
    return None


def _component(binder: ExpressionBinder, node: ast.FunctionCall, scope: Scope) -> plan.RankComponent | None:
    rules = CallRules(binder)
    is_full_text = _SCORES[node.name.upper()]
    before = len(binder.complaints)
    arguments = binder.bind_all(node.arguments, scope)
    if rules.counts(node, 2, None if is_full_text else 4):
        if not is_full_text:
            rules.vector_distance(node)
        else:
            if not all(map(_is_term, node.arguments[1:])):
                # Whichever of the terms it is, the first is shown.
                binder.complain("SC2241", node.arguments[1])
    if len(binder.complaints) > before:
        return None
    return plan.RankComponent(is_full_text, (plan.Constant(binder.path_text(arguments[0])), *arguments))


def _is_term(node: ast.Expression) -> bool:
    """Whether a term can be one: a string, an object with term and distance, or a parameter, which is checked later."""
    if isinstance(node, ast.Parameter):
        return True
    if isinstance(node, ast.Literal):
        return type(node.value) is str
    if not isinstance(node, ast.ObjectLiteral):
        return False
    members: dict[str, Any] = {
        name: value.value for name, value in node.properties if isinstance(value, ast.Literal)
    }
    term, distance = members.get("term"), members.get("distance")
    is_number = type(distance) is int or type(distance) is float
    return type(term) is str and is_number and 0 <= members["distance"] <= _FUZZY_DISTANCE_MAX


def _weights(node: ast.Expression) -> tuple[float, ...] | None:
    if not isinstance(node, ast.ArrayLiteral):
        return None
    values: list[float] = []
    for item in node.items:
        if not isinstance(item, ast.Literal) or type(item.value) not in (int, float):
            return None
        values.append(item.value)
    return tuple(values)


def _is_positive(node: ast.Expression) -> bool:
    return isinstance(node, ast.Literal) and type(node.value) is int and node.value > 0


def weights_error() -> PleiadError:
    """The weights of RRF that a parameter gave are not one number for each component."""
    return errors.refusal("SC2229")
