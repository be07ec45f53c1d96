"""Query advice: which costly habits a query shows, by the ids that clients turn into sentences.

| id | what the query does |
| --- | --- |
| QA1000 | ARRAY_CONTAINS with a partial match |
| QA1001 | DISTINCT together with JOIN |
| QA1002 | CONTAINS |
| QA1003 | STARTSWITH or StringEquals ignoring case |
| QA1004 | ENDSWITH ignoring case |
| QA1005 | GROUP BY of an expression that is no plain path |
| QA1006 | UPPER or LOWER |
| QA1007, QA1008, QA1009 | GetCurrentDateTime, GetCurrentTicks, GetCurrentTimestamp |

Functions count where they decide which items are returned: in WHERE, of the query and of its subqueries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pleiad.query import plan
from pleiad.query.run import Query

_ALWAYS: Final = {
    "CONTAINS": "QA1002",
    "UPPER": "QA1006",
    "LOWER": "QA1006",
    "GETCURRENTDATETIME": "QA1007",
    "GETCURRENTTICKS": "QA1008",
    "GETCURRENTTIMESTAMP": "QA1009",
}
_WITH_THIRD_TRUE: Final = {
    "ARRAY_CONTAINS": "QA1000",
    "STARTSWITH": "QA1003",
    "STRINGEQUALS": "QA1003",
    "ENDSWITH": "QA1004",
}


SENTENCES: Final = {
    "QA1000": "ARRAY_CONTAINS with a partial match reads every array; EXISTS with a filter on the elements can use "
    "an index.",
    "QA1001": "DISTINCT together with JOIN works on every combination; EXISTS may find the same items without "
    "either.",
    "QA1002": "CONTAINS looks into every value of its path; STARTSWITH or equality, where they will do, read a part "
    "of the index.",
    "QA1003": "STARTSWITH and StringEquals that ignore case read every value of the index; a property that is kept "
    "in lower case needs no such search.",
    "QA1004": "ENDSWITH that ignores case looks into every value; a property that is kept reversed and in lower case "
    "can be searched with STARTSWITH.",
    "QA1005": "GROUP BY of an expression computes it for every item; a computed property does so when an item is "
    "written.",
    "QA1006": "UPPER and LOWER in a filter are computed for every item; a computed property, or StringEquals that "
    "ignores case, can use an index.",
    "QA1007": "GetCurrentDateTime is asked for every item; GetCurrentDateTimeStatic, or a parameter, is one value "
    "for all and can use an index.",
    "QA1008": "GetCurrentTicks is asked for every item; GetCurrentTicksStatic, or a parameter, is one value for all "
    "and can use an index.",
    "QA1009": "GetCurrentTimestamp is asked for every item; GetCurrentTimestampStatic, or a parameter, is one value "
    "for all and can use an index.",
}
"""What each rule says to people."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One piece of advice: the id of its rule, and what its sentence has places for."""

    id: str
    params: tuple[str, ...] = ()


def advice(query: Query, parameters: Mapping[str, Any] | None = None) -> list[Advice]:
    """The advice for a query, each rule once, by id."""
    ids: set[str] = set()
    if query.distinct and len(query.syntax.sources) > 1:
        ids.add("QA1001")
    covered: set[int] = set()
    for block in plan.walk(query.plan.block):
        if not isinstance(block, plan.Block):
            continue
        if any(_is_computed_key(key) for key in block.group_by):
            ids.add("QA1005")
        if id(block) in covered or block.where is None:
            continue
        for node in plan.walk(block.where):
            if isinstance(node, plan.Block):
                covered.add(id(node))
            elif isinstance(node, plan.Call) and (rule := _rule_of(node, parameters or {})):
                ids.add(rule)
    return [Advice(rule) for rule in sorted(ids)]


def _rule_of(call: plan.Call, parameters: Mapping[str, Any]) -> str | None:
    """The rule that a call in a filter falls under."""
    name = call.function.name
    if name in _WITH_THIRD_TRUE and len(call.arguments) == 3:
        match call.arguments[2]:
            case plan.Constant(value=value):
                is_true = value is True
            case plan.Parameter(name=parameter):
                is_true = parameters.get(parameter) is True
            case _:
                is_true = False
        return _WITH_THIRD_TRUE[name] if is_true else None
    return _ALWAYS.get(name)


def _is_computed_key(key: plan.Expression) -> bool:
    """Whether a GROUP BY key could be a computed property: deterministic, and more than a path."""
    calls = [node for node in plan.walk(key) if isinstance(node, plan.Call | plan.UdfCall)]
    if any(isinstance(call, plan.UdfCall) or not call.function.deterministic for call in calls):
        return False
    while isinstance(key, plan.Member):
        key = key.target
    return not isinstance(key, plan.Slot)
