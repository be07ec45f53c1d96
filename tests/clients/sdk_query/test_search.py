"""Full text, vectors and their fusion through the official client."""

from __future__ import annotations

from typing import Any

import pytest

TEXTS = (
    "A red bicycle on a mountain road",
    "The mountain, the mountain and again the mountain",
    "A quiet river",
    "Red wine by the river",
)
VECTORS = ([1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def library(make_container: Any) -> Any:
    return make_container(
        [
            {"id": str(n), "pk": f"k{n}", "text": text, "vector": vector}
            for n, (text, vector) in enumerate(zip(TEXTS, VECTORS, strict=True))
        ],
        partitions=2,
        vector_embedding_policy={
            "vectorEmbeddings": [
                {"path": "/vector", "dataType": "float32", "dimensions": 3, "distanceFunction": "cosine"}
            ]
        },
        full_text_policy={
            "defaultLanguage": "en-US",
            "fullTextPaths": [{"path": "/text", "language": "en-US"}],
        },
        indexing_policy={
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/vector/*"}],
            "vectorIndexes": [{"path": "/vector", "type": "flat"}],
            "fullTextIndexes": [{"path": "/text"}],
        },
    )


def test_items_are_found_by_the_words_in_their_text(library: Any, ask: Any) -> None:
    text = "SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, @word) ORDER BY c.id"
    assert ask(library, text, {"@word": "mountains"}).results == ["0", "1"]
    both = "SELECT VALUE c.id FROM c WHERE FullTextContainsAll(c.text, 'red', 'river')"
    assert ask(library, both).results == ["3"]


def test_items_are_ranked_by_the_words_in_their_text(library: Any, ask: Any) -> None:
    text = "SELECT TOP 2 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'mountain')"
    assert ask(library, text).results == ["1", "0"]


def test_items_are_ordered_by_the_distance_of_their_vectors(library: Any, ask: Any) -> None:
    text = "SELECT TOP 3 c.id, VectorDistance(c.vector, @v) AS score FROM c ORDER BY VectorDistance(c.vector, @v)"
    found = ask(library, text, {"@v": [1.0, 0.0, 0.0]}).results
    assert [row["id"] for row in found][:2] == ["0", "1"]
    assert found[0]["score"] == pytest.approx(1.0)


def test_words_and_vectors_are_fused(library: Any, ask: Any) -> None:
    text = (
        "SELECT TOP 2 VALUE c.id FROM c "
        "ORDER BY RANK RRF(FullTextScore(c.text, 'river'), VectorDistance(c.vector, [0.0, 0.0, 1.0]))"
    )
    assert ask(library, text).results[0] == "3"


def test_a_score_outside_the_order_is_refused(library: Any, refused: Any) -> None:
    with refused(400, "SC2240"):
        list(
            library.query_items(
                "SELECT FullTextScore(c.text, 'red') FROM c", enable_cross_partition_query=True
            )
        )
