"""Equal scores: the higher _rid comes first where the larger score is the better one, the lower one else."""

from __future__ import annotations

from typing import Any

import pytest

from pleiad.limits import Limits
from pleiad.query import compile_query
from pleiad.query.client_plan.plan import gateway_plan


def vectors(distance: str) -> dict[str, Any]:
    embedding = {"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": distance}
    return {"vectorEmbeddings": [embedding]}


TEXT = {"defaultLanguage": "1033", "fullTextPaths": [{"path": "/t", "language": "1033"}]}


@pytest.mark.parametrize(
    ("clause", "distance", "falls"),
    [
        ("ORDER BY RANK FullTextScore(c.t, 'wine')", "cosine", True),
        ("ORDER BY RANK VectorDistance(c.v, [1, 0])", "cosine", True),
        ("ORDER BY RANK VectorDistance(c.v, [1, 0])", "euclidean", False),
        ("ORDER BY RANK RRF(FullTextScore(c.t, 'wine'), VectorDistance(c.v, [1, 0]))", "cosine", True),
        ("ORDER BY RANK RRF(FullTextScore(c.t, 'wine'), VectorDistance(c.v, [1, 0]))", "euclidean", True),
        ("ORDER BY VectorDistance(c.v, [1, 0])", "cosine", True),
        ("ORDER BY VectorDistance(c.v, [1, 0])", "euclidean", False),
        ("ORDER BY _FullTextScore(c.t, ['wine'], 12, 24, [12]) DESC", "cosine", True),
        ("ORDER BY _FullTextScore(c.t, ['wine'], 12, 24, [12]) ASC", "cosine", False),
    ],
)
async def test_equal_scores_come_by_rid(world: Any, clause: str, distance: str, falls: bool) -> None:
    async with world(vectorEmbeddingPolicy=vectors(distance), fullTextPolicy=TEXT) as w:
        for number in range(12):
            await w.put(
                {"id": str(number), "pk": f"p{number % 3}", "n": number, "t": "red wine", "v": [1, 0]}
            )
        numbers = list(range(12))[:: -1 if falls else 1]
        for size in (5, 100):
            found = await w.query(
                f"SELECT TOP 12 VALUE c.n FROM c {clause}", page_items=lambda size=size: size
            )
            assert found.results == numbers


def test_the_places_of_statistics_count_texts_only() -> None:
    text = (
        "SELECT TOP 5 * FROM c ORDER BY RANK "
        "RRF(VectorDistance(c.v, [1, 0]), FullTextScore(c.t, 'a'), FullTextScore(c.u, 'b'))"
    )
    query = compile_query(text, Limits())
    plan = gateway_plan(query, {}, [("pk",)], lambda keys: [], vector_policy=vectors("cosine"))
    rewritten = plan["hybridSearchQueryInfo"]["componentQueryInfos"][0]["rewrittenQuery"]
    for name in ("totalwordcount", "hitcountsarray"):
        assert [f"{name}-{number}}}" in rewritten for number in range(3)] == [True, True, False]
