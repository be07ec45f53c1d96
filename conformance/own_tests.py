"""The tests that come inside a client's package: how they ended, their reasons, and their table in the page.

A failure is explained by an entry of the reasons.toml in the client's folder. One without an entry, and an entry whose
test passes, make the command fail.
"""

import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from conformance.client_program import (
    EXIT_LEFT_OUT,
    EXIT_NOT_STARTED,
    BuildFailedError,
    ToolMissingError,
    require_tools,
)
from conformance.server_process import ServerUnavailableError, stop_children_when_terminated

FOLDER = Path(__file__).resolve().parent
PAGE_FILE = FOLDER.parent / "docs" / "compatibility.md"

LINE_LENGTH = 120


class Verdict(StrEnum):
    """How a test ended."""

    PASSED = "ok"
    SKIPPED = "skip"
    FAILED = "FAIL"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one test ended, with the first lines of what it said if it failed."""

    name: str
    verdict: Verdict
    message: str = ""


def run_suite(
    title: str, tool: str, run: Callable[[], tuple[str, Sequence[Outcome]]], is_written: bool
) -> int:
    """Run the tests of a client, tell how they ended and write it into the page; return the exit code.

    `run` gives what the page says before their table, and how they ended.
    """
    stop_children_when_terminated()
    try:
        require_tools(title, tool)
        lead, outcomes = run()
    except ToolMissingError as error:
        print(error, file=sys.stderr)
        return EXIT_LEFT_OUT
    except (BuildFailedError, ServerUnavailableError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return EXIT_NOT_STARTED
    reasons = known_reasons(title.lower())
    if is_written:
        write(section(f"The {title} client's own tests", lead, outcomes, reasons))
    return told(outcomes, reasons)


def known_reasons(client: str) -> dict[str, str]:
    """Return why tests of the client fail, by their names."""
    known = tomllib.loads((FOLDER / client / "reasons.toml").read_text(encoding="utf-8"))["known"]
    return {str(name): str(reason) for name, reason in known.items()}


def told(outcomes: Sequence[Outcome], reasons: Mapping[str, str]) -> int:
    """Print every outcome and what the reasons leave open; return the exit code."""
    for outcome in outcomes:
        print(f"{outcome.verdict:<5} {outcome.name}  {outcome.message}".rstrip())
    failed = {outcome.name for outcome in outcomes if outcome.verdict is Verdict.FAILED}
    print(_counts(outcomes))
    for name in sorted(failed ^ set(reasons)):
        print(f"{name}: {'fails without a reason' if name in failed else 'passes, its reason can go'}")
    return 0 if failed == set(reasons) else 1


def section(heading: str, lead: str, outcomes: Sequence[Outcome], reasons: Mapping[str, str]) -> str:
    """Return the part of the page that tells of these tests."""
    failed = [outcome for outcome in outcomes if outcome.verdict is Verdict.FAILED]
    rows = [f"| `{outcome.name}` | {reasons.get(outcome.name, 'not explained yet')} |" for outcome in failed]
    paragraph = textwrap.fill(lead, LINE_LENGTH, break_on_hyphens=False, break_long_words=False)
    lines = [f"## {heading}", "", paragraph, "", f"{_counts(outcomes)}."]
    if rows:
        lines += ["", "| test that fails | reason |", "| --- | --- |", *rows]
    return "\n".join(lines)


def written(text: str, part: str) -> str:
    """Return the text of a page with the part in place of the one that has the same heading."""
    heading = part.splitlines()[0]
    found = re.compile(rf"^{re.escape(heading)}$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    replaced, count = found.subn(lambda _: f"{part}\n\n", text)
    if count != 1:
        raise ValueError(f"the page has no part {heading!r} to be replaced")
    return replaced


def write(part: str) -> None:
    """Put the part into docs/compatibility.md."""
    PAGE_FILE.write_text(written(PAGE_FILE.read_text(encoding="utf-8"), part), encoding="utf-8")


def _counts(outcomes: Sequence[Outcome]) -> str:
    verdicts = [outcome.verdict for outcome in outcomes]
    passed, failed = verdicts.count(Verdict.PASSED), verdicts.count(Verdict.FAILED)
    share = f"{passed / (passed + failed):.1%}".replace("%", " %") if passed + failed else "-"
    return (
        f"{passed} passed, {failed} failed, {verdicts.count(Verdict.SKIPPED)} skipped ({share} of those run)"
    )
