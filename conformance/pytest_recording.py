"""A pytest plugin, loaded into the official suite: selects the tests and records each result as it comes.

Results are appended line by line, so that a run that is killed half-way still leaves what it proved.
Environment: CONFORMANCE_GROUPS (comma-separated names, or "all") and CONFORMANCE_RESULTS (the file to
write). A test that fails in set-up, call or tear-down has failed; an expected failure counts as skipped.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from conformance.selection import groups_of, out_of_scope_marker

MESSAGE_LENGTH_MAX = 600


class Recorder:
    """Collects the phases of each test and writes one line when the test is over."""

    def __init__(self, results: Path, group_names: frozenset[str]) -> None:
        self._results = results
        self._group_names = group_names
        self._groups_by_id: dict[str, tuple[str, ...]] = {}
        self._outcome = "passed"
        self._message = ""
        self._duration_s = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests of the selected groups; count what is out of scope by its marker."""
        kept: list[pytest.Item] = []
        dropped: list[pytest.Item] = []
        out_of_scope: Counter[str] = Counter()
        for item in items:
            markers = frozenset(mark.name for mark in item.iter_markers())
            file = item.nodeid.split("::", 1)[0]
            groups = groups_of(file, item.name, markers)
            marker = out_of_scope_marker(markers)
            if marker is not None:
                out_of_scope[marker] += 1
            if groups and ("all" in self._group_names or not self._group_names.isdisjoint(groups)):
                self._groups_by_id[item.nodeid] = groups
                kept.append(item)
            else:
                dropped.append(item)
        items[:] = kept
        config.hook.pytest_deselected(items=dropped)
        self._write({"event": "collected", "out_of_scope": dict(out_of_scope)})

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Fold one phase into the outcome of its test, and write it after the tear-down."""
        if report.when == "setup":
            self._outcome, self._message, self._duration_s = "passed", "", 0.0
        self._duration_s += report.duration
        if report.outcome == "failed" and self._outcome != "failed":
            self._outcome, self._message = "failed", _message_of(report)
        elif report.outcome == "skipped" and self._outcome == "passed":
            self._outcome, self._message = "skipped", _message_of(report)
        if report.when == "teardown":
            self._write(
                {
                    "event": "test",
                    "id": report.nodeid,
                    "groups": list(self._groups_by_id.get(report.nodeid, ())),
                    "outcome": self._outcome,
                    "message": self._message,
                    "duration_s": round(self._duration_s, 3),
                }
            )

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that could not even be imported as one failed test."""
        if report.outcome == "failed":
            text = str(report.longrepr).strip()
            self._write(
                {
                    "event": "test",
                    "id": f"{report.nodeid}::(import)",
                    "groups": [],
                    "outcome": "failed",
                    "message": text.splitlines()[-1][:MESSAGE_LENGTH_MAX] if text else "",
                    "duration_s": 0.0,
                }
            )

    def _write(self, record: dict[str, Any]) -> None:
        with self._results.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record, ensure_ascii=True) + "\n")


def _message_of(report: pytest.TestReport) -> str:
    """Return the error on one line, so that reasons can be matched against it."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[-1])[:MESSAGE_LENGTH_MAX]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message) if crash is not None else str(report.longrepr or "")
    return " ".join(text.split())[:MESSAGE_LENGTH_MAX]


def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder for this run."""
    results = Path(os.environ["CONFORMANCE_RESULTS"])
    names = frozenset(os.environ["CONFORMANCE_GROUPS"].split(","))
    config.pluginmanager.register(Recorder(results, names), "pleiad-conformance")
