"""Compiled queries and a tree-walking interpreter give the same answers on random items and queries."""

from __future__ import annotations

import os
from typing import Any

import pytest

from pleiad.errors import PleiadError
from pleiad.limits import Limits
from pleiad.query import QueryContext
from pleiad.query.run import Query

CASES = 800
LONG_CASES = int(os.environ.get("PLEIAD_ORACLE_CASES", "100000"))


def disagreements(oracle: Any, generator: Any, seeds: range) -> list[str]:
    """A description of each seed on which the two differ."""
    limits, context = Limits(), QueryContext()
    found: list[str] = []
    for seed in seeds:
        made = generator.Generator(seed)
        items = made.items()
        text, parameters = made.query()
        try:
            expected = [oracle.canon(value) for value in oracle.run(text, items, parameters)]
        except oracle.OracleError:
            continue
        try:
            actual = [oracle.canon(value) for value in Query(text, limits).run(items, parameters, context)]
        except PleiadError as error:
            found.append(f"seed {seed}: {text}\n  items {items}\n  with {parameters}\n  failed: {error}")
            continue
        if expected != actual:
            found.append(
                f"seed {seed}: {text}\n  items {items}\n  with {parameters}\n  {expected}\n  {actual}"
            )
    return found


def test_compiled_queries_agree_with_the_oracle(oracle: Any, generator: Any) -> None:
    assert disagreements(oracle, generator, range(CASES)) == []


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_compiled_queries_agree_with_the_oracle_at_length(oracle: Any, generator: Any) -> None:
    assert disagreements(oracle, generator, range(CASES, CASES + LONG_CASES)) == []
