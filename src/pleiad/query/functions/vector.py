"""VECTORDISTANCE and the three measures behind it.

Cosine and dot product are similarities (more is nearer), euclidean is a distance (less is nearer). Vectors
of different lengths, or with an element that is no number, have no distance; neither has a zero vector by
cosine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import mul
from typing import Any

from pleiad import errors
from pleiad.query.context import QueryContext
from pleiad.query.functions.registry import register
from pleiad.query.pace import tick
from pleiad.query.values import is_number
from pleiad.values.undefined import UNDEFINED

METRICS = ("cosine", "dotproduct", "euclidean")
METRIC_DEFAULT = "cosine"
DATA_TYPES = ("float32", "float16", "int8", "uint8")

_ELEMENTS_OF_A_STEP = 16
_NUMBER_TYPES = frozenset((int, float))
_OPTION_RANGES = {
    "searchListSizeMultiplier": (1, 100),
    "quantizedVectorListMultiplier": (1, 100),
    "filterPriority": (0, 1),
}


def nearest_first_is_descending(metric: str) -> bool:
    """True when the nearest vectors have the largest values."""
    return metric != "euclidean"


def _is_vector(value: Any) -> bool:
    return type(value) is list and bool(value) and set(map(type, value)) <= _NUMBER_TYPES


def distance(a: Any, b: Any, metric: str) -> Any:
    """The measure between two vectors, UNDEFINED when they have none."""
    if type(a) is list:
        tick(len(a) // _ELEMENTS_OF_A_STEP)
    if not _is_vector(a) or not _is_vector(b) or len(a) != len(b):
        return UNDEFINED
    try:
        if metric == "euclidean":
            result = math.dist(a, b)
        elif metric == "dotproduct":
            result = float(sum(map(mul, a, b)))
        else:
            result = _cosine(a, b)
    except (OverflowError, ZeroDivisionError):
        return UNDEFINED
    return result if math.isfinite(result) else UNDEFINED


def _cosine(a: list[float], b: list[float]) -> float:
    similarity = sum(map(mul, a, b)) / (math.hypot(*a) * math.hypot(*b))
    # Rounding can carry parallel vectors a hair past the ends of the range.
    return float(max(-1.0, min(1.0, similarity)) if math.isfinite(similarity) else similarity)


def _named_metric(value: Any) -> str:
    name = value.lower() if type(value) is str else None
    if name not in METRICS:
        raise errors.QUERY_ERROR(
            reason=f"The distanceFunction of VectorDistance must be one of {', '.join(METRICS)}."
        )
    return str(name)


def metric_of_options(options: Any) -> str | None:
    """The measure that an options object names, None when it names none; checks every option."""
    if options is UNDEFINED:
        return None
    if type(options) is not dict:
        raise errors.QUERY_ERROR(reason="The options of VectorDistance must be an object.")
    for name, (low, high) in _OPTION_RANGES.items():
        value = options.get(name, low)
        if not is_number(value) or not low <= value <= high:
            raise errors.QUERY_ERROR(
                reason=f"The option {name} of VectorDistance must be a number from {low} to {high}."
            )
    data_type = options.get("dataType", DATA_TYPES[0])
    if type(data_type) is not str or data_type.lower() not in DATA_TYPES:
        raise errors.QUERY_ERROR(
            reason=f"The dataType of VectorDistance must be one of {', '.join(DATA_TYPES)}."
        )
    return _named_metric(options["distanceFunction"]) if "distanceFunction" in options else None


def metric_of_policy(policy: Mapping[str, Any] | None, path: str | None = None) -> str:
    """The measure a container's vector policy gives a path; without a path, the one all its paths share.

    The policy is the container's vectorEmbeddingPolicy. Cosine is the measure of a path it does not name.
    """
    embeddings = policy.get("vectorEmbeddings") if policy else None
    found = {
        str(embedding.get("distanceFunction", METRIC_DEFAULT)).lower()
        for embedding in (embeddings if type(embeddings) is list else [])
        if type(embedding) is dict and path in (None, embedding.get("path"))
    }
    metric = found.pop() if len(found) == 1 else METRIC_DEFAULT
    return metric if metric in METRICS else METRIC_DEFAULT


@register("vector", "VECTORDISTANCE", 2, 4, needs_context=True)
def vector_distance(
    context: QueryContext, a: Any, b: Any, brute_force: Any = False, options: Any = UNDEFINED
) -> Any:
    """The measure between two vectors; it is always computed exactly, so brute_force changes nothing."""
    metric = metric_of_options(options) or metric_of_policy(context.vector_policy)
    if brute_force is not UNDEFINED and type(brute_force) is not bool:
        return UNDEFINED
    return distance(a, b, metric)
