"""Full-text search: words of a text, the three CONTAINS functions, BM25 and the fusion of rankings.

A text becomes a list of stems: split into runs of letters and digits, lower-cased, English stop words and
single letters dropped, stemmed by the Snowball stemmer of the language. A search term goes through the
same steps, so a term of several words is a phrase of stems that must follow each other. A term may be an
object {"term": text, "distance": 0 to 2}: then each word may differ by that many edits.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from pleiad import errors
from pleiad.query.context import QueryContext
from pleiad.query.functions.registry import register
from pleiad.query.functions.stop_words import ENGLISH
from pleiad.query.pace import tick
from pleiad.query.values import and3, or3
from pleiad.values.undefined import UNDEFINED

LANGUAGE_DEFAULT = "en-US"
LANGUAGES = {
    "en-US": "english",
    "de-DE": "german",
    "es-ES": "spanish",
    "fr-FR": "french",
    "it-IT": "italian",
    "pt-PT": "portuguese",
    "pt-BR": "portuguese",
}
"""The stemmer of each language."""
_LOCALE_IDS = {
    "1033": "en-US",
    "1031": "de-DE",
    "1034": "es-ES",
    "3082": "es-ES",
    "1036": "fr-FR",
    "1040": "it-IT",
    "2070": "pt-PT",
    "1046": "pt-BR",
}
FUZZY_DISTANCE_MAX = 2
BM25_K1 = 1.2
BM25_B = 0.75
RRF_CONSTANT = 60

# A longer run of letters is no word of a language; stemming it would only cost time.
_STEM_CHARS_MAX = 64
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_stemming = threading.Lock()


@dataclass(frozen=True, slots=True)
class Term:
    """A search term: the stems of its words and how many edits each may be away."""

    stems: tuple[str, ...]
    distance: int = 0


@lru_cache(maxsize=len(LANGUAGES))
def _stemmer(name: str) -> Any:
    import snowballstemmer  # loaded by the first text that is searched

    return snowballstemmer.stemmer(name)


_WORDS_STEPS = 64
_EDIT_STEPS = 4
_Word = TypeVar("_Word")


@lru_cache(maxsize=65_536)
def _stem(word: str, language: str) -> str:
    # A stemmer keeps the word it works on in itself, so only one thread may use it at a time.
    with _stemming:
        return str(_stemmer(LANGUAGES[language]).stemWord(word))


def language_of(name: object) -> str | None:
    """The language a policy names, by its code or by its Windows locale id; None when there is no such language."""
    code = _LOCALE_IDS.get(name, name) if isinstance(name, str) else None
    return code if code in LANGUAGES else None


def tokenize(text: str, language: str = LANGUAGE_DEFAULT) -> list[str]:
    """The stems of the text's words in their order; an unknown language is an error."""
    known = language_of(language)
    if known is None:
        raise errors.QUERY_ERROR(
            reason=f"The full-text language '{language}' is not one of {', '.join(LANGUAGES)}."
        )
    words = [match[0].replace("’", "'") for match in _ticked(_WORD.finditer(text.lower()))]
    if known == LANGUAGE_DEFAULT:
        words = [word for word in words if (len(word) > 1 or word.isdigit()) and word not in ENGLISH]
    return [_stem(word, known) if len(word) <= _STEM_CHARS_MAX else word for word in _ticked(words)]


def _ticked(words: Iterable[_Word]) -> Iterator[_Word]:
    """The words one by one; each takes a few steps."""
    for number, word in enumerate(words):
        if not number & 15:
            tick(_WORDS_STEPS)
        yield word


def language_of_policy(policy: Mapping[str, Any] | None, path: str | None = None) -> str:
    """The language a container's full-text policy gives a path, or its default language."""
    if not policy:
        return LANGUAGE_DEFAULT
    paths = policy.get("fullTextPaths")
    for entry in paths if type(paths) is list else []:
        if type(entry) is dict and entry.get("path") == path and type(entry.get("language")) is str:
            return str(entry["language"])
    return str(policy.get("defaultLanguage") or LANGUAGE_DEFAULT)


def parse_term(value: Any, language: str = LANGUAGE_DEFAULT) -> Term | None:
    """The term a string or a fuzzy-term object stands for, None for anything else."""
    if type(value) is str:
        return Term(tuple(tokenize(value, language)))
    if type(value) is not dict or type(value.get("term")) is not str:
        return None
    distance = value.get("distance", 0)
    if type(distance) is float and distance.is_integer():
        distance = int(distance)
    if type(distance) is not int or not 0 <= distance <= FUZZY_DISTANCE_MAX:
        raise errors.QUERY_ERROR(
            reason=f"The distance of a full-text term must be a whole number from 0 to {FUZZY_DISTANCE_MAX}."
        )
    return Term(tuple(tokenize(value["term"], language)), distance)


