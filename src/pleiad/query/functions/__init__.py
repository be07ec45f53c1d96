"""Built-in functions of the query language, one file a family; REGISTRY holds them all by upper-case name.

Importing this room fills the table. The libraries behind patterns, geometry and stemming are loaded by the
first call that needs them.
"""

from __future__ import annotations

from pleiad.query.functions import (
    arrays,
    conditional,
    conversions,
    dates,
    fulltext,
    integers,
    items,
    math,
    regex,
    spatial,
    strings,
    types,
    vector,
)
from pleiad.query.functions.registry import REGISTRY, Function

__all__ = [
    "REGISTRY",
    "Function",
    "arrays",
    "conditional",
    "conversions",
    "dates",
    "fulltext",
    "integers",
    "items",
    "math",
    "regex",
    "spatial",
    "strings",
    "types",
    "vector",
]
