"""What the query tests share: the files beside them and a short way to run a query."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pleiad.limits import Limits
from pleiad.query import QueryContext, compile_query
from tests.project import REFERENCE

Run = Callable[..., list[Any]]


def load_beside(name: str) -> Any:
    """The module of that file beside this one."""
    known = f"query_tests_{name}"
    if known not in sys.modules:
        specification = importlib.util.spec_from_file_location(known, Path(__file__).with_name(f"{name}.py"))
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.modules[known] = module
        specification.loader.exec_module(module)
    return sys.modules[known]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests that name ``example`` or ``baseline_<kind>`` run once for each public case of that kind."""
    for name in metafunc.fixturenames:
        if name == "example":
            cases = _read(REFERENCE / "query_examples.json").get("cases", [])
            metafunc.parametrize(name, cases, ids=[case["id"] for case in cases])
        elif name.startswith("baseline_"):
            document = _read(REFERENCE / "engine_baselines.json")
            cases = document.get(name.removeprefix("baseline_"), [])
            for case in cases:
                case["items"] = document["datasets"].get(case.get("dataset"))
            metafunc.parametrize(name, cases, ids=range(len(cases)))


def _read(path: Path) -> Any:
    """A file of public cases; they stand beside the checkout, and without them their tests are skipped."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


@pytest.fixture(scope="session")
def limits() -> Limits:
    return Limits()


@pytest.fixture(scope="session")
def context(limits: Limits) -> QueryContext:
    return QueryContext(limits=limits)


@pytest.fixture(scope="session")
def run(limits: Limits, context: QueryContext) -> Run:
    """Run a query text over items with parameters."""

    def execute(
        text: str,
        items: Iterable[dict[str, Any]] = (),
        parameters: Mapping[str, Any] | None = None,
        given: QueryContext | None = None,
    ) -> list[Any]:
        return compile_query(text, limits).run(items, parameters or {}, given or context)

    return execute


@pytest.fixture(scope="session")
def oracle() -> Any:
    return load_beside("oracle")


@pytest.fixture(scope="session")
def generator() -> Any:
    return load_beside("generator")
