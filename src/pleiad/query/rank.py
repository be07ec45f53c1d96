"""Scores: VectorDistance, full-text functions that look at the container's policies, and ORDER BY RANK.

The scores of ORDER BY RANK are BM25 over the rows that match the query, vector measures, or both fused by
reciprocal rank. Best comes first whatever direction is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pleiad.keys.undefined import UNDEFINED
from pleiad.query.bind_rank import weights_error
from pleiad.query.context import QueryContext
from pleiad.query.functions import fulltext, vector
from pleiad.query.functions.registry import Function
from pleiad.query.plan import Constant, Expression, Parameter, Rank, RankComponent
from pleiad.query.values import and3, finite, hash_key, is_number, or3


def _metric(context: QueryContext, path: str | None, options: Any) -> str:
    return vector.metric_of_options(options) or vector.metric_of_policy(context.vector_policy, path)


def vector_distance(
    context: QueryContext,
    path: str | None,
    a: Any,
    b: Any,
    brute_force: Any = False,
    options: Any = UNDEFINED,
) -> Any:
    """The measure between two vectors, the policy of the first one's path giving the default measure."""
    if brute_force is not UNDEFINED and brute_force.__class__ is not bool:
        return UNDEFINED
    return vector.distance(a, b, _metric(context, path, options))


def nearness(
    context: QueryContext,
    path: str | None,
    a: Any,
    b: Any,
    brute_force: Any = False,
    options: Any = UNDEFINED,
) -> float:
    """A sort key for VectorDistance that puts the most similar first and what has no distance last."""
    measure = vector_distance(context, path, a, b, brute_force, options)
    if measure is UNDEFINED:
        return math.inf
    is_similarity = vector.nearest_first_is_descending(_metric(context, path, options))
    return float(-measure if is_similarity else measure)


def more_is_nearer(
    arguments: Sequence[Expression], parameters: Mapping[str, Any], policy: Mapping[str, Any] | None
) -> bool:
    """Whether the measure of a bound VectorDistance, whose first argument is its path, is a similarity."""
    path = arguments[0].value if isinstance(arguments[0], Constant) else None
    options: Any = UNDEFINED
    if len(arguments) > 4:
        given = arguments[4]
        if isinstance(given, Constant):
            options = given.value
        elif isinstance(given, Parameter):
            options = parameters.get(given.name, UNDEFINED)
    metric = vector.metric_of_options(options) or vector.metric_of_policy(policy, path)
    return vector.nearest_first_is_descending(metric)


def _contains(combine: Callable[..., Any]) -> Callable[..., Any]:
    def call(context: QueryContext, path: str | None, text: Any, *terms: Any) -> Any:
        language = fulltext.language_of_policy(context.full_text_policy, path)
        return combine(*fulltext.contains_each(text, terms, language))

    return call


def _word_count(context: QueryContext, path: str | None, text: Any) -> Any:
    """The number of words of a text that full-text statistics count."""
    if text.__class__ is not str:
        return UNDEFINED
    return len(fulltext.tokenize(text, fulltext.language_of_policy(context.full_text_policy, path)))


def _score(
    context: QueryContext, path: str | None, text: Any, terms: Any, documents: Any, words: Any, hits: Any
) -> Any:
    """BM25 of one text with statistics that the client gathered before."""
    well_formed = terms.__class__ is list and hits.__class__ is list and len(terms) == len(hits)
    if not well_formed or not is_number(documents) or not is_number(words) or not all(map(is_number, hits)):
        return UNDEFINED
    if text.__class__ is not str:
        return UNDEFINED
    language = fulltext.language_of_policy(context.full_text_policy, path)
    parsed = [fulltext.parse_term(term, language) for term in terms]
    stems = fulltext.tokenize(text, language)
    counts = [0 if term is None else fulltext.term_frequency(stems, term) for term in parsed]
    average = words / documents if documents > 0 else 0.0
    return finite(
        fulltext.Bm25.score(counts, len(stems), average, int(documents), [int(hit) for hit in hits])
    )


