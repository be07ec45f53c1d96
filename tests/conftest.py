"""What every test shares: the record of which requirement ids were shown, and the stores tests run on.

A test claims ids with ``@pytest.mark.requirement("R3", "R21")``. A full run (no paths, no selection) writes
``build/requirements.json``, {id: {"passed": [test], "failed": [test]}}, which ``make requirements`` reads. A
skipped test shows nothing and is in neither list.
"""

from __future__ import annotations

import gc
import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.coroutines", "tests.stores"]

# No test depends on time: on a busy machine an example may take as long as it takes. Nor on luck: the same code has
# the same examples, and others, and more of them, where they are asked for by `--hypothesis-profile explore`.
settings.register_profile(
    "pleiad", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("explore", settings.get_profile("pleiad"), derandomize=False, max_examples=2_000)
settings.load_profile("pleiad")

_FOLDERS_FIRST = ("tests/test_", "tests/proofs/", "tests/clients/")
_claims = pytest.StashKey[dict[str, tuple[str, ...]]]()
_outcomes = pytest.StashKey[dict[str, str]]()


class _RequirementRecord:
    """Collects the outcome of each test that claims a requirement."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        config.stash[_claims] = {}
        config.stash[_outcomes] = {}

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        ids = tuple(str(name) for marker in item.iter_markers("requirement") for name in marker.args)
        if ids:
            self._config.stash[_claims][item.nodeid] = ids

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcomes = self._config.stash[_outcomes]
        if report.failed:
            outcomes[report.nodeid] = "failed"
        elif report.passed and report.when == "call":
            outcomes.setdefault(report.nodeid, "passed")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not _is_full_run(session.config):
            return
        path = session.config.rootpath / "build" / "requirements.json"
        _write_record(path, session.config.stash[_claims], session.config.stash[_outcomes])


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_RequirementRecord(config), "requirement-record")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first: one that begins when the others are done would hold up a run of several processes.

    Those of the root build and run whole programs, proofs are few and long, clients wait for servers, and rooms are
    many and short.
    """
    items.sort(key=lambda item: [not item.nodeid.startswith(folder) for folder in _FOLDERS_FIRST])


def pytest_collection_finish() -> None:
    """Ten thousand tests are a million objects that stay to the end: the garbage collector need not go through them."""
    gc.freeze()


@pytest.fixture(scope="session")
def claimed_requirements(request: pytest.FixtureRequest) -> dict[str, tuple[str, ...]]:
    """The requirement ids that each collected test claims."""
    return request.config.stash[_claims]


@pytest.fixture(scope="session")
def project_root(request: pytest.FixtureRequest) -> Path:
    """The root folder of the project."""
    return request.config.rootpath


def _is_full_run(config: pytest.Config) -> bool:
    # The long proofs have their own verb, so leaving them out still counts as the whole suite.
    selected = config.getoption("keyword") or config.getoption("markexpr") not in ("", "not long")
    collect_only = config.getoption("collectonly")
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not selected and not collect_only


def _write_record(path: Path, claims: dict[str, tuple[str, ...]], outcomes: dict[str, str]) -> None:
    record: dict[str, dict[str, list[str]]] = defaultdict(lambda: {"passed": [], "failed": []})
    for test, ids in claims.items():
        for requirement in ids:
            lists = record[requirement]
            if test in outcomes:
                lists[outcomes[test]].append(test)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
