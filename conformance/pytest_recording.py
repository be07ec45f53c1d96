"""A pytest plugin, loaded into the official suite: selects the tests and records each result as it comes.

Results are appended line by line, so that a run that is killed half-way still leaves what it proved.
Environment: CONFORMANCE_GROUPS (comma-separated names, or "all") and CONFORMANCE_RESULTS (the file to
write). A test that `reasons.toml` leaves out by its name is recorded as left out and not run. A test that fails in
set-up, call or tear-down has failed; an expected failure counts as skipped.
"""

import json
import os
from pathlib import Path

import pytest

from conformance import reasons
from conformance.selection import groups_of

MESSAGE_LENGTH_MAX = 600


class Recorder:
    """Collects the phases of each test and writes one line when the test is over."""

    def __init__(self, results: Path, group_names: frozenset[str]) -> None:
        self._results = results
        self._group_names = group_names
        self._table = reasons.load()
        self._groups_by_id: dict[str, tuple[str, ...]] = {}
        self._outcome = "passed"
        self._message = ""
        self._duration_s = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests of the selected groups, without those that are left out by name."""
        kept: list[pytest.Item] = []
        dropped: list[pytest.Item] = []
        for item in items:
            file = item.nodeid.split("::", 1)[0]
            groups = groups_of(file, item.name, (mark.name for mark in item.iter_markers()))
            self._groups_by_id[item.nodeid] = groups
            selected = "all" in self._group_names or not self._group_names.isdisjoint(groups)
            if selected and self._table.left_out(item.nodeid) is not None:
                self._write_result(item.nodeid, "left out", "", 0.0)
                selected = False
            (kept if selected else dropped).append(item)
        items[:] = kept
        config.hook.pytest_deselected(items=dropped)

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
            self._write_result(report.nodeid, self._outcome, self._message, self._duration_s)

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that could not even be imported as one failed test."""
        if report.outcome == "failed":
            text = str(report.longrepr).strip()
            message = text.splitlines()[-1][:MESSAGE_LENGTH_MAX] if text else ""
            self._write_result(f"{report.nodeid}::(import)", "failed", message, 0.0)

    def _write_result(self, test_id: str, outcome: str, message: str, duration_s: float) -> None:
        record = {
            "id": test_id,
            "groups": list(self._groups_by_id.get(test_id, ())),
            "outcome": outcome,
            "message": message,
            "duration_s": round(duration_s, 3),
        }
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
