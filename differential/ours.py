"""What Pleiad says of a text, in the planner's notation: a value, or a plan with ranges, or a list of errors."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import QueryContext
from pleiad.query.bind.parameters import parameter_values
from pleiad.query.client_plan.plan import gateway_plan
from pleiad.query.run import Query
from pleiad.values.undefined import UNDEFINED

LIMITS: Final = Limits()
CONTEXT: Final = QueryContext(limits=LIMITS)
EVERYTHING: Final = "all"


@dataclass(frozen=True, slots=True)
class Case:
    """One query with what the planner is told beside its text."""

    text: str
    parameters: tuple[Mapping[str, Any], ...] = ()
    paths: tuple[str, ...] = ("/pk",)
    vector: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Either errors, or a plan and its ranges; everything is plain JSON."""

    errors: tuple[Any, ...] = ()
    plan: Mapping[str, Any] | None = None
    ranges: Any = None


class NotFolded:
    """A constant whose value the planner cannot show."""


def value_of(expression: str) -> Any:
    """The value of a constant expression; UNDEFINED also for what is not a number, as the planner shows it."""
    query = Query(f"SELECT VALUE [({expression})]", LIMITS)
    found = query.run((), {}, CONTEXT)[0]
    return found[0] if found else UNDEFINED


def answer_of(case: Case) -> Answer:
    """The plan of a query, or its errors."""
    paths = [tuple(path.strip("/").split("/")) for path in case.paths]
    kept: list[Any] = []

    def ranges(keys: list[tuple[Any, ...]] | None) -> list[dict[str, Any]]:
        kept.append(EVERYTHING if keys is None else sorted(map(_shown_key, keys)))
        return []

    try:
        parameters = parameter_values(case.parameters)
        query = Query(case.text, LIMITS, parameters=parameters)
        query.execution(parameters, CONTEXT)
        document = gateway_plan(query, parameters, paths, ranges, vector_policy=case.vector)
    except PleiadError as error:
        return Answer(errors=tuple(errors_of(error)))
    info = document.get("queryInfo") or document["hybridSearchQueryInfo"]
    return Answer(plan=plain_plan(info), ranges=kept[0])


def errors_of(error: PleiadError) -> list[Any]:
    """The complaints of a refusal; a text without the service's JSON stands for itself."""
    try:
        document = json.loads(error.message)
    except ValueError:
        return [error.message]
    return list(document.get("errors") or document.get("Errors") or [document])


def planner_answer(document: Mapping[str, Any]) -> Answer:
    """The planner's answer, or a recorded one, in the same form."""
    if "error" in document:
        error = document["error"]
        if isinstance(error, dict):
            error = error.get("errors") or error.get("Errors") or [error]
        return Answer(errors=tuple(error if isinstance(error, list) else [error]))
    plan = document["plan"]
    info = plan.get("queryInfo") or plan["hybridSearchQueryInfo"]
    return Answer(plan=plain_plan(info), ranges=shown_ranges(plan["queryRanges"]))


def shown_ranges(ranges: Sequence[Mapping[str, Any]]) -> Any:
    """Ranges of the planner as the list of keys, or EVERYTHING."""
    keys = []
    for each in ranges:
        if each["max"] == "Infinity" and each["min"] == []:
            return EVERYTHING
        if each["min"] or each["max"]:
            keys.append(json.dumps([_shown(part) for part in each["min"]], sort_keys=True))
    return sorted(keys)


def _shown_key(key: tuple[Any, ...]) -> str:
    return json.dumps([_shown(part) for part in key], sort_keys=True)


def _shown(value: Any) -> Any:
    if isinstance(value, list | dict) or value is UNDEFINED:
        return {}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return value


def plain_plan(value: Any) -> Any:
    """A plan without members that say nothing: nulls, empty texts for "no aggregate", flags as booleans."""
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for name, part in value.items():
            plain = plain_plan(part)
            if name == "groupByAliasToAggregateType":
                found[name] = {alias: kind or None for alias, kind in (part or {}).items()}
            elif name.startswith(("has", "requires")):
                if plain:
                    found[name] = True
            elif plain is not None:
                found[name] = plain
        return found
    if isinstance(value, list):
        return [plain_plan(part) for part in value]
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return int(value)
    return value
