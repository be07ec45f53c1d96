"""The options that VectorDistance takes as its fourth argument, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pleiad.query.functions.numbers import number_text
from pleiad.query.values import is_number

_TEXTS: Final = {
    "distanceFunction": ("cosine", "dotproduct", "euclidean"),
    "dataType": ("float32", "float16", "int8", "uint8"),
}
_COUNTS: Final = {
    "searchListSizeMultiplier": ("SC2213", 100),
    "quantizedVectorListMultiplier": ("SC2214", 50),
}


def option_problems(name: str, value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of the error table, with their facts, that an option breaks; None is a value that is no literal."""
    if name in _TEXTS:
        if type(value) is not str:
            yield "SC2210 kind", {"name": name, "kind": "string"}
        elif value.lower() not in _TEXTS[name]:
            yield "SC2210 value", {"name": name, "value": value}
    elif name not in _COUNTS and name != "filterPriority":
        yield "SC2210 name", {"name": name}
    elif not is_number(value):
        yield "SC2210 kind", {"name": name, "kind": "number"}
    elif name == "filterPriority":
        if not 0 <= value <= 1:
            yield "SC2215", {}
    else:
        row, most = _COUNTS[name]
        if value != int(value):
            yield row + " whole", {}
        elif not 1 <= value <= most:
            yield row, {"value": number_text(value)}