VECTOR_DISTANCE: Final = Function("VECTORDISTANCE", "vector", 2, 4, vector_distance, True)
INTERNAL_FUNCTIONS: Final[dict[str, Function]] = {
    "VECTORDISTANCE": VECTOR_DISTANCE,
    "FULLTEXTCONTAINS": Function("FULLTEXTCONTAINS", "fulltext", 2, 2, _contains(and3), True),
    "FULLTEXTCONTAINSALL": Function("FULLTEXTCONTAINSALL", "fulltext", 2, None, _contains(and3), True),
    "FULLTEXTCONTAINSANY": Function("FULLTEXTCONTAINSANY", "fulltext", 2, None, _contains(or3), True),
    "_FULLTEXTWORDCOUNT": Function("_FULLTEXTWORDCOUNT", "fulltext", 1, 1, _word_count, True),
    "_FULLTEXTSCORE": Function("_FULLTEXTSCORE", "fulltext", 5, 5, _score, True),
}
"""Functions that take the policy path of their first argument in front of it, by upper-case name."""


def rank_order(
    rank: Rank,
    inputs: Sequence[tuple[tuple[Any, ...], ...]],
    context: QueryContext,
    parameters: Any,
) -> list[int]:
    """The positions of the rows, best first; ``inputs`` has for each row the arguments of each score."""
    columns = [
        _component_scores(component, [row[number] for row in inputs], context)
        for number, component in enumerate(rank.components)
    ]
    if len(columns) == 1 and rank.weights is None and rank.weights_parameter is None:
        scores, best_is_largest = columns[0]
        sign = -1.0 if best_is_largest else 1.0
        ordered = [math.inf if score is UNDEFINED else sign * score for score in scores]
    else:
        weights = _weights(rank, parameters)
        fused = fulltext.fuse_ranks([scores for scores, _ in columns], weights, [best for _, best in columns])
        ordered = [-score for score in fused]
    return sorted(range(len(inputs)), key=ordered.__getitem__)


def _weights(rank: Rank, parameters: Any) -> Sequence[float] | None:
    if rank.weights_parameter is None:
        return rank.weights
    given = parameters[rank.weights_parameter.name]
    if given.__class__ is not list or len(given) != len(rank.components) or not all(map(is_number, given)):
        raise weights_error()
    weights: list[float] = given
    return weights


def _component_scores(
    component: RankComponent, inputs: list[tuple[Any, ...]], context: QueryContext
) -> tuple[list[Any], bool]:
    """The score of each row and whether larger is better."""
    if component.is_full_text:
        return _full_text_scores(inputs, context), True
    if not inputs:
        return [], True
    options = inputs[0][4] if len(inputs[0]) > 4 else UNDEFINED
    metric = _metric(context, inputs[0][0], options)
    scores = [vector_distance(context, *arguments) for arguments in inputs]
    return scores, vector.nearest_first_is_descending(metric)


def _full_text_scores(inputs: list[tuple[Any, ...]], context: QueryContext) -> list[Any]:
    if not inputs:
        return []
    language = fulltext.language_of_policy(context.full_text_policy, inputs[0][0])
    parsed: dict[Any, fulltext.Term | None] = {}
    frequencies: list[list[int]] = []
    lengths: list[int] = []
    for _, text, *terms in inputs:
        context.tick()
        stems = fulltext.tokenize(text, language) if text.__class__ is str else []
        counts: list[int] = []
        for term in terms:
            key = hash_key(term)
            if key not in parsed:
                parsed[key] = fulltext.parse_term(term, language)
            known = parsed[key]
            counts.append(0 if known is None else fulltext.term_frequency(stems, known))
        frequencies.append(counts)
        lengths.append(len(stems))
    hits = [sum(1 for counts in frequencies if counts[number]) for number in range(len(frequencies[0]))]
    average = sum(lengths) / len(lengths)
    return [
        fulltext.Bm25.score(counts, length, average, len(inputs), hits)
        for counts, length in zip(frequencies, lengths, strict=True)
    ]
