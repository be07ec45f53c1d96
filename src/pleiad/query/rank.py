"""Scores: VectorDistance, full-text functions that look at the container's policies, and ORDER BY RANK.

The scores of ORDER BY RANK are BM25 over all rows, those that match the query or not, vector measures, or both fused
by reciprocal rank. Best comes first whatever direction is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from pleiad.query.bind.rank import weights_error
from pleiad.query.context import QueryContext
from pleiad.query.functions import fulltext, vector
from pleiad.query.functions.registry import Function
from pleiad.query.plan import Constant, Expression, Parameter, Rank, RankComponent
from pleiad.query.values import and3, finite, hash_key, is_number, or3
from pleiad.values.undefined import UNDEFINED


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
    "_VECTORSCORE": Function("_VECTORSCORE", "vector", 2, 4, vector_distance, True),
    "_FULLTEXTWORDCOUNT": Function("_FULLTEXTWORDCOUNT", "fulltext", 1, 1, _word_count, True),
    "_FULLTEXTSCORE": Function("_FULLTEXTSCORE", "fulltext", 5, 5, _score, True),
}
"""Functions that take the policy path of their first argument in front of it, by upper-case name."""


class Ranking:
    """The rows of a query with ORDER BY RANK: taken one by one, given best first when all are there.

    The statistics of BM25 are those of all rows that are taken, so that a filter changes which rows are given and
    not how they score; a client that merges partitions by the query plan gathers the same ones.
    """

    __slots__ = ("_context", "_functions", "_kept", "_parameters", "_rank", "_texts")

    def __init__(
        self, rank: Rank, context: QueryContext, parameters: Mapping[str, Any], functions: Mapping[str, Any]
    ) -> None:
        self._rank = rank
        self._context = context
        self._parameters = parameters
        self._functions = functions
        self._kept: list[tuple[int, tuple[Any, ...], list[Any]]] = []
        self._texts = [
            _TextScores(context, component) if component.is_full_text else None
            for component in rank.components
        ]

    def take(self, items: Iterable[dict[str, Any]], number: int = 0) -> bool:
        """Counts the rows of the items and keeps those that pass the filter; whether there are any.

        Equal scores go by the number of the document and then as they came: upwards where the lowest score is the
        best, and downwards else.
        """
        before = len(self._kept)
        has_texts = any(self._texts)
        passes, inputs = self._functions["passes"], self._functions["rank_inputs"]
        for row in self._functions["all_rows"](items):
            is_kept = passes(*row)
            if not is_kept and not has_texts:
                continue
            given = inputs(*row)
            texts = [
                None if scores is None else scores.count(arguments)
                for scores, arguments in zip(self._texts, given, strict=True)
            ]
            if is_kept:
                measured = [
                    vector_distance(self._context, *arguments) if scores is None else counts
                    for scores, arguments, counts in zip(self._texts, given, texts, strict=True)
                ]
                self._kept.append((number, row, measured))
        return len(self._kept) > before

    def best_first(self) -> list[tuple[Any, ...]]:
        """The rows that passed the filter."""
        columns = [self._column(number) for number in range(len(self._rank.components))]
        weights = _weights(self._rank, self._parameters)
        turned = -1
        if len(columns) == 1 and weights is None:
            scores, best_is_largest = columns[0]
            turned = -1 if best_is_largest else 1
            ordered = [math.inf if score is UNDEFINED else turned * score for score in scores]
        elif self._rank.fusion == "COMBINEDSCORE":
            each_weight = weights or [1.0] * len(columns)
            ordered = [
                -sum(
                    weight * scores[number]
                    for weight, (scores, _) in zip(each_weight, columns, strict=True)
                    if scores[number] is not UNDEFINED
                )
                for number in range(len(self._kept))
            ]
        else:
            fused = fulltext.fuse_ranks(
                [scores for scores, _ in columns], weights, [best for _, best in columns]
            )
            ordered = [-score for score in fused]
        kept = self._kept
        places = sorted(
            range(len(kept)), key=lambda place: (ordered[place], turned * kept[place][0], turned * place)
        )
        return [kept[place][1] for place in places]

    def _column(self, number: int) -> tuple[list[Any], bool]:
        """The score of each row by one component, and whether larger is better."""
        measured = [each[number] for _, _, each in self._kept]
        scores = self._texts[number]
        if scores is not None:
            return [scores.score(counts) for counts in measured], True
        component = self._rank.components[number]
        return measured, more_is_nearer(component.arguments, self._parameters, self._context.vector_policy)


class _TextScores:
    """BM25 of one component over the rows counted."""

    __slots__ = ("_context", "_documents", "_hits", "_language", "_parsed", "_words")

    def __init__(self, context: QueryContext, component: RankComponent) -> None:
        path, _, *terms = component.arguments
        self._context = context
        policy_path = path.value if isinstance(path, Constant) else None
        self._language = fulltext.language_of_policy(context.full_text_policy, policy_path)
        self._parsed: dict[Any, fulltext.Term | None] = {}
        self._documents = 0
        self._words = 0
        self._hits = [0] * len(terms)

    def count(self, arguments: tuple[Any, ...]) -> tuple[list[int], int] | None:
        """How often each term is in a text, and the words of the text; None for what is no text."""
        self._context.pace.tick()
        self._documents += 1
        _, text, *terms = arguments
        if text.__class__ is not str:
            return None
        stems = fulltext.tokenize(text, self._language)
        counts = [self._frequency(stems, term) for term in terms]
        self._words += len(stems)
        self._hits = [hits + (count > 0) for hits, count in zip(self._hits, counts, strict=True)]
        return counts, len(stems)

    def _frequency(self, stems: list[str], term: Any) -> int:
        key = hash_key(term)
        if key not in self._parsed:
            self._parsed[key] = fulltext.parse_term(term, self._language)
        known = self._parsed[key]
        return 0 if known is None else fulltext.term_frequency(stems, known)

    def score(self, counted: tuple[list[int], int] | None) -> Any:
        if counted is None:
            return UNDEFINED
        counts, length = counted
        average = self._words / self._documents
        return finite(fulltext.Bm25.score(counts, length, average, self._documents, self._hits))


def _weights(rank: Rank, parameters: Mapping[str, Any]) -> Sequence[float] | None:
    if rank.weights_parameter is None:
        return rank.weights
    given = parameters.get(rank.weights_parameter.name)
    if given.__class__ is not list or len(given) != len(rank.components) or not all(map(is_number, given)):
        raise weights_error()
    weights: list[float] = given
    return weights
