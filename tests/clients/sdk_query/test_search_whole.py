"""Searches over several partitions: the server executes them whole, and the official client merges them itself by the
plan; both give the same rows in the same order. Rows of equal score are not compared: each client has its own order
for them.
"""

from __future__ import annotations

import base64
import hmac
import json
import random
import urllib.error
import urllib.request
from collections.abc import Callable
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

import pytest

WORDS = (
    *("river", "mountain", "bicycle", "red", "wine", "quiet", "road", "house"),
    *("table", "kitchen", "green", "forest", "light", "winter", "night"),
)
Rest = Callable[..., tuple[list[Any], dict[str, str]]]


@pytest.fixture(scope="module")
def articles(make_container: Any) -> Any:
    """90 texts of different lengths with vectors on three partitions; some have no text, some no vector."""
    chosen = random.Random(17)
    lengths = chosen.sample(range(3, 300), 90)
    items = []
    for number in range(90):
        item: dict[str, Any] = {"id": str(number), "pk": f"k{number % 23}", "kind": number % 3}
        if number % 10:
            item["text"] = " ".join(chosen.choices(WORDS, k=lengths[number]))
        if number % 13:
            item["vector"] = [chosen.uniform(-1, 1) for _ in range(4)]
        items.append(item)
    embedding = {"path": "/vector", "dataType": "float32", "dimensions": 4, "distanceFunction": "cosine"}
    return make_container(
        items,
        partitions=3,
        vector_embedding_policy={"vectorEmbeddings": [embedding]},
        full_text_policy={
            "defaultLanguage": "en-US",
            "fullTextPaths": [{"path": "/text", "language": "en-US"}],
        },
        indexing_policy={"includedPaths": [{"path": "/*"}], "fullTextIndexes": [{"path": "/text"}]},
    )


@pytest.fixture
def rest(pleiad_server: Any) -> Rest:
    """Every page of a query as a client without an SDK asks for it."""

    def asked(container: Any, text: str, values: dict[str, Any] | None = None, **headers: str) -> Any:
        link = container.container_link
        body = {"query": text, "parameters": [{"name": n, "value": v} for n, v in (values or {}).items()]}
        results: list[Any] = []
        token = ""
        while True:
            date = formatdate(usegmt=True)
            signed = f"post\ndocs\n{link}\n{date.lower()}\n\n".encode()
            signature = base64.b64encode(
                hmac.digest(base64.b64decode(pleiad_server.key), signed, "sha256")
            ).decode()
            sent = {
                "x-ms-date": date,
                "x-ms-version": "2020-07-15",
                "authorization": quote(f"type=master&ver=1.0&sig={signature}", safe=""),
                "content-type": "application/query+json",
                "x-ms-documentdb-isquery": "True",
                "x-ms-documentdb-query-enablecrosspartition": "True",
                **{name.replace("_", "-"): value for name, value in headers.items()},
                **({"x-ms-continuation": token} if token else {}),
            }
            url = f"{pleiad_server.endpoint.rstrip('/')}/{link}/docs"
            request = urllib.request.Request(url, json.dumps(body).encode(), sent)
            with urllib.request.urlopen(request) as answer:
                results += json.load(answer)["Documents"]
                received = {name.lower(): value for name, value in answer.headers.items()}
            token = received.get("x-ms-continuation", "")
            if not token:
                return results, received

    return asked


SEARCHES = (
    "SELECT TOP 20 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'river', 'wine')",
    "SELECT TOP 20 VALUE c.id FROM c WHERE c.kind = 1 ORDER BY RANK FullTextScore(c.text, 'mountain')",
    "SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'red') "
    "ORDER BY RANK FullTextScore(c.text, 'red', 'forest') OFFSET 3 LIMIT 9",
    "SELECT TOP 30 c.id, c.kind FROM c "
    "ORDER BY RANK RRF(FullTextScore(c.text, 'light', 'night'), VectorDistance(c.vector, @v), [1, 0.93])",
    "SELECT TOP 60 VALUE c.id FROM c "
    "ORDER BY RANK RRF(FullTextScore(c.text, 'light'), VectorDistance(c.vector, @v), [3, 0.5])",
    "SELECT TOP 60 VALUE c.id FROM c "
    "ORDER BY RANK RRF(FullTextScore(c.text, 'light'), VectorDistance(c.vector, @v), [-1, 2])",
    "SELECT VALUE c.id FROM c WHERE c.kind != 2 ORDER BY RANK RRF(FullTextScore(c.text, 'house'), "
    "FullTextScore(c.text, 'winter'), VectorDistance(c.vector, @v), [1, 0.93, 0.71]) OFFSET 2 LIMIT 17",
    "SELECT TOP 25 c.id, VectorDistance(c.vector, @v) AS s FROM c ORDER BY VectorDistance(c.vector, @v)",
    "SELECT c.id FROM c WHERE c.kind = 0 ORDER BY VectorDistance(c.vector, @v) OFFSET 4 LIMIT 10",
)
VECTOR = {"@v": [0.3, -0.2, 0.7, 0.1]}


