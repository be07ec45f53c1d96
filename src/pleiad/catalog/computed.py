"""Computed properties of a container: which names and queries the service takes, and what it says of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from pleiad.errors import PleiadError
from pleiad.index.policy import parse_rule
from pleiad.limits import Limits
from pleiad.query import Query, compile_query
from pleiad.query.bind.expressions import AGGREGATES
from pleiad.query.errors import plain_error
from pleiad.query.functions.registry import REGISTRY
from pleiad.query.syntax import ast

_INVALID: Final = "One of the specified inputs is invalid"
_NAMES_RESERVED: Final = frozenset({"id", "_rid", "_ts", "_etag", "_self", "_attachments"})
_SPATIAL: Final = "ST_"


def check_computed(given: object, limits: Limits) -> None:
    """Refuses definitions that have no name and query each, or share a name."""
    if not isinstance(given, list) or len(given) > limits.computed_properties:
        raise plain_error(
            f"{_INVALID}. 'computedProperties' must be a list of at most {limits.computed_properties} properties."
        )
    names: set[str] = set()
    for entry in given:
        if not isinstance(entry, dict):
            raise plain_error(_INVALID)
        for part in ("name", "query"):
            if part in entry and not isinstance(entry[part], str):
                raise plain_error(_INVALID)
            if not entry.get(part):
                raise plain_error(f"Computed property '{part}' is either empty or unspecified.")
        name = entry["name"]
        if name in _NAMES_RESERVED:
            raise plain_error(
                f"The system property name '{name}' cannot be used as a computed property name."
            )
        if name in names:
            raise plain_error(f"Computed property name '{name}' cannot be used in multiple definitions.")
        names.add(name)


def check_computed_queries(given: list[dict[str, Any]], spatial_paths: Iterable[str], limits: Limits) -> None:
    """Refuses queries that compute no value of one item, and names that a spatial index has."""
    rules = [parse_rule(path, included=True) for path in spatial_paths]
    located = {rule.steps[0] for rule in rules if rule is not None and rule.steps}
    for index, entry in enumerate(given):
        name, text = entry["name"], entry["query"]
        if name in located:
            raise plain_error(
                f"Computed property '{name}' at index ({index}) has a spatial index. Remove the spatial index on this "
                "path."
            )
        try:
            query = compile_query(text, limits)
        except PleiadError as error:
            raise _malformed(index, text, _details(error)) from None
        if not isinstance(query.syntax.selection, ast.SelectValue):
            raise plain_error(
                f"Required VALUE expression missing from computed property query '{text}' at index ({index})."
            )
        for problem in problems_of(query, "a computed property"):
            raise _malformed(index, text, problem)


def _malformed(index: int, text: str, details: str) -> PleiadError:
    return plain_error(
        f"Computed property at index ({index}) has a malformed query: '{text}' Error details: '{details}'"
    )


def _details(error: PleiadError) -> str:
    """What is wrong with a query, as the service tells it here: without places, and with plain numbers as codes."""
    try:
        document = orjson.loads(error.message)
    except orjson.JSONDecodeError:
        return error.message
    for entry in document.get("errors", []):
        entry.pop("location", None)
        code = str(entry["code"])
        entry["code"] = int(code.removeprefix("SC")) if code.removeprefix("SC").isdigit() else code
    return orjson.dumps(document).decode()


def problems_of(query: Query, place: str) -> Iterator[str]:
    """What a query has that is more than a value of one item: documented as not allowed, in words of ours."""
    syntax = query.syntax
    if len(syntax.sources) != 1 or not isinstance(syntax.sources[0].collection, ast.Identifier):
        yield "The query must have a FROM clause with the item alone."
    if syntax.sources and syntax.sources[0].iterates:
        yield "The query must have a FROM clause with the item alone."
    clauses = {
        "WHERE": syntax.where,
        "GROUP BY": syntax.group_by,
        "ORDER BY": syntax.order_by,
        "TOP": syntax.top,
        "DISTINCT": syntax.distinct,
        "OFFSET LIMIT": syntax.offset,
    }
    yield from (f"'{word}' is not supported in {place}." for word, part in clauses.items() if part)
    if query.parameters:
        yield f"Parameters are not supported in {place}."
    waiting: list[Any] = [syntax.selection]
    while waiting:
        node = waiting.pop()
        waiting.extend(ast.children(node))
        if isinstance(node, ast.Subquery) and node.kind is not ast.SubqueryKind.ARRAY:
            yield f"Subqueries other than ARRAY are not supported in {place}."
        elif isinstance(node, ast.FunctionCall) and not _is_of_one_item(node):
            yield f"The function '{node.name}' is not supported in {place}."


def _is_of_one_item(call: ast.FunctionCall) -> bool:
    """Whether a function gives the same value for the same item at any time."""
    name = call.name.upper()
    function = REGISTRY.get(name)
    return not (
        call.is_udf
        or name in AGGREGATES
        or name.startswith(_SPATIAL)
        or (function is not None and not function.deterministic)
    )
