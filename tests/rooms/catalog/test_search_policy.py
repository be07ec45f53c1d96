"""Vector and full-text policies: what is kept as given, and what is refused with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from pleiad.catalog.container import define
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.server.http.failures import status_of

LIMITS = Limits()
KEY = {"paths": ["/pk"], "kind": "Hash", "version": 2}


def defined(**policies: Any) -> dict[str, Any]:
    return define({"id": "c", "partitionKey": KEY, **policies}, LIMITS).properties


def test_search_policies_are_kept_as_given() -> None:
    full_text = {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "de-DE"}]}
    vectors = {
        "vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": 3, "distanceFunction": "cosine"}
        ]
    }
    properties = defined(fullTextPolicy=full_text, vectorEmbeddingPolicy=vectors)
    assert properties["fullTextPolicy"] == full_text
    assert properties["vectorEmbeddingPolicy"] == vectors


@pytest.mark.parametrize(
    ("policies", "reason"),
    [
        ({"fullTextPolicy": []}, "must be an object"),
        ({"fullTextPolicy": {"fullTextPaths": {}}}, "list of objects"),
        ({"fullTextPolicy": {"fullTextPaths": [{"path": "text"}]}}, "invalid Path: text"),
        (
            {"fullTextPolicy": {"defaultLanguage": "xx-XX"}},
            'unsupported language xx-XX. Supported languages are: "en-US", "de-DE"',
        ),
        ({"vectorEmbeddingPolicy": 1}, "must be an object"),
        ({"vectorEmbeddingPolicy": {"vectorEmbeddings": [{"path": "v", "dimensions": 3}]}}, "invalid Path"),
        (
            {"vectorEmbeddingPolicy": {"vectorEmbeddings": [{"path": "/v", "dimensions": 0}]}},
            "has invalid Dimensions:0, it should be positive integer",
        ),
        (
            {"vectorEmbeddingPolicy": {"vectorEmbeddings": [{"path": "/v", "dimensions": -1}]}},
            "The Vector Embedding Policy has Dimensions:-1",
        ),
        (
            {"vectorEmbeddingPolicy": {"vectorEmbeddings": [{"path": "/v", "dimensions": 3}] * 2}},
            "Duplicate Path :/v found in Vector Embedding Policy.",
        ),
        (
            {
                "vectorEmbeddingPolicy": {
                    "vectorEmbeddings": [{"path": "/v", "dimensions": 3, "dataType": "x"}]
                }
            },
            "DataType",
        ),
        (
            {
                "vectorEmbeddingPolicy": {
                    "vectorEmbeddings": [{"path": "/v", "dimensions": 3, "distanceFunction": "x"}]
                }
            },
            "DistanceFunction",
        ),
    ],
)
def test_a_search_policy_that_cannot_work_is_refused(policies: dict[str, Any], reason: str) -> None:
    with pytest.raises(PleiadError, match=reason) as caught:
        defined(**policies)
    assert status_of(caught.value) == 400
