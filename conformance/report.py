"""The findings of a run as text: a summary for the terminal and the page docs/compatibility.md.

Every failed test is named with its reason; a failure without one is called out, never hidden. The page
holds no dates, durations or random ids, so that it changes only when compatibility changes.
"""

import enum
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from conformance.reasons import Reason, Reasons
from conformance.results import Outcome, RunResults, Tally, TestResult
from conformance.selection import GROUP_NAMES, GROUPS, REST

MESSAGE_LENGTH_MAX = 200
IDS_SHOWN_MAX = 6
_GUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_RUN_ID = re.compile(r"(?<=PythonSDKTest-)[0-9a-f]{8}")
_ADDRESS = re.compile(r"0x[0-9a-f]+")


_RECORD = re.compile(r"^## The official Python suite.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LISTED = re.compile(r"^- `([^`]+::[^`]+)`", re.MULTILINE)


class Store(enum.Enum):
    """The store that the server ran on."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"

    @property
    def heading(self) -> str:
        return "## The official Python suite" + (" on PostgreSQL" if self is Store.POSTGRES else "")


@dataclass(frozen=True, slots=True)
class Run:
    """What the report is about."""

    suite_version: str
    store: Store
    command: str
    results: RunResults
    reasons: Reasons


def unexplained(run: Run) -> list[TestResult]:
    """Return the failed tests nobody has given a reason for."""
    return [test for test in _failed(run) if run.reasons.of(test) is None]


def summary(run: Run) -> str:
    """Return the summary for the terminal: counts by group, failures by reason, and what is unexplained."""
    lines = []
    for name, tests in _by_group(run):
        lines.append(f"{name}: {_counts(_tally(tests))}")
    lines.append(f"together: {_counts(_tally(run.results.tests))}")
    by_reason = _failures_by_reason(run)
    for reason, tests in by_reason.items():
        if reason is not None:
            lines.append(f"  {len(tests):4d} failed, {reason.kind.name}: {reason.text}")
    for reason in run.reasons.outlived(run.results.tests):
        lines.append(f"  outlived reason, every test of it passes: {', '.join(reason.tests)}")
    nameless = by_reason.get(None, [])
    if nameless:
        lines.append(f"NO REASON GIVEN for {len(nameless)} failed tests:")
        lines.extend(_by_message(nameless))
    return "\n".join(lines)


def page(run: Run, written: str) -> str:
    """Return docs/compatibility.md with the record of this run in place of the earlier one, and all else as it was."""
    records = {found.splitlines()[0]: found.strip() for found in _RECORD.findall(written)}
    on_sqlite = records.get(Store.SQLITE.heading, "")
    parts = [_what_was_run(run), _group_table(run)]
    if run.store is Store.SQLITE:
        parts += [_left_out(run), _file_table(run), _failure_list(run)]
    else:
        parts.append(_differences(run, set(_LISTED.findall(on_sqlite))))
    records[run.store.heading] = "\n\n".join(parts)
    shown = [records[store.heading] for store in Store if store.heading in records]
    return "\n\n".join([_RECORD.sub("", written).rstrip(), *shown]) + "\n"


def _what_was_run(run: Run) -> str:
    return (
        f"{run.store.heading}\n\n"
        "This part of the page is written by the command below; do not edit it by hand.\n\n"
        f"- Suite: the tests in the source distribution of azure-cosmos {run.suite_version}\n"
        f"- Command: `{run.command}`\n"
        f"- Result: {_counts(_tally(run.results.tests))}"
    )


def _differences(run: Run, failed_on_sqlite: set[str]) -> str:
    """Name the tests that one store fails and the other does not, of those that were run here."""
    lines = ["### Differences from SQLite\n"]
    for test in sorted(run.results.tests, key=lambda test: test.id):
        if test.outcome is Outcome.FAILED and test.id not in failed_on_sqlite:
            reason = run.reasons.of(test)
            why = reason.text if reason else f"no reason given: {_code(_steady(test.message))}"
            lines.append(f"- `{test.id}` fails on PostgreSQL only: {why}")
        elif test.outcome is Outcome.PASSED and test.id in failed_on_sqlite:
            lines.append(f"- `{test.id}` fails on SQLite only.")
    if len(lines) == 1:
        lines.append("None: every test that was run has the same result on both stores.")
    return "\n".join(lines)


def _group_table(run: Run) -> str:
    meanings = {group.name: group.meaning for group in (*GROUPS, REST)}
    rows = [
        "### By group\n\nA test can be in several groups; the total counts it once. The last column "
        "counts a test that was left out as failed.\n",
        "| group | what it covers | passed | failed | skipped | left out | passed of run | passed of all |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, tests in _by_group(run):
        rows.append(_group_row(name, meanings[name], _tally(tests)))
    rows.append(_group_row("total", "", _tally(run.results.tests)))
    return "\n".join(rows)


def _group_row(name: str, meaning: str, tally: Tally) -> str:
    counts = f"{tally.passed} | {tally.failed} | {tally.skipped} | {tally.left_out}"
    return (
        f"| {name} | {meaning} | {counts} | {_percent(tally.share_of_run)} | {_percent(tally.share_of_all)} |"
    )


def _left_out(run: Run) -> str:
    lines = [
        "### Left out",
        "",
        "Each of these was run and seen to fail for want of what is named, and is not run any more.",
    ]
    ids = {test.id for test in run.results.tests if test.outcome is Outcome.LEFT_OUT}
    for entry in run.reasons.omissions:
        named = [name for name in entry.tests if name in ids]
        if named:
            lines += [f"\n{entry.text} ({entry.kind.name})\n", *(f"- `{name}`" for name in named)]
    return "\n".join(lines) if ids else "### Left out\n\nNothing."


def _file_table(run: Run) -> str:
    by_file: dict[str, list[TestResult]] = defaultdict(list)
    for test in run.results.tests:
        by_file[test.file].append(test)
    rows = [
        "### By file\n",
        "| file | passed | failed | skipped | left out |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for file in sorted(by_file):
        tally = _tally(by_file[file])
        rows.append(f"| {file} | {tally.passed} | {tally.failed} | {tally.skipped} | {tally.left_out} |")
    return "\n".join(rows)


def _failure_list(run: Run) -> str:
    by_reason = _failures_by_reason(run)
    if not by_reason:
        return "### Failures\n\nNone."
    lines = ["### Failures"]
    nameless = by_reason.get(None, [])
    if nameless:
        lines.append(f"\n#### No reason given ({len(nameless)})\n")
        lines.extend(f"- `{test.id}`: {_code(_steady(test.message))}" for test in nameless)
    for kind in run.reasons.kinds:
        entries = [(entry, tests) for entry, tests in by_reason.items() if entry and entry.kind == kind]
        if not entries:
            continue
        lines.append(f"\n#### {kind.name} ({sum(len(tests) for _, tests in entries)})\n\n{kind.meaning}")
        for entry, tests in entries:
            lines.append(f"\n{entry.text}\n")
            lines.extend(f"- `{test.id}`" for test in tests)
    return "\n".join(lines)


def _failed(run: Run) -> list[TestResult]:
    return [test for test in run.results.tests if test.outcome is Outcome.FAILED]


def _failures_by_reason(run: Run) -> dict[Reason | None, list[TestResult]]:
    found: dict[Reason | None, list[TestResult]] = defaultdict(list)
    for test in sorted(_failed(run), key=lambda test: test.id):
        found[run.reasons.of(test)].append(test)
    return dict(found)


def _by_group(run: Run) -> list[tuple[str, list[TestResult]]]:
    named = [(name, [test for test in run.results.tests if name in test.groups]) for name in GROUP_NAMES]
    return [(name, tests) for name, tests in named if tests]


def _by_message(tests: Iterable[TestResult]) -> list[str]:
    """Return failures under their common error, the most frequent first: one cause often fails many tests."""
    ids_by_message: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        ids_by_message[_steady(test.message)].append(test.id)
    lines = []
    for message, ids in sorted(ids_by_message.items(), key=lambda entry: -len(entry[1])):
        lines.append(f"  {len(ids):4d} {message}")
        lines.extend(f"         {test_id}" for test_id in ids[:IDS_SHOWN_MAX])
        if len(ids) > IDS_SHOWN_MAX:
            lines.append(f"         and {len(ids) - IDS_SHOWN_MAX} more, all of them in the written page")
    return lines


def _tally(tests: Iterable[TestResult]) -> Tally:
    outcomes = [test.outcome for test in tests]
    return Tally(*(outcomes.count(outcome) for outcome in Outcome))


def _counts(tally: Tally) -> str:
    counts = (
        f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped, {tally.left_out} left out"
    )
    shares = f"{_percent(tally.share_of_run)} of those run, {_percent(tally.share_of_all)} of all"
    return f"{counts} ({shares})"


def _percent(share: float | None) -> str:
    """Round down, so that only a full hundred reads as one hundred."""
    return "-" if share is None else f"{int(share * 1000) / 10:.1f} %"


def _steady(message: str) -> str:
    """Shorten an error and take out what differs in every run."""
    text = _ADDRESS.sub("0x…", _RUN_ID.sub("<run>", _GUID.sub("<guid>", message)))
    return text if len(text) <= MESSAGE_LENGTH_MAX else text[: MESSAGE_LENGTH_MAX - 1] + "…"


def _code(text: str) -> str:
    return "`" + text.replace("`", "'") + "`"
