"""The pages of a query on the wire: the form of their tokens, and where the last one ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

CROSS = {"x-ms-documentdb-query-enablecrosspartition": "True", "content-type": "application/query+json"}
TEXTS = (
    "SELECT VALUE c.id FROM c",
    "SELECT VALUE c.id FROM c WHERE c.n < 9",
    "SELECT VALUE c.id FROM c WHERE c.id != 'x' AND LENGTH(c.id) > 0",
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT DISTINCT VALUE c.id FROM c",
)
NAMED = (
    "SELECT VALUE c.id FROM c WHERE c.pk IN ('p0', 'p1', 'p2') AND c.id IN ('0', '1', '2', '3', '4', '5')",
    "SELECT VALUE c.id FROM c WHERE c.pk IN ('p0', 'p1', 'p2')",
    "SELECT VALUE c.id FROM c WHERE c.pk IN ('p0', 'p1', 'p2') AND LENGTH(c.id) > 0",
)


@pytest.fixture
def filled(spread_place: Any) -> Any:
    """Six items in two of five physical partitions."""
    for number in range(6):
        spread_place.create({"id": str(number), "pk": f"p{number % 3}", "n": number}, [f"p{number % 3}"])
    return spread_place


def pages(place: Any, text: str, size: int, key: list[Any] | None = None, **headers: str) -> list[Any]:
    """Every page of a query, each asked for by the token of the one before."""
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    found: list[Any] = []
    token = ""
    while not found or token:
        sent = {**CROSS, **more, "x-ms-max-item-count": str(size)}
        if token:
            sent["x-ms-continuation"] = token
        answer = place.wire.send("POST", [*place.path, "docs"], {"query": text}, sent, key)
        assert answer.status == 200, answer.message
        found.append(answer)
        token = answer.headers.get("x-ms-continuation", "")
    return found


@pytest.mark.parametrize("text", [text for text in TEXTS if "ORDER" not in text])
def test_a_last_page_that_is_exactly_full_is_followed_by_an_empty_one(filled: Any, text: str) -> None:
    for size, counts in ((2, [2, 2, 2, 0]), (6, [6, 0]), (4, [4, 2]), (7, [6])):
        found = pages(filled, text, size)
        assert [answer.json["_count"] for answer in found] == counts, size
        assert sorted(id for answer in found for id in answer.json["Documents"]) == list("012345")
        assert all(float(answer.headers["x-ms-request-charge"]) >= 1 for answer in found)


@pytest.mark.parametrize("text", ["SELECT TOP 0 * FROM c ORDER BY c.n", "SELECT TOP 0 VALUE AVG(c.n) FROM c"])
def test_a_page_size_of_0_which_a_client_makes_of_top_0_is_no_size(filled: Any, text: str) -> None:
    assert [answer.json["Documents"] for answer in pages(filled, text, 0)] == [[]]
    assert len(pages(filled, "SELECT * FROM c", 0)[0].json["Documents"]) == 6


def test_an_order_over_partitions_that_the_server_merges_ends_with_its_last_row(filled: Any) -> None:
    text = "SELECT VALUE c.id FROM c ORDER BY c.n"
    for size, counts in ((1, [1] * 6), (2, [2, 2, 2]), (6, [6]), (4, [4, 2]), (7, [6])):
        assert [answer.json["_count"] for answer in pages(filled, text, size)] == counts, size


def test_a_page_for_a_client_that_knows_query_plans_ends_with_its_physical_partition(filled: Any) -> None:
    knows = {"x_ms_cosmos_supported_query_features": "NonValueAggregate, Aggregate, Top, OrderBy"}
    for size, counts in ((2, [2, 2, 2, 0]), (6, [4, 2, 0]), (4, [4, 2, 0])):
        found = pages(filled, "SELECT VALUE c.id FROM c", size, None, **knows)
        assert [answer.json["_count"] for answer in found] == counts, size
        assert sorted(id for answer in found for id in answer.json["Documents"]) == list("012345")


@pytest.mark.parametrize("text", NAMED)
def test_a_last_page_of_keys_or_ids_that_the_filter_names_has_no_token_though_it_is_full(
    filled: Any, text: str
) -> None:
    for size, counts in ((1, [1] * 6), (2, [2, 2, 2]), (6, [6]), (4, [4, 2]), (7, [6])):
        found = pages(filled, text, size)
        assert [answer.json["_count"] for answer in found] == counts, size
        assert sorted(id for answer in found for id in answer.json["Documents"]) == list("012345")


def test_the_last_page_of_ids_in_one_physical_partition_has_no_token_though_it_is_full(filled: Any) -> None:
    text = "SELECT VALUE c.id FROM c WHERE c.id IN ('0', '1', '2', '3', '4', '5')"
    ranges = filled.wire.send("GET", [*filled.path, "pkranges"]).json["PartitionKeyRanges"]
    found = [pages(filled, text, 1, None, x_ms_documentdb_partitionkeyrangeid=each["id"]) for each in ranges]
    counts = [[answer.json["_count"] for answer in of_range] for of_range in found]
    assert sum(map(sum, counts)) == 6
    assert all(of_range in ([0], [1] * len(of_range)) for of_range in counts), counts


def test_the_last_page_of_one_key_that_the_filter_names_has_no_token_though_it_is_full(filled: Any) -> None:
    for text in (
        "SELECT VALUE c.id FROM c WHERE c.pk = 'p0'",
        "SELECT * FROM c WHERE c.pk = 'p0' AND c.n < 9",
    ):
        for size, counts in ((1, [1, 1]), (2, [2]), (3, [2])):
            for key in (None, ["p0"]):
                assert [answer.json["_count"] for answer in pages(filled, text, size, key)] == counts
    walked = pages(filled, "SELECT * FROM c WHERE c.n < 9", 2, ["p0"])
    assert [answer.json["_count"] for answer in walked] == [2, 0]


def test_a_query_whose_end_is_known_has_no_empty_page(filled: Any) -> None:
    for text in ("SELECT TOP 4 * FROM c", "SELECT * FROM c OFFSET 1 LIMIT 4", "SELECT VALUE COUNT(1) FROM c"):
        assert all(answer.json["_count"] for answer in pages(filled, text, 1 if "COUNT" in text else 2))


def test_the_last_page_of_an_order_in_one_logical_partition_has_no_token_though_it_is_full(
    filled: Any,
) -> None:
    ordered = "SELECT VALUE c.id FROM c ORDER BY c.n"
    inside = "SELECT VALUE c.id FROM c WHERE c.pk = 'p0' ORDER BY c.n"
    for size, counts in ((1, [1, 1]), (2, [2])):
        for found in (pages(filled, ordered, size, ["p0"]), pages(filled, inside, size)):
            assert [answer.json["_count"] for answer in found] == counts


def test_the_last_page_of_an_order_in_a_physical_partition_has_no_token_though_it_is_full(
    filled: Any,
) -> None:
    ranges = filled.wire.send("GET", [*filled.path, "pkranges"]).json["PartitionKeyRanges"]
    text, counts = "SELECT VALUE c.id FROM c ORDER BY c.n", []
    for each in ranges:
        found = pages(filled, text, 1, None, x_ms_documentdb_partitionkeyrangeid=each["id"])
        counts.append([answer.json["_count"] for answer in found])
    assert sorted(counts) == [[0]] * 3 + [[1] * 2, [1] * 4]


@pytest.mark.parametrize("text", [*TEXTS, *NAMED])
def test_the_token_of_a_query_over_partitions_is_a_json_text_with_its_range(filled: Any, text: str) -> None:
    token = pages(filled, text, 2)[0].headers["x-ms-continuation"]
    (part,) = json.loads(token)
    assert set(part) == {"token", "range"}
    assert part["range"] == {"min": "", "max": "FF"}
    within = pages(filled, text, 1, ["p0"])[0].headers["x-ms-continuation"]
    assert not within.startswith("[")
    sent = {**CROSS, "x-ms-max-item-count": "2"}
    for changed in (token.replace('"token":"', '"token":"A'), token[:-1], "[]", '[{"range":{}}]'):
        docs = [*filled.path, "docs"]
        refused = filled.wire.send("POST", docs, {"query": text}, {**sent, "x-ms-continuation": changed})
        assert (refused.status, refused.json["code"]) == (400, "BadRequest")
        assert "Invalid Continuation Token" in refused.message


@pytest.mark.parametrize(
    ("text", "is_left"),
    [
        ("SELECT * FROM c", "False"),
        ("SELECT VALUE c.id FROM c WHERE c.n > 1 ORDER BY c.n", "False"),
        ("SELECT TOP 3 VALUE c.id FROM c", "False"),
        ("SELECT VALUE c.id FROM c OFFSET 1 LIMIT 3", "False"),
        ("SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n", "True"),
        ("SELECT VALUE COUNT(1) FROM c", "True"),
        ("SELECT c.pk, SUM(c.n) AS n FROM c GROUP BY c.pk", "True"),
    ],
)
def test_who_asks_one_partition_without_a_plan_is_told_whether_pages_are_left_to_merge(
    filled: Any, text: str, is_left: str
) -> None:
    name, asked = "x-ms-cosmos-query-requiresdistribution", "x-ms-cosmos-query-optimisticdirectexecute"
    sent = {**CROSS, "x-ms-max-item-count": "1", asked: "True"}
    told = filled.wire.send("POST", [*filled.path, "docs"], {"query": text}, sent, key=["p0"])
    assert (told.status, told.headers[name]) == (200, is_left)
    plain = filled.wire.send("POST", [*filled.path, "docs"], {"query": text}, CROSS, key=["p0"])
    assert name not in plain.headers


def test_a_query_of_conflicts_names_a_range_a_key_or_all_partitions(filled: Any) -> None:
    path, query, form = [*filled.path, "conflicts"], {"query": "SELECT * FROM c"}, CROSS["content-type"]
    plain = {"content-type": form}
    by_range = {**plain, "x-ms-documentdb-partitionkeyrangeid": "0"}
    gone = {**plain, "x-ms-documentdb-partitionkeyrangeid": "99"}
    assert filled.wire.send("POST", path, query, plain).status == 400
    assert [filled.wire.send("POST", path, query, sent).status for sent in (CROSS, by_range)] == [200, 200]
    assert filled.wire.send("POST", path, query, plain, key=["p0"]).status == 200
    refused = filled.wire.send("POST", path, query, gone)
    assert (refused.status, refused.substatus) == (410, 1002)
