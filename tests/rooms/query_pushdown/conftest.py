"""What these tests share: limits, a way to bind a text, policies, and the public index metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pleiad.index.policy import IndexingPolicy
from pleiad.limits import Limits
from pleiad.query import Query, compile_query
from tests.project import REFERENCE

Bind = Callable[[str], Query]
Policy = Callable[..., IndexingPolicy]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests that name ``index_metrics_case`` run once for each public case."""
    if "index_metrics_case" in metafunc.fixturenames:
        path = REFERENCE / "engine_baselines.json"
        # The cases stand beside the checkout, not in it; without them the test has no case and is skipped.
        document = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        cases = document.get("index_metrics_emulator", [])
        metafunc.parametrize("index_metrics_case", cases, ids=[case["description"] for case in cases])


@pytest.fixture(scope="session")
def limits() -> Limits:
    return Limits()


@pytest.fixture(scope="session")
def compiled(limits: Limits) -> Bind:
    return lambda text: compile_query(text, limits)


@pytest.fixture(scope="session")
def policy(limits: Limits) -> Policy:
    """A policy with these composite indexes, written ``a+ b-``, and these sections."""

    def build(*composites: str, **sections: Any) -> IndexingPolicy:
        document: dict[str, Any] = dict(sections)
        if composites:
            document["compositeIndexes"] = [
                [
                    {"path": f"/{word[:-1]}", "order": "ascending" if word[-1] == "+" else "descending"}
                    for word in composite.split()
                ]
                for composite in composites
            ]
        return IndexingPolicy.from_json(document, limits)

    return build
