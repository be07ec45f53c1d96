"""Ordered queries on the wire: where a client goes on, how ties come, and who merges partitions."""

from __future__ import annotations

from typing import Any

import pytest

CROSS = {"x-ms-documentdb-query-enablecrosspartition": "True", "content-type": "application/query+json"}
CAPABILITIES = {"x-ms-cosmos-sdk-supportedcapabilities": "1"}
GO = {**CAPABILITIES, "user-agent": "azsdk-go-azcosmos/v1.4.1 (go1.24; linux)"}
PYTHON = {**CAPABILITIES, "user-agent": "azsdk-python-cosmos/4.14.2 Python/3.11.7"}
JAVASCRIPT = {"x-ms-useragent": "azure-cosmos-js/4.9.3 Node.js/20"}
ROWS = 'SELECT c._rid, [{"item": c.n}] AS orderByItems, c.id AS payload FROM c WHERE (true) ORDER BY c.n'


@pytest.fixture
def filled(spread_place: Any) -> Any:
    for number in range(20):
        spread_place.create({"id": str(number), "pk": f"p{number % 6}", "n": number % 3}, [f"p{number % 6}"])
    return spread_place


def ask(place: Any, body: dict[str, Any], **headers: str) -> Any:
    sent = {**CROSS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return place.wire.send("POST", [*place.path, "docs"], body, sent)


def test_a_client_goes_on_from_the_place_it_names(filled: Any) -> None:
    whole = ask(filled, {"query": ROWS}).json["Documents"]
    at = whole[10]
    resume = {"value": [at["orderByItems"][0]["item"]], "rid": at["_rid"], "exclude": False}
    assert ask(filled, {"query": ROWS, "resumeFilter": resume}).json["Documents"] == whole[10:]
    assert ask(filled, {"query": ROWS, "resumeFilter": None}).json["Documents"] == whole
    refused = ask(filled, {"query": ROWS, "resumeFilter": {"value": []}})
    assert refused.status == 400
    assert "resumeFilter" in refused.message


@pytest.mark.parametrize(("order", "falls"), [("c.n", "false"), ("c.n DESC", "true")])
def test_an_ordered_answer_says_how_ties_come(filled: Any, order: str, falls: str) -> None:
    answer = ask(filled, {"query": f"SELECT c._rid, c.n FROM c ORDER BY {order}"})
    said = f'{{"reverseRidEnabled":false,"reverseIndexScan":{falls}}}'
    assert answer.headers["x-ms-cosmos-query-execution-info"] == said
    assert "x-ms-cosmos-query-execution-info" not in ask(filled, {"query": "SELECT * FROM c"}).headers


@pytest.mark.parametrize("size", [None, "-1", "7", "2147483647"])
def test_a_client_that_does_not_merge_gets_rows_with_and_without_a_page_size(
    filled: Any, size: str | None
) -> None:
    text, found, token = "SELECT VALUE c.n FROM c ORDER BY c.n", [], ""
    sized = {} if size is None else {"x-ms-max-item-count": size}
    while True:
        answer = ask(
            filled, {"query": text}, **GO, **sized, **({"x-ms-continuation": token} if token else {})
        )
        assert answer.status == 200
        found += answer.json["Documents"]
        token = answer.headers.get("x-ms-continuation", "")
        if not token:
            break
    assert found == sorted(found)
    assert len(found) == 20


def test_a_client_that_merges_gets_the_plan(filled: Any) -> None:
    for announced in (PYTHON, CAPABILITIES, {**GO, "x-ms-cosmos-supported-query-features": "OrderBy"}):
        answer = ask(filled, {"query": "SELECT * FROM c ORDER BY c.n"}, **announced)
        assert (answer.status, answer.substatus) == (400, 1004)
        assert "additionalErrorInfo" in answer.json


@pytest.mark.parametrize(
    ("text", "by_python", "by_javascript"),
    [
        ("SELECT VALUE MAX(c.n) FROM c", 400, 200),
        ("SELECT VALUE COUNT(1) FROM c", 400, 200),
        ("SELECT COUNT(1) AS n FROM c WHERE c.pk = 'p1'", 400, 400),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'p1'", 200, 200),
        ("SELECT DISTINCT VALUE c.n FROM c", 400, 200),
        ("SELECT c.n, COUNT(1) AS many FROM c GROUP BY c.n", 200, 200),
        ("SELECT TOP 3 * FROM c", 200, 200),
        ("SELECT * FROM c WHERE c.n = 1", 200, 200),
        ("SELECT DISTINCT VALUE c.n FROM c WHERE c.pk = 'p1'", 200, 200),
    ],
)
def test_what_a_client_merges_depends_on_what_it_can(
    filled: Any, text: str, by_python: int, by_javascript: int
) -> None:
    assert ask(filled, {"query": text}, **PYTHON).status == by_python
    assert ask(filled, {"query": text}, **CAPABILITIES, **JAVASCRIPT).status == by_javascript
    assert ask(filled, {"query": text}, **GO).status == 200
    if "DISTINCT" in text:
        paged = ask(filled, {"query": text}, **PYTHON, x_ms_max_item_count="2")
        assert paged.status == 200, "it may want to go on by the token"


def test_a_page_without_limit_is_asked_for_by_the_largest_number(filled: Any) -> None:
    for size in ("2147483647", "-1"):
        assert (
            len(ask(filled, {"query": "SELECT * FROM c"}, x_ms_max_item_count=size).json["Documents"]) == 20
        )
        listed = filled.wire.send("GET", [*filled.path, "docs"], headers={"x-ms-max-item-count": size})
        assert listed.json["_count"] == 20
    assert ask(filled, {"query": "SELECT * FROM c"}, x_ms_max_item_count="2147483648").status == 400


@pytest.mark.parametrize("order", ["", "ORDER BY c.n "])
def test_what_is_left_behind_an_offset_is_asked_for_without_limit(filled: Any, order: str) -> None:
    text = f"SELECT VALUE c.id FROM c {order}OFFSET 5 LIMIT 2147483647"
    assert len(ask(filled, {"query": text}).json["Documents"]) == 15
    plan = ask(filled, {"query": text}, **{"x-ms-cosmos-is-query-plan-request": "True"}).json
    rewritten = plan["queryInfo"]["rewrittenQuery"].replace(
        "{documentdb-formattableorderbyquery-filter}", "true"
    )
    assert "OFFSET 0 LIMIT 2147483652" in rewritten
    assert len(ask(filled, {"query": rewritten}).json["Documents"]) == 20
