"""Full-text search, rankings and vector distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pleiad.errors import PleiadError
from pleiad.query.context import QueryContext
from pleiad.query.functions import REGISTRY, vector
from pleiad.query.functions.fulltext import (
    Bm25,
    dense_ranks,
    fuse_ranks,
    language_of_policy,
    parse_term,
    term_frequency,
    tokenize,
    within_edits,
)
from pleiad.server.http.failures import status_of
from pleiad.values.undefined import UNDEFINED

U = UNDEFINED
Call = Callable[..., Any]
BIKES = "The red bicycles were running quickly, over 2 mountain roads."


def test_words_are_lower_cased_stemmed_and_freed_of_stop_words() -> None:
    assert tokenize(BIKES) == ["red", "bicycl", "run", "quick", "2", "mountain", "road"]
    assert tokenize("A well known x of 7 wells") == ["known", "7", "well"]
    assert tokenize("Les chevaux", "fr-FR") == ["le", "cheval"]
    assert tokenize("snake_case e-mail ÜBER") == ["snake", "case", "mail", "über"]
    assert tokenize("") == []


@pytest.mark.parametrize(
    ("id", "code"),
    [
        *[("1033", "en-US"), ("1031", "de-DE"), ("3082", "es-ES"), ("1036", "fr-FR"), ("1040", "it-IT")],
        *[("2070", "pt-PT"), ("1046", "pt-BR")],
    ],
)
def test_a_language_may_be_named_by_its_locale_id(id: str, code: str) -> None:
    text = "The running horses, les chevaux, die Häuser, los caballos, i cavalli, os cavalos"
    assert tokenize(text, id) == tokenize(text, code)


def test_an_unknown_language_is_an_error() -> None:
    with pytest.raises(PleiadError):
        tokenize("a", "en-us")


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("FULLTEXTCONTAINS", (BIKES, "Bicycle"), True),
        ("FULLTEXTCONTAINS", (BIKES, "car"), False),
        ("FULLTEXTCONTAINS", (BIKES, "mountain road"), True),
        ("FULLTEXTCONTAINS", (BIKES, "road mountain"), False),
        ("FULLTEXTCONTAINS", (BIKES, "the"), False),
        ("FULLTEXTCONTAINS", (BIKES, {"term": "rad", "distance": 1}), True),
        ("FULLTEXTCONTAINS", (BIKES, {"term": "rad", "distance": 0}), False),
        ("FULLTEXTCONTAINS", (BIKES, {"term": "mountin raod", "distance": 2}), True),
        ("FULLTEXTCONTAINS", (BIKES, 5), U),
        ("FULLTEXTCONTAINS", (U, "red"), U),
        ("FULLTEXTCONTAINS", (5, "red"), U),
        ("FULLTEXTCONTAINSALL", (BIKES, "red", "roads"), True),
        ("FULLTEXTCONTAINSALL", (BIKES, "red", "car"), False),
        ("FULLTEXTCONTAINSANY", (BIKES, "car", "red"), True),
        ("FULLTEXTCONTAINSANY", (BIKES, "car", "bus"), False),
    ],
)
def test_full_text_contains(name: str, arguments: tuple[Any, ...], expected: Any, call: Call) -> None:
    assert call(name, *arguments) is expected


def test_a_fuzzy_distance_over_two_is_an_error(call: Call) -> None:
    for distance in (3, -1, 1.5, "1", None):
        with pytest.raises(PleiadError) as raised:
            call("FULLTEXTCONTAINS", BIKES, {"term": "red", "distance": distance})
        assert status_of(raised.value) == 400


def test_the_language_comes_from_the_policy() -> None:
    policy = {"defaultLanguage": "de-DE", "fullTextPaths": [{"path": "/fr", "language": "fr-FR"}]}
    assert language_of_policy(policy) == "de-DE"
    assert language_of_policy(policy, "/fr") == "fr-FR"
    assert language_of_policy(None) == "en-US"
    german = QueryContext(full_text_policy=policy)
    assert REGISTRY["FULLTEXTCONTAINS"].call(german, "Viele Häuser", "Haus") is True


def _edits(a: str, b: str) -> int:
    rows = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        above, rows[0] = rows[0], i
        for j, right in enumerate(b, 1):
            above, rows[j] = rows[j], min(rows[j] + 1, rows[j - 1] + 1, above + (left != right))
    return rows[-1]


@settings(max_examples=200, deadline=None)
@given(st.text("ab", max_size=6), st.text("ab", max_size=6), st.integers(0, 2))
def test_the_banded_edit_distance_agrees_with_the_full_table(a: str, b: str, distance: int) -> None:
    assert within_edits(a, b, distance) is (_edits(a, b) <= distance)


def test_a_term_is_counted_as_often_as_it_occurs() -> None:
    stems = tokenize("red road, red roads and a red hill road")
    single, phrase, fuzzy = (
        parse_term("red"),
        parse_term("red road"),
        parse_term({"term": "rod", "distance": 1}),
    )
    assert single is not None
    assert phrase is not None
    assert fuzzy is not None
    assert term_frequency(stems, single) == 3
    assert term_frequency(stems, phrase) == 2
    assert term_frequency(stems, fuzzy) == 6


def test_bm25_prefers_rare_terms_more_hits_and_shorter_documents() -> None:
    base = Bm25.score([1], 100, 100.0, 1000, [10])
    assert Bm25.score([1], 100, 100.0, 1000, [500]) < base
    assert Bm25.score([2], 100, 100.0, 1000, [10]) > base
    assert Bm25.score([1], 50, 100.0, 1000, [10]) > base
    assert Bm25.score([0], 100, 100.0, 1000, [10]) == 0
    assert Bm25.score([1, 1], 100, 100.0, 1000, [10, 10]) == pytest.approx(2 * base)
    assert base == pytest.approx(math.log(1 + 990.5 / 10.5))
    assert Bm25.score([1], 0, 0.0, 0, [0]) >= 0


def test_ranks_are_dense_and_undefined_scores_come_last() -> None:
    assert dense_ranks([0.5, 0.9, 0.5, U, 0.1]) == [2, 1, 2, 4, 3]
    assert dense_ranks([0.5, 0.9], best_is_largest=False) == [1, 2]


def test_fusion_adds_weighted_reciprocal_ranks() -> None:
    assert fuse_ranks([[3.0, 1.0], [1.0, 2.0]]) == pytest.approx([1 / 61 + 1 / 62, 1 / 62 + 1 / 61])
    assert fuse_ranks([[3.0, 1.0], [1.0, 2.0]], [2, 1]) == pytest.approx([2 / 61 + 1 / 62, 2 / 62 + 1 / 61])
    assert fuse_ranks([[3.0, 1.0]], [-1]) == pytest.approx([-1 / 62, -1 / 61])
    assert fuse_ranks([[3.0, 1.0]], None, [False]) == pytest.approx([1 / 62, 1 / 61])
    assert fuse_ranks([]) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([1, 0], [1, 1]), 0.7071067811865475),
        (([1, 0], [-1, 0]), -1),
        (([0, 0], [1, 1]), U),
        (([1, 2], [3, 4], False, {"distanceFunction": "DotProduct"}), 11),
        (([0, 0], [3, 4], True, {"distanceFunction": "euclidean", "dataType": "float32"}), 5),
        (([1], [1, 2]), U),
        (([], []), U),
        (([1, "2"], [1, 2]), U),
        (([1, True], [1, 2]), U),
        ((U, [1]), U),
        (([1], [1], "yes"), U),
        (([1], [1], U, U), 1),
        (([1e308, 1e308], [1e308, 1e308], False, {"distanceFunction": "dotproduct"}), U),
    ],
)
def test_vector_distance(arguments: tuple[Any, ...], expected: Any, call: Call) -> None:
    result = call("VECTORDISTANCE", *arguments)
    assert result == (expected if expected is U else pytest.approx(expected, abs=1e-6))


@pytest.mark.parametrize(
    "options",
    [{"distanceFunction": "manhattan"}, {"searchListSizeMultiplier": 101}, {"dataType": "int4"}, [], None],
)
def test_a_wrong_vector_option_is_an_error(options: Any, call: Call) -> None:
    with pytest.raises(PleiadError) as raised:
        call("VECTORDISTANCE", [1], [1], False, options)
    assert status_of(raised.value) == 400


def test_the_measure_comes_from_the_vector_policy() -> None:
    embedding = {"path": "/v", "dimensions": 2, "distanceFunction": "euclidean"}
    policy = {"vectorEmbeddings": [embedding, {"path": "/w", "distanceFunction": "dotproduct"}]}
    assert vector.metric_of_policy(policy, "/v") == "euclidean"
    assert vector.metric_of_policy(policy, "/w") == "dotproduct"
    assert vector.metric_of_policy(policy, "/x") == "cosine"
    one = QueryContext(vector_policy={"vectorEmbeddings": [embedding]})
    assert REGISTRY["VECTORDISTANCE"].call(one, [0, 0], [3, 4]) == 5
    assert vector.nearest_first_is_descending("cosine") is True
    assert vector.nearest_first_is_descending("euclidean") is False
