"""Syntax tree to bound plan: ORDER BY RANK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pleiad.errors import PleiadError
from pleiad.query import ast, errors, plan

if TYPE_CHECKING:
    from pleiad.query.bind_expressions import ExpressionBinder, Scope

_SCORES: Final = {"FULLTEXTSCORE": True, "VECTORDISTANCE": False}


def bind_rank(binder: ExpressionBinder, query: ast.Query, scope: Scope, is_grouped: bool) -> plan.Rank:
    """The scores that order the rows, best first."""
    _check_sources(query)
    if len(query.order_by) != 1 or is_grouped:
        raise _not_a_score(query.order_by[-1].expression)
    call = query.order_by[0].expression
    if not isinstance(call, ast.FunctionCall) or call.is_udf:
        raise _not_a_score(call)
    if call.name.upper() != "RRF":
        return plan.Rank((_component(binder, call, scope),), None)
    arguments = list(call.arguments)
    weights: tuple[float, ...] | None = None
    parameter: plan.Parameter | None = None
    if arguments and isinstance(arguments[-1], ast.ArrayLiteral):
        weights = _weights(arguments.pop())
    elif arguments and isinstance(arguments[-1], ast.Parameter):
        name = arguments.pop()
        assert isinstance(name, ast.Parameter)
        binder.parameters.setdefault(name.name)
        parameter = plan.Parameter(name.name)
    components = tuple(_component(binder, argument, scope) for argument in arguments)
    if len(components) < 2:
        raise _not_a_score(call)
    if weights is not None and len(weights) != len(components):
        raise weights_error(call.start, call.end)
    return plan.Rank(components, weights, parameter)


def _component(binder: ExpressionBinder, node: ast.Expression, scope: Scope) -> plan.RankComponent:
    if not isinstance(node, ast.FunctionCall) or node.is_udf or node.name.upper() not in _SCORES:
        raise _not_a_score(node)
    is_full_text = _SCORES[node.name.upper()]
    if len(node.arguments) < 2 or (not is_full_text and len(node.arguments) > 4):
        wanted = "at least 2" if is_full_text else "2 to 4"
        raise errors.complain(
            "SC2050", f"The {node.name.upper()} function requires {wanted} argument(s).", node.start, node.end
        )
    given = node.arguments
    if is_full_text and len(given) == 2 and isinstance(given[1], ast.ArrayLiteral):
        given = (given[0], *given[1].items)
    arguments = tuple(binder.bind(argument, scope) for argument in given)
    return plan.RankComponent(is_full_text, (plan.Constant(binder.path_text(arguments[0])), *arguments))


def _weights(node: ast.Expression) -> tuple[float, ...]:
    assert isinstance(node, ast.ArrayLiteral)
    values: list[float] = []
    for item in node.items:
        is_number = isinstance(item, ast.Literal) and type(item.value) in (int, float)
        if not is_number or not isinstance(item, ast.Literal):
            raise weights_error(node.start, node.end)
        values.append(item.value)
    return tuple(values)


def weights_error(start: int | None = None, end: int | None = None) -> PleiadError:
    """SC2229: the weights of RRF are not one number for each component."""
    return errors.complain(
        "SC2229", "The weights of RRF must be an array of numbers, one for each component.", start, end
    )


def _check_sources(query: ast.Query) -> None:
    for source in query.sources[1:]:
        raise errors.complain("SC2224", "ORDER BY RANK is not allowed with JOIN.", source.start, source.end)
    for source in query.sources:
        if source.iterates:
            raise errors.complain(
                "SC2223", "ORDER BY RANK is not allowed with FROM IN.", source.start, source.end
            )
        if isinstance(source.collection, ast.Query):
            raise errors.complain(
                "SC2225", "ORDER BY RANK is not allowed with a subquery in FROM.", source.start, source.end
            )


def _not_a_score(node: ast.Expression) -> PleiadError:
    return errors.complain(
        "SC2221",
        "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.",
        node.start,
        node.end,
    )
