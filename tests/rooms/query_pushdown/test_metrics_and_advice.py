"""The query metrics header and the query advice header."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import pytest

from pleiad.heads.nosql.query_reports import advice_header, metrics_header
from pleiad.query.advice import Advice, advice
from pleiad.query.metrics import QueryMetrics


def test_the_metrics_header_has_every_name_with_its_value_and_no_semicolon_at_the_end() -> None:
    metrics = QueryMetrics(
        total_execution_ms=1.234,
        retrieved_document_count=3,
        output_document_bytes=70,
        index_utilization_ratio=1.0,
    )
    pairs = [piece.split("=") for piece in metrics_header(metrics).split(";")]
    assert [name for name, _ in pairs] == [
        "totalExecutionTimeInMs",
        "queryCompileTimeInMs",
        "queryLogicalPlanBuildTimeInMs",
        "queryPhysicalPlanBuildTimeInMs",
        "queryOptimizationTimeInMs",
        "VMExecutionTimeInMs",
        "indexLookupTimeInMs",
        "documentLoadTimeInMs",
        "systemFunctionExecuteTimeInMs",
        "userFunctionExecuteTimeInMs",
        "retrievedDocumentCount",
        "retrievedDocumentSize",
        "outputDocumentCount",
        "outputDocumentSize",
        "writeOutputTimeInMs",
        "indexUtilizationRatio",
    ]
    found = dict(pairs)
    assert found["totalExecutionTimeInMs"] == "1.23"
    assert found["retrievedDocumentCount"] == "3"
    assert found["outputDocumentSize"] == "70"
    assert found["indexUtilizationRatio"] == "1.00"


@pytest.mark.parametrize("run_ms", [0.0, 0.004, 3.0, 5000.0])
@pytest.mark.parametrize(("loaded", "output"), [(0, 0), (0, 1), (5, 0), (5, 3)])
def test_what_a_page_did_took_time(run_ms: float, loaded: int, output: int) -> None:
    metrics = QueryMetrics.of_page(
        prepared_ms=0.0,
        run_ms=run_ms,
        loaded=loaded,
        loaded_bytes=300 * loaded,
        output=output,
        output_bytes=10 * output,
    )
    shown = {
        name: float(value) for name, value in (pair.split("=") for pair in metrics_header(metrics).split(";"))
    }
    assert shown["queryCompileTimeInMs"] > 0
    assert (shown["documentLoadTimeInMs"] > 0) == (loaded > 0)
    assert (shown["writeOutputTimeInMs"] > 0) == (output > 0)
    inner = shown["indexLookupTimeInMs"] + shown["documentLoadTimeInMs"] + shown["writeOutputTimeInMs"]
    assert shown["VMExecutionTimeInMs"] > inner
    assert shown["totalExecutionTimeInMs"] > shown["VMExecutionTimeInMs"]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, {'name': 'x'}, true)", ["QA1000"]),
        ("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 'x')", []),
        ("SELECT DISTINCT VALUE c.a FROM c JOIN t IN c.tags", ["QA1001"]),
        ("SELECT DISTINCT VALUE t FROM t IN c.tags", []),
        ("SELECT * FROM c WHERE CONTAINS(c.name, 'x')", ["QA1002"]),
        ("SELECT CONTAINS(c.name, 'x') FROM c", []),
        ("SELECT * FROM c WHERE STARTSWITH(c.name, 'x', true)", ["QA1003"]),
        ("SELECT * FROM c WHERE StringEquals(c.name, 'x', @yes)", ["QA1003"]),
        ("SELECT * FROM c WHERE STARTSWITH(c.name, 'x', false) OR STARTSWITH(c.name, 'y')", []),
        ("SELECT * FROM c WHERE ENDSWITH(c.name, 'x', true)", ["QA1004"]),
        ("SELECT * FROM c WHERE ENDSWITH(c.name, 'x')", []),
        ("SELECT COUNT(1) FROM c GROUP BY LOWER(c.name)", ["QA1005"]),
        ("SELECT COUNT(1) FROM c GROUP BY c.name", []),
        ("SELECT COUNT(1) FROM c GROUP BY udf.f(c.name)", []),
        ("SELECT * FROM c WHERE UPPER(c.name) = 'X' AND LOWER(c.name) = 'x'", ["QA1006"]),
        ("SELECT * FROM c WHERE c.t < GetCurrentDateTime()", ["QA1007"]),
        ("SELECT * FROM c WHERE c.t < GetCurrentTicks()", ["QA1008"]),
        ("SELECT * FROM c WHERE c.t < GetCurrentTimestamp()", ["QA1009"]),
        ("SELECT * FROM c WHERE c.t < GetCurrentTimestampStatic()", []),
        (
            "SELECT * FROM c WHERE c.t < GetCurrentTicks() AND "
            "EXISTS(SELECT 1 FROM t IN c.tags WHERE CONTAINS(t, 'x'))",
            ["QA1002", "QA1008"],
        ),
        ("SELECT VALUE x FROM (SELECT VALUE c.a FROM c WHERE CONTAINS(c.a, 'x')) AS x", ["QA1002"]),
        ("SELECT * FROM c", []),
    ],
)
def test_advice_names_the_costly_habits_of_a_query(compiled: Any, text: str, ids: list[str]) -> None:
    assert [each.id for each in advice(compiled(text), {"@yes": True})] == ids


def test_the_advice_header_is_percent_encoded_json() -> None:
    text = advice_header([Advice("QA1002"), Advice("QA1005", ("c.name",))])
    assert text.isascii()
    assert not set(text) & set(' "[]{};,')
    assert json.loads(unquote(text)) == [
        {"Id": "QA1002", "Params": []},
        {"Id": "QA1005", "Params": ["c.name"]},
    ]
