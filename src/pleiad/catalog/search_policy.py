"""The policies of vector and full-text search: checked when a container is defined, kept as given.

Embeddings have a path, a data type, a number of dimensions and a measure of distance; full-text paths have a
language whose words can be split and stemmed.
"""

from __future__ import annotations

from typing import Any

from pleiad import errors
from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query.functions.fulltext import LANGUAGES, language_of

_DATA_TYPES = frozenset({"float32", "float16", "int8", "uint8"})
_DISTANCES = frozenset({"cosine", "euclidean", "dotproduct"})


def check_full_text(policy: object) -> None:
    """Refuses a full-text policy with a path that is none or a language nobody can split."""
    if policy is None:
        return
    if not isinstance(policy, dict):
        raise _invalid("'fullTextPolicy' must be an object.")
    _check_language(policy.get("defaultLanguage", "en-US"))
    for entry in _entries(policy.get("fullTextPaths", []), "fullTextPaths"):
        path = entry.get("path")
        if not isinstance(path, str) or not path.startswith("/"):
            raise _invalid(f"The Full Text Policy contains an invalid Path: {path}.")
        _check_language(entry.get("language", "en-US"))


def embedding_dimensions(policy: object, limits: Limits) -> dict[str, int] | None:
    """The dimensions of each embedding of a vector policy, checked; None without a policy."""
    if policy is None:
        return None
    if not isinstance(policy, dict):
        raise _invalid("'vectorEmbeddingPolicy' must be an object.")
    found: dict[str, int] = {}
    for entry in _entries(policy.get("vectorEmbeddings", []), "vectorEmbeddings"):
        path, dimensions = entry.get("path"), entry.get("dimensions")
        if not isinstance(path, str) or not path.startswith("/"):
            raise _invalid(f"The Vector Embedding Policy contains an invalid Path: {path}.")
        if path in found:
            raise _invalid(f"Duplicate Path :{path} found in Vector Embedding Policy.")
        if type(dimensions) is int and dimensions < 0:
            # The Python client's tests look for these words; of 0 the service has others.
            raise _invalid(
                f"The Vector Embedding Policy has Dimensions:{dimensions} which is no positive integer."
            )
        if type(dimensions) is not int or dimensions < 1:
            problem = f"invalid Dimensions:{dimensions}, it should be positive integer"
            raise _invalid(f"The Vector Embedding Policy has {problem}.")
        if dimensions > limits.vector_dimensions:
            raise _invalid(
                f"The Vector Embedding Policy has Dimensions:{dimensions} which is more than the maximum supported "
                f"value; the maximum is {limits.vector_dimensions}."
            )
        if str(entry.get("dataType", "float32")).lower() not in _DATA_TYPES:
            raise _invalid(f"The Vector Embedding Policy has an invalid DataType for Path {path}.")
        if str(entry.get("distanceFunction", "cosine")).lower() not in _DISTANCES:
            given = entry.get("distanceFunction")
            raise _invalid(
                f"The Vector Embedding Policy has an invalid DistanceFunction:{given} for Path {path}."
            )
        found[path] = dimensions
    return found


def check_replacement(old: dict[str, Any], new: dict[str, Any]) -> None:
    """What a container's vectors are measured by is for its lifetime: paths may be added, not changed."""
    _check_kept(
        old.get("vectorEmbeddingPolicy", {}).get("vectorEmbeddings", []),
        new.get("vectorEmbeddingPolicy", {}).get("vectorEmbeddings", []),
        "embedding policy",
    )
    _check_kept(
        old["indexingPolicy"].get("vectorIndexes", []),
        new["indexingPolicy"].get("vectorIndexes", []),
        "vector indexing policy",
    )


def _check_kept(old: list[dict[str, Any]], new: list[dict[str, Any]], what: str) -> None:
    after = {entry["path"]: entry for entry in new}
    if any(after.get(entry["path"], entry) != entry for entry in old):
        raise _invalid(f"Paths in existing {what} cannot be modified in Collection Replace.")


def _entries(given: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not all(isinstance(entry, dict) for entry in given):
        raise _invalid(f"'{name}' must be a list of objects.")
    return given


def _check_language(language: object) -> None:
    if language_of(language) is None:
        known = ", ".join(f'"{code}"' for code in LANGUAGES)
        raise _invalid(
            f"The Full Text Policy contains an unsupported language {language}. Supported languages are: {known}."
        )


def _invalid(reason: str) -> PleiadError:
    return errors.BAD_REQUEST(reason=f"One of the specified inputs is invalid. {reason}")