@pytest.mark.parametrize("text", SEARCHES)
def test_the_server_gives_the_rows_that_the_client_merges(
    articles: Any, ask: Any, rest: Rest, text: str
) -> None:
    merged = ask(articles, text, VECTOR)
    assert len(merged.headers) > 1, "the client did not merge partitions itself"
    whole, _ = rest(articles, text, VECTOR)
    assert whole == merged.results
    assert len(whole) > 5
    paged, _ = rest(articles, text, VECTOR, x_ms_max_item_count="4")
    assert paged == whole


def test_a_search_of_a_client_that_announces_itself_is_left_to_it(articles: Any, rest: Rest) -> None:
    text = SEARCHES[0]
    for name, value in (
        ("x_ms_cosmos_sdk_supportedcapabilities", "1"),
        ("x_ms_cosmos_supported_query_features", "HybridSearch"),
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            rest(articles, text, VECTOR, **{name: value})
        assert caught.value.code == 400
        assert caught.value.headers["x-ms-substatus"] == "1004"
        plan = json.loads(json.load(caught.value)["additionalErrorInfo"])
        assert plan["hybridSearchQueryInfo"]["requiresGlobalStatistics"]


def test_scores_do_not_depend_on_the_filter(articles: Any, rest: Rest) -> None:
    """The statistics are those of all texts, so a filter takes rows away and leaves the others where they were."""
    text = "SELECT TOP 90 c.id, c.kind FROM c {} ORDER BY RANK FullTextScore(c.text, 'river', 'wine', 'road')"
    every, _ = rest(articles, text.format(""))
    some, _ = rest(articles, text.format("WHERE c.kind = 1"))
    assert some == [row for row in every if row["kind"] == 1]


def test_a_search_over_partitions_takes_no_direction(articles: Any, rest: Rest) -> None:
    for text in (
        "SELECT TOP 5 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'river') DESC",
        "SELECT TOP 5 c.id FROM c ORDER BY VectorDistance(c.vector, [1, 0, 0, 0]) ASC",
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            rest(articles, text)
        assert caught.value.code == 400


def test_aggregates_in_an_object_are_executed_whole_too(articles: Any, rest: Rest) -> None:
    found, _ = rest(articles, "SELECT COUNT(1) AS n, MAX(c.kind) AS most FROM c")
    assert found == [{"n": 90, "most": 2}]


def test_the_reports_of_a_search_are_of_all_partitions(articles: Any, rest: Rest) -> None:
    wanted = {
        "x_ms_documentdb_populatequerymetrics": "True",
        "x_ms_cosmos_populateindexmetrics_v2": "True",
        "x_ms_cosmos_populatequeryadvice": "True",
    }
    for text in (SEARCHES[1], SEARCHES[3], SEARCHES[7]):
        found, headers = rest(articles, text, VECTOR, **wanted)
        pairs = dict(pair.split("=") for pair in headers["x-ms-documentdb-query-metrics"].split(";"))
        assert int(pairs["outputDocumentCount"]) == len(found)
        assert int(pairs["retrievedDocumentCount"]) == (30 if "c.kind = 1" in text else 90)
        assert len(headers["x-pleiad-partitions-visited"].split(",")) == 3
        parts = [part.split("=") for part in headers["x-pleiad-charge-parts"].split(";")]
        assert sum(float(value) for _, value in parts) == pytest.approx(
            float(headers["x-ms-request-charge"]), abs=0.01
        )