def within_edits(a: str, b: str, distance: int) -> bool:
    """True when at most that many characters have to be inserted, deleted or replaced to make a into b."""
    if abs(len(a) - len(b)) > distance:
        return False
    if a == b:
        return True
    # Only cells at most `distance` from the diagonal can stay within it.
    far = distance + 1
    previous = {column: column for column in range(min(len(b), distance) + 1)}
    for row, char in enumerate(a, 1):
        tick(_EDIT_STEPS)
        current: dict[int, int] = {}
        for column in range(max(0, row - distance), min(len(b), row + distance) + 1):
            if column == 0:
                current[0] = row
                continue
            current[column] = min(
                previous.get(column - 1, far) + (char != b[column - 1]),
                previous.get(column, far) + 1,
                current.get(column - 1, far) + 1,
            )
        if min(current.values()) > distance:
            return False
        previous = current
    return previous.get(len(b), far) <= distance


def term_frequency(stems: Sequence[str], term: Term) -> int:
    """How often the term occurs among the stems of a text."""
    wanted = term.stems
    if not wanted or len(wanted) > len(stems):
        return 0
    if term.distance == 0:
        if len(wanted) == 1:
            return stems.count(wanted[0])
        first, rest = wanted[0], len(wanted)
        return sum(
            1
            for at, stem in enumerate(_ticked(stems))
            if stem == first and tuple(stems[at : at + rest]) == wanted
        )
    matches = [{stem for stem in set(stems) if within_edits(word, stem, term.distance)} for word in wanted]
    return sum(
        all(stems[at + offset] in match for offset, match in enumerate(matches))
        for at in _ticked(range(len(stems) - len(wanted) + 1))
    )


def contains_each(text: Any, terms: Sequence[Any], language: str = LANGUAGE_DEFAULT) -> list[Any]:
    """For each term whether the text contains it; UNDEFINED where text or term is no text."""
    parsed = [parse_term(term, language) for term in terms]
    if type(text) is not str:
        return [UNDEFINED] * len(parsed)
    stems = tokenize(text, language)
    return [UNDEFINED if term is None else term_frequency(stems, term) > 0 for term in parsed]


def _combined(combine: Callable[..., Any]) -> Callable[..., Any]:
    def call(context: QueryContext, text: Any, *terms: Any) -> Any:
        return combine(*contains_each(text, terms, language_of_policy(context.full_text_policy)))

    return call


register("fulltext", "FULLTEXTCONTAINS", 2, 2, also="FULLTEXT_CONTAINS", needs_context=True)(_combined(and3))
register("fulltext", "FULLTEXTCONTAINSALL", 2, None, also="FULLTEXT_CONTAINS_ALL", needs_context=True)(
    _combined(and3)
)
register("fulltext", "FULLTEXTCONTAINSANY", 2, None, also="FULLTEXT_CONTAINS_ANY", needs_context=True)(
    _combined(or3)
)


class Bm25:
    """The BM25 formula with the usual constants."""

    @staticmethod
    def inverse_document_frequency(document_count: int, hit_count: int) -> float:
        """Weight of a term that hit_count of document_count documents contain; never negative."""
        hits = max(0, min(hit_count, document_count))
        return math.log(1 + (document_count - hits + 0.5) / (hits + 0.5))

    @staticmethod
    def score(
        term_frequencies: Sequence[int],
        document_length: int,
        average_length: float,
        document_count: int,
        hit_counts: Sequence[int],
    ) -> float:
        """Score of a document from how often each term occurs in it and in how many documents it occurs."""
        relative_length = document_length / average_length if average_length > 0 else 1.0
        damping = BM25_K1 * (1 - BM25_B + BM25_B * relative_length)
        return sum(
            Bm25.inverse_document_frequency(document_count, hits)
            * frequency
            * (BM25_K1 + 1)
            / (frequency + damping)
            for frequency, hits in zip(term_frequencies, hit_counts, strict=True)
            if frequency > 0
        )


def dense_ranks(scores: Sequence[Any], best_is_largest: bool = True) -> list[int]:
    """The rank of each score from 1; equal scores share one and the next follows; UNDEFINED comes last."""
    defined = sorted({score for score in scores if score is not UNDEFINED}, reverse=best_is_largest)
    ranks = {score: rank for rank, score in enumerate(defined, 1)}
    return [len(defined) + 1 if score is UNDEFINED else ranks[score] for score in scores]


def fuse_ranks(
    components: Sequence[Sequence[Any]],
    weights: Sequence[float] | None = None,
    best_is_largest: Sequence[bool] | None = None,
) -> list[float]:
    """Reciprocal rank fusion: for each item the sum of weight / (60 + rank) over the components.

    A component holds one score per item. A negative weight turns the order of its component round, with what has no
    score still at the worse end.
    """
    if not components:
        return []
    factors = [1.0] * len(components) if weights is None else list(weights)
    largest = [True] * len(components) if best_is_largest is None else list(best_is_largest)
    fused = [0.0] * len(components[0])
    for scores, weight, descending in zip(components, factors, largest, strict=True):
        ranks = dense_ranks(scores, descending)
        if weight < 0:
            last = max(ranks, default=0)
            ranks = [last + 1 - rank for rank in ranks]
        for item, rank in enumerate(ranks):
            fused[item] += weight / (RRF_CONSTANT + rank)
    return fused
